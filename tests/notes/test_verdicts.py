"""The verdicts on the article's numbers: each with its reason, its note, and three lines of arithmetic where it needs care."""

from __future__ import annotations

import re

import pytest

from aelius_math.ledger import Number, published
from prose import ROOT, names

TREATED = [number for number in published().values() if number.origin == "article" and number.verdict]


@pytest.mark.parametrize("number", TREATED, ids=lambda number: number.id)
def test_a_verdict_has_its_reason_and_a_note_that_treats_the_number(number: Number) -> None:
    assert number.verdict_note.endswith(".")
    script = (ROOT / "notebooks" / f"{number.note}.py").read_text(encoding="utf-8")
    leaned_on = re.findall(r"\]\(num:(\w+)\)", number.verdict_note)
    assert not leaned_on or any(key in script for key in [number.id, *leaned_on]), f"{number.note} treats none of {leaned_on}"


@pytest.mark.parametrize("number", TREATED, ids=lambda number: number.id)
def test_a_verdict_that_rests_on_a_reading_says_which(number: Number) -> None:
    assert (number.verdict == "holds under a reading") <= bool(number.reading)


@pytest.mark.parametrize("number", TREATED, ids=lambda number: number.id)
def test_where_a_number_needs_care_its_arithmetic_stands_in_three_lines(number: Number) -> None:
    assert len(number.care) in (0, 3)
    assert (number.verdict == "does not hold") <= bool(number.care)


def test_what_only_the_running_machine_knew_is_not_called_exact() -> None:
    computed = {"exact", "rounds to it"}
    assert [
        number.id for number in TREATED if number.verdict in computed and not (number.care or number.verdict_note.count("](num:"))
    ] == []


def test_no_number_without_a_verdict_is_given_a_reason() -> None:
    reasons = [n.id for n in published().values() if not n.verdict and (n.verdict_note or n.reading or n.care)]
    assert reasons == []


def test_no_label_holds_a_loose_digit() -> None:
    assert [n.id for n in published().values() if re.search(r"\d", names().sub("", n.label))] == []
