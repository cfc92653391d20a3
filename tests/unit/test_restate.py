"""`make numbers`: stale texts are said anew, what moved is shown, and what only a person can mend is left."""

from __future__ import annotations

from dataclasses import replace

import restate
from aelius_math.ledger import published

MOVED = {**published(), "pool": replace(published()["pool"], value=301_002), "cards": replace(published()["cards"], value=3)}


def test_a_stale_number_is_said_anew_and_the_rest_is_left() -> None:
    text = "[289,661](num:pool) or about [about 290,000](num:pool) of [4.11 GiB](num:edit_peak)\n`[289,661](num:pool)`\n"
    new, changed = restate.rewrite(text, MOVED)
    assert new == text.replace("[289,661]", "[301,002]", 1).replace("about 290,000", "about 300,000")
    assert changed == ["line 1: [289,661](num:pool) -> 301,002", "line 1: [about 290,000](num:pool) -> about 300,000"]


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
