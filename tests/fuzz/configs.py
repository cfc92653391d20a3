"""Mutilated configs: each gives an answer or a named refusal in one line, never another exception, never a long wait.

    python tests/fuzz/configs.py [COUNT] [SEED]     (20,000 and 0)

The configs are the golden ones and the catalogue's. Each case takes one, spoils one to four places of it, and reads it
as a caller and, every hundredth, as the command line does from a file.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from aelius_math import catalogue
from aelius_math.cli_config import parse
from aelius_math.config_families import TEXT, WRAPPERS
from aelius_math.model import from_config
from aelius_math.units import AeliusError

LONGEST_SECONDS = 1.0

Place = tuple[Any, Any]
"""A mapping or list, and a key or index in it."""


def deep(levels: int = 3000) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


NONSENSE: list[Callable[[random.Random], object]] = [
    lambda r: None, lambda r: 0, lambda r: -1, lambda r: -r.randrange(10**9), lambda r: 1, lambda r: 3, lambda r: 7,
    lambda r: 2**53, lambda r: 10**30, lambda r: 10**5000, lambda r: 1.5, lambda r: float("nan"), lambda r: float("inf"),
    lambda r: -0.0, lambda r: True, lambda r: False, lambda r: "", lambda r: "64", lambda r: "quantum_attention",
    lambda r: "x" * 100_000, lambda r: "\u202e\n\x00\ud800", lambda r: [], lambda r: {}, lambda r: [None], lambda r: {"a": {}},
    lambda r: [1] * r.randrange(200), lambda r: ["full_attention"] * r.randrange(200), lambda r: deep(),
    lambda r: {"type": "float", "num_bits": 8}, lambda r: r.randrange(1, 10**6), lambda r: r.choice([*TEXT]),
    lambda r: r.choice([*WRAPPERS]), lambda r: [0] * 100_000,
]  # fmt: skip


def places(value: object) -> list[Place]:
    """Every place of a JSON value."""
    found: list[Place] = []
    stack = [value]
    while stack:
        inner = stack.pop()
        if isinstance(inner, dict):
            found += [(inner, key) for key in inner]
            stack += inner.values()
        elif isinstance(inner, list):
            found += [(inner, index) for index in range(min(len(inner), 8))]
            stack += inner[:8]
    return found


def spoil(config: dict[str, Any], others: list[dict[str, Any]], chance: random.Random) -> None:
    """One mutilation, in place."""
    where = places(config)
    if not where:
        config["model_type"] = chance.choice([*TEXT, *WRAPPERS])
        return
    inside, key = chance.choice(where)
    kind = chance.randrange(8)
    if kind == 0 and isinstance(inside, dict):
        del inside[key]
    elif kind == 1 and isinstance(inside, list):
        del inside[key:]
    elif kind == 2 and isinstance(inside[key], int) and not isinstance(inside[key], bool):
        inside[key] = inside[key] + chance.choice([-1, 1, 2, inside[key], -inside[key]])
    elif kind == 3:
        other, name = chance.choice(where)
        inside[key], other[name] = other[name], inside[key]
    elif kind == 4:
        donor, name = chance.choice(places(chance.choice(others)))
        target = inside if isinstance(inside, dict) else config
        target[str(name)] = copy.deepcopy(donor[name])
    elif kind == 5 and isinstance(inside, dict):
        inside[f"{key}_"] = inside.pop(key)
    elif kind == 6:
        config["model_type"] = chance.choice([*TEXT, *WRAPPERS])
    else:
        inside[key] = chance.choice(NONSENSE)(chance)


def judge(config: object) -> tuple[str, str]:
    """What came of a config: answered or refused, and which field; raises whatever else is raised."""
    try:
        model = from_config(config)  # type: ignore[arg-type]
        figures = [model.kv_bytes_per_token(), model.index_bytes_per_token(), model.window_bytes(), model.conv_elements,
                   model.state_elements, model.mtp_bytes_per_token()]  # fmt: skip
        assert all(isinstance(figure, int) and figure >= 0 for figure in figures), figures
        assert any(figures), "an answer of nothing at all"
    except AeliusError as error:
        line = str(error)
        assert error.field and error.field in line and "\n" not in line and len(line) < 5000, line[:200]
        return "refused", error.field.split("[")[0].split(".")[-1]
    return "answered", ""


def run(count: int = 20_000, seed: int = 0) -> str:
    """Tries so many configs; raises AssertionError with the config for the first that fails. Returns the tally."""
    golden = json.loads((ROOT / "tests" / "golden" / "models.json").read_text("utf-8"))
    sources = [case["config"] for case in golden] + [catalogue.config(name) for name in catalogue.names()]
    chance = random.Random(seed)
    tally: Counter[str] = Counter()
    fields: Counter[str] = Counter()
    slowest = 0.0
    for number in range(count):
        config = copy.deepcopy(chance.choice(sources))
        for _ in range(chance.randint(1, 4)):
            spoil(config, sources, chance)
        started = time.perf_counter()
        try:
            verdict, field = judge(config)
            if number % 100 == 0:
                through_a_file(config)
        except Exception as error:
            raise AssertionError(f"case {number} of seed {seed}: {type(error).__name__}: {error}\n{config!r:.3000}") from error
        took = time.perf_counter() - started
        slowest = max(slowest, took)
        assert took < LONGEST_SECONDS, f"case {number} of seed {seed} took {took:.2f} s\n{config!r:.3000}"
        tally[verdict] += 1
        fields[field] += 1
    often = ", ".join(f"{name} {times:,}" for name, times in fields.most_common(9) if name)
    return (f"{count:,} mutilated configs: {tally['answered']:,} answered, {tally['refused']:,} refused by name "
            f"({len(fields) - 1:,} fields; most often {often}); slowest {slowest * 1000:.0f} ms")  # fmt: skip


def through_a_file(config: object) -> None:
    """The same config as bytes of a file: what JSON can hold is read, what it cannot is refused."""
    try:
        text = json.dumps(config)
    except (ValueError, RecursionError):
        return
    try:
        judge(parse(text.encode("utf-8", "replace"), "a file"))
    except AeliusError:
        pass


if __name__ == "__main__":
    numbers = [int(word.replace(",", "")) for word in sys.argv[1:3]]
    print(run(*numbers))
