"""A sample of `make proof`: faults in the numbers of the prose are killed, and a blind check would be noticed."""

from __future__ import annotations

import pytest

import proof
import prose
from aelius_math.ledger import collect, published

EVERY = 11


def test_a_sample_of_spoiled_numbers_is_found() -> None:
    ledger, blocks = collect(prose.ROOT), prose.blocks()
    tally = proof.Tally()
    proof.try_prose(blocks, ledger, tally, EVERY)
    proof.try_conditions(blocks, ledger, tally, 5)
    proof.try_givens(blocks, ledger, tally, 5)
    print(tally.table())
    for kind in proof.STRICT:
        assert tally.killed(kind) >= proof.LEAST, tally.survivors[kind]
    assert tally.by_truth["digits"] >= 0.97 * tally.tried["digits"] > 100


def test_a_check_that_finds_nothing_lets_faults_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "scan", lambda block, ledger, report: None)
    tally = proof.Tally()
    proof.try_prose([prose.Block("page.md", 1, "It holds [289,661](num:pool) tokens.")], published(), tally)
    assert tally.tried["digits"] > 10 and tally.killed("digits") == 0 and tally.survivors["digits"]


def test_each_kind_of_fault_is_tried() -> None:
    text = "A pool of [289,661](num:pool) tokens, [4.11 GiB](num:edit_peak), [two](num:cards) cards, two numbers."
    faults = list(proof.spoiled(prose.Block("page.md", 1, text), published()))
    assert {fault.kind for fault in faults} == {"digits", "points", "signs", "units", "ids", "words", "bare numbers"}
    assert {"289,662", "289661", "289,616", "−289,661"} <= {fault.after for fault in faults}
    assert any(fault.text == text.replace("GiB", "GB") for fault in faults)
    assert any(fault.text == text.replace("two numbers", "seven numbers") for fault in faults)
    assert any(fault.text == text.replace(" tokens,", " blocks,") for fault in faults)


def test_a_changed_number_in_code_is_noticed_in_a_copy_of_the_note() -> None:
    cells = ["from aelius_math.ledger import *\nx = 12", "print(x)", "assert x == 12", "y = 5"]
    note = proof.Note()
    right = [note.run(cell) for cell in cells]
    assert not any(isinstance(out, str) for out in right)
    assert [text for _, text in proof.spoilt_cells(cells[0])] == [cells[0].replace("12", "13")]
    assert proof.Note().differs([cells[0].replace("12", "13"), *cells[1:]], right)
    assert not proof.Note().differs([*cells[:3], "y = 6"], right)
