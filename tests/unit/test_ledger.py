"""The ledger: what it holds, what a note records, what is collected, what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from aelius_math import ledger
from aelius_math.cli import main
from aelius_math.ledger import MIME, Ledger, collect, given, num, numbers, published
from aelius_math.units import AeliusError

IDS = [
    "request_limit",
    "pool",
    "pool_over_request",
    "cards",
    "model",
    "full_attention_blocks",
    "recurrent_blocks",
    "fp8_saving",
    "tp_saving",
    "prefix_hit_rate",
    "read_on",
    "image_model_arrived",
    "pool_drop",
    "image_peak_resident",
    "image_peak_streamed",
    "image_time_cost",
    "edit_peak",
    "edit_budgets",
    "ladder",
    "flat_users",
    "daily_actives",
    "hardcoded_shorts",
    "oversubscription",
    "july_card",
    "wall",
    "wall_cause",
    "fit_target",
    "fit_80k_used",
    "fit_80k_free",
    "paging_past",
    "metric",
    "july_config",
    "ceiling",
    "eviction_from",
    "two_by_34k",
    "draft_kv_quant",
    "ngl_99",
    "second_card_gain",
    "combined_saving",
    "one_arena",
    "evicted_speed",
    "deep_speed",
]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_recorded", {})


def repository(folder: Path, **notes: list[list[dict[str, object]]]) -> Path:
    """A repository whose notebooks hold these outputs of `numbers`."""
    (folder / "notebooks").mkdir()
    (folder / "aelius_math").mkdir()
    for name, cells in notes.items():
        outputs = [{"cell_type": "code", "outputs": [{"data": {MIME: entries}}]} for entries in cells]
        (folder / "notebooks" / f"{name}.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown"}, *outputs]}))
    return folder


def stored(**entries: ledger.Number) -> list[dict[str, object]]:
    bundle = json.loads(json.dumps(numbers(**entries)._repr_mimebundle_()))
    return bundle[MIME]  # type: ignore[no-any-return]


def test_every_number_of_the_article_has_its_entry() -> None:
    assert [key for key in IDS if key not in published()] == []


def test_a_decimal_keeps_the_digits_its_source_gives() -> None:
    peak = published()["image_peak_resident"]
    assert (peak.text, peak.digits, peak.exact) == ("7.10 GiB", 3, Fraction(71, 10))


def test_given_is_exact() -> None:
    assert given("edit_peak") * 2**30 // 16384 == 269352
    assert given("edit_budgets") == [2, Fraction(5, 2), 3]
    with pytest.raises(AeliusError, match="'nonsense'"):
        given("nonsense")


@pytest.mark.parametrize(
    ("value", "kept"),
    [(5, 5), (Fraction(6, 3), 2), (Fraction(1, 3), 0.333333333333), (Decimal("4.10"), 4.1), (2 / 3, 0.666666666667), ("64K", "64K"),
     ([1, Fraction(1, 2)], (1, 0.5))],
)  # fmt: skip
def test_a_value_is_kept_as_an_int_or_to_twelve_digits(value: object, kept: object) -> None:
    assert num(value, "label").value == kept


@pytest.mark.parametrize("value", [None, True, float("nan"), float("inf"), {}, b"1"])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(AeliusError):
        num(value, "label")


@pytest.mark.parametrize(
    ("fields", "name"),
    [({"kind": "guessed"}, "kind"), ({"k": 1023}, "k"), ({"verdict": "fine"}, "verdict"), ({"id": "Pool"}, "id"), ({"label": ""}, "label")],
)
def test_an_entry_of_unknown_fields_is_refused(fields: dict[str, object], name: str) -> None:
    with pytest.raises(AeliusError, match=name):
        ledger.Number(**{"value": 1, "label": "one", **fields})  # type: ignore[arg-type]


def test_a_formula_that_does_not_come_to_the_value_is_refused() -> None:
    numbers(blocks=num(200, "blocks"), per_request=num(181, "blocks of a request"))
    numbers(tokens=num(289661, "pool", "= floor(blocks / per_request * request_limit)", "tokens"))
    with pytest.raises(AeliusError, match="289,661"):
        numbers(tokens=num(289662, "pool", "= floor(blocks / per_request * request_limit)", "tokens"))
    with pytest.raises(AeliusError, match=r"1\.10"):
        numbers(gap=num(1.106, "gap", "= pool / request_limit", "x"))


def test_a_whole_number_is_not_agreed_to_by_a_fraction() -> None:
    with pytest.raises(AeliusError, match="gap"):
        numbers(gap=num(10**10, "gap", "= 10 ** 10 + 1 / 3"))


def test_a_formula_over_an_unknown_id_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_of_other_notes", dict)
    with pytest.raises(AeliusError, match="nobody"):
        numbers(gap=num(1, "gap", "= nobody / 2"))


def test_a_formula_may_build_on_another_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_of_other_notes", lambda: {"elsewhere": 8})
    assert numbers(here=num(4, "here", "= elsewhere / 2"))["here"].value == 4


def test_a_note_cannot_record_what_the_article_says() -> None:
    with pytest.raises(AeliusError, match="article"):
        numbers(pool=num(1, "pool"))


def test_what_a_cell_stores_is_what_is_collected(tmp_path: Path) -> None:
    first = stored(block=num(28131328, "one block", unit="bytes", source="x", say=["a block"], k=1024))
    second = stored(third=num(Fraction(1, 3), "a third", "= 1 / 3"))
    root = repository(tmp_path, **{"01_a": [first], "02_b": [second]})
    found = collect(root)
    assert (found["block"].value, found["block"].note, found["block"].say, found["block"].k) == (28131328, "01_a", ("a block",), 1024)
    assert (found["third"].value, found["third"].how, found["third"].note) == (0.333333333333, "= 1 / 3", "02_b")
    assert list(found)[: len(published())] == list(published())
    assert [problem for problem in found.disagreements() if problem.startswith(("block:", "third:"))] == []


def test_an_id_recorded_twice_stops_the_collection(tmp_path: Path) -> None:
    entry = stored(block=num(1, "one"))
    with pytest.raises(AeliusError, match=r"block \(01_a, 02_b\)"):
        collect(repository(tmp_path, **{"01_a": [entry], "02_b": [entry]}))


def test_a_stored_value_that_was_changed_disagrees_with_its_formula(tmp_path: Path) -> None:
    entry = stored(gap=num(27517, "gap", "= pool - request_limit", "tokens"))
    entry[0]["value"] = 27571
    problems = collect(repository(tmp_path, **{"01_a": [entry]})).disagreements()
    assert [problem for problem in problems if problem.startswith("gap: value: got 27571")]


def test_a_table_has_an_anchor_for_each_number_and_escapes_text() -> None:
    table = numbers(a=num(1, "less < more"), b=num(16384, "page", unit="bytes"))._repr_mimebundle_()["text/html"]
    assert isinstance(table, str)
    assert 'id="num-a"' in table and 'id="num-b"' in table and "less &lt; more" in table and "16,384 bytes (16.0 KiB)" in table


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (num(1, "one", unit="slices"), "1 slice"),
        (num(0.000012345678, "small"), "0.0000123457"),
        (num(1234567.891, "large", unit="tokens"), "1,234,568 tokens"),
        (num(-7300, "fewer", unit="tokens"), "-7,300 tokens"),
        (num(99.5, "share", unit="%"), "99.5%"),
    ],
)
def test_a_number_is_shown_with_its_unit(number: ledger.Number, text: str) -> None:
    assert number.text == text


def test_the_command_prints_the_shape_that_others_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, **{"01_a": [stored(block=num(2, "one block", "counted", "blocks"))]})
    assert main(["ledger", "--json", "--root", str(root)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    rows = {row["id"]: row for row in found["numbers"]}
    assert {"id", "text", "value", "unit", "kind", "verdict", "how", "source", "note"} <= rows["pool"].keys()
    assert (rows["pool"]["value"], rows["pool"]["text"], rows["pool"]["article"]) == (289661, "289,661 tokens", True)
    assert (rows["block"]["how"], rows["block"]["note"], rows["block"]["verdict"]) == ("counted", "01_a", None)


def test_the_command_outside_a_checkout_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--root", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and "notebooks/" in captured.err and "--root" in captured.err


def test_a_broken_notebook_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path)
    (root / "notebooks" / "01_a.ipynb").write_text("{")
    assert main(["ledger", "--root", str(root)]) == 2
    assert "01_a.ipynb" in capsys.readouterr().err


def test_an_installed_package_without_notebooks_refuses(tmp_path: Path) -> None:
    shutil.copytree(ledger.PACKAGE, tmp_path / "aelius_math", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "aelius_math", "ledger"]
    run = subprocess.run(command, check=False, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "") and "checkout" in run.stderr


def test_the_tables_of_the_package_hold_known_fields_only() -> None:
    known = set(ledger.Number.__dataclass_fields__)
    for name in ("article.toml", "facts.toml"):
        for key, table in tomllib.loads((ledger.PACKAGE / name).read_text()).items():
            assert set(table) <= known, key
    assert all(number.part_of in published() for number in published().values() if number.part_of)


def test_every_fact_that_is_not_the_articles_names_its_source() -> None:
    assert [number.id for number in published().values() if not number.source] == []


def test_two_ledger_entries_of_one_id_are_refused() -> None:
    entry = ledger.Number(id="a", value=1, label="one")
    with pytest.raises(AeliusError, match="each id recorded once"):
        Ledger([entry, entry])
