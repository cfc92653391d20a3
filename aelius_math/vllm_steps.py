"""The derivation of a pool, line by line in the engine's words; and the notes that belong beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aelius_math.cache import MLA, GatedDeltaNet, KimiDelta, Recurrent, heads_per_card
from aelius_math.vllm_engine import Engine
from aelius_math.vllm_groups import Table
from aelius_math.vllm_versions import Rules, read_before

if TYPE_CHECKING:
    from aelius_math.vllm import Pool

INTERFACE = "vllm/v1/kv_cache_interface.py"
UTILS = "vllm/v1/core/kv_cache_utils.py"
MAMBA = "vllm/model_executor/layers/mamba/mamba_utils.py"
ALIGN = "vllm/platforms/interface.py, _align_hybrid_block_size"
ALIGN_BEFORE_0_20 = "vllm/model_executor/models/config.py, HybridAttentionMambaModelConfig"


class Step(NamedTuple):
    """One line of the derivation: what, in the engine's words and in numbers, its unit, and where the rule stands."""

    symbol: str
    name: str
    formula: str
    numbers: str
    value: int | float | str
    unit: str
    source: str


def steps(pool: Pool) -> tuple[Step, ...]:
    """Every number between the model's shape and the logged pool, in the order in which the engine finds them."""
    return (*per_layer(pool), *blocks_and_groups(pool), *result(pool))


def per_layer(pool: Pool) -> list[Step]:
    """Bytes that one layer keeps on one card, and the block that holds them."""
    plan, engine = pool.plan, pool.engine
    cards = engine.tensor_parallel_size
    found = []
    attention = [layer for layer in pool.model.layers if not layer.recurrent]
    recurrent = [layer for layer in pool.model.layers if isinstance(layer, Recurrent)]
    for layer in attention:
        kind = "" if len(attention) == 1 else f" ({type(layer).__name__})"
        heads = getattr(layer, "num_kv_heads", None)
        if heads is not None:
            found.append(
                Step("h", "KV heads on one card" + kind, "max(1, num_kv_heads // tensor_parallel_size)",
                     f"max(1, {heads} // {cards})", heads_per_card(heads, cards), "heads",
                     "vllm/config/model.py, get_num_kv_heads")
            )  # fmt: skip
        size = layer.token_bytes(plan.dtype, cards)
        found.append(
            Step("t", "a token in one attention layer on one card" + kind, f"K and V of its heads in {plan.dtype}",
                 f"{size:,}", size, "bytes", f"{INTERFACE}, page_size_bytes")
        )  # fmt: skip
    for layer in recurrent[:1]:
        conv = layer.conv_elements(cards, engine.num_speculative_tokens)
        state = layer.state_elements(cards)
        found.append(
            Step("S", "state of one recurrent layer on one card", "conv elements x bytes + state elements x bytes",
                 f"{conv:,} and {state:,} elements", plan.state_bytes, "bytes", MAMBA)
        )  # fmt: skip
    if attention and recurrent:
        at = ALIGN if plan.rules.align_follows_block_size else ALIGN_BEFORE_0_20
        found += [
            Step("a", "alignment of the block", "max(smallest kernel block, block_size)", f"{plan.align:,}", plan.align,
                 "tokens", at),
            Step("B", "tokens in a block: its page must hold a state", "a * cdiv(S, a * t)",
                 f"{plan.align} * cdiv({plan.state_bytes}, {plan.align} * {plan.token_bytes})", pool.block_size,
                 "tokens", at),
        ]  # fmt: skip
    else:
        found.append(Step("B", "tokens in a block", "block_size", f"{pool.block_size}", pool.block_size, "tokens",
                          "vllm/config/cache.py"))  # fmt: skip
    return found


def blocks_and_groups(pool: Pool) -> list[Step]:
    """Pages, groups, and what one block costs."""
    fullest = max(group.num_layers for group in pool.groups)
    sizes = "/".join(str(group.num_layers) for group in pool.groups)
    found = []
    if pool.page_size_bytes is None:
        numbers = " + ".join(f"{b.num_layers} * {b.page_size_bytes}" for t in pool.plan.tables for b in t.buckets)
        found.append(Step("C", "one block on one card", "the sum of all layers' pages", numbers, pool.block_size_bytes,
                          "bytes", f"{UTILS}, get_kv_cache_config_from_groups"))  # fmt: skip
        return found
    return [
        Step("P", "page of one layer", "B * t, and states padded to it" if pool.plan.state_bytes else "B * t",
             f"{pool.page_size_bytes:,}", pool.page_size_bytes, "bytes", f"{UTILS}, get_uniform_page_size"),
        Step("g", "groups", "layers of each group", sizes, len(pool.groups), "groups",
             f"{UTILS}, _get_kv_cache_groups_uniform_page_size"),
        Step("G", "layers in the fullest group", "max(layers)", f"max({sizes.replace('/', ', ')})", fullest, "layers",
             f"{UTILS}, get_kv_cache_config_from_groups"),
        Step("C", "one block on one card", "P * G", f"{pool.page_size_bytes} * {fullest}", pool.block_size_bytes, "bytes",
             f"{UTILS}, _pool_bytes_per_block"),
    ]  # fmt: skip


