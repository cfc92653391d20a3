"""What vLLM plans before it looks at the memory: the block size, the groups of layers, the bytes of a block.

Follows vllm/v1/core/kv_cache_utils.py (get_kv_cache_groups), vllm/v1/kv_cache_interface.py, and
vllm/platforms/interface.py (_align_hybrid_block_size), 0.28.0; what changed stands in `aelius_math.vllm_versions`.
"""

from __future__ import annotations

from math import lcm
from typing import NamedTuple

from aelius_math.cache import (
    MLA,
    Layers,
    Recurrent,
    Request,
    SlidingWindow,
)
from aelius_math.model import Model
from aelius_math.units import AeliusError, ceil_div
from aelius_math.vllm_checks import cache_dtype, check_layers, check_windows, draft_layers
from aelius_math.vllm_engine import Engine
from aelius_math.vllm_groups import Bucket, Indivisible, Table, all_full, group, promote
from aelius_math.vllm_state import (
    GDN_CHECKPOINT_ALIGNMENT,
    cache_mode,
    checkpoint_blocks,
    exports_checkpoints,
    state_bytes,
)
from aelius_math.vllm_versions import INT4, Rules, possible

DEFAULT_BLOCK_SIZE = 16
MLA_BLOCK_SIZE = 64


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

    def outcome(self, tokens: int) -> tuple[object, ...]:
        """What two sets of rules must agree on to be told as one."""
        groups = tuple(table.group for table in self.tables)
        counts = self.blocks(tokens), self.needed_blocks(tokens), self.rules.tokens_from_concurrency
        return self.dtype, self.mode, self.block_size, self.block_size_bytes, groups, counts

    @property
    def null_blocks(self) -> int:
        """Blocks that the fit check sets aside beside the request's: from 0.29 the null block."""
        return int(self.rules.checks_null_block)

    def needed_blocks(self, tokens: int) -> int:
        """Blocks that the fit check counts: before 0.19 those of the first group."""
        if self.rules.checks_all_groups:
            return self.blocks(tokens) + self.null_blocks
        return self.tables[0].blocks(tokens, self.request)


def make_plan(model: Model, engine: Engine) -> Plan:
    """Block size, groups and bytes of a block: all that does not depend on the memory.

    A pre-release between two sets of rules is planned by both, and refused where they differ.
    """
    plan, *others = [plan_by(rules, model, engine) for rules in possible(engine.version)]
    limit = engine.max_model_len
    if any(other.outcome(limit) != plan.outcome(limit) for other in others):
        expected = "a release, or what the log itself shows: the planner changed among these pre-releases"
        raise AeliusError("version", engine.version, expected)
    return plan


