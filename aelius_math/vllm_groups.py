"""vLLM's groups: layers of one spec together, groups of equal size, pages of equal bytes.

Follows vllm/v1/core/kv_cache_utils.py, 0.28.0: unify_hybrid_kv_cache_specs, unify_kv_cache_spec_page_size,
_get_kv_cache_groups_uniform_page_size and their kin.
"""

from __future__ import annotations

from typing import NamedTuple

from aelius_math.cache import MLA, FullAttention, Layers, Request
from aelius_math.units import AeliusError, ceil_div
from aelius_math.vllm_versions import INT4, PLAIN, Rules


class Indivisible(AeliusError):
    """MLA pages that do not divide the largest: they are not padded."""


class Group(NamedTuple):
    """Layers that share one block table: the engine's name of their kind, how many, tokens in a block."""

    spec: str
    num_layers: int
    block_size: int


class Bucket:
    """Layers with the same spec, as the planner sees them."""

    __slots__ = ("block_size", "layer", "num_layers", "page_size_bytes", "spec")

    def __init__(self, layer: Layers, spec: str, page_size_bytes: int, block_size: int) -> None:
        self.layer = layer
        self.spec = spec
        self.page_size_bytes = page_size_bytes
        self.block_size = block_size
        self.num_layers = 0


class Table(NamedTuple):
    """One group as planned: what the request's blocks are counted by."""

    group: Group
    buckets: tuple[Bucket, ...]

    def blocks(self, tokens: int, request: Request) -> int:
        """Blocks that the planner sets aside: all layers of a group need as many."""
        return self.buckets[0].layer.planned_blocks(tokens, self.group.block_size, request)

    def running(self, tokens: int, request: Request) -> int:
        """Blocks that are held between two steps."""
        return self.buckets[0].layer.running_blocks(tokens, self.group.block_size, request)


def promote(buckets: list[Bucket], dtype: str, cards: int, rules: Rules) -> list[Bucket]:
    """The hybrid manager off: window and chunk layers beside full ones are planned as full."""
    if len({bucket.layer.table_key() for bucket in buckets}) == 1:
        return buckets
    full = any(bucket.layer.table_key() == ("full",) for bucket in buckets)
    kinds = {(bucket.spec, bucket.layer.window) for bucket in buckets if bucket.layer.window is not None}
    several = len(kinds) > len({spec for spec, _ in kinds})  # two windows, or two chunk sizes
    if not full or several or any(bucket.layer.recurrent for bucket in buckets):
        names = ", ".join(sorted({type(bucket.layer).__name__ for bucket in buckets}))
        raise AeliusError("hybrid_kv_cache_manager", False, f"True: the engine cannot plan {names} as one kind")
    blocks = {bucket.block_size for bucket in buckets}
    if len(blocks) > 1:
        names = " and ".join(map(str, sorted(blocks)))
        raise AeliusError(
            "hybrid_kv_cache_manager", False, f"True: before 0.27 the engine cannot plan blocks of {names} tokens as one kind"
        )
    both = len({spec for spec, _ in kinds}) > 1  # windows and chunks: one type of layer, but not one spec
    promoted: dict[tuple[object, ...], Bucket] = {}
    for bucket in buckets:
        layer, page, apart = bucket.layer, bucket.page_size_bytes, False
        if isinstance(layer, FullAttention) and layer.window is not None:
            keeps = layer.vllm_spec in rules.promotes_format
            kept = dtype if keeps or dtype not in INT4 - PLAIN else "fp8"
            apart = rules.promoted_apart or (rules.specs_name_format and not keeps and dtype == "fp8")
            page = bucket.block_size * layer.token_bytes(kept, cards)
            layer = FullAttention(
                num_layers=layer.num_layers,
                num_kv_heads=layer.num_kv_heads,
                head_size=layer.head_size,
                head_size_v=layer.head_size_v,
            )
        key = (*layer.spec_key(cards), page, apart, bucket.spec if both else "")
        merged = promoted.setdefault(key, Bucket(layer, layer.vllm_spec, page, bucket.block_size))
        merged.num_layers += bucket.num_layers
    return list(promoted.values())


def all_full(buckets: list[Bucket], dtype: str, cards: int, rules: Rules, block_size: int) -> list[Bucket] | None:
    """Windows beside MLA, planned as full in blocks as large: what the engine falls back to. None where it does not."""
    kinds = {bucket.spec for bucket in buckets}
    if not rules.falls_back_to_full or not kinds <= {"MLAAttentionSpec", "FullAttentionSpec", "SlidingWindowSpec"}:
        return None
    for bucket in buckets:
        bucket.block_size = block_size
    try:
        return promote(buckets, dtype, cards, rules)
    except AeliusError:
        return None


def group(buckets: list[Bucket], rules: Rules) -> tuple[list[Table], int | None, int]:
    """The groups, the bytes of a page (None: of several sizes, summed), and of a block."""
    first = buckets[0]
    if len(buckets) == 1:
        table = Table(Group(first.spec, first.num_layers, first.block_size), (first,))
        return [table], first.page_size_bytes, first.page_size_bytes * first.num_layers
    alike = {(bucket.layer.table_key(), bucket.block_size) for bucket in buckets}
    if len(alike) == 1:
        layers = sum(bucket.num_layers for bucket in buckets)
        total = sum(bucket.num_layers * bucket.page_size_bytes for bucket in buckets)
        pages = {bucket.page_size_bytes for bucket in buckets}
        table = Table(Group("UniformTypeKVCacheSpecs", layers, first.block_size), tuple(buckets))
        return [table], pages.pop() if len(pages) == 1 else None, total
    page = unify_pages(buckets, rules)
    counts = [bucket.num_layers for bucket in buckets]
    least, most = min(counts), max(counts)
    times, over = rules.group_factor
    size = most if most * over < least * times else least
    tables = []
    for bucket in buckets:
        parts = ceil_div(bucket.num_layers, size)
        for part in range(parts):
            layers = ceil_div(bucket.num_layers - part, parts)
            tables.append(Table(Group(bucket.spec, layers, bucket.block_size), (bucket,)))
    return tables, page, page * max(table.group.num_layers for table in tables)


def unify_pages(buckets: list[Bucket], rules: Rules) -> int:
    """Makes all pages as large as the largest: more tokens in a block where that divides, else padding."""
    largest = max(bucket.page_size_bytes for bucket in buckets)
    for bucket in buckets:
        page = bucket.page_size_bytes
        if page == largest:
            continue
        if bucket.layer.recurrent:
            if not rules.pads_state:
                raise AeliusError(
                    "layers",
                    f"a state page of {page:,} bytes",
                    f"pages of {largest:,}: padded from vLLM 0.26",
                )
        elif largest % page == 0:
            bucket.block_size *= largest // page
        elif isinstance(bucket.layer, MLA):
            raise Indivisible("layers", f"MLA pages of {page:,} bytes", f"pages that divide {largest:,}, of the others")
        elif not rules.pads_attention:
            raise AeliusError("layers", f"pages of {page:,} bytes", f"pages that divide {largest:,}: padded from vLLM 0.24")
        bucket.page_size_bytes = largest
    return largest
