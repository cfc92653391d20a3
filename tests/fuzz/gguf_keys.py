"""Spoilt GGUF files: each gives an answer or a named refusal in one line, never another exception, never a long wait.

python tests/fuzz/gguf_keys.py [COUNT] [SEED]     (20,000 and 0)
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit")]

from gguf_files import gguf_bytes

from aelius_math.gguf_config import MIXED, PLAIN, WINDOWED, model_from_gguf
from aelius_math.gguf_header import parse
from aelius_math.units import AeliusError

KEYS: dict[str, object] = {
    "block_count": 12, "embedding_length": 1024, "attention.head_count": 8, "attention.head_count_kv": [2, 0] * 6,
    "attention.key_length": 128, "attention.sliding_window": 512, "nextn_predict_layers": 1, "ssm.conv_kernel": 4,
    "ssm.inner_size": 2048, "ssm.state_size": 128, "ssm.time_step_rank": 16, "ssm.group_count": 4, "kda.head_dim": 64,
    "feed_forward_length": [0] * 12, "context_length": 4096, "wkv.head_size": 64, "shortconv.l_cache": 3,
}  # fmt: skip
LONGEST_SECONDS = 1.0


def run(count: int = 20_000, seed: int = 0) -> str:
    """Tries so many files; raises AssertionError with the bytes of the first that fails. Returns the tally."""
    chance, tally, slowest = random.Random(seed), Counter[str](), 0.0
    arches = sorted(PLAIN | MIXED | set(WINDOWED))
    for number in range(count):
        data = bytearray(gguf_bytes(chance.choice(arches), dict(chance.sample(list(KEYS.items()), chance.randint(4, 17)))))
        for _ in range(chance.randint(0, 5)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)) :]
        started = time.perf_counter()
        try:
            assert model_from_gguf(parse(bytes(data), "a file")).layers
            tally["answered"] += 1
        except AeliusError as error:
            assert error.field in str(error) and "\n" not in str(error)
            tally["refused"] += 1
        except Exception as error:
            raise AssertionError(f"case {number} of seed {seed}: {type(error).__name__}: {error}\n{data!r}") from error
        took = time.perf_counter() - started
        slowest = max(slowest, took)
        assert took < LONGEST_SECONDS, f"case {number} of seed {seed} took {took:.2f} s\n{data!r}"
    return (f"{count:,} spoilt GGUF files: {tally['answered']:,} answered, {tally['refused']:,} refused by name; "
            f"slowest {slowest * 1000:.0f} ms")  # fmt: skip


if __name__ == "__main__":
    print(run(*(int(word.replace(",", "")) for word in sys.argv[1:3])))
