"""Does decoding fall off a cliff? Speeds against the depth of the context they were measured at.

Four shapes are fitted to the logarithm of the speeds, whose noise is a share of the speed:

    flat        one speed
    smooth      the time of a token grows with the context, as attention's reading does: 1 / (a + b x)
    step        one speed up to a place, a lower one past it
    both        smooth, with a step

A cliff is a step that is too large for chance (Student's t, one-sided, times the number of places it could be at: at
most ALPHA), a fall of at least LEAST, and a better account of the speeds than flat and smooth by the Bayesian
information criterion, which charges a step for its place too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, lgamma, log, log1p, sqrt
from typing import NamedTuple

from aelius_math.units import AeliusError

ALPHA = 0.006
"""Chance of a step where there is none, at most."""

LEAST = 0.15
"""Fall below this share is not called a cliff."""

FEWEST = 8
"""Samples under which nothing is said."""

SIDE = 2
"""Samples that a cliff must have on each side: a lone slow answer is none."""


class Sample(NamedTuple):
    """One measurement: tokens in the context, and the decode speed there [tokens/s]."""

    context: float
    speed: float


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the speeds say. verdict: "cliff", "none" or "too few".

    after, before: the last context at the old speed and the first at the new. low, high: where the cliff lies with 95%.
    fall: the share of the speed that is lost there. speed_before, speed_after: just before and after it, as fitted; without
    a cliff, at the smallest and the largest context. chance: how often flat speeds would show such a step. confidence:
    that it is one, against chance and against a smooth decline. noise: relative, of one sample. visible: the smallest fall
    in the middle that so many samples with this noise would have shown, 95 times of 100.
    """

    verdict: str
    samples: int
    after: float | None = None
    before: float | None = None
    low: float | None = None
    high: float | None = None
    fall: float | None = None
    speed_before: float | None = None
    speed_after: float | None = None
    chance: float | None = None
    confidence: float | None = None
    noise: float | None = None
    visible: float | None = None


class _Step(NamedTuple):
    bic: float
    place: int
    shift: float  # of ln(speed), below 0
    chance: float
    variance: float
    smooth: bool
    weights: list[tuple[float, int]]


def find_cliff(samples: Sequence[Sample]) -> Finding:
    """Whether and where the speeds fall off a cliff as the context grows. Order does not matter.

    >>> speeds = [50, 51, 49, 50, 52, 48, 50, 51, 25, 26, 24, 25, 26, 25]
    >>> found = find_cliff([Sample(4096 * (n + 1), speed) for n, speed in enumerate(speeds)])
    >>> found.verdict, found.after, found.before, round(found.fall, 2)
    ('cliff', 32768, 36864, 0.5)

    Raises AeliusError for a context or a speed that is not a number above 0.
    """
    for sample in samples:
        for name, value in (("context", sample.context), ("speed", sample.speed)):
            if not isfinite(value) or value < 0 or (name == "speed" and value == 0):
                raise AeliusError(name, value, "a number above 0")
    ordered = sorted(samples)
    n = len(ordered)
    if n < FEWEST or ordered[0].context == ordered[-1].context:
        return Finding(verdict="too few", samples=n)
    contexts = [sample.context for sample in ordered]
    logs = [log(sample.speed) for sample in ordered]
    mean = sum(logs) / n
    flat = [value - mean for value in logs]
    fitted = smooth_fit(contexts, logs)
    rest = [value - fit for value, fit in zip(logs, fitted, strict=True)]
    slopes = [exp(fit) * context for fit, context in zip(fitted, contexts, strict=True)]  # how ln(speed) answers to b
    best = min(criterion(flat, 1), criterion(rest, 2))
    steps = [step for step in (_step(contexts, flat, None), _step(contexts, rest, slopes)) if step is not None]
    steps = [
        step
        for step in steps
        if step.chance <= ALPHA and step.bic < best and 1 - exp(step.shift) >= LEAST and _shared(step, rest if step.smooth else flat)
    ]
    if not steps:
        smooth = criterion(rest, 2) < criterion(flat, 1)
        residuals = rest if smooth else flat
        noise = sqrt(_squares(residuals) / (n - 2))
        ends = (exp(fitted[0]), exp(fitted[-1])) if smooth else (exp(mean), exp(mean))
        return Finding(verdict="none", samples=n, noise=noise, speed_before=ends[0], speed_after=ends[1], visible=visible(n, noise))
    step = min(steps)
    k = step.place
    level = fitted if step.smooth else [mean] * n
    moved = [value - level[i] for i, value in enumerate(logs)]
    offset = (sum(moved) - step.shift * (n - k)) / n
    low, high = _range(step.weights)
    return Finding(
        verdict="cliff",
        samples=n,
        after=contexts[k - 1],
        before=contexts[k],
        low=contexts[low - 1],
        high=contexts[high],
        fall=1 - exp(step.shift),
        speed_before=exp(level[k - 1] + offset),
        speed_after=exp(level[k] + offset + step.shift),
        chance=step.chance,
        confidence=min(1 - step.chance, 1 / (1 + exp((step.bic - best) / 2))),
        noise=sqrt(step.variance),
        visible=visible(n, sqrt(step.variance)),
    )


