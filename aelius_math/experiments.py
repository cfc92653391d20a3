"""Repeated runs of a scene: means with 95% confidence intervals, the largest demand served in time, the fewest rigs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple

from aelius_math.demand import Turn
from aelius_math.ladder import BlockCosts, Ladder
from aelius_math.scene import Outcome, Policy, Rig, Scene
from aelius_math.simulation import run
from aelius_math.units import AeliusError


class Estimate(NamedTuple):
    """A mean over repetitions, its standard error and the half width of its 95% confidence interval."""

    mean: float
    error: float
    half: float


T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, 97.5%, for 1 to 30 degrees of freedom; 1.96 beyond."""


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and 95% confidence interval of independent repetitions.

    >>> [round(part, 3) for part in estimate([1.0, 2.0, 3.0])]
    [2.0, 0.577, 2.484]
    """
    if len(values) < 2:
        raise AeliusError("values", len(values), "at least 2 repetitions")
    error = stdev(values) / sqrt(len(values))
    return Estimate(fmean(values), error, error * (T95[len(values) - 2] if len(values) <= 31 else 1.96))


def repeat(scene: Scene, seeds: Iterable[int]) -> list[Outcome]:
    """One run a seed."""
    return [run(scene, seed) for seed in seeds]


def on_time(scene: Scene, seeds: Iterable[int]) -> Estimate:
    """Share of turns that begin in time."""
    return estimate([outcome.on_time for outcome in repeat(scene, seeds)])


def at_scale(scene: Scene, scale: float) -> Scene:
    """The scene with so many times the people; its hours are shared out, so that about as many turns are measured."""
    return replace(scene, scale=scale, hours=max(1.0, scene.hours / scale))


def largest_scale(
    scene: Scene, seeds: Sequence[int], share: float = 0.95, low: float = 1 / 32, high: float = 64.0, within: float = 0.02
) -> float:
    """The largest demand, as a multiple of the table's, of which this share begins in time; by bisection.

    `within` is relative. 0 if not even `low` can be served, inf if `high` can.
    """

    def enough(scale: float) -> bool:
        return fmean(outcome.on_time for outcome in repeat(at_scale(scene, scale), seeds)) >= share

    if not enough(low):
        return 0.0
    if enough(high):
        return inf
    while high > low * (1 + within):
        middle = sqrt(low * high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def fewest_rigs(scene: Scene, seeds: Sequence[int], enough: Callable[[Scene], bool], low: int, high: int) -> int:
    """Fewest rigs between low and high for which `enough` holds; more rigs are taken never to be worse."""
    while low < high:
        middle = (low + high) // 2
        if enough(replace(scene, rigs=middle)):
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True)
class Exponential:
    """The textbook's customers: they come at random, are served for a mean of one minute, and wait as long as it takes."""

    load: float
    answer_room: int = 1
    longest: int = 2
    patience: float = inf
    decode_together: float = inf
    on_time: float = 0.0

    @property
    def sessions_per_hour(self) -> float:
        return 60 * self.load

    def script(self, random: Random) -> list[Turn]:
        return [Turn(1, 1, 0.0, inf, 1 / random.expovariate(1 / 60))]


def textbook(servers: int, load: float, hours: float) -> Scene:
    """A queue with so many servers, run by the ladder's own code: as many places, each held for one answer.

    The share that waits is Erlang's C(servers, load).
    """
    ladder = Ladder(pool=2 * servers, slices=(), shorts=servers, short_tokens=2)
    costs = BlockCosts(usable_blocks=2 * servers, block_size=1, fixed_blocks=0)
    return Scene(
        demand=Exponential(load),
        policy=Policy(name="textbook", ladder=ladder, idle_timeout=0),
        rig=Rig(costs=costs, tokens=2 * servers, count="planned", prefix_caching=False),
        hours=hours,
    )


def share_waiting(outcomes: Sequence[Outcome], load: float) -> Estimate:
    """The share of turns that wait, freed of what chance in the offered load explains (a control variate).

    Each run's load is known to be `load` in the mean; the line through the runs' shares against their loads is read there.
    """
    shares = [outcome.delayed / outcome.turns for outcome in outcomes]
    loads = [outcome.mean_running for outcome in outcomes]
    mean_share, mean_load = fmean(shares), fmean(loads)
    spread = sum((one - mean_load) ** 2 for one in loads)
    slope = sum((a - mean_load) * (b - mean_share) for a, b in zip(loads, shares, strict=True)) / spread
    return estimate([share - slope * (one - load) for share, one in zip(shares, loads, strict=True)])
