"""Handing out one KV pool to many: a few big slices, short ones from what is left, an honest wait past that.

`Ladder` is the specification. `Ladder.open()` gives the `Arena` that a server keeps: admit, promote, release. It has no
clock and no threads: the caller passes the time, and takes the grants that waiters were given with `serve`.

    arena = Ladder(pool=289661, short_tokens=6990).open()
    answer = arena.admit("ann", tokens=9000, now=0.0)      # Slice, ShortQuestion or Wait
    ...
    arena.release("ann", now=60.0)
    for grant in arena.serve(now=60.0): wake(grant.session)

The budget is counted in tokens, or in the engine's blocks, where a request costs its tokens' blocks and a fixed number
beside them. A grant is paid when it is given, so grants never exceed the budget, whatever the ladder promises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from aelius_math.account import Account, Unbalanced
from aelius_math.units import LARGEST, AeliusError, ceil_div, whole


@runtime_checkable
class BlockPool(Protocol):
    """What a budget in blocks needs to know; the pool that `vllm.plan_pool` returns has it, and so does BlockCosts."""

    @property
    def usable_blocks(self) -> int: ...

    def blocks(self, tokens: int, running: bool = False) -> int: ...


@dataclass(frozen=True, kw_only=True)
class BlockCosts:
    """What a request costs in blocks, stated by hand: ceil(tokens / block_size) + fixed_blocks.

    transient_blocks are those of the fixed ones that the planner counts and a running request does not keep (for
    vLLM's "align" cache mode: one per recurrent group); None: not known, and the running count is refused.

    >>> BlockCosts(usable_blocks=199, block_size=1616, fixed_blocks=18).blocks(6990)
    23
    """

    usable_blocks: int
    block_size: int
    fixed_blocks: int
    transient_blocks: int | None = None

    def __post_init__(self) -> None:
        whole("usable_blocks", self.usable_blocks, 0)
        whole("block_size", self.block_size)
        whole("fixed_blocks", self.fixed_blocks, 0)
        if self.transient_blocks is not None:
            whole("transient_blocks", self.transient_blocks, 0, self.fixed_blocks)

    def blocks(self, tokens: int, running: bool = False) -> int:
        """Blocks [int] that one request of this many tokens holds, as the planner counts them, or running."""
        if running and self.transient_blocks is None:
            raise AeliusError("transient_blocks", None, "the fixed blocks that a running request does not keep")
        gone = (self.transient_blocks or 0) if running else 0
        return ceil_div(whole("tokens", tokens), self.block_size) + self.fixed_blocks - gone


def slice_sizes(left: int, number: int) -> range:
    """Sizes [tokens] of which exactly `number` slices fit into `left` tokens: from least to most.

    >>> slice_sizes(289661 - 163840, 18)
    range(6623, 6991)
    """
    whole("left", left, 0)
    return range(left // (whole("number", number) + 1) + 1, left // number + 1)


def as_fraction(field: str, value: object) -> Fraction:
    """An exact share from 0 up to, not including, 1; a float or text is read as the decimal that it shows."""
    try:
        share = Fraction(str(value)) if isinstance(value, (int, float, str, Fraction)) else None
    except (ValueError, ZeroDivisionError):
        share = None
    if share is None or isinstance(value, bool) or not 0 <= share < 1:
        raise AeliusError(field, value, "a fraction from 0 to below 1, such as 0.05")
    return share


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """How many conversations a pool is promised to: the big slices, and as many short ones as what is left holds.

    pool: tokens [int], or a pool that knows its blocks (`plan_pool(...)`, BlockCosts), needed for budget="blocks".
    slices, short_tokens: tokens. shorts: a number, or "auto": derived. reserve: a fraction of the budget promised to no
    slice. count, for blocks: "planned" (the engine's planner) or "running" (the steady state of a running request).
    question_tokens, question_input: budget and input cap of a short-question grant; without them there is none.
    yield_after: how long a waiter keeps what it holds, in the caller's unit of time; 0: not at all.

    >>> ladder = Ladder(pool=289661, short_tokens=6990)
    >>> ladder.shorts, ladder.left, ladder.seats
    (18, 1, 22)
    >>> draft = Ladder(pool=289661, shorts=20, short_tokens=16384)
    >>> draft.promised, draft.left, draft.seats
    (491520, -201859, 11)

    Raises AeliusError for anything that is not known: a budget in blocks from a bare number of tokens, for one.
    """

    pool: int | BlockPool
    slices: tuple[int, ...] = (65536, 32768, 32768, 32768)
    shorts: Any = "auto"  # int once built
    short_tokens: int | None = None
    reserve: Any = 0  # Fraction once built
    budget: str = "tokens"
    count: str = "planned"
    question_tokens: int | None = None
    question_input: int | None = None
    yield_after: float = 0

    def __post_init__(self) -> None:
        if self.budget not in ("tokens", "blocks"):
            raise AeliusError("budget", self.budget, '"tokens" or "blocks"')
        if self.count not in ("planned", "running"):
            raise AeliusError("count", self.count, '"planned" or "running"')
        if isinstance(self.slices, (str, bytes)) or not isinstance(self.slices, Iterable):
            raise AeliusError("slices", self.slices, "a tuple of tokens, such as (65536, 32768)")
        given = tuple(whole("slices", tokens) for tokens in self.slices)
        object.__setattr__(self, "slices", tuple(sorted(given, reverse=True)))
        object.__setattr__(self, "reserve", as_fraction("reserve", self.reserve))
        if self.short_tokens is not None:
            whole("short_tokens", self.short_tokens)
        elif self.shorts != 0:
            raise AeliusError("short_tokens", None, "the tokens of a short slice, or shorts=0")
        if self.question_tokens is not None:
            whole("question_tokens", self.question_tokens)
            whole("question_input", self.question_input, 1, self.question_tokens)
        elif self.question_input is not None:
            raise AeliusError("question_tokens", None, "the budget of a short question, beside its input cap")
        if not isinstance(self.yield_after, (int, float)) or not self.yield_after >= 0:
            raise AeliusError("yield_after", self.yield_after, "a time of at least 0")
        whole("pool", self.total, 0)
        if self.shorts == "auto":
            room = self.total - self.reserved - sum(map(self.cost, self.slices))
            derived = max(0, room) // self.cost(self.short_tokens)  # type: ignore[arg-type]
            object.__setattr__(self, "shorts", derived)
        elif isinstance(self.shorts, str):
            raise AeliusError("shorts", self.shorts, 'a whole number or "auto"')
        whole("shorts", self.shorts, 0)

    @property
    def total(self) -> int:
        """The whole budget [tokens or blocks]."""
        if self.budget == "blocks":
            if not isinstance(self.pool, BlockPool):
                raise AeliusError("pool", self.pool, "a pool that knows its blocks (plan_pool, BlockCosts)")
            return self.pool.usable_blocks
        tokens = self.pool if isinstance(self.pool, int) else getattr(self.pool, "tokens", None)
        return whole("pool", tokens, 0)

    def cost(self, tokens: int) -> int:
        """What one slice of this many tokens takes of the budget [tokens or blocks]."""
        whole("tokens", tokens)
        if self.budget == "tokens" or isinstance(self.pool, int):
            return tokens
        return self.pool.blocks(tokens, running=self.count == "running")

    @property
    def places(self) -> tuple[int, ...]:
        """The tokens of every slice that is promised, big ones first."""
        shorts: int = self.shorts
        return self.slices + (self.short_tokens or 0,) * shorts

    @property
    def reserved(self) -> int:
        """What no slice may take [tokens or blocks], rounded up."""
        return ceil_div(self.total * self.reserve.numerator, self.reserve.denominator)

    @property
    def promised(self) -> int:
        """All slices together [tokens or blocks]; more than the budget if the ladder is overdrawn."""
        short = self.cost(self.short_tokens) * self.shorts if self.short_tokens is not None else 0
        return sum(map(self.cost, self.slices)) + short

    @property
    def left(self) -> int:
        """What remains beside the slices and the reserve [tokens or blocks]; negative: this much is overdrawn."""
        return self.total - self.reserved - self.promised

    @property
    def seats(self) -> int:
        """Places that can all be held at once, counted in the ladder's order up to the first that cannot."""
        room, seats = self.total - self.reserved, 0
        for tokens in self.places:
            room -= self.cost(tokens)
            if room < 0:
                break
            seats += 1
        return seats

    def seats_of(self, tokens: int) -> int:
        """Conversations of this many tokens that the whole budget holds at once, without the ladder.

        >>> Ladder(pool=289661, short_tokens=6990).seats_of(131072)
        2
        """
        return self.total // self.cost(tokens)

    def open(self) -> Arena:
        """An arena with everything free."""
        return Arena(self)


@dataclass(frozen=True, slots=True)
class Slice:
    """Granted: a place of `tokens` on the ladder; `cost` is what it takes of the budget."""

    session: Hashable
    tokens: int
    cost: int


@dataclass(frozen=True, slots=True)
class ShortQuestion:
    """Granted past the ladder: one short question of at most `input_cap` tokens in, `tokens` in all."""

    session: Hashable
    tokens: int
    input_cap: int
    cost: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: `place` in the queue (1 is next), for a slice of `waits_for` tokens, holding `holds` until `until`."""

    session: Hashable
    tokens: int
    place: int
    waits_for: int
    holds: Slice | ShortQuestion | None
    until: float | None


@dataclass(slots=True)
class _Waiter:
    tokens: int
    or_question: bool
    until: float | None  # when it must give up what it holds; None: it holds nothing


class Arena:
    """A ladder in use. Times are the caller's and never go back; a session is any hashable name.

    >>> arena = Ladder(pool=100_000, slices=(65536,), short_tokens=16384).open()
    >>> arena.admit("ann", 40_000, now=0)
    Slice(session='ann', tokens=65536, cost=65536)
    >>> arena.admit("bob", 40_000, now=1)
    Wait(session='bob', tokens=40000, place=1, waits_for=65536, holds=None, until=None)
    >>> arena.release("ann", now=2)
    >>> arena.serve(now=2)
    [Slice(session='bob', tokens=65536, cost=65536)]
    """

    def __init__(self, ladder: Ladder) -> None:
        self.ladder = ladder
        self.account = Account(ladder.total)
        self.now = float("-inf")
        self._costs = {tokens: ladder.cost(tokens) for tokens in sorted(set(ladder.places))}
        self._costs = {tokens: cost for tokens, cost in self._costs.items() if cost <= ladder.total}
        self._promised = {tokens: ladder.places.count(tokens) for tokens in self._costs}
        self._places = dict(self._promised)  # those of them that are free
        self._pot = max(0, ladder.total - ladder.promised)
        self._question_cost = ladder.cost(ladder.question_tokens) if ladder.question_tokens else LARGEST
        self._held: dict[Hashable, Slice | ShortQuestion] = {}
        self._queue: dict[Hashable, _Waiter] = {}
        self._deadlines: deque[tuple[float, Hashable]] = deque()
        self._granted: list[Slice | ShortQuestion] = []
        self._yielded: list[Hashable] = []
        self._starved = False  # somebody's place is free and the budget behind it is not: nobody overtakes

    def admit(
        self, session: Hashable, tokens: int, now: float, or_question: bool = True
    ) -> Slice | ShortQuestion | Wait:
        """The smallest free slice that holds `tokens`; else a short question; else a place in the queue.

        Raises AeliusError for a session that is here already, and for more tokens than any slice has.
        """
        if session in self._held or session in self._queue:
            raise AeliusError("session", session, "one that neither holds nor waits (promote moves it)")
        self._rung(tokens)
        self._advance(now)
        if not self._starved:
            granted = self._grant(session, tokens, or_question)
            if granted is not None:
                return granted
        self._queue[session] = _Waiter(tokens, or_question, None)
        return self.waiting(session, place=len(self._queue))

    def promote(self, session: Hashable, tokens: int, now: float) -> Slice | ShortQuestion | Wait:
        """A slice that holds `tokens` for a session that has a smaller one; else a place in the queue.

        While it waits it keeps what it has for the ladder's `yield_after`, then waits without.
        """
        self._rung(tokens)
        self._advance(now)
        if session in self._queue:
            return self.waiting(session)
        held = self.holding(session)
        if held is None:
            raise AeliusError("session", session, "one that holds a slice (admit lets it in)")
        if isinstance(held, Slice) and held.tokens >= tokens:
            return held
        granted = None if self._starved else self._grant(session, tokens, or_question=False)
        if granted is not None:
            self._serve()
            return granted
        until = now + self.ladder.yield_after
        self._queue[session] = _Waiter(tokens, False, until)
        self._deadlines.append((until, session))
        self._advance(now)
        if session in self._queue:
            return self.waiting(session)
        self._granted = [granted for granted in self._granted if granted.session != session]
        return self._held[session]

    def release(self, session: Hashable, now: float, keep: int = 0) -> None:
        """End what a session holds or waits for; `keep` of its cost stays behind as evictable cache."""
        if session not in self._held and session not in self._queue:
            raise AeliusError("session", session, "one that holds or waits")
        self._advance(now)
        self._queue.pop(session, None)
        if session in self._held:
            self._take_back(session, keep)
        self._serve()

    def serve(self, now: float) -> list[Slice | ShortQuestion]:
        """What waiters were granted since the last call; first takes back what overdue waiters still hold."""
        self._advance(now)
        granted, self._granted = self._granted, []
        return [grant for grant in granted if self._held.get(grant.session) is grant]  # not what has ended since

    def yielded(self) -> list[Hashable]:
        """Waiters whose slice was taken back since the last call."""
        yielded, self._yielded = self._yielded, []
        return yielded

    def holding(self, session: Hashable) -> Slice | ShortQuestion | None:
        """What a session holds now."""
        return self._held.get(session)

    def waits(self, session: Hashable) -> bool:
        """Whether a session is in the queue."""
        return session in self._queue

    def waiting(self, session: Hashable, place: int | None = None) -> Wait:
        """A waiter's place and what it waits for."""
        waiter = self._queue.get(session)
        if waiter is None:
            raise AeliusError("session", session, "one that waits")
        place = place or list(self._queue).index(session) + 1
        held = self._held.get(session)
        return Wait(session, waiter.tokens, place, self._rung(waiter.tokens), held, waiter.until)

    @property
    def waiters(self) -> int:
        """How many wait."""
        return len(self._queue)

    @property
    def next_deadline(self) -> float | None:
        """When the next waiter must give up what it holds: when to call `serve` at the latest."""
        return min((w.until for w in self._queue.values() if w.until is not None), default=None)

    def check(self) -> None:
        """Raise Unbalanced if budget, places or deadlines do not add up."""
        self.account.check()
        if self.account.used != {session: held.cost for session, held in self._held.items()}:
            raise Unbalanced(f"granted: {self._held}; the account says {self.account.used}")
        sizes = [held.tokens for held in self._held.values() if type(held) is Slice]
        for tokens, promised in self._promised.items():
            if self._places[tokens] < 0 or self._places[tokens] + sizes.count(tokens) != promised:
                raise Unbalanced(f"{promised} slices of {tokens:,} are promised, {self._places[tokens]} said to be free")
        if self._deadlines and any(w.until is not None and w.until <= self.now for w in self._queue.values()):
            raise Unbalanced("a waiter holds past its timeout")

    def _rung(self, tokens: int) -> int:
        whole("tokens", tokens)
        for size in self._costs:
            if size >= tokens:
                return size
        raise AeliusError("tokens", tokens, f"at most {max(self._costs, default=0):,}, the largest slice")

    def _grant(self, session: Hashable, tokens: int, or_question: bool) -> Slice | ShortQuestion | None:
        held = self._held.get(session)
        back = held.cost if held is not None else 0
        granted: Slice | ShortQuestion | None = None
        for size, cost in self._costs.items():
            if size >= tokens and self._places[size]:
                if self.account.payable(cost - back):
                    granted = Slice(session, size, cost)
                else:
                    self._starved = True
                break
        if granted is None and or_question and held is None and self._question_cost <= self._pot:
            question, cap = self.ladder.question_tokens or 0, self.ladder.question_input or 0
            granted = ShortQuestion(session, question, cap, self._question_cost)
            self._pot -= self._question_cost
        if granted is None:
            return None
        if held is not None:
            self._take_back(session, keep=0)
        self.account.pay(session, granted.cost)
        self._held[session] = granted
        if isinstance(granted, Slice):
            self._places[granted.tokens] -= 1
        return granted

    def _take_back(self, session: Hashable, keep: int) -> None:
        self.account.give_back(session, keep)
        held = self._held.pop(session)
        if isinstance(held, Slice):
            self._places[held.tokens] += 1
        else:
            self._pot += held.cost

    def _advance(self, now: float) -> None:
        if not now >= self.now:
            raise AeliusError("now", now, f"a time not before {self.now}")
        self.now = now
        overdue = False
        while self._deadlines and self._deadlines[0][0] <= now:
            until, session = self._deadlines.popleft()
            waiter = self._queue.get(session)
            if waiter is not None and waiter.until == until:
                waiter.until = None
                self._take_back(session, keep=self._held[session].cost)
                self._yielded.append(session)
                overdue = True
        if overdue:
            self._serve()

    def _serve(self) -> None:
        """Give what is free to waiters, first come first served among those whom it fits."""
        again = True
        while again:
            again = self._starved = False
            if not self._queue or (self._pot < self._question_cost and not any(self._places.values())):
                return
            for session, waiter in list(self._queue.items()):
                granted = self._grant(session, waiter.tokens, waiter.or_question)
                if granted is not None:
                    del self._queue[session]
                    self._granted.append(granted)
                    again = again or waiter.until is not None  # it gave back a smaller slice
                elif self._starved:
                    break
