"""vLLM's recurrent layers: the mode in which their state is cached, its bytes, and the blocks of a prefill's checkpoint.

Follows vllm/model_executor/models/config.py (MambaModelConfig), vllm/model_executor/layers/mamba/ (mamba_utils.py and
get_kv_cache_spec of the layers), 0.33.0; what changed stands in `aelius_math.vllm_versions`.
"""

from __future__ import annotations

from collections.abc import Sequence

from aelius_math import dtypes
from aelius_math.cache import GatedDeltaNet, KimiDelta, Mamba2, Recurrent
from aelius_math.model import Model
from aelius_math.units import AeliusError
from aelius_math.vllm_engine import Engine
from aelius_math.vllm_versions import Rules

GDN_CHECKPOINT_ALIGNMENT = 64
"""Tokens: vllm/v1/attention/backends/gdn_attn.py, FLASHINFER_GDN_CHECKPOINT_ALIGNMENT."""


def cache_mode(engine: Engine, rules: Rules, recurrent: bool, attention: bool) -> str:
    """The mode in which recurrent state is cached: none without prefix caching, else as set, else align."""
    if engine.mamba_cache_mode == "all" and not rules.mode_all:
        raise AeliusError("mamba_cache_mode", "all", f"none or align: vLLM {engine.version} has no mode all")
    caching = engine.enable_prefix_caching
    if caching is None:
        caching = attention and rules.hybrid_prefix_caching
    if not recurrent or not caching:
        return "none"
    return "align" if engine.mamba_cache_mode in (None, "none") else str(engine.mamba_cache_mode)


def state_bytes(recurrent: list[Recurrent], model: Model, engine: Engine, rules: Rules) -> int:
    """Bytes of one recurrent layer's state on one card, 0 without such layers; refuses layers that differ."""
    sizes = {one_state(layer, model, engine, rules) for layer in recurrent}
    if len(sizes) > 1:
        raise AeliusError("layers", sorted(sizes), "recurrent layers whose states have one size")
    return sizes.pop() if sizes else 0


def one_state(layer: Recurrent, model: Model, engine: Engine, rules: Rules) -> int:
    if model.dtype is None and layer.conv_dtype is None:
        raise AeliusError("Model.dtype", None, f"the model's dtype, that {type(layer).__name__} keeps its state in")
    drafts = engine.num_speculative_tokens
    if isinstance(layer, KimiDelta) and not rules.drafts_widen_kda:
        drafts = 0
    size = layer.state_bytes(model.dtype, engine.tensor_parallel_size, drafts)
    if type(layer).__name__ == "ShortConvolution" and rules.drafts_widen_short:
        size += drafts * layer.conv_width(engine.tensor_parallel_size) * dtypes.element_bytes(layer.conv_dtype or model.dtype, "conv_dtype")
    asked = engine.mamba_ssm_cache_dtype
    if asked is None:
        return size
    dtype = dtypes.known(asked)
    if dtype not in ("fp32", "fp16") and not (dtype == "bf16" and rules.bf16_state):
        names = "float32, float16" + (", bfloat16" if rules.bf16_state else " (bfloat16 from 0.22)")
        raise AeliusError("mamba_ssm_cache_dtype", asked, f"one that vLLM {engine.version} takes: {names}")
    if isinstance(layer, KimiDelta):
        if not rules.kda_state_is_set:
            return size  # fp32 whatever is asked (kda_state_dtype)
        if dtype == "fp16":
            raise AeliusError("mamba_ssm_cache_dtype", asked, "float32 or bfloat16 for Kimi Delta Attention")
    was = dtypes.element_bytes(layer.state_dtype or model.dtype, "state_dtype")
    return size + layer.state_elements(engine.tensor_parallel_size) * (dtypes.element_bytes(dtype) - was)


def exports_checkpoints(recurrent: Sequence[Recurrent], engine: Engine, rules: Rules) -> bool:
    """Whether Gated DeltaNet layers save a state in the middle of a prefill: with FlashInfer's kernel, and no other kind."""
    delta = bool(recurrent) and all(isinstance(layer, GatedDeltaNet) for layer in recurrent)
    return rules.gdn_checkpoint and delta and engine.gdn_prefill_backend == "flashinfer"


def checkpoint_blocks(recurrent: Sequence[Recurrent], engine: Engine, rules: Rules) -> int:
    """Blocks [int] that mode align sets aside in each group for such a state; refuses kinds that differ in it."""
    if exports_checkpoints(recurrent, engine, rules):
        return 1
    flashkda = rules.kda_checkpoint and engine.kda_prefill_backend == "flashkda"
    counts = {
        int((rules.mamba2_checkpoint and isinstance(layer, Mamba2)) or (flashkda and isinstance(layer, KimiDelta))) for layer in recurrent
    }
    if len(counts) > 1:
        names = ", ".join(sorted({type(layer).__name__ for layer in recurrent}))
        raise AeliusError("layers", names, "recurrent layers of one kind, where one of them saves a state in a prefill")
    return counts.pop() if counts else 0
