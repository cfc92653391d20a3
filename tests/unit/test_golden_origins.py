"""Every golden case says its engine, its version, its flags, how it was obtained and where from: `tests/golden/origins.toml`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
SAID = ("engine", "version", "obtained", "source")
Json = Mapping[str, object]


def origins() -> dict[str, dict[str, object]]:
    return tomllib.loads((GOLDEN / "origins.toml").read_text(encoding="utf-8"))


def cases(name: str) -> list[Json]:
    folder = GOLDEN / name
    if folder.is_dir():
        files = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
        return [{**file, **run} for file in files for run in file.get("runs", ({},))]
    data: list[Json] = json.loads(folder.with_suffix(".json").read_text(encoding="utf-8"))
    return data


def field(case: Json, path: str) -> object:
    value: object = case
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def told(case: Json, rule: object) -> object:
    """What a case says of itself, by a rule of the table: the same for all, or one of its fields."""
    if isinstance(rule, Mapping):
        return field(case, str(rule["field"])) or rule.get("otherwise")
    return rule


def test_every_golden_file_has_its_origin() -> None:
    files = {path.stem for path in GOLDEN.glob("*.json")} | {path.name for path in GOLDEN.iterdir() if path.is_dir()}
    assert files == set(origins())


@pytest.mark.parametrize("name", origins())
def test_every_case_says_where_it_is_from(name: str) -> None:
    origin = origins()[name]
    silent = [(number, key) for number, case in enumerate(cases(name)) for key in SAID if not str(told(case, origin[key]) or "").strip()]
    assert silent == []


@pytest.mark.parametrize("name", origins())
def test_every_case_states_its_flags(name: str) -> None:
    flags = origins()[name]["flags"]
    assert isinstance(flags, list) and flags
    assert [(number, flag) for number, case in enumerate(cases(name)) for flag in flags if flag not in case] == []


def test_a_case_without_its_field_says_nothing() -> None:
    assert told({"engine": {}}, {"field": "engine.version"}) is None
    assert told({"engine": {}}, {"field": "engine.version", "otherwise": "0.28.0"}) == "0.28.0"
