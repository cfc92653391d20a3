"""Re-make the long runs of the simulation: writes aelius_math/simulated.json. Some twenty minutes on one core.

    python tools/simulate.py [--jobs N] [--only PART ...]

Each part holds the seeds it used. The same seeds and version give the same file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from itertools import product
from math import exp, isinf
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from aelius_math import busy_hour
from aelius_math.demand import assumed, table
from aelius_math.erlang import erlang_c, fewest
from aelius_math.experiments import (
    at_scale,
    estimate,
    fewest_rigs,
    largest_scale,
    repeat,
    share_waiting,
    textbook,
)  # fmt: skip
from aelius_math.ladder import Ladder
from aelius_math.scene import VERSION, Outcome, Policy, Scene
from aelius_math.simulation import run

TARGET = Path(__file__).resolve().parents[1] / "aelius_math" / "simulated.json"
SCALES = (0.25, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
HOURS = 20.0  # measured at the table's demand; at n times the people an n-th of it, but an hour at least
Point = dict[str, object]


def pair(values: Iterable[float], digits: int = 5) -> list[float]:
    """Mean and half width of the 95% interval."""
    found = estimate(list(values))
    return [round(found.mean, digits), round(found.half, digits)]


def summary(outcomes: list[Outcome]) -> Point:
    """What the repetitions of one scene measured."""
    shares = ("late_gate", "late_blocks", "late_prefill", "lost", "answered_late", "overdrawn_turns")
    means = ("mean_running", "mean_leased", "mean_used", "mean_cached", "prefill_busy", "hit_rate")
    return {
        "seeds": [outcome.seed for outcome in outcomes],
        "turns": sum(outcome.turns for outcome in outcomes),
        "on_time": pair(outcome.on_time for outcome in outcomes),
        "first_on_time": outcomes[0].on_time,
        **{name: pair(getattr(o, name) / max(1, o.turns) for o in outcomes) for name in shares},
        **{name: pair(getattr(o, name) for o in outcomes) for name in means},
        **{name: max(getattr(o, name) for o in outcomes) for name in ("peak_running", "peak_leased", "peak_used")},
    }


def scale_of(scene: Scene, groups: int = 4, each: int = 2) -> Point:
    """The largest demand with 95% on time, from independent groups of seeds."""
    found = [largest_scale(scene, range(1 + g * each, 1 + (g + 1) * each)) for g in range(groups)]
    finite = [64.0 if isinf(scale) else scale for scale in found]
    return {"seeds": [1, groups * each], "scale": pair(finite, 3)}


def part_erlang() -> object:
    """The share that waits against the closed form."""
    rows = []
    for servers, load, hours, runs in ((2, 1.4, 100, 24), (18, 14.4, 40, 40), (22, 14, 40, 40)):
        outcomes = repeat(textbook(servers, load, hours), range(1, runs + 1))
        found = share_waiting(outcomes, load)
        rows.append({
            "servers": servers, "load": load, "exact": erlang_c(servers, load), "simulated": found.mean,
            "standard_error": found.error, "turns": sum(o.turns for o in outcomes), "hours": hours, "seeds": [1, runs],
            "first_delayed": outcomes[0].delayed,
        })  # fmt: skip
    return rows


def part_now() -> object:
    """One busy hour after another at the table's demand: what binds."""
    return {name: summary(repeat(busy_hour.scene(name, hours=HOURS), range(1, 21))) for name in busy_hour.policies()}


def part_curves() -> object:
    """On-time share against load, by policy."""
    return {
        name: [{"scale": scale, **summary(repeat(at_scale(busy_hour.scene(name, hours=HOURS), scale), range(1, 11)))} for scale in SCALES]
        for name in busy_hour.policies()
    }


def part_largest() -> object:
    """The largest demand served in time, by policy."""
    return {name: scale_of(busy_hour.scene(name, hours=HOURS)) for name in busy_hour.policies()}


def with_ladder(ladder: Ladder, idle: float = 300.0, **changes: float) -> Scene:
    """The article's rig under another ladder, with some lines of the demand changed."""
    scene = busy_hour.scene("ladder", demand=changes, hours=HOURS)
    return replace(scene, policy=Policy(name="tried", ladder=ladder, idle_timeout=idle))


