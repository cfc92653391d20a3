"""The ladder by hand: each number worked out from the pool, 289,661 tokens, or its 199 usable blocks."""

import json
from fractions import Fraction

import pytest

from aelius_math import catalogue
from aelius_math.account import Account, Unbalanced
from aelius_math.cli import main
from aelius_math.ladder import BlockCosts, Ladder, ShortQuestion, Slice, Wait, slice_sizes
from aelius_math.units import AeliusError
from aelius_math.vllm import Engine, plan_pool

POOL = 289_661
BIG = (65536, 32768, 32768, 32768)
MTP = BlockCosts(usable_blocks=199, block_size=1616, fixed_blocks=18, transient_blocks=3)
PLAIN = BlockCosts(usable_blocks=218, block_size=1568, fixed_blocks=6)  # no MTP, prefix caching on
BARE = BlockCosts(usable_blocks=218, block_size=1568, fixed_blocks=3)  # no MTP, no prefix caching
BLOCKS = "--budget blocks --block-size 1616 --fixed-blocks 18"


def in_blocks(pool, **given):
    return Ladder(pool=pool, budget="blocks", **{"short_tokens": 6990, **given})


def test_eighteen_shorts_exactly_for_sizes_6623_to_6990():
    assert slice_sizes(POOL - sum(BIG), 18) == range(6_623, 6_991)
    for tokens, shorts in ((6_622, 19), (6_623, 18), (6_990, 18), (6_991, 17)):
        assert Ladder(pool=POOL, short_tokens=tokens).shorts == shorts
    assert Ladder(pool=POOL, short_tokens=6_990).left == 1


def test_eighteen_shorts_with_a_K_of_1000_for_sizes_6825_to_7203():
    big = (64_000, 32_000, 32_000, 32_000)
    assert slice_sizes(POOL - sum(big), 18) == range(6_825, 7_204)
    assert [Ladder(pool=POOL, slices=big, short_tokens=s).shorts for s in (6_824, 6_825, 7_203, 7_204)] == [19, 18, 18, 17]


def test_with_a_reserve_of_5_percent_6K_shorts_and_with_10_percent_5K_come_out_at_18():
    assert Ladder(pool=POOL, short_tokens=6 * 1024, reserve=0.05).shorts == 18
    assert Ladder(pool=POOL, short_tokens=5 * 1024, reserve=Fraction(1, 10)).shorts == 18
    assert Ladder(pool=POOL, short_tokens=6_000, slices=(64_000, 32_000, 32_000, 32_000), reserve=0.05).shorts == 19


def test_a_reserve_is_exact_and_rounded_up():
    assert Ladder(pool=10, slices=(), short_tokens=1, reserve=0.1).reserved == 1
    assert Ladder(pool=11, slices=(), short_tokens=1, reserve=0.1).reserved == 2


def test_a_flat_slice_seats_two_from_96554_to_144830_tokens():
    assert slice_sizes(POOL, 2) == range(96_554, 144_831)
    flat = [Ladder(pool=POOL, slices=(), short_tokens=tokens).seats for tokens in (96_553, 96_554, 131_072, 144_830, 144_831)]
    assert flat == [3, 2, 2, 2, 1]


def test_the_draft_with_twenty_16K_shorts_promises_170_percent_and_breaks_when_59_percent_full():
    draft = Ladder(pool=POOL, shorts=20, short_tokens=16_384)
    assert draft.promised == 491_520 == 20 * 24_576
    assert round(100 * draft.promised / POOL, 1) == 169.7
    assert round(100 * POOL / draft.promised, 2) == 58.93
    assert (draft.seats, len(draft.places)) == (11, 24)


@pytest.mark.parametrize(
    ("pool", "count", "seats"),
    [
        (MTP, "planned", {1: 10, 6_990: 8, 16_384: 6, 32_768: 5, 65_536: 3, 131_072: 1}),
        (MTP, "running", {1: 12, 6_990: 9, 16_384: 7, 32_768: 5, 65_536: 3, 131_072: 2}),
        (PLAIN, "planned", {1: 31, 6_990: 19, 131_072: 2}),
        (BARE, "planned", {1: 54, 6_990: 27}),
    ],
)
def test_seats_by_length_in_blocks(pool, count, seats):
    ladder = in_blocks(pool, count=count)
    assert {tokens: ladder.seats_of(tokens) for tokens in seats} == seats


def test_the_ladder_wants_590_or_524_of_199_blocks_all_running():
    assert in_blocks(MTP, shorts=18).promised == 590
    assert in_blocks(MTP, shorts=18, count="running").promised == 524
    assert in_blocks(MTP, shorts=0).promised == 176
    assert in_blocks(MTP, shorts=0, count="running").promised == 164


def test_derived_in_blocks_the_article_ladder_has_one_short():
    assert (in_blocks(MTP).shorts, in_blocks(MTP).left) == (1, 0)


