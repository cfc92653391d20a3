"""Pools that the planner of each release planned (tests/golden/vllm_planner/): what the other golden file leaves open."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from vllm_compare import compared

from aelius_math import catalogue
from aelius_math.vllm_versions import RELEASES, parse, rules_for

FILES = sorted((Path(__file__).parent.parent / "golden" / "vllm_planner").glob("*.json"))
CASES = {file.stem: json.loads(file.read_text())["runs"] for file in FILES}
ASKED = [version for version in RELEASES if parse(version)[0] >= (0, 20, 0)]
"""The releases whose cases `make oracle-vllm` wrote."""
ALIKE = ("0.19.1", "0.18.1", "0.17.1")
"""Releases whose files were read beside those of the release before, and not asked: no rule differs."""
BEFORE = [version for version in RELEASES if version not in (*ASKED, *ALIKE)]


def test_every_release_is_there():
    assert set(CASES) == set(RELEASES) - set(ALIKE)
    assert all(rules_for(version) == rules_for(version[:-1] + "0") for version in ALIKE)
    assert {version: len(CASES[version]) for version in BEFORE} == dict.fromkeys(("0.19.0", "0.18.0", "0.17.0"), 40)


def test_a_case_is_of_the_version_that_its_file_is_named_after():
    assert all(case["engine"]["version"] == version for version, cases in CASES.items() for case in cases)


def test_of_a_release_that_was_asked_there_are_models_of_the_catalogue_twice_and_toys():
    for version in ASKED:
        models = Counter(case.get("model", "a toy") for case in CASES[version])
        assert models.pop("a toy") >= 30 and min(models.values()) >= 2
        assert len(models) >= 38 and set(models) <= set(catalogue.names())


@pytest.mark.parametrize("version", sorted(CASES, key=parse))
def test_every_plan_of_a_releases_own_planner_comes_out(version):
    wrong = [(case, mine) for case in CASES[version] if (mine := compared(case, case["planned"])) != case["planned"]]
    assert not wrong, f"{len(wrong)} of {len(CASES[version])} differ, first: {wrong[:1]}"