def result(pool: Pool) -> list[Step]:
    """The pool in blocks, one request in blocks, and what is logged."""
    engine, plan = pool.engine, pool.plan
    limit = engine.max_model_len
    if engine.num_gpu_blocks_override is None:
        counted = "floor(available / C)", f"{pool.available_bytes} // {pool.block_size_bytes}"
    else:
        counted = "num_gpu_blocks_override", str(engine.num_gpu_blocks_override)
    each = [table.blocks(limit, plan.request) for table in plan.tables]
    shown = " + ".join(str(count) for count in each)
    if plan.rules.tokens_from_concurrency:
        logged = (
            "int(num_blocks / r * max_model_len)",
            f"int({pool.num_blocks} / {pool.blocks_per_request} * {limit})",
        )
    else:
        least = min(group.block_size for group in pool.groups)
        logged = "num_blocks // g * smallest block", f"{pool.num_blocks} // {len(pool.groups)} * {least}"
    rules = "; ".join(dict.fromkeys(rule(pool, table) for table in plan.tables))
    return [
        Step("N", "blocks, the null block counted", *counted, pool.num_blocks, "blocks", f"{UTILS}, get_num_blocks"),
        Step("u", "blocks that requests can hold", "N - 1", f"{pool.num_blocks} - 1", pool.usable_blocks, "blocks",
             "vllm/v1/core/block_pool.py, null_block"),
        Step("r", "blocks of one request of max_model_len", rules, shown, pool.blocks_per_request, "blocks",
             f"{INTERFACE}, max_memory_usage_bytes"),
        Step("c", "maximum concurrency", "N / r", f"{pool.num_blocks} / {pool.blocks_per_request}", pool.max_concurrency,
             "requests", f"{UTILS}, get_max_concurrency_for_kv_cache_config"),
        Step("T", "the pool as logged", *logged, pool.tokens, "tokens",
             f"{UTILS}, " + ("get_kv_cache_capacity" if plan.rules.tokens_from_concurrency else "_report_kv_cache_config")),
    ]  # fmt: skip


def rule(pool: Pool, table: Table) -> str:
    """How one group's blocks are counted, in the engine's words."""
    layer = table.buckets[0].layer
    if layer.recurrent:
        return {
            "none": "1 + num_speculative_tokens",
            "align": f"{2 + pool.plan.request.checkpoint_blocks} + num_speculative_tokens",
            "all": "cdiv(max_model_len, B)" + (" + num_speculative_tokens" if pool.plan.rules.drafts_in_mode_all else ""),
        }[pool.plan.mode]
    return {
        "SlidingWindowSpec": "cdiv(min(sliding_window - 1 + max_in_flight_tokens, max_model_len), B) + 1",
        "ChunkedLocalAttentionSpec": "cdiv(min(attention_chunk_size + max_in_flight_tokens, max_model_len), B)",
    }.get(layer.vllm_spec, "cdiv(max_model_len, B)")


def prefill_notes(recurrent: list[Recurrent], engine: Engine, rules: Rules) -> list[str]:
    """Where the card decides which prefill kernel runs, and so how many blocks are set aside, and none was stated."""
    found = []
    if rules.gdn_checkpoint and engine.gdn_prefill_backend is None and any(isinstance(layer, GatedDeltaNet) for layer in recurrent):
        found.append(
            "Planned for the Triton prefill of Gated DeltaNet. On Hopper, and with CUDA 13 on Blackwell, the engine takes "
            "FlashInfer's, which aligns to 64 and sets one block more aside in each group: state gdn_prefill_backend."
        )
    if rules.kda_checkpoint and engine.kda_prefill_backend is None and any(isinstance(layer, KimiDelta) for layer in recurrent):
        found.append(
            "Planned for the Triton prefill of Kimi Delta Attention. On Hopper and Blackwell the engine may take FlashKDA's, "
            "which sets one block more aside in each group: state kda_prefill_backend."
        )
    return found


def notes(pool: Pool) -> tuple[str, ...]:
    """What a reader should know beside the numbers."""
    engine, plan = pool.engine, pool.plan
    found = []
    recurrent = [layer for layer in pool.model.layers if isinstance(layer, Recurrent)]
    if older := read_before(engine.version):
        found.append(f"vLLM {engine.version} itself was not read: planned by the rules of {older}, the newest before it that was.")
    if plan.mode == "align":
        found += prefill_notes(recurrent, engine, plan.rules)
    if plan.mode == "all" and not all(layer.offers_mode_all for layer in recurrent):
        found.append("A what-if: for these layers the engine falls back from mode all to mode align.")
    if plan.dtype == "fp8" and any(isinstance(layer, MLA) and layer.index_head_dim for layer in pool.model.layers):
        found.append("With the FlashMLA sparse backend the engine takes fp8_ds_mla where fp8 is asked: state it.")
    defaulted = plan.mode == "align" and engine.mamba_cache_mode is None and not plan.rules.hybrid_prefix_caching
    if defaulted and any(layer.offers_mode_all for layer in recurrent):
        found.append(
            "Mode align is taken. Before 0.28 classes that support prefix caching of their states (Nemotron-H, "
            "Granite, Jamba, Falcon-H1, Zamba2) default to mode all: state mamba_cache_mode."
        )
    if engine.num_gpu_blocks_override is not None and not plan.rules.override_plans:
        found.append("Before 0.20.1 the fit check ignores num_gpu_blocks_override.")
    if pool.blocks_per_request > pool.num_blocks:
        found.append("Admitted though one full request does not fit: before 0.19 only the first group is checked.")
    return tuple(found)