def planned(drafts):
    engine = Engine(max_model_len=262_144, tensor_parallel_size=2, kv_cache_dtype="fp8", num_speculative_tokens=drafts)
    return plan_pool(catalogue.load("Qwen3.8-27B"), engine, 200 * 28_131_328)


@pytest.mark.parametrize(("drafts", "costs"), [(4, MTP), (0, PLAIN)])
def test_the_pool_that_vllm_plans_gives_the_same_blocks_and_tokens(drafts, costs):
    pool = planned(drafts)
    for tokens in (1, 1_616, 1_617, 6_990, 65_536):
        assert in_blocks(pool).cost(tokens) == in_blocks(costs).cost(tokens)
    assert in_blocks(pool).shorts == in_blocks(costs).shorts
    assert Ladder(pool=pool, short_tokens=6_990).total == pool.tokens


def test_the_pool_that_vllm_plans_gives_the_same_running_count():
    assert in_blocks(planned(4), count="running", shorts=0).promised == 164


@pytest.mark.parametrize(
    ("pool", "big", "shorts"),
    [(PLAIN, 129, {6_990: 8}), (BARE, 117, {6_990: 12, 3_136: 20, 1_568: 25})],
)
def test_without_mtp_the_four_big_slices_leave_room_for_shorts(pool, big, shorts):
    assert in_blocks(pool, shorts=0).promised == big
    assert {tokens: in_blocks(pool, short_tokens=tokens).shorts for tokens in shorts} == shorts


def test_twenty_two_honest_grants_are_all_held_and_the_next_waits():
    arena = Ladder(pool=POOL, short_tokens=6_990).open()
    for number, tokens in enumerate((65_536, 32_768, 32_768, 32_768) + (6_990,) * 18):
        assert arena.admit(number, tokens, now=0) == Slice(number, tokens, tokens)
    assert arena.account.free == 1
    assert arena.admit("late", 100, now=0) == Wait("late", 100, 1, 6_990, None, None)
    arena.check()


def test_the_overdrawn_draft_breaks_no_promise_it_gave():
    arena = Ladder(pool=POOL, shorts=20, short_tokens=16_384).open()
    big = [arena.admit(n, tokens, now=0) for n, tokens in enumerate(BIG)]
    short = [arena.admit(4 + n, 16_384, now=0) for n in range(20)]
    assert [type(answer) for answer in big + short] == [Slice] * 11 + [Wait] * 13
    arena.check()


def test_the_smallest_free_slice_that_holds_the_session_is_given():
    arena = Ladder(pool=POOL, short_tokens=6_990).open()
    assert [arena.admit(n, 7_000, now=0).tokens for n in range(4)] == [32_768] * 3 + [65_536]


def test_past_the_ladder_a_short_question_is_paid_from_reserve_and_remainder_only():
    ladder = Ladder(pool=1_050, slices=(500,), short_tokens=200, reserve=0.1, question_tokens=70, question_input=50)
    assert (ladder.shorts, ladder.reserved, ladder.left) == (2, 105, 45)
    arena = ladder.open()
    answers = [arena.admit(n, 150, now=0) for n in range(6)]
    assert answers[:3] == [Slice(0, 200, 200), Slice(1, 200, 200), Slice(2, 500, 500)]
    assert answers[3:5] == [ShortQuestion(3, 70, 50, 70), ShortQuestion(4, 70, 50, 70)]
    assert answers[5] == Wait(5, 150, 1, 200, None, None)
    arena.check()


def test_who_does_not_want_a_short_question_waits():
    arena = Ladder(pool=100, slices=(), shorts=1, short_tokens=50, question_tokens=20, question_input=10).open()
    arena.admit("a", 50, now=0)
    assert isinstance(arena.admit("b", 50, now=0, or_question=False), Wait)
    assert isinstance(arena.admit("c", 50, now=0), ShortQuestion)


def test_promote_moves_up_and_frees_the_smaller_slice():
    arena = Ladder(pool=300, slices=(200,), short_tokens=50).open()
    arena.admit("a", 50, now=0)
    assert arena.promote("a", 120, now=1) == Slice("a", 200, 200)
    assert arena.account.free == 100
    assert arena.promote("a", 60, now=2) == Slice("a", 200, 200)  # it holds enough already


def test_a_waiter_keeps_its_slice_until_the_timeout_and_not_longer():
    arena = Ladder(pool=300, slices=(200,), shorts=2, short_tokens=50, yield_after=10).open()
    arena.admit("big", 200, now=0)
    arena.admit("a", 50, now=0)
    small = arena.holding("a")
    assert arena.promote("a", 120, now=5) == Wait("a", 120, 1, 200, small, 15)
    assert arena.next_deadline == 15
    arena.serve(now=14.999)
    assert arena.holding("a") == small
    arena.serve(now=15)
    assert arena.holding("a") is None
    assert arena.account.cached == {"a": 50}
    arena.release("big", now=16)
    assert arena.serve(now=16) == [Slice("a", 200, 200)]
    arena.check()


