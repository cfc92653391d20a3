"""Times the package: what it adds to Python's own start, one plan of a pool, and a hundred thousand of them. `make bench`.

Medians, on this machine as it is now; a busy machine shows in the spread. No test asserts a time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from aelius_math import service
from aelius_math.catalogue import config
from aelius_math.ledger import given
from aelius_math.model import from_config
from aelius_math.vllm import plan_pool

ROOT = Path(__file__).parents[2]
MODEL, BYTES, LIMIT = service.model(), given("kv_available"), given("request_limit")
CONFIG = config("qwen3.8-27b")


def plan(max_model_len: int = LIMIT) -> None:
    plan_pool(MODEL, service.engine(max_model_len=max_model_len), BYTES)


def medians(action: Callable[[], object], runs: int) -> tuple[float, float, float]:
    """Median, fastest and slowest of these runs [s]."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times), max(times)


def starts(*words: str) -> Callable[[], object]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    return lambda: subprocess.run([sys.executable, *words], env=environment, capture_output=True, check=True, cwd=ROOT)


def report(name: str, times: tuple[float, float, float], unit: str, budget: str) -> None:
    scale = {"s": 1, "ms": 1e3, "µs": 1e6}[unit]
    middle, least, most = (value * scale for value in times)
    print(f"{name:<58} {middle:8,.1f} {unit}  ({least:,.1f} to {most:,.1f}; wanted under {budget})")


def main() -> None:
    own = medians(starts("-c", "pass"), 15)
    report("Python's own start", own, "ms", "nothing")
    for name, words in {
        "the package beside it: import vllm": ("-c", "import aelius_math.vllm"),
        "the package beside it: aelius-math model": ("-m", "aelius_math", "model", "qwen3.8-27b", "--json"),
    }.items():
        with_it = medians(starts(*words), 15)
        report(name, (with_it[0] - own[0], with_it[1] - own[1], with_it[2] - own[2]), "ms", "30 ms")
    for command in (["pool", "qwen3.8-27b", "--available", "5.24GiB", "-tp", "2", "--kv-cache-dtype", "fp8"], ["model", "qwen3.8-27b"]):
        report(f"the command {command[0]}, in all", medians(starts("-m", "aelius_math", *command, "--json"), 15), "ms", "70 ms")
    report("from_config, the article's model", medians(lambda: from_config(CONFIG), 2000), "µs", "nothing")
    plan()
    report("one plan of the article's pool", medians(plan, 2000), "µs", "300 µs")
    lengths = iter(range(1616, 1616 + 100_000))
    report("100,000 plans, each with a limit of its own", medians(lambda: [plan(length) for length in lengths], 1), "s", "30 s")


if __name__ == "__main__":
    main()
