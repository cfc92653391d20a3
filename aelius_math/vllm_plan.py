"""What vLLM plans before it looks at the memory: the block size, the groups of layers, the bytes of a block.

Follows vllm/v1/core/kv_cache_utils.py (get_kv_cache_groups), vllm/v1/kv_cache_interface.py, and
vllm/platforms/interface.py (_align_hybrid_block_size), 0.28.0; what changed stands in `aelius_math.vllm_versions`.
"""

from __future__ import annotations

from math import lcm
from typing import NamedTuple

from aelius_math import dtypes
from aelius_math.cache import MLA, FullAttention, Layers, Recurrent, Request, SlidingWindow
from aelius_math.model import Model
from aelius_math.units import AeliusError, ceil_div
from aelius_math.vllm_engine import Engine
from aelius_math.vllm_versions import Rules, rules_for

DEFAULT_BLOCK_SIZE = 16
MLA_BLOCK_SIZE = 64
DRAFTLESS = ("ngram", "suffix")
"""Speculative methods that keep no layers of their own."""


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
        return max(b.layer.planned_blocks(tokens, b.block_size, request) for b in self.buckets)

    def running(self, tokens: int, request: Request) -> int:
        return max(b.layer.running_blocks(tokens, b.block_size, request) for b in self.buckets)


class Plan(NamedTuple):
    """What does not depend on the memory: one per model and engine."""

    rules: Rules
    dtype: str
    mode: str
    request: Request
    block_size: int
    token_bytes: int
    state_bytes: int
    align: int
    tables: tuple[Table, ...]
    page_size_bytes: int | None
    block_size_bytes: int

    def blocks(self, tokens: int) -> int:
        request = self.request
        return sum([table.blocks(tokens, request) for table in self.tables])

    def needed_blocks(self, tokens: int) -> int:
        """Blocks that the fit check counts: before 0.19 those of the first group."""
        if self.rules.checks_all_groups:
            return self.blocks(tokens)
        return self.tables[0].blocks(tokens, self.request)


def make_plan(model: Model, engine: Engine) -> Plan:
    """Block size, groups and bytes of a block: all that does not depend on the memory."""
    rules = rules_for(engine.version)
    dtype = cache_dtype(model, engine, rules)
    drafts, cards = engine.num_speculative_tokens, engine.tensor_parallel_size
    extra = draft_layers(model, engine)
    layers = model.layers + extra
    check_layers(layers, engine, rules)
    recurrent = [layer for layer in layers if isinstance(layer, Recurrent)]
    attention = [layer for layer in model.layers if not layer.recurrent]
    mode = cache_mode(engine, rules, bool(recurrent), bool(attention))
    state = state_bytes(recurrent, model, engine)
    token_bytes = attention_bytes(attention, dtype, cards, hybrid=bool(recurrent))
    align, block_size = block_sizes(engine, rules, mode, attention, recurrent, token_bytes, state)
    request = Request(in_flight(engine, rules, layers), drafts, mode, rules.drafts_in_mode_all)
    buckets = fill_buckets(
        layers, engine, dtype, mode, block_size, state if not attention else block_size * token_bytes
    )
    if not engine.hybrid_kv_cache_manager:
        buckets = promote(buckets)
    tables, page, block_bytes = group(buckets, rules)
    return Plan(
        rules, dtype, mode, request, block_size, token_bytes, state, align, tuple(tables), page, block_bytes
    )


def cache_dtype(model: Model, engine: Engine, rules: Rules) -> str:
    """The format of the KV cache: the setting's, else the checkpoint's, else the model's own."""
    asked: str | None = engine.kv_cache_dtype
    if asked == "auto":
        asked = model.kv_cache_dtype or model.dtype
        if asked is None:
            raise AeliusError(
                "Model.dtype", None, 'the model\'s dtype, or a kv_cache_dtype other than "auto"'
            )
        if dtypes.known(asked) == "fp32":
            return "fp32"
    dtype = dtypes.known(asked, "kv_cache_dtype")
    if dtype not in rules.formats:
        names = ", ".join(sorted(rules.formats))
        raise AeliusError(
            "kv_cache_dtype", engine.kv_cache_dtype, f"a format of vLLM {engine.version}: auto, {names}"
        )
    return dtype