def test_what_a_waiter_yields_goes_to_the_next_whom_it_fits():
    arena = Ladder(pool=40, slices=(30, 10), shorts=0, yield_after=1).open()
    arena.admit("a", 5, now=0)
    arena.admit("b", 5, now=0)  # only the 30 is left
    assert isinstance(arena.promote("a", 30, now=0), Wait)
    assert isinstance(arena.admit("c", 5, now=0), Wait)
    assert arena.serve(now=1) == [Slice("c", 10, 10)]
    arena.check()


def test_waiters_are_served_in_order_and_a_smaller_slice_goes_to_whom_it_fits():
    arena = Ladder(pool=300, slices=(200, 100), shorts=0).open()
    arena.admit("x", 150, now=0)
    arena.admit("y", 100, now=0)
    assert arena.admit("big", 150, now=1).place == 1
    assert arena.admit("small", 80, now=1).place == 2
    arena.release("y", now=2)
    assert arena.serve(now=2) == [Slice("small", 100, 100)]
    arena.release("x", now=3)
    assert arena.serve(now=3) == [Slice("big", 200, 200)]


def test_nobody_overtakes_a_waiter_whose_slice_is_free_and_whose_budget_is_not():
    arena = Ladder(pool=100, slices=(80,), shorts=4, short_tokens=25).open()  # overdrawn: 180 of 100
    arena.admit("a", 25, now=0)
    assert isinstance(arena.admit("big", 80, now=0), Wait)
    assert isinstance(arena.admit("b", 25, now=0), Wait)
    arena.release("a", now=1)
    assert arena.serve(now=1) == [Slice("big", 80, 80)]


def test_what_is_kept_at_release_is_evicted_oldest_first():
    account = Account(100)
    for key in "ab":
        account.pay(key, 40)
        account.give_back(key, keep=40)
    account.pay("c", 30)
    assert (account.free, account.used, account.cached) == (30, {"c": 30}, {"b": 40})
    with pytest.raises(AeliusError, match="at most the 70 that nobody holds"):
        account.pay("d", 71)
    account.check()


class BlindAccount(Account):
    """Grants without looking: the fault the check is for."""

    def pay(self, key, cost):
        self.used[key] = self.used.get(key, 0) + cost
        self.free -= cost


class LeakyAccount(Account):
    """Loses one block of every grant that ends."""

    def give_back(self, key, keep=0):
        super().give_back(key, keep)
        self.free -= 1


@pytest.mark.parametrize("fault", [BlindAccount, LeakyAccount])
def test_the_conservation_check_catches_a_planted_fault(fault):
    account = fault(100)
    account.pay("a", 60)
    account.give_back("a")
    account.pay("b", 60)
    account.pay("c", 60 if fault is BlindAccount else 1)
    with pytest.raises(Unbalanced):
        account.check()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"pool": POOL, "short_tokens": 6990, "budget": "blocks"}, "pool"),
        ({"pool": POOL}, "short_tokens"),
        ({"pool": POOL, "short_tokens": 0}, "short_tokens"),
        ({"pool": POOL, "short_tokens": 6990, "shorts": "many"}, "shorts"),
        ({"pool": POOL, "short_tokens": 6990, "shorts": -1}, "shorts"),
        ({"pool": POOL, "short_tokens": 6990, "reserve": 1}, "reserve"),
        ({"pool": POOL, "short_tokens": 6990, "reserve": "a tenth"}, "reserve"),
        ({"pool": POOL, "short_tokens": 6990, "budget": "pages"}, "budget"),
        ({"pool": POOL, "short_tokens": 6990, "count": "peak"}, "count"),
        ({"pool": POOL, "short_tokens": 6990, "slices": 65536}, "slices"),
        ({"pool": POOL, "short_tokens": 6990, "slices": (0,)}, "slices"),
        ({"pool": POOL, "short_tokens": 6990, "question_tokens": 5}, "question_input"),
        ({"pool": POOL, "short_tokens": 6990, "yield_after": -1}, "yield_after"),
        ({"pool": MTP, "short_tokens": 6990}, "pool"),
        ({"pool": PLAIN, "short_tokens": 6990, "budget": "blocks", "count": "running"}, "transient_blocks"),
        ({"pool": "289661", "short_tokens": 6990}, "pool"),
    ],
)
def test_what_is_unknown_is_refused_by_name(given, field):
    with pytest.raises(AeliusError) as caught:
        Ladder(**given)
    assert caught.value.field == field


