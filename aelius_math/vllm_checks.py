"""What the settings ask of a model, checked: the format of the cache, the layers of a drafter, and whether all can be planned.

Follows vllm/config/cache.py and vllm/v1/kv_cache_interface.py, 0.28.0; what changed stands in `aelius_math.vllm_versions`.
"""

from __future__ import annotations

from aelius_math import dtypes
from aelius_math.cache import MLA, FullAttention, Layers, SlidingWindow
from aelius_math.model import Model
from aelius_math.units import AeliusError
from aelius_math.vllm_engine import Engine
from aelius_math.vllm_versions import INT4, PLAIN, Rules

DRAFTLESS = ("ngram", "suffix")
"""Speculative methods that keep no layers of their own."""


def cache_dtype(model: Model, engine: Engine, rules: Rules) -> str:
    """The format of the KV cache: the setting's, else the checkpoint's, else the model's own."""
    asked: str | None = engine.kv_cache_dtype
    if asked == "auto":
        asked = model.kv_cache_dtype or model.dtype
        if asked is None:
            raise AeliusError("Model.dtype", None, 'the model\'s dtype, or a kv_cache_dtype other than "auto"')
        if dtypes.known(asked) == "fp32":
            return "fp32"
    dtype = dtypes.known(asked, "kv_cache_dtype")
    sparse = any(isinstance(layer, MLA) and layer.index_head_dim for layer in model.layers)
    if dtype == "fp8" and sparse and not rules.align_follows_block_size:
        dtype = "fp8_ds_mla"  # before 0.20 always so (models/config.py, DeepseekV32ForCausalLM)
    if dtype not in rules.formats:
        names = ", ".join(sorted(rules.formats))
        raise AeliusError("kv_cache_dtype", engine.kv_cache_dtype, f"a format of vLLM {engine.version}: auto, {names}")
    return dtype


def draft_layers(model: Model, engine: Engine) -> tuple[Layers, ...]:
    """The layers that speculative decoding adds: the model's own MTP layers, or those of a separate drafter."""
    if not engine.num_speculative_tokens:
        return ()
    method = engine.speculative_method
    if engine.draft:
        if method == "mtp":
            raise AeliusError("speculative_method", method, "another method beside a separate draft, or no draft")
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
    raise AeliusError("speculative_method", method, "its draft's layers too (draft=), or mtp, " + ", ".join(DRAFTLESS))


def check_windows(model: Model, layers: tuple[Layers, ...], engine: Engine, rules: Rules) -> None:
    """Refuses windows beside a model's MLA layers, also a drafter's, where the engine does.

    Up to 0.25.1 get_kv_cache_spec of layers/attention/attention.py asserts that the model has no MLA.
    """
    if rules.windows_beside_mla or not any(isinstance(layer, MLA) for layer in model.layers):
        return
    if any(isinstance(layer, SlidingWindow) for layer in layers):
        raise AeliusError("version", engine.version, "0.26 or newer for sliding windows beside MLA layers")


def check_layers(layers: tuple[Layers, ...], engine: Engine, rules: Rules, dtype: str) -> None:
    """Refuses kinds without a rule, what does not divide by the cards, formats that no backend keeps MLA in, and old
    releases for more than one kind.

    MLA: no backend of vllm/v1/attention/backends/mla/ lists a packed format (`supported_kv_cache_dtypes`, 0.20.0 to 0.33.0),
    so the selector of the platform finds none and the engine does not start (platforms/cuda.py, get_attn_backend_cls).
    """
    cards = engine.tensor_parallel_size
    for layer in layers:
        if not layer.vllm_spec:
            raise AeliusError("layers", type(layer).__name__, "a kind of layer whose rule in vLLM's planner is known")
        if isinstance(layer, MLA) and dtype in INT4 - PLAIN:
            expected = "auto, bf16, fp16, fp8 or fp8_ds_mla: no attention backend of vLLM keeps MLA layers in another format"
            raise AeliusError("kv_cache_dtype", dtype, expected)
        for field, count in layer.divided().items():
            if count % cards and not (field == "num_kv_heads" and cards % count == 0):
                expected = f"a number that divides the {count} {field} of {type(layer).__name__}"
                raise AeliusError("tensor_parallel_size", cards, expected)
    if rules.old and {type(layer) for layer in layers} != {FullAttention}:
        raise AeliusError("version", engine.version, "0.17 or newer for layers other than full attention")
    if rules.old and len({layer.spec_key(cards) for layer in layers}) > 1:
        raise AeliusError("version", engine.version, "0.17 or newer for full attention of more than one size")