def draft_layers(model: Model, engine: Engine) -> tuple[Layers, ...]:
    """The layers that speculative decoding adds: the model's own MTP layers, or those of a separate drafter."""
    if not engine.num_speculative_tokens:
        return ()
    method = engine.speculative_method
    if engine.draft:
        if method == "mtp":
            raise AeliusError(
                "speculative_method", method, "another method beside a separate draft, or no draft"
            )
        return engine.draft
    if method in (None, "mtp"):
        if not model.mtp_layers:
            raise AeliusError(
                "num_speculative_tokens",
                engine.num_speculative_tokens,
                f"0, or a draft or a speculative_method: {model.name} has no MTP layers",
            )
        return model.mtp_layers
    if method in DRAFTLESS:
        return ()
    raise AeliusError(
        "speculative_method", method, "its draft's layers too (draft=), or mtp, " + ", ".join(DRAFTLESS)
    )


def check_layers(layers: tuple[Layers, ...], engine: Engine, rules: Rules) -> None:
    """Refuses kinds without a rule, what does not divide by the cards, and old releases for more than one kind."""
    cards = engine.tensor_parallel_size
    for layer in layers:
        if not layer.vllm_spec:
            raise AeliusError(
                "layers", type(layer).__name__, "a kind of layer whose rule in vLLM's planner is known"
            )
        if cards > 1:
            for field, count in layer.divided().items():
                if count % cards and not (field == "num_kv_heads" and cards % count == 0):
                    raise AeliusError(
                        "tensor_parallel_size",
                        cards,
                        f"a number that divides the {count} {field} of {type(layer).__name__}",
                    )
    if rules.old and not all(type(layer) is FullAttention for layer in layers):
        raise AeliusError(
            "version", engine.version, "0.17 or newer for models of more than one kind of full attention"
        )
    if rules.old and len({layer.spec_key(cards) for layer in layers}) > 1:
        raise AeliusError(
            "version", engine.version, "0.17 or newer for models of more than one kind of full attention"
        )


def cache_mode(engine: Engine, rules: Rules, recurrent: bool, attention: bool) -> str:
    """The mode in which recurrent state is cached: none without prefix caching, else as set, else align."""
    caching = engine.enable_prefix_caching
    if caching is None:
        caching = attention and rules.hybrid_prefix_caching
    if not recurrent or not caching:
        return "none"
    return "align" if engine.mamba_cache_mode in (None, "none") else str(engine.mamba_cache_mode)


def state_bytes(recurrent: list[Recurrent], model: Model, engine: Engine) -> int:
    """Bytes of one recurrent layer's state on one card, 0 without such layers; refuses layers that differ."""
    sizes = {one_state(layer, model, engine) for layer in recurrent}
    if len(sizes) > 1:
        raise AeliusError("layers", sorted(sizes), "recurrent layers whose states have one size")
    return sizes.pop() if sizes else 0


def one_state(layer: Recurrent, model: Model, engine: Engine) -> int:
    if model.dtype is None and layer.conv_dtype is None:
        raise AeliusError(
            "Model.dtype", None, f"the model's dtype, that {type(layer).__name__} keeps its state in"
        )
    size = layer.state_bytes(model.dtype, engine.tensor_parallel_size, engine.num_speculative_tokens)
    if engine.mamba_ssm_cache_dtype is None:
        return size
    state = layer.state_elements(engine.tensor_parallel_size)
    was = dtypes.element_bytes(layer.state_dtype or model.dtype)
    return size + state * (dtypes.element_bytes(engine.mamba_ssm_cache_dtype) - was)


def attention_bytes(attention: list[Layers], dtype: str, cards: int, hybrid: bool) -> int:
    """Bytes of a token in one attention layer on one card; in a hybrid all attention layers must agree."""
    sizes = [layer.token_bytes(dtype, cards) for layer in attention]
    if hybrid and len(set(sizes)) > 1:
        raise AeliusError("layers", sorted(set(sizes)), "attention layers of one size beside recurrent ones")
    return sizes[0] if sizes else 0


