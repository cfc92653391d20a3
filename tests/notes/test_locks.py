"""The prose of the repository is right, and its bindings are those that somebody reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

import locks
import prose
from aelius_math.ledger import Ledger, collect, published


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return collect(prose.ROOT)


@pytest.fixture(scope="module")
def report(ledger: Ledger) -> prose.Report:
    return prose.check(ledger)


def test_every_digit_that_people_wrote_is_bound_named_or_exempt(report: prose.Report, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nprose: {report.summary()}")
    assert report.problems == []
    assert report.exempt_share <= prose.MOST_EXEMPT


def test_every_formula_of_the_ledger_comes_to_its_value(ledger: Ledger) -> None:
    assert ledger.disagreements() == []


def test_every_binding_is_locked(ledger: Ledger, report: prose.Report) -> None:
    changed = locks.differences(locks.wanted(ledger, report), locks.stored())
    assert changed == [], "make numbers locks them anew; read what it shows"


def test_a_binding_to_another_number_of_the_same_value_is_seen(tmp_path: Path) -> None:
    def wanted(text: str) -> dict[str, list[str]]:
        return locks.wanted(published(), prose.check(published(), sources=[prose.Block("page.md", 1, text)]))

    locks.write(wanted("[2](num:cards) cards, [2](num:july_slots) slots"), tmp_path)
    assert locks.differences(wanted("[2](num:cards) cards, [2](num:july_slots) slots"), locks.stored(tmp_path)) == []
    swapped = locks.differences(wanted("[2](num:july_slots) slots, [2](num:cards) cards"), locks.stored(tmp_path))
    assert swapped == ["page.md.txt: + july_slots = 2 / slots", "page.md.txt: - july_slots = 2 / slots"]
    gone = locks.differences(wanted("[2](num:cards) cards"), locks.stored(tmp_path))
    assert gone == ["page.md.txt: - july_slots = 2 / slots"]
