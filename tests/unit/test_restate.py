"""`make numbers`: stale texts are said anew, what moved is shown, and what only a person can mend is left."""

from __future__ import annotations

from dataclasses import replace

import restate
from aelius_math.ledger import collect, published

MOVED = {**published(), "pool": replace(published()["pool"], value=301_002), "cards": replace(published()["cards"], value=3)}


def test_a_stale_number_is_said_anew_and_the_rest_is_left() -> None:
    text = "[289,661](num:pool) or about [about 290,000](num:pool) of [4.11 GiB](num:edit_peak)\n`[289,661](num:pool)`\n"
    new, changed = restate.rewrite(text, MOVED)
    assert new == text.replace("[289,661]", "[301,002]", 1).replace("about 290,000", "about 300,000")
    assert [line.splitlines()[0] for line in changed] == [
        "line 1: [289,661](num:pool) -> 301,002",
        "line 1: [about 290,000](num:pool) -> about 300,000",
    ]


def test_a_word_and_an_unknown_id_are_left_to_people() -> None:
    text = "[two](num:cards) cards and [5](num:nobody)"
    assert restate.rewrite(text, MOVED) == (text, [])


def test_every_number_that_moved_is_shown_old_and_new() -> None:
    assert restate.moved(published(), MOVED) == ["pool: 289,661 tokens -> 301,002 tokens", "cards: 2 cards -> 3 cards"]
    without = {key: number for key, number in MOVED.items() if key != "wall"}
    assert "wall: 64K -> gone" in restate.moved(MOVED, without) and "wall: new -> 64K" in restate.moved(without, MOVED)


def test_the_numbers_of_the_last_commit_are_read_where_there_is_one() -> None:
    before = restate.committed()
    assert before == {} or before["pool"].unit == "tokens"


def test_a_rewritten_number_is_shown_with_its_sentence() -> None:
    text = "# First. It holds\n# [289,661](num:pool) tokens, more than most. And on.\n#\n# Else.\n"
    _, (changed,) = restate.rewrite(text, MOVED)
    assert changed.splitlines()[1].strip() == "It holds 301,002 tokens, more than most."


def test_a_number_that_moved_behind_its_shown_digits_is_shown_in_full() -> None:
    one = replace(published()["pool"], value=1.23456789012, unit="GiB", digits=3)
    assert restate.moved({"a": one}, {"a": replace(one, value=1.23456789013)}) == ["a: 1.23456789012 GiB -> 1.23456789013 GiB"]


def test_a_new_note_is_counted_instead_of_listed() -> None:
    new = {key: replace(published()["pool"], id=key, origin="99_new") for key in ("a", "b")}
    assert restate.moved(published(), {**published(), **new}) == ["2 numbers of 99_new, which the last commit does not have"]


def test_a_note_that_uses_numbers_of_one_that_failed_waits_for_it() -> None:
    ledger = collect(restate.ROOT)
    lines = restate.failed({"06_ladder": "trace of six", "04_why_289661": "trace of four"}, ledger)
    assert lines[0].startswith("trace of four")
    assert lines[1].startswith("06_ladder.py waits for 04_why_289661") and "trace of six" in lines[1]
