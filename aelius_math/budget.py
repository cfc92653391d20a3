"""A card's memory, line by line, down to what is left for vLLM's KV cache.

vLLM 0.28.0: vllm/v1/worker/utils.py, request_memory (what the engine asks for: total times gpu_memory_utilization, and
it must be free when the engine starts); vllm/v1/worker/gpu_worker.py, determine_available_memory (what it takes off:
weights and other memory consumed, the activation peak, and from 0.20.0 the estimate of the CUDA graphs).

No size is assumed here: each line is given with a label (measured, estimated or assumed) and its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from aelius_math.units import AeliusError, show_bytes, whole
from aelius_math.vllm_versions import at, parse

LABELS = ("measured", "estimated", "assumed")


@dataclass(frozen=True)
class Part:
    """A size [bytes], how it is known, and from where."""

    size_bytes: int
    label: str
    source: str

    def __post_init__(self) -> None:
        whole("size_bytes", self.size_bytes, 0)
        if self.label not in LABELS:
            raise AeliusError("label", self.label, "one of " + ", ".join(LABELS))
        if not isinstance(self.source, str) or not self.source.strip():
            raise AeliusError("source", self.source, "where the size comes from")


NOTHING = Part(0, "measured", "nothing is there")


@dataclass(frozen=True, kw_only=True)
class Card:
    """One card: what CUDA sees of its memory, what the engine needs beside the KV cache, and who else lives there."""

    name: str
    visible: Part
    weights: Part
    non_torch: Part
    activation_peak: Part
    cuda_graphs: Part
    tenant: Part = NOTHING


class Line(NamedTuple):
    """One line of the account: a size taken off is negative."""

    card: str
    what: str
    size_bytes: int
    label: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The account of all cards.

    available_bytes   for the KV cache, card by card: `plan_pool` takes the list
    fullest           the name of the card that binds
    requested_bytes   what the engine asks for, card by card
    stranded_bytes    free memory that the engine cannot use, card by card: it is limited by the fullest card
    """

    lines: tuple[Line, ...]
    utilisation: float
    available_bytes: tuple[int, ...]
    requested_bytes: tuple[int, ...]
    stranded_bytes: tuple[int, ...]
    fullest: str


def default_utilisation(version: str) -> float:
    """vLLM's own gpu_memory_utilization [a share of the card] where none is set (vllm/config/cache.py, 0.19.1, 0.20.0, 0.33.0).

    >>> default_utilisation("0.19.1"), default_utilisation("0.20.0")
    (0.9, 0.92)
    """
    return 0.92 if parse(version)[0] >= (0, 20, 0) else 0.9


def budget(cards: Sequence[Card], *, gpu_memory_utilization: float | None = None, version: str = "0.28.0") -> Budget:
    """Bytes [int] left for the KV cache on each card of a tensor-parallel group.

    `gpu_memory_utilization` is one number for all cards. None: as much as the fullest card has free. Raises AeliusError
    where the engine would not start: a card has less free than is asked for, or nothing is left for the cache.

    >>> MIB, GIB = 1 << 20, 1 << 30
    >>> def part(gib): return Part(int(gib * GIB), "estimated", "public threads")
    >>> card = Card(name="first", visible=Part(24126 * MIB, "measured", "logs of an RTX 3090"), weights=part(9.8),
    ...             non_torch=part(0.9), activation_peak=part(1.7), cuda_graphs=part(0.2))
    >>> budget([card, card], gpu_memory_utilization=0.92).available_bytes[0] // 28131328
    346
    """
    if not cards or not all(isinstance(card, Card) for card in cards):
        raise AeliusError("cards", cards, "at least one Card")
    free = [card.visible.size_bytes - card.tenant.size_bytes for card in cards]
    for card, size in zip(cards, free, strict=True):
        if size <= 0:
            raise AeliusError("tenant", card.tenant.size_bytes, f"less than the card's {card.visible.size_bytes:,} bytes")
    share = gpu_memory_utilization
    if share is None:
        share = min(size / card.visible.size_bytes for card, size in zip(cards, free, strict=True))
    elif isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise AeliusError("gpu_memory_utilization", share, "a number above 0, at most 1")
    graphs_counted = at(parse(version)[0]).align_follows_block_size  # both since 0.20.0
    lines: list[Line] = []
    requested, available = [], []
    for card, size in zip(cards, free, strict=True):
        asked = min(ceil(card.visible.size_bytes * share), size if gpu_memory_utilization is None else 1 << 62)
        if asked > size:
            expected = f"at most {size / card.visible.size_bytes:.4f}: {card.name} has {show_bytes(size)} free"
            raise AeliusError("gpu_memory_utilization", share, expected)
        taken = [("weights", card.weights), ("non-torch", card.non_torch), ("activation peak", card.activation_peak)]
        taken += [("CUDA graphs", card.cuda_graphs)] if graphs_counted else []
        left = asked - sum(part.size_bytes for _, part in taken)
        needs = asked - left
        if needs >= size:
            expected = f"less: {card.name} has {show_bytes(size)} free, and with the rest beside the cache {show_bytes(needs)} are taken"
            raise AeliusError("weights", card.weights.size_bytes, expected)
        if left <= 0:
            raise AeliusError("gpu_memory_utilization", share, f"more: on {card.name} nothing is left for the KV cache")
        lines.append(Line(card.name, "visible", card.visible.size_bytes, card.visible.label, card.visible.source))
        lines.append(Line(card.name, "tenant", -card.tenant.size_bytes, card.tenant.label, card.tenant.source))
        lines.append(Line(card.name, "asked for", asked, "computed", "ceil(visible * gpu_memory_utilization)"))
        lines += [Line(card.name, what, -part.size_bytes, part.label, part.source) for what, part in taken]
        lines.append(Line(card.name, "KV cache", left, "computed", "what is left"))
        requested.append(asked)
        available.append(left)
    binds = min(available)
    stranded = tuple(size - asked + (left - binds) for size, asked, left in zip(free, requested, available, strict=True))
    return Budget(
        lines=tuple(lines),
        utilisation=share,
        available_bytes=tuple(available),
        requested_bytes=tuple(requested),
        stranded_bytes=stranded,
        fullest=cards[fullest(free, available)].name,
    )


def fullest(free: Sequence[int], available: Sequence[int]) -> int:
    """The card that binds: the least left for the cache, and of equals the least free."""
    return min(range(len(free)), key=lambda index: (available[index], free[index]))