def part_idle() -> object:
    """The idle timeout, for the ladder in tokens."""
    ladder = busy_hour.in_tokens()
    return [{"idle": idle, **scale_of(with_ladder(ladder, idle), 3)} for idle in (0, 15, 30, 60, 120, 300, 600)]


def part_yield() -> object:
    """How long a waiter keeps its small slice (null: as long as it waits), if people leave or wait for ever (null)."""
    usual = assumed().patience
    return [
        {
            "yield_after": None if isinf(keep) else keep, "patience": None if isinf(patience) else patience,
            "long_later": later, "scale": scale, **summary(repeat(at_scale(scene, scale), range(1, 9))),
        }
        for later, patience, scales in ((0.0, usual, (6, 8)), (0.0, float("inf"), (4, 6)), (0.05, float("inf"), (4, 6)))
        for keep in (0, 30, 300, float("inf"))
        for scene in [with_ladder(busy_hour.in_tokens(yield_after=keep), long_later=later, patience=patience)]
        for scale in scales
    ]  # fmt: skip


def variations() -> Iterator[tuple[str, float | None, dict[str, float]]]:
    """Each line of the demand halved and doubled, as changes by name; low and high ends move together.

    People and their conversations are the scale itself. No slice holds more than the longest conversation has. A line
    that is zero is set to one in twenty, and its factor is null.
    """
    values: dict[str, float] = {name: line["value"] for name, line in table().items()}  # type: ignore[misc]
    for name, value in values.items():
        if name in ("people", "sessions_per_person") or name.endswith("_high"):
            continue
        if value == 0:
            yield name, None, {name: 0.05}
            continue
        ends = [name, name.replace("_low", "_high")] if name.endswith("_low") else [name]
        for factor in (0.5, 2.0):
            if (name, factor) != ("longest", 2.0):
                yield name, factor, {end: type(values[end])(values[end] * factor) for end in ends}


def varied(name: str, factor: float | None, changes: dict[str, float]) -> Point:
    """On time now, and the largest demand served, with one line of the demand changed."""
    scene = busy_hour.scene("ladder", demand=changes, hours=HOURS)
    now = repeat(scene, range(1, 9))
    shares = {"on_time": pair(o.on_time for o in now), "hit_rate": pair(o.hit_rate for o in now)}
    return {"line": name, "factor": factor, **shares, **scale_of(scene, 3)}


def part_sensitivity() -> object:
    """Each line of the demand changed, for the ladder."""
    return [varied(*variation) for variation in variations()]


def ranked(ladders: list[Ladder], scale: float, idle: float) -> list[Point]:
    """The ladders by on-time share at one demand; the best ten again with other and more seeds."""
    tried = []
    for ladder in ladders:
        scene = at_scale(with_ladder(ladder, idle), scale)
        tried.append((fmean(o.on_time for o in repeat(scene, (101, 102, 103))), ladder))
    tried.sort(key=lambda one: -one[0])
    rows = []
    for _, ladder in tried[:10]:
        outcomes = repeat(at_scale(with_ladder(ladder, idle), scale), range(1, 9))
        rows.append({
            "slices": list(ladder.slices), "shorts": ladder.shorts, "short_tokens": ladder.short_tokens, "left": ladder.left,
            "on_time": pair(o.on_time for o in outcomes), **scale_of(with_ladder(ladder, idle), 3),
        })  # fmt: skip
    return sorted(rows, key=lambda row: -row["on_time"][0])  # type: ignore[index]


def part_search() -> object:
    """Other ladders that keep a slice of 64K, in tokens and in blocks with idle conversations holding theirs."""
    sizes = [4_096, 5_120, 6_144, 6_990, 8_192, 10_240, 12_288]
    shapes = [(65_536,) + (32_768,) * a + (16_384,) * b for a, b in product(range(4), range(5))]
    tokens = [busy_hour.in_tokens(slices=shape, short_tokens=size) for shape, size in product(shapes, sizes)]
    block = busy_hour.pool().block_size
    sizes = [block * n for n in range(2, 9)]
    shapes = [(65_536,) + (32_768,) * a + (16_384,) * b for a, b in product(range(4), range(4))]
    blocks = [busy_hour.in_blocks(slices=shape, short_tokens=size) for shape, size in product(shapes, sizes)]
    blocks = [ladder for ladder in blocks if ladder.left >= 0]
    return {
        "tokens": {"scale": 6, "tried": len(tokens), "best": ranked([t for t in tokens if t.left >= 0], 6, 300.0)},
        "blocks": {"scale": 1.5, "tried": len(blocks), "best": ranked(blocks, 1.5, 300.0)},
        "article in tokens": summary(repeat(at_scale(with_ladder(busy_hour.in_tokens()), 6), range(1, 9))),
        "article in blocks": summary(repeat(at_scale(with_ladder(busy_hour.in_blocks()), 1.5), range(1, 9))),
    }