def test_an_arena_refuses_a_session_twice_a_size_past_the_ladder_and_time_going_back():
    arena = Ladder(pool=100, slices=(50,), shorts=0).open()
    arena.admit("a", 50, now=5)
    for call, field in (
        (lambda: arena.admit("a", 1, now=5), "session"),
        (lambda: arena.admit("b", 51, now=5), "tokens"),
        (lambda: arena.admit("b", 1, now=4), "now"),
        (lambda: arena.promote("b", 1, now=5), "session"),
        (lambda: arena.release("b", now=5), "session"),
        (lambda: arena.waiting("a"), "session"),
    ):
        with pytest.raises(AeliusError) as caught:
            call()
        assert caught.value.field == field
    arena.check()


def ladder_json(capsys, words):
    code = main(["ladder", *words.split(), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_command_gives_the_article_ladder(capsys):
    words = "--pool 289,661 --slices 64K,3x32K --shorts auto --short-tokens 6990 --reserve 0 --k 1024"
    code, found = ladder_json(capsys, words)
    assert code == 0
    assert found | {"schema": 1} == found
    wanted = {"slices": list(BIG), "shorts": 18, "left": 1, "budget_kind": "tokens", "seats": 22}
    assert found | wanted == found


def test_the_command_says_what_is_overdrawn_with_exit_code_1(capsys):
    code, found = ladder_json(capsys, "--pool 289661 --slices 64K,3x32K --shorts 20 --short-tokens 16K")
    assert (code, found["left"], found["seats"]) == (1, -201_859, 11)


def test_the_command_finds_the_blocks_behind_the_printed_pool(capsys):
    words = "--pool 289661 --short-tokens 6990 " + BLOCKS + " --max-model-len 262144"
    code, found = ladder_json(capsys, words)
    assert (code, found["total"], found["shorts"], found["left"], found["seats"]) == (0, 199, 1, 0, 5)
    code, found = ladder_json(capsys, words + " --count running --transient-blocks 3")
    assert (code, found["promised"], found["shorts"], found["left"]) == (0, 184, 1, 15)


CASE = "qwen3.8-27b --short-tokens 6990 --budget blocks -tp 2 --kv-cache-dtype fp8 --num-speculative-tokens 4"


@pytest.mark.parametrize("source", ["--available 5.24GiB", "--pool 289661 --enable-prefix-caching"])
def test_the_command_plans_the_blocks_of_a_config_from_its_bytes_or_from_the_printed_pool(capsys, source):
    code, found = ladder_json(capsys, f"{CASE} {source}")
    assert (code, found["total"], found["shorts"], found["left"], found["seats"]) == (0, 199, 1, 0, 5)
    code, found = ladder_json(capsys, f"{CASE} {source} --count running")
    assert (code, found["total"], found["promised"], found["left"]) == (0, 199, 184, 15)


def test_the_command_gives_the_engines_refusal_with_exit_code_1(capsys):
    code, found = ladder_json(capsys, f"{CASE} --available 2.24GiB")
    assert (code, found["refused"], found["blocks_per_request"]) == (1, True, 181)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (CASE.replace("--num-speculative-tokens 4", "--pool 289661"), "--pool"),
        (CASE + " --pool 289663", "--pool"),
        (CASE + " --available 5.24GiB --pool 289662", "--pool"),
        (CASE, "--available"),
        (CASE + " --available 5.24GiB --blocks 199", "--blocks"),
        ("--pool 289661 --short-tokens 6990 --kv-cache-dtype fp8", "--kv-cache-dtype"),
        ("--pool 289661 --short-tokens 6990 --blocks 199", "--blocks"),
        ("--pool 289661 --short-tokens 6990 --available 5GiB", "--available"),
        ("--pool 289661 --short-tokens 6990 --budget blocks", "--block-size"),
        ("--pool 289661 --short-tokens 6990 --budget blocks --block-size 1616", "--fixed-blocks"),
        ("--pool 289661 --short-tokens 6990 " + BLOCKS, "--blocks"),
        ("--pool 289661 --short-tokens 6990", None),
        ("--pool 289661", "short_tokens"),
        ("--short-tokens 6990", "--pool"),
        ("--pool 289661 --short-tokens 6990 --slices 64Q", "--slices"),
        ("--pool 289661 --short-tokens 6990 --slices 0x64K", "--slices"),
        ("--pool 289661 --short-tokens 6990 --shorts some", "shorts"),
        ("--pool 289661 --short-tokens 6990 --reserve lots", "reserve"),
        ("--pool 289660 --short-tokens 6990 " + BLOCKS + " --max-model-len 262144", "--pool"),
    ],
)
def test_the_command_refuses_on_one_line_what_it_cannot_know(capsys, words, named):
    code = main(["ladder", *words.split()])
    out, err = capsys.readouterr()
    if named is None:
        assert code == 0
    else:
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"aelius-math ladder: {named}: ")