def smooth_fit(contexts: Sequence[float], logs: Sequence[float]) -> list[float]:
    """ln(speed) at each context if a token takes a + b x seconds, b not below 0: least squares of the logarithms."""
    n, top = len(logs), max(contexts)
    a, b = exp(-sum(logs) / n), 0.0
    for _ in range(8):  # Gauss-Newton
        times = [a + b * x / top for x in contexts]
        z = [x / top / time for x, time in zip(contexts, times, strict=True)]
        gaps = [-value - log(time) for value, time in zip(logs, times, strict=True)]
        mean_z, mean_gap = sum(z) / n, sum(gaps) / n
        spread = sum((u - mean_z) ** 2 for u in z)
        slope = sum((u - mean_z) * (gap - mean_gap) for u, gap in zip(z, gaps, strict=True)) / spread
        level = max(-0.7, min(0.7, mean_gap - slope * mean_z))
        a, b = a * (1 + level), max(0.0, b * (1 + level) + slope)
    fitted = [-log(a + b * x / top) for x in contexts]
    shift = sum(value - fit for value, fit in zip(logs, fitted, strict=True)) / n
    return [fit + shift for fit in fitted]


def criterion(residuals: Sequence[float], parameters: int) -> float:
    """The Bayesian information criterion of a fit with so many parameters; lower is better."""
    n = len(residuals)
    return n * log(max(_squares(residuals), 1e-12) / n) + parameters * log(n)


def _squares(values: Sequence[float]) -> float:
    return sum(value * value for value in values)


def _step(contexts: Sequence[float], residuals: Sequence[float], slopes: Sequence[float] | None) -> _Step | None:
    """The best step down in what a fit left over; `slopes`: the direction in which the fit could still have moved."""
    n = len(residuals)
    before = _squares(residuals)
    parameters = 3 if slopes is None else 4
    mean = sum(slopes) / n if slopes is not None else 0.0
    spread = sum((slope - mean) ** 2 for slope in slopes) if slopes is not None else 1.0
    found: list[tuple[float, int, float]] = []
    total = lean = 0.0
    for k in range(n - 1, SIDE - 1, -1):  # the step lies before sample k
        total += residuals[k]
        lean += slopes[k] - mean if slopes is not None else 0.0
        if n - k < SIDE or contexts[k] == contexts[k - 1] or total >= 0:
            continue
        weight = (n - k) * k / n - lean * lean / spread
        if weight > 1e-9:
            found.append((max(before - total * total / weight, 1e-12), k, total / weight))
    if not found:
        return None
    after, place, shift = min(found)
    free = n - (2 if slopes is None else 3)
    chance = min(1.0, (n - 1) * upper_tail(sqrt(max(0.0, before - after) / (after / free)), free))
    weights = [((rest / after) ** (-n / 2), k) for rest, k, _ in found]
    bic = n * log(after / n) + parameters * log(n)
    return _Step(bic, place, shift, chance, after / free, slopes is not None, weights)


def _shared(step: _Step, residuals: Sequence[float]) -> bool:
    """Whether most of a few last samples are slow, and not one of them so slow that it speaks for all."""
    after = residuals[step.place :]
    middle = step.shift / 2 - step.shift * len(after) / len(residuals)
    return len(after) > 4 or 2 * sum(value < middle for value in after) > len(after)


def _range(weights: list[tuple[float, int]]) -> tuple[int, int]:
    """First and last place of the fewest that hold 95% of the weight."""
    total, sum_, places = sum(weight for weight, _ in weights), 0.0, []
    for weight, k in sorted(weights, reverse=True):
        places.append(k)
        sum_ += weight
        if sum_ >= 0.95 * total:
            break
    return min(places), max(places)


def visible(n: int, noise: float) -> float:
    """The smallest fall, as a share, in the middle of n samples that would be called a cliff 95 times of 100.

    It must stand out from chance, and from a smooth decline, which explains three quarters of a step in the middle.

    >>> [round(visible(n, 0.10), 2) for n in (20, 30, 60)]
    [0.36, 0.29, 0.21]
    """
    low, high = 0.0, 100.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if (n - 1) * upper_tail(middle, n - 2) > ALPHA else (low, middle)
    chance = (high + 1.645) * 2 / sqrt(n)
    root = 1.645 / sqrt(2) + sqrt(1.645**2 / 2 + log(n) / 2)  # of the log likelihood that the step must be better by
    smooth = 4 * sqrt(exp(2 * root * root / n) - 1)
    return max(LEAST, 1 - exp(-max(chance, smooth) * noise))


def upper_tail(t: float, free: int) -> float:
    """Chance that Student's t with so many degrees of freedom is above t.

    >>> round(upper_tail(2.228, 10), 4), upper_tail(0.0, 5)
    (0.025, 0.5)
    """
    if t <= 0:
        return 0.5 if t == 0 else 1 - upper_tail(-t, free)
    if t == inf:
        return 0.0
    x, a, b = free / (free + t * t), free / 2, 0.5
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a / 2
    return (1 - front * _fraction(b, a, 1 - x) / b) / 2


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, 300):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            found *= d * c
        if abs(d * c - 1) < 1e-12:
            break
    return found
