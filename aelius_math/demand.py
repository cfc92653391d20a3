"""What people ask of the service: assumed, in one table that a reader can change (demand.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from importlib.resources import files
from math import exp, inf, log
from random import Random
from typing import NamedTuple

from aelius_math.units import AeliusError


class Turn(NamedTuple):
    """One prompt and its answer: tokens, the time to think before the next, and the speeds it meets [tokens/s]."""

    prompt: int
    answer: int
    think: float
    prefill: float
    decode: float


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The table's values by name. Raises AeliusError for a value out of range.

    >>> round(assumed().sessions_per_hour, 1)
    17.1
    """

    people: float
    sessions_per_person: float
    turns_mean: float
    think_mean: float
    prompt_median: float
    prompt_sigma: float
    long_share: float
    long_later: float
    long_median: float
    long_sigma: float
    answer_median: float
    answer_sigma: float
    answer_room: int
    longest: int
    patience: float
    prefill_low: float
    prefill_high: float
    decode_low: float
    decode_high: float
    decode_together: float
    on_time: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise AeliusError(field.name, value, "a number of at least 0")
        positive = ("turns_mean", "think_mean", "prompt_median", "long_median", "answer_median", "prefill_low", "decode_low")
        for name in (*positive, "decode_together", "sessions_per_hour"):
            if getattr(self, name) <= 0:
                raise AeliusError(name, getattr(self, name), "more than 0")
        for name, low, high in (
            ("turns_mean", 1, inf),
            ("long_share", 0, 1),
            ("long_later", 0, 1),
            ("prefill_high", self.prefill_low, inf),
            ("decode_high", self.decode_low, inf),
            ("answer_room", 1, self.longest - 1),
        ):
            if not low <= getattr(self, name) <= high:
                raise AeliusError(name, getattr(self, name), f"a number from {low:g} to {high:g}")

    @property
    def sessions_per_hour(self) -> float:
        """Conversations begun in the busy hour."""
        return self.people * self.sessions_per_person

    def script(self, random: Random) -> list[Turn]:
        """One conversation, drawn whole, so that every policy meets the same people."""
        if self.turns_mean > 1:
            turns = 1 + int(log(1 - random.random()) / log(1 - 1 / self.turns_mean))
        else:
            turns = 1
        gauss = random.gauss
        most = self.longest - self.answer_room
        script = []
        for turn in range(turns):
            share = self.long_later if turn else self.long_share
            if share and random.random() < share:
                prompt = self.long_median * exp(self.long_sigma * gauss(0, 1))
            else:
                prompt = self.prompt_median * exp(self.prompt_sigma * gauss(0, 1))
            answer = self.answer_median * exp(self.answer_sigma * gauss(0, 1))
            script.append(
                Turn(
                    min(max(1, int(prompt)), most),
                    min(max(1, int(answer)), self.answer_room),
                    random.expovariate(1 / self.think_mean),
                    random.uniform(self.prefill_low, self.prefill_high),
                    random.uniform(self.decode_low, self.decode_high),
                )
            )
        return script


def table() -> dict[str, dict[str, object]]:
    """The lines of demand.toml: name -> value, unit, source. Raises AeliusError for a line without a source."""
    lines = tomllib.loads(files("aelius_math").joinpath("demand.toml").read_text(encoding="utf-8"))
    for name, line in lines.items():
        if not line.get("source"):
            raise AeliusError(name, line, 'a line with a source, or the word "assumed"')
    return lines


def assumed(**changes: float) -> Demand:
    """The demand of the table, with some values changed by name.

    >>> assumed(people=380).people
    380
    """
    values = {name: line["value"] for name, line in table().items()}
    known = {field.name for field in fields(Demand)}
    for name in (known ^ values.keys()) | (changes.keys() - known):
        raise AeliusError(name, None, "a line of demand.toml: " + ", ".join(sorted(known)))
    return Demand(**{**values, **changes})  # type: ignore[arg-type]
