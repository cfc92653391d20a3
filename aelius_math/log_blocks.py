"""From the figures that vLLM logs back to whole blocks: which numbers of blocks, and of blocks per request, print them.

From 0.20.1 the log's tokens are int(num_blocks / blocks_per_request * max_model_len), the concurrency the quotient
to two decimals (v1/core/kv_cache_utils.py). Many pairs can print one figure; what else the log says (the block
size, the drafts, the prefix cache, the padding warnings) leaves fewer. One left is an answer, several are candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from aelius_math.units import ceil_div

MOST_BLOCKS_PER_REQUEST = 4096
MOST_GROUPS = 16
MOST_LAYERS = 4096
MOST_DRAFTS = 32
MOST_ALIKE = 128


@dataclass(frozen=True)
class Candidate:
    """A pair that prints the figures; of its blocks per request, those that do not grow with the conversation."""

    num_blocks: int
    blocks_per_request: int
    fixed_blocks_per_request: int | None = None


def pairs(
    tokens: int,
    max_model_len: int,
    concurrency: float | None,
    least: int = 1,
    most: int = MOST_BLOCKS_PER_REQUEST,
) -> list[tuple[int, int]]:
    """The pairs (num_blocks, blocks_per_request) that print these figures, by the rule of 0.20.1 and later.

    >>> pairs(289661, 262144, 1.10, most=361)
    [(200, 181)]
    """
    found = []
    for per_request in range(least, most + 1):
        first = tokens * per_request // max_model_len
        last = (tokens + 1) * per_request // max_model_len + 1  # the next, unless a request has more blocks than tokens
        for blocks in range(first, min(last, first + MOST_ALIKE) + 1):
            if blocks > 0 and prints(blocks, per_request, max_model_len) == tokens and agrees(blocks / per_request, concurrency):
                found.append((blocks, per_request))
    return found


def prints(num_blocks: int, blocks_per_request: int, max_model_len: int) -> int:
    """Tokens [int] that 0.20.1 and later log for a pool."""
    return int(num_blocks / blocks_per_request * max_model_len)


def agrees(quotient: float, concurrency: float | None) -> bool:
    """Whether a concurrency printed to two decimals can be this quotient."""
    return concurrency is None or abs(quotient - concurrency) <= 0.005 + 1e-9


def padded_groups(padding: list[tuple[int, float]]) -> set[int] | None:
    """How many groups a kind of layer fills, from "Add 3 padding layers, may waste at most 6.25%": None without.

    3 layers that are 6.25% of their kind are padding for 48; 48 + 3 fill whole groups of more than 3: three of 17,
    or a single one where the other kind has 51.

    >>> sorted(padded_groups([(3, 6.25)]))
    [1, 3]
    """
    if len(padding) != 1 or padding[0][1] <= 0:
        return None
    added, percent = padding[0]
    layers = round(added / percent * 100)
    if not 0 < layers <= MOST_LAYERS or abs(added / layers * 100 - percent) > 0.0051:
        return None
    whole = layers + added
    return {whole // size for size in range(added + 1, whole + 1) if whole % size == 0}


def solve(
    tokens: int | None,
    max_model_len: int,
    concurrency: float | None,
    *,
    block_size: int | None = None,
    num_blocks: int | None = None,
    drafts: int | None = None,
    states_per_group: int | None = None,
    groups: set[int] | None = None,
) -> list[Candidate]:
    """The candidates. With an attention block size logged the model is a hybrid of one attention group and recurrent ones.

    `drafts` and `states_per_group` (1 without a prefix cache, 2 with) are None where the log does not say;
    `groups` the numbers of recurrent groups that can be.
    """
    if block_size is not None:
        growing = ceil_div(max_model_len, block_size)
        fixed = {
            count * (states + k)
            for count in (groups or range(1, MOST_GROUPS + 1))
            for states in ((1, 2) if states_per_group is None else (states_per_group,))
            for k in (range(MOST_DRAFTS + 1) if drafts is None else (drafts,))
        }
        totals = {growing + blocks: blocks for blocks in sorted(fixed)}
    else:
        totals = {}
    found: list[Candidate] = []
    if tokens is not None:
        if totals:
            for per_request, blocks in totals.items():
                found += [Candidate(n, b, blocks) for n, b in pairs(tokens, max_model_len, concurrency, per_request, per_request)]
        else:
            found = [Candidate(n, b) for n, b in pairs(tokens, max_model_len, concurrency)]
        if num_blocks is not None:
            found = [candidate for candidate in found if candidate.num_blocks == num_blocks]
    elif num_blocks is not None and concurrency:
        low, high = ceil(num_blocks / (concurrency + 0.005)), int(num_blocks / max(concurrency - 0.005, 1e-9))
        found = [
            Candidate(num_blocks, b, totals.get(b))
            for b in range(max(1, low), min(high, MOST_BLOCKS_PER_REQUEST) + 1)
            if not totals or b in totals
        ]
    return found