def late_share(servers: int, load: float, holding: float, limit: float) -> float:
    """Share of arrivals that wait longer than `limit`, first come first served, `holding` s a server (M/M/c)."""
    return erlang_c(servers, load) * exp(-max(0.0, servers - load) * limit / holding)


def part_rigs() -> object:
    """Rigs for 1, 10, 100 and 1,000 times the people: one router over all, or each alone; and Erlang's count."""
    demand = assumed()
    base = busy_hour.scene("ladder", hours=HOURS)
    alone = scale_of(base)
    uncrowded = repeat(replace(base, scale=0.5), range(1, 9))
    load = fmean(o.mean_leased for o in uncrowded) / 0.5
    holding = load * 3600 / demand.sessions_per_hour
    places = busy_hour.in_tokens().seats
    rows = []
    for people, seeds, hours in ((1, (1, 2, 3, 4, 5, 6), 20.0), (10, (1, 2, 3, 4), 4.0), (100, (1, 2), 2.0), (1000, (1,), 1.0)):
        crowd = replace(base, scale=people, hours=hours)

        def enough(scene: Scene, seeds: tuple[int, ...] = seeds) -> bool:
            return fmean(run(scene, seed).on_time for seed in seeds) >= 0.95

        guess = people / alone["scale"][0]  # type: ignore[index]
        least, most = max(1, int(guess * 0.5)), int(guess * 1.2) + 2
        row: Point = {"people": people, "seeds": list(seeds), "hours": hours}
        row["routed"] = fewest_rigs(crowd, seeds, enough, least, most)
        row["random"] = fewest_rigs(replace(crowd, routing="random"), seeds, enough, least, most)
        row["erlang_pooled"] = fewest(places, lambda c, a=people * load: late_share(c, a, holding, demand.on_time), 0.05)  # type: ignore[misc]
        rigs = 1
        while late_share(places, people * load / rigs, holding, demand.on_time) > 0.05:
            rigs += 1
        row["erlang_separate"] = rigs
        rows.append(row)
    return {"alone": alone, "leased_per_scale": load, "holding": holding, "places": places, "rows": rows}


def part_hour() -> object:
    """A busy hour of the pool's blocks, every twenty seconds, at the demand of the table and at six times it."""
    found = {}
    for scale in (1, 6):
        outcome = run(busy_hour.scene("ladder", scale=scale), 1, trace=True)
        rows, moments, last = [], iter(outcome.moments), outcome.moments[0]
        following = next(moments)
        for second in range(0, 3600, 20):
            while following is not None and following.time <= second:
                last, following = following, next(moments, None)  # type: ignore[assignment]
            rows.append([second, *last[1:]])
        found[str(scale)] = {"seed": 1, "columns": ["second", *last._fields[1:]], "rows": rows}
    return found


PARTS = {name.removeprefix("part_"): thing for name, thing in list(globals().items()) if name.startswith("part_")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="parts made side by side")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to make; the others are kept")
    args = parser.parse_args()
    parts = json.loads(TARGET.read_text(encoding="utf-8"))["parts"] if TARGET.exists() else {}
    with ProcessPoolExecutor(args.jobs) as pool:
        made = {name: pool.submit(PARTS[name]) for name in args.only}
        for name in args.only:
            parts[name] = made[name].result()
            write(parts)
            print(f"{name} is made", flush=True)


def write(parts: dict[str, object]) -> None:
    """The file, a part a line, so that a change shows which part it is in."""
    head = {"made_by": "make simulate", "version": VERSION, "demand": asdict(assumed()), "rig": busy_hour.simulated_rig()}
    lines = [f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    inner = [f"  {json.dumps(name)}: {json.dumps(parts[name], ensure_ascii=False)}" for name in PARTS if name in parts]
    lines.append(' "parts": {\n' + ",\n".join(inner) + "\n }")
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
