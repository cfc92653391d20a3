"""Mutilated boot logs: each is read or refused in one line, never another exception, never a long wait; in linear time.

    python tests/fuzz/logs.py [COUNT] [SEED]     (20,000 and 0)

The logs are the golden ones and those of tests/logs. Each case takes one or two, spoils them in one to six ways (cut,
shuffled, doubled, spliced, disguised, bytes flipped, numbers blown up), and reads what is left.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]

from disguises import disguise

from aelius_math.log_sentences import text
from aelius_math.logs import read
from aelius_math.units import AeliusError

LONGEST_SECONDS = 2.0
NUMBERS = ("0", "1", "-1", "16", "262,144", "9" * 40, "1e9", "0.00", "NaN", ",", "1.10", "4294967296", "2.5.7")


def cut_short(log: str, chance: random.Random) -> str:
    return log[: chance.randrange(len(log) + 1)]


def cut_off(log: str, chance: random.Random) -> str:
    return log[chance.randrange(len(log) + 1) :]


def shuffled(log: str, chance: random.Random) -> str:
    lines = log.split("\n")
    chance.shuffle(lines)
    return "\n".join(lines)


def thinned(log: str, chance: random.Random) -> str:
    return "\n".join(line for line in log.split("\n") if chance.random() < 0.7)


def doubled(log: str, chance: random.Random) -> str:
    return log * chance.randrange(2, 5)


def bytes_flipped(log: str, chance: random.Random) -> str:
    signs = list(log)
    for _ in range(chance.randrange(1, 40)):
        if signs:
            signs[chance.randrange(len(signs))] = chr(chance.choice((0, 9, 10, 13, 27, 34, 39, 91, 123, 0x202E, 0xFFFD, 0x110000 - 1)))
    return "".join(signs)


def other_numbers(log: str, chance: random.Random) -> str:
    words = log.split(" ")
    for _ in range(chance.randrange(1, 12)):
        at = chance.randrange(len(words))
        if any(sign.isdigit() for sign in words[at]):
            words[at] = chance.choice(NUMBERS)
    return " ".join(words)


def joined_lines(log: str, chance: random.Random) -> str:
    return log.replace("\n", chance.choice(("", " ", "\r", "\\n", "\u2028")), chance.randrange(1, 40))


def spliced(log: str, chance: random.Random) -> str:
    at, end = sorted((chance.randrange(len(log) + 1), chance.randrange(len(log) + 1)))
    where = chance.randrange(len(log) + 1)
    return log[:where] + log[at:end] + log[where:]


def wrapped(log: str, chance: random.Random) -> str:
    return disguise(log, chance)


def as_json(log: str, chance: random.Random) -> str:
    return "\n".join(json.dumps({"log": line + "\n", "stream": "stderr"}) for line in log.split("\n"))


def one_long_line(log: str, chance: random.Random) -> str:
    return log + chance.choice("x,('[0 ") * chance.randrange(100_000)


SPOILS: list[Callable[[str, random.Random], str]] = [
    cut_short, cut_off, shuffled, thinned, doubled, bytes_flipped, other_numbers, joined_lines, spliced, wrapped, as_json,
    one_long_line,
]  # fmt: skip


def judge(log: str) -> str:
    """What came of a log: boots or a refusal; raises whatever else is raised."""
    try:
        found = read(log)
    except AeliusError as error:
        assert "\n" not in str(error) and "llama_kv_cache" in str(error)
        return "refused"
    json.dumps(found, allow_nan=False)
    assert found["boots"] and text(found)
    for boot in found["boots"]:
        derived = boot["derived"]
        if derived["num_blocks"] is not None:
            assert derived["num_blocks"] > 0
    return "read"


def run(count: int = 20_000, seed: int = 0) -> str:
    """Tries so many logs; raises AssertionError with the case for the first that fails. Returns the tally."""
    sources = [path.read_text("utf-8") for folder in ("golden/boot_logs", "logs") for path in sorted((TESTS / folder).glob("*.txt"))]
    chance = random.Random(seed)
    tally: Counter[str] = Counter()
    slowest = 0.0
    for number in range(count):
        log = chance.choice(sources)
        if chance.random() < 0.2:
            log += "\n" + chance.choice(sources)
        ways = [chance.choice(SPOILS) for _ in range(chance.randint(1, 6))]
        for way in ways:
            log = way(log, chance)[:400_000]
        names = ", ".join(way.__name__ for way in ways)
        started = time.process_time()
        try:
            tally[judge(log)] += 1
        except Exception as error:
            Path("failed_case.txt").write_text(log, "utf-8", "surrogatepass")
            raise AssertionError(
                f"case {number} of seed {seed} ({names}; written to failed_case.txt): {type(error).__name__}: {error}"
            ) from error
        took = time.process_time() - started
        slowest = max(slowest, took)
        assert took < LONGEST_SECONDS, f"case {number} of seed {seed} took {took:.2f} s ({names}, {len(log):,} characters)"
    return (
        f"{count:,} mutilated logs: {tally['read']:,} read, {tally['refused']:,} refused in one line; slowest {slowest * 1000:.0f} ms; "
        f"{linear()}"
    )


HOSTILE = (
    "GPU KV cache size: ", "GPU KV cache size: 1,", "(EngineCore pid=", "non-default args: {'model': '", "speculative_config=SpeculativeConfig(",
    "Memory profiling results: ", "llama_kv_cache: size = ", "[" * 3, "\u2588 ", "'max_model_len': ", "0.00.", "[0;0;", "a |", "^[", "{\"log\":",
    "To serve at least one request with the model's max seq len (", "common_params_fit_impl: - CUDA0 (", "1:", "\\n", "Jan ",
)  # fmt: skip


def linear() -> str:
    """Twice the text takes about twice the time, for texts made to catch a reader that backtracks."""
    worst = 0.0
    for piece in HOSTILE:
        for filler in (piece, piece + "\n", piece + " ", piece + "1"):
            times = []
            for size in (200_000, 800_000):
                log = filler * (size // len(filler))
                started = time.process_time()
                try:
                    read(log)
                except AeliusError:
                    pass
                times.append(time.process_time() - started)
            worst = max(worst, times[1])
            assert times[1] < 2.0 or times[1] < 8 * times[0], (
                f"{filler!r} repeated: {times[0]:.2f} s, then {times[1]:.2f} s for four times the text"
            )
    return f"hostile texts of 800,000 characters: at most {worst:.2f} s, in proportion to their length"


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:3]]
    print(run(*numbers))
