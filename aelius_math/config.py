"""What stands behind `aelius_math.model.from_config`: the text model's section, its reader, its dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from aelius_math.cache import Layers
from aelius_math.config_families import ARCHITECTURES, TEXT, WRAPPERS
from aelius_math.config_fields import Fields, name_of
from aelius_math.units import AeliusError, whole


class Reading(NamedTuple):
    """The fields of a `Model`, as a config.json gives them."""

    name: str
    layers: tuple[Layers, ...]
    mtp_layers: tuple[Layers, ...]
    dtype: str | None
    max_position_embeddings: int | None
    kv_cache_dtype: str | None
    architecture: str


def read(config: object, dtype: str | None = None) -> Reading:
    """What a config.json says of a model's cache; raises as `aelius_math.model.from_config` does."""
    top = Fields(config)
    text, model_type = text_section(top)
    check(text, model_type)
    parts = TEXT[model_type](text)
    return Reading(
        name=name_of(top, model_type),
        layers=parts.layers,
        mtp_layers=parts.mtp_layers,
        dtype=dtype or model_dtype(top, text),
        max_position_embeddings=text.context() or top.context(),
        kv_cache_dtype=cache_dtype(top) or cache_dtype(text),
        architecture=stated_type(top),
    )


def text_section(top: Fields) -> tuple[Fields, str]:
    """The section that describes the text model, and its model_type.

    A wrapper without the section, but with layers, is a flat config: so were the first ones of Qwen2-VL.
    """
    section, model_type = top, stated_type(top)
    for _ in range(4):  # no known wrapper is nested deeper
        if model_type not in WRAPPERS:
            break
        name, inner = WRAPPERS[model_type]
        if not section.has(name) and section.has("num_hidden_layers", "num_layers"):
            model_type = model_type if model_type in TEXT else inner or model_type
            break
        section = section.section(name)
        model_type = section.text("model_type", inner)
    if model_type not in TEXT:
        raise AeliusError(section.path + "model_type", model_type, "a model type that this version reads")
    return section, model_type


SIZES = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim",
    "sliding_window", "max_position_embeddings",
)  # fmt: skip
BY_LAYER = {"gemma4_text", "gemma4_unified_text"}
"""Model types whose reader reads per_layer_config."""


def check(text: Fields, model_type: str) -> None:
    """Refuses nonsense in the common sizes, used or not: a size is a whole number, not below 0 (or a list of
    them)."""
    for name in SIZES:
        if text.has(name) and not isinstance(text.raw(name), list | tuple):
            whole(text.path + name, text.raw(name), 0)
    if text.raw("per_layer_config") and model_type not in BY_LAYER:
        raise text.wrong("per_layer_config", f"no overrides by layer: they are not read for {model_type}")


def stated_type(top: Fields) -> str:
    """The model_type; where there is none, that of an architecture that is published without one."""
    architectures = top.raw("architectures")
    if not top.has("model_type") and isinstance(architectures, list | tuple):
        for name in architectures:
            if isinstance(name, str) and name in ARCHITECTURES:
                return ARCHITECTURES[name]
    return top.text("model_type")


def model_dtype(top: Fields, text: Fields) -> str | None:
    """The dtype of weights and activations, as vLLM looks for it: the whole config's first, then the text
    model's (0.33.0, transformers_utils/model_arch_config_convertor.py). None where neither says."""
    for fields in (top, text):
        for name in ("dtype", "torch_dtype"):
            found = fields.dtype(name)
            if found:
                return found
    return None


CACHE_ALGORITHMS = {"FP8": "fp8", "NVFP4": "nvfp4"}
CACHE_BITS = {8: "fp8", 4: "nvfp4"}


def cache_dtype(fields: Fields) -> str | None:
    """The dtype that a checkpoint's quantisation states for its KV cache; None where it states none.

    Weights may be quantised as they please: only kv_cache_scheme and kv_cache_quant_algo speak of the cache.
    """
    name = fields.first("quantization_config", "compression_config")
    stated = fields.raw(name)
    if not isinstance(stated, Mapping):
        return None
    section = Fields(stated, f"{fields.path}{name}.")
    inner = section.raw("quantization")  # ModelOpt's first form
    for holder in (
        section,
        Fields(inner if isinstance(inner, Mapping) else {}, section.path + "quantization."),
    ):
        if holder.has("kv_cache_quant_algo"):
            algorithm = holder.text("kv_cache_quant_algo")
            if algorithm not in CACHE_ALGORITHMS:
                raise holder.wrong("kv_cache_quant_algo", "FP8 or NVFP4")
            return CACHE_ALGORITHMS[algorithm]
    if section.raw("kv_cache_scheme") is None:
        return None
    scheme = section.section("kv_cache_scheme")
    if scheme.text("type", "int") != "float":  # compressed-tensors: int where the scheme does not say
        raise scheme.wrong("type", "float: no engine here keeps whole numbers with a scale for each tensor")
    bits = scheme.count("num_bits")
    if bits not in CACHE_BITS:
        raise scheme.wrong("num_bits", "8 or 4")
    return CACHE_BITS[bits]
