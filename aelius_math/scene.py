"""What is simulated, and what a run measures: the specification, apart from the run (`aelius_math.simulation`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol

from aelius_math.demand import Turn
from aelius_math.ladder import BlockCosts, Ladder
from aelius_math.units import AeliusError, whole

VERSION = 1
"""Of the model: raised when a change alters what a seed gives. Stored runs hold it."""


class Asks(Protocol):
    """What the simulation needs of a demand; `demand.Demand` is one."""

    @property
    def sessions_per_hour(self) -> float: ...
    @property
    def answer_room(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def patience(self) -> float: ...
    @property
    def decode_together(self) -> float: ...
    @property
    def on_time(self) -> float: ...
    def script(self, random: Random) -> list[Turn]: ...


@dataclass(frozen=True, kw_only=True)
class Rig:
    """One server: its blocks, and whether it keeps a prefix cache.

    costs: its usable blocks, and what a request takes of them. cached_fixed: blocks of state that a conversation at
    rest keeps beside its whole blocks (one per recurrent group). tokens: what the engine prints as its pool.
    """

    costs: BlockCosts
    tokens: int
    count: str = "running"
    prefix_caching: bool = True
    cached_fixed: int = 0


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Who is let in: a ladder, or None for no gate; and how long a slice outlives its last answer [s].

    idle_timeout 0: a slice is held while an answer is made, and no longer.
    """

    name: str
    ladder: Ladder | None
    idle_timeout: float = 300.0


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What is simulated. scale multiplies the people; routing: "least" busy rig, or "random"; hours are measured ones."""

    demand: Asks
    policy: Policy
    rig: Rig
    scale: float = 1.0
    rigs: int = 1
    routing: str = "least"
    warm_up: float = 0.5
    hours: float = 1.0

    def __post_init__(self) -> None:
        whole("rigs", self.rigs)
        if self.routing not in ("least", "random"):
            raise AeliusError("routing", self.routing, '"least" or "random"')
        for name in ("scale", "hours"):
            if not getattr(self, name) > 0:
                raise AeliusError(name, getattr(self, name), "more than 0")


class Moment(NamedTuple):
    """The first rig from one time [s] of the measured hours on: its blocks, and how many run, hold a slice, wait."""

    time: float
    used: int
    cached: int
    free: int
    running: int
    leased: int
    waiting: int


@dataclass(slots=True)
class Outcome:
    """What one run measured, over the turns that arrived in the measured hours and over that time."""

    seed: int
    turns: int = 0
    late: int = 0
    lost: int = 0
    delayed: int = 0  # waited at all
    late_gate: int = 0  # late, and most of the wait was for a slice
    late_blocks: int = 0  # ... for blocks
    late_prefill: int = 0  # ... behind other prompts
    answered_late: int = 0  # the first token came later than on time
    prompt_tokens: int = 0
    hit_tokens: int = 0
    overdrawn_turns: int = 0  # began while the conversations that hold slices were larger than the pool
    events: int = 0
    peak_running: int = 0
    peak_leased: int = 0
    peak_used: int = 0
    seconds: float = 0.0
    mean_running: float = 0.0
    mean_leased: float = 0.0
    mean_used: float = 0.0
    mean_cached: float = 0.0
    prefill_busy: float = 0.0
    moments: list[Moment] = field(default_factory=list)

    @property
    def on_time(self) -> float:
        """Share of turns that began in time."""
        return 1 - self.late / self.turns if self.turns else 1.0

    @property
    def hit_rate(self) -> float:
        """Share of prompt tokens found in the cache."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0