def plan_by(rules: Rules, model: Model, engine: Engine) -> Plan:
    """The plan by one release's rules."""
    dtype = cache_dtype(model, engine, rules)
    drafts, cards = engine.num_speculative_tokens, engine.tensor_parallel_size
    extra = draft_layers(model, engine)
    layers = model.layers + extra
    check_layers(layers, engine, rules, dtype)
    check_windows(model, layers, engine, rules)
    recurrent = [layer for layer in layers if isinstance(layer, Recurrent)]
    attention = [layer for layer in model.layers if not layer.recurrent]
    mode = cache_mode(engine, rules, bool(recurrent), bool(attention))
    state = state_bytes(recurrent, model, engine, rules)
    token_bytes = attention_bytes(attention, dtype, cards, hybrid=bool(recurrent))
    align, block_size = block_sizes(engine, rules, mode, attention, recurrent, token_bytes, state, dtype)
    several_mtp = extra is model.mtp_layers and sum(layer.num_layers for layer in extra) > 1
    request = Request(
        in_flight_tokens=in_flight(engine, rules, layers),
        retained_tokens=drafts - 1 if several_mtp and rules.retains_for_mtp else 0,
        num_speculative_tokens=drafts,
        mamba_cache_mode=mode,
        drafts_in_mode_all=rules.drafts_in_mode_all,
        checkpoint_blocks=checkpoint_blocks(recurrent, engine, rules),
    )
    state_page = block_size * token_bytes if attention else state
    buckets = fill_buckets(layers, engine, rules, dtype, mode, block_size, state_page)
    if not engine.hybrid_kv_cache_manager:
        buckets = promote(buckets, dtype, cards, rules)
    try:
        tables, page, block_bytes = group(buckets, rules)
    except Indivisible:
        buckets = fill_buckets(layers, engine, rules, dtype, mode, block_size, state_page)
        whole_pages = all_full(buckets, dtype, cards, rules, block_size)
        if whole_pages is None:
            raise
        tables, page, block_bytes = group(whole_pages, rules)
    return Plan(rules, dtype, mode, request, block_size, token_bytes, state, align, tuple(tables), page, block_bytes)


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
    dtype: str,
) -> tuple[int, int]:
    """The alignment and the block size [tokens]; in a hybrid a block's page must hold a whole state."""
    mla = any(isinstance(layer, MLA) for layer in attention)
    kernel, asked = engine.kernel_block_size, engine.block_size
    if not (attention and recurrent):
        usual = MLA_BLOCK_SIZE if mla else DEFAULT_BLOCK_SIZE
        kernel = max(kernel or usual, usual)
        return kernel, asked or kernel
    if mla and dtype == "fp8_ds_mla":
        raise AeliusError("kv_cache_dtype", dtype, "another format: for MLA beside recurrent layers it is not derived")
    align = kernel or (rules.mla_hybrid_kernel if mla else DEFAULT_BLOCK_SIZE)
    if rules.align_follows_block_size:
        align = max(align, asked or DEFAULT_BLOCK_SIZE)
    if mla:
        align = max(align, rules.mla_hybrid_least)
    if mode == "all":
        align = lcm(recurrent[0].mode_all_chunk, align)
    if mode == "align" and exports_checkpoints(recurrent, engine, rules):
        align = lcm(align, GDN_CHECKPOINT_ALIGNMENT)
    block_size = align * ceil_div(state, align * token_bytes)
    if rules.whole_kernels:
        smallest = kernel or DEFAULT_BLOCK_SIZE
        block_size = ceil_div(block_size, smallest) * smallest
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


def window_block(engine: Engine, rules: Rules, block_size: int) -> int:
    """The block [tokens] that window layers start from."""
    kernel = engine.kernel_block_size or DEFAULT_BLOCK_SIZE
    if rules.window_block == "whole kernels":
        return max(kernel, block_size // kernel * kernel)
    return kernel if rules.window_block == "kernel" else block_size


def planned_format(layer: Layers, dtype: str, rules: Rules) -> str:
    """The format that a layer is planned in: some releases plan packed formats of windows at a byte an element."""
    if layer.window is None or dtype not in INT4 - rules.packs_windows:
        return dtype
    if dtype != "int4_per_token_head":
        return "fp8"
    return "fp8_per_token_head" if isinstance(layer, SlidingWindow) else dtype


def fill_buckets(
    layers: tuple[Layers, ...],
    engine: Engine,
    rules: Rules,
    dtype: str,
    mode: str,
    block_size: int,
    state_page: int,
) -> list[Bucket]:
    """Layers of the same spec together, in the order in which they come."""
    buckets: dict[tuple[object, ...], Bucket] = {}
    cards = engine.tensor_parallel_size
    promoted = not engine.hybrid_kv_cache_manager and any(layer.table_key() == ("full",) for layer in layers)

    def add(layer: Layers, key: tuple[object, ...], page_size_bytes: int, size: int) -> None:
        bucket = buckets.get(key)
        if bucket is None:
            bucket = buckets[key] = Bucket(layer, layer.vllm_spec, page_size_bytes, size)
        bucket.num_layers += layer.num_layers

    for layer in layers:
        key = layer.spec_key(cards)
        if layer.recurrent:
            add(layer, key, state_page, engine.max_model_len if mode == "none" else block_size)
            continue
        size = block_size
        if isinstance(layer, SlidingWindow) and not (promoted and rules.promotes_blocks):
            size = window_block(engine, rules, block_size)
        kept = planned_format(layer, dtype, rules)
        add(layer, key, size * layer.token_bytes(kept, cards), size)
        if isinstance(layer, MLA) and layer.index_head_dim:
            add(layer, (*key, "index", layer.index_head_dim), size * layer.vllm_index_bytes(), size)
    return list(buckets.values())
