"""What holds for every ladder and every demand."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aelius_math.ladder import BlockCosts, Ladder, ShortQuestion, Slice, Wait

SIZES = st.integers(1, 400)
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)


@st.composite
def ladders(draw, pool=None):
    budget = draw(st.sampled_from(["tokens", "blocks"]))
    if budget == "tokens":
        pool = draw(st.integers(0, 1_000)) if pool is None else pool
    else:
        fixed = draw(st.integers(0, 6))
        costs = {"block_size": draw(st.integers(1, 50)), "fixed_blocks": fixed, "transient_blocks": fixed // 2}
        pool = BlockCosts(usable_blocks=draw(st.integers(0, 60)), **costs)
    question = draw(st.none() | st.integers(1, 60))
    return {
        "pool": pool,
        "budget": budget,
        "count": draw(st.sampled_from(["planned", "running"])),
        "slices": tuple(draw(st.lists(SIZES, max_size=4))),
        "shorts": draw(st.just("auto") | st.integers(0, 12)),
        "short_tokens": draw(SIZES),
        "reserve": draw(st.sampled_from([0, 0.05, 0.1, 0.5])),
        "question_tokens": question,
        "question_input": question and 1,
        "yield_after": draw(st.sampled_from([0, 1, 5])),
    }


def with_more(given, more):
    pool = given["pool"]
    if isinstance(pool, int):
        return {**given, "pool": pool + more}
    costs = {name: getattr(pool, name) for name in ("block_size", "fixed_blocks", "transient_blocks")}
    return {**given, "pool": BlockCosts(usable_blocks=pool.usable_blocks + more, **costs)}


@PATIENT
@given(ladders(), st.integers(0, 200), SIZES)
def test_a_larger_budget_never_seats_fewer(given, more, tokens):
    small, large = Ladder(**given), Ladder(**with_more(given, more))
    assert large.seats >= small.seats
    assert large.shorts >= small.shorts
    assert large.seats_of(tokens) >= small.seats_of(tokens)


@PATIENT
@given(ladders())
def test_a_derived_ladder_is_overdrawn_only_by_its_big_slices_and_one_more_short_never_fits(given):
    ladder = Ladder(**{**given, "shorts": "auto"})
    if ladder.left < 0:
        assert ladder.shorts == 0
    else:
        assert ladder.left < ladder.cost(ladder.short_tokens)
        assert ladder.seats == len(ladder.places)


class Service(RuleBasedStateMachine):
    """Sessions come, grow, wait and go in any order; after every step the arena must add up."""

    @initialize(given=ladders())
    def opened(self, given):
        self.ladder = Ladder(**given)
        self.arena = self.ladder.open()
        self.now = 0.0
        self.names = iter(range(10**6))
        self.waits_since = {}  # session -> when it began to wait while holding

    def sessions(self):
        return sorted({*self.arena._held, *self.arena._queue})

    def reachable(self):
        return [t for t in self.ladder.places if self.ladder.cost(t) <= self.ladder.total]

    @precondition(lambda self: self.reachable())
    @rule(share=st.floats(0.01, 1), or_question=st.booleans())
    def admit(self, share, or_question):
        tokens = max(1, int(share * max(self.reachable())))
        name = next(self.names)
        answer = self.arena.admit(name, tokens, self.now, or_question)
        if isinstance(answer, Slice):
            assert answer.tokens >= tokens
        elif isinstance(answer, ShortQuestion):
            assert or_question and answer.tokens == self.ladder.question_tokens
        else:
            assert answer.place == self.arena.waiters and answer.holds is None and answer.waits_for >= tokens

    @precondition(lambda self: self.arena._held)
    @rule(data=st.data(), share=st.floats(0.01, 1))
    def promote(self, data, share):
        name = data.draw(st.sampled_from(sorted(self.arena._held)))
        tokens = max(1, int(share * max(self.reachable())))
        waited = name in self.arena._queue
        answer = self.arena.promote(name, tokens, self.now)
        if isinstance(answer, Wait):
            if not waited and answer.holds is not None:
                self.waits_since[name] = self.now
        else:
            assert answer.tokens >= tokens

    @precondition(lambda self: self.sessions())
    @rule(data=st.data(), keeps=st.booleans())
    def release(self, data, keeps):
        name = data.draw(st.sampled_from(self.sessions()))
        held = self.arena.holding(name)
        self.arena.release(name, self.now, keep=held.cost if held and keeps else 0)

    @rule(step=st.sampled_from([0, 0.5, 1, 3, 6]))
    def serve(self, step):
        self.now += step
        for grant in self.arena.serve(self.now):
            assert self.arena.holding(grant.session) == grant

    @invariant()
    def adds_up(self):
        self.arena.check()
        account = self.arena.account
        assert account.free + sum(account.used.values()) + sum(account.cached.values()) == self.ladder.total
        assert sum(held.cost for held in self.arena._held.values()) <= self.ladder.total

    @invariant()
    def no_waiter_holds_past_its_timeout(self):
        for name, since in list(self.waits_since.items()):
            waiting = name in self.arena._queue and self.arena._queue[name].until is not None
            if not waiting:
                del self.waits_since[name]
            else:
                assert self.arena.holding(name) is not None
                assert self.arena.now < since + self.ladder.yield_after

    @invariant()
    def what_is_free_is_of_no_use_to_the_first_waiter(self):
        if self.arena._queue:
            first = next(iter(self.arena._queue))
            tokens = self.arena._queue[first].tokens
            held = self.arena.holding(first)
            for size in sorted(set(self.reachable())):
                if size >= tokens and self.arena._places[size]:
                    cost = self.ladder.cost(size) - (held.cost if held else 0)
                    assert not self.arena.account.payable(cost)
                    break


TestService = Service.TestCase
TestService.settings = settings(PATIENT, max_examples=40, stateful_step_count=25)