def block_sizes(
    engine: Engine,
    rules: Rules,
    mode: str,
    attention: list[Layers],
    recurrent: list[Recurrent],
    token_bytes: int,
    state: int,
) -> tuple[int, int]:
    """The alignment and the block size [tokens]; in a hybrid a block's page must hold a whole state."""
    mla = any(isinstance(layer, MLA) for layer in attention)
    kernel, asked = engine.kernel_block_size, engine.block_size
    if not (attention and recurrent):
        kernel = max(kernel or 0, MLA_BLOCK_SIZE if mla else DEFAULT_BLOCK_SIZE)
        return kernel, asked or kernel
    align = kernel or (rules.mla_hybrid_kernel if mla else DEFAULT_BLOCK_SIZE)
    if rules.align_follows_block_size:
        align = max(align, asked or DEFAULT_BLOCK_SIZE)
    if mla:
        align = max(align, rules.mla_hybrid_least)
    if mode == "all":
        align = lcm(recurrent[0].mode_all_chunk, align)
    block_size = align * ceil_div(state, align * token_bytes)
    return align, max(block_size, asked or DEFAULT_BLOCK_SIZE)


def in_flight(engine: Engine, rules: Rules, layers: tuple[Layers, ...]) -> int:
    """Tokens that window and chunk layers hold beyond their window: the batches that may be under way at once."""
    if not engine.hybrid_kv_cache_manager and any(layer.table_key() == ("full",) for layer in layers):
        return 0
    bounded = [layer for layer in layers if layer.window is not None]
    if not bounded:
        return 0
    if engine.max_num_batched_tokens is None:
        kind = type(bounded[0]).__name__
        raise AeliusError(
            "max_num_batched_tokens",
            None,
            f"a number of tokens: {kind} layers hold a batch beside their window",
        )
    return rules.in_flight_batches * engine.max_num_batched_tokens


def fill_buckets(
    layers: tuple[Layers, ...], engine: Engine, dtype: str, mode: str, block_size: int, state_page: int
) -> list[Bucket]:
    """Layers of the same spec together, in the order in which they come."""
    buckets: dict[tuple[object, ...], Bucket] = {}
    cards = engine.tensor_parallel_size
    for layer in layers:
        key = layer.spec_key(cards)
        bucket = buckets.get(key)
        if bucket is None:
            if layer.recurrent:
                size = engine.max_model_len if mode == "none" else block_size
                bucket = Bucket(layer, layer.vllm_spec, state_page, size)
            else:
                bucket = Bucket(
                    layer, layer.vllm_spec, block_size * layer.token_bytes(dtype, cards), block_size
                )
            buckets[key] = bucket
        bucket.num_layers += layer.num_layers
    return list(buckets.values())


def promote(buckets: list[Bucket]) -> list[Bucket]:
    """The hybrid manager off: window and chunk layers beside full ones are planned as full."""
    if len({bucket.layer.table_key() for bucket in buckets}) == 1:
        return buckets
    full = any(bucket.layer.table_key() == ("full",) for bucket in buckets)
    windows = {bucket.layer.window for bucket in buckets if isinstance(bucket.layer, SlidingWindow)}
    if not full or len(windows) > 1 or any(bucket.layer.recurrent for bucket in buckets):
        kinds = ", ".join(sorted({type(bucket.layer).__name__ for bucket in buckets}))
        raise AeliusError(
            "hybrid_kv_cache_manager", False, f"True: the engine cannot plan {kinds} as one kind"
        )
    promoted: dict[tuple[object, ...], Bucket] = {}
    for bucket in buckets:
        layer = bucket.layer
        if isinstance(layer, FullAttention) and layer.window is not None:
            layer = FullAttention(
                num_layers=layer.num_layers,
                num_kv_heads=layer.num_kv_heads,
                head_size=layer.head_size,
                head_size_v=layer.head_size_v,
            )
        key = layer.spec_key(1)
        merged = promoted.setdefault(
            key, Bucket(layer, layer.vllm_spec, bucket.page_size_bytes, bucket.block_size)
        )
        merged.num_layers += bucket.num_layers
    return list(promoted.values())


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
    fullest = 0
    for bucket in buckets:
        parts = ceil_div(bucket.num_layers, size)
        for part in range(parts):
            layers = ceil_div(bucket.num_layers - part, parts)
            fullest = max(fullest, layers)
            tables.append(Table(Group(bucket.spec, layers, bucket.block_size), (bucket,)))
    return tables, page, page * fullest


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
        elif not rules.pads_attention:
            raise AeliusError(
                "layers", f"a page of {page:,} bytes", f"one that divides {largest:,}: padded from vLLM 0.24"
            )
        bucket.page_size_bytes = largest
    return largest
