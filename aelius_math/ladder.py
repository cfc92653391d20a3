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
from collections.abc import Hashable
from dataclasses import dataclass

from aelius_math.account import Account, Unbalanced
from aelius_math.ladder_spec import BlockCosts, BlockPool, Ladder, slice_sizes
from aelius_math.units import LARGEST, AeliusError, whole

__all__ = ["Arena", "BlockCosts", "BlockPool", "Ladder", "ShortQuestion", "Slice", "Wait", "slice_sizes"]


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

    def admit(self, session: Hashable, tokens: int, now: float, or_question: bool = True) -> Slice | ShortQuestion | Wait:
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
