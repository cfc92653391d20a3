"""The specification of a ladder: which slices a pool is promised to, and what they cost in tokens or in blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from aelius_math.units import AeliusError, ceil_div, whole

if TYPE_CHECKING:
    from aelius_math.ladder import Arena


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
            raise AeliusError("short_tokens", None, "the tokens of a short slice (--short-tokens), or no shorts (--shorts 0)")
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
        from aelius_math.ladder import Arena

        return Arena(self)
