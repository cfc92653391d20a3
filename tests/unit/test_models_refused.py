"""What from_config will not answer: it names the field and the value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from aelius_math import catalogue
from aelius_math.model import Model, from_config
from aelius_math.units import AeliusError

LLAMA = {"model_type": "llama", "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
         "hidden_size": 1024}  # fmt: skip
GEMMA = {"model_type": "gemma2", **{name: LLAMA[name] for name in LLAMA if name != "model_type"}, "sliding_window": 512}
QWEN35 = catalogue.config("qwen3.8-27b")
KIMI = catalogue.config("kimi-linear-48b-a3b")
NEMOTRON = {"model_type": "nemotron_h", "num_hidden_layers": 3, "hybrid_override_pattern": "M*-", "num_attention_heads": 32,
            "num_key_value_heads": 8, "hidden_size": 4096, "ssm_state_size": 128, "mamba_num_heads": 128,
            "mamba_head_dim": 64, "n_groups": 8, "conv_kernel": 4}  # fmt: skip


def text(config: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A nested config with changes in its text_config; None removes a field."""
    inner = {**config["text_config"], **changes}
    return {**config, "text_config": {name: value for name, value in inner.items() if value is not None}}


def without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names}


REFUSED: dict[str, tuple[Any, str, object]] = {
    "not an object": ([1, 2], "config", [1, 2]),
    "nothing": (None, "config", None),
    "an empty object": ({}, "model_type", None),
    "a model type that is a number": ({**LLAMA, "model_type": 7}, "model_type", 7),
    "an unknown model type": ({**LLAMA, "model_type": "quantum"}, "model_type", "quantum"),
    "an unknown model type with recurrent keys": (
        {**LLAMA, "model_type": "mystery", "mamba_d_state": 16, "linear_num_key_heads": 4}, "model_type", "mystery"),
    "Qwen4's experiment, another class": ({"model_type": "qwen4_exp", "text_config": {"model_type": "qwen4_exp_text"}},
                                          "model_type", "qwen4_exp"),
    "an unknown text model in a known wrapper": (
        text(QWEN35, model_type="qwen9_text"), "text_config.model_type", "qwen9_text"),
    "a wrapper without its text": ({"model_type": "qwen3_5"}, "text_config", None),
    "an unknown kind of layer": (
        {**LLAMA, "layer_types": ["full_attention", "quantum_attention", "full_attention", "full_attention"]},
        "layer_types[1]", "quantum_attention"),
    "a kind that the class does not have": (
        text(QWEN35, layer_types=["linear_attention", "mamba"] * 32), "text_config.layer_types[1]", "mamba"),
    "an unknown letter": ({**NEMOTRON, "hybrid_override_pattern": "M*Q"}, "hybrid_override_pattern[2]", "Q"),
    "no layers": (without(LLAMA, "num_hidden_layers"), "num_hidden_layers", None),
    "no heads": (without(LLAMA, "num_attention_heads"), "num_attention_heads", None),
    "no hidden size and no head size": (without(LLAMA, "hidden_size"), "hidden_size", None),
    "no KV heads where the class has no rule": (
        {**without(LLAMA, "num_key_value_heads"), "model_type": "qwen3"}, "num_key_value_heads", None),
    "no linear heads": (text(QWEN35, linear_num_value_heads=None), "text_config.linear_num_value_heads", None),
    "no latent": ({**LLAMA, "model_type": "deepseek_v3", "qk_rope_head_dim": 64}, "kv_lora_rank", None),
    "no window where layers slide": (
        {**LLAMA, "layer_types": ["sliding_attention"] * 4}, "sliding_window", None),
    "zero layers": ({**LLAMA, "num_hidden_layers": 0}, "num_hidden_layers", 0),
    "zero heads": ({**LLAMA, "num_attention_heads": 0}, "num_attention_heads", 0),
    "zero KV heads": ({**LLAMA, "num_key_value_heads": 0}, "num_key_value_heads", 0),
    "a negative window": ({**GEMMA, "sliding_window": -1}, "sliding_window", -1),
    "a negative window that is not used": ({**LLAMA, "sliding_window": -5}, "sliding_window", -5),
    "a negative head size": ({**LLAMA, "head_dim": -128}, "head_dim", -128),
    "a text for a number": ({**LLAMA, "num_hidden_layers": "32"}, "num_hidden_layers", "32"),
    "a fraction": ({**LLAMA, "head_dim": 128.5}, "head_dim", 128.5),
    "true for a number": ({**LLAMA, "num_key_value_heads": True}, "num_key_value_heads", True),
    "a list for a number": ({**LLAMA, "num_attention_heads": [8]}, "num_attention_heads", [8]),
    "far too many layers": ({**LLAMA, "num_hidden_layers": 10**12}, "num_hidden_layers", 10**12),
    "far too wide": ({**LLAMA, "head_dim": 2**60}, "head_dim", 2**60),
    "infinite": ({**LLAMA, "hidden_size": float("inf")}, "hidden_size", float("inf")),
    "a switch that is a text": (
        {**LLAMA, "model_type": "qwen2", "use_sliding_window": "no"}, "use_sliding_window", "no"),
    "a dtype that is none": ({**LLAMA, "torch_dtype": "float12"}, "torch_dtype", "float12"),
    "a scheme of another width": (
        {**LLAMA, "quantization_config": {"kv_cache_scheme": {"num_bits": 3, "type": "float"}}},
        "quantization_config.kv_cache_scheme.num_bits", 3),
    "a scheme of whole numbers": (
        {**LLAMA, "quantization_config": {"kv_cache_scheme": {"num_bits": 8, "type": "int"}}},
        "quantization_config.kv_cache_scheme.type", "int"),
    "KV heads that do not divide the heads": ({**LLAMA, "num_key_value_heads": 3}, "num_key_value_heads", 3),
    "more KV heads than heads": ({**LLAMA, "num_key_value_heads": 16}, "num_key_value_heads", 16),
    "heads that do not divide the hidden size": (
        {**LLAMA, "num_attention_heads": 24, "hidden_size": 5120}, "num_attention_heads", 24),
    "fewer kinds than layers": ({**LLAMA, "layer_types": ["full_attention"] * 3}, "layer_types", "3 entries"),
    "a pattern longer than the layers": ({**NEMOTRON, "num_hidden_layers": 2}, "num_hidden_layers", 2),
    "a pattern and a list that differ": (
        {**NEMOTRON, "layers_block_type": ["mamba", "mamba", "mlp"]}, "hybrid_override_pattern", "M*-"),
    "a layer in no list": (
        {**KIMI, "linear_attn_config": {**KIMI["linear_attn_config"], "kda_layers": [1, 2]}},  # type: ignore[dict-item]
        "linear_attn_config", "7 full and 2 KDA layers, 0 of them both"),
    "a layer number that is not there": (
        {**LLAMA, "model_type": "mllama_text_model", "cross_attention_layers": [4]}, "cross_attention_layers[0]", 4),
    "heads times width against expand": (
        {"model_type": "mamba2", "num_hidden_layers": 2, "hidden_size": 1024, "num_heads": 8, "head_dim": 64, "expand": 2,
         "n_groups": 1, "state_size": 16, "conv_kernel": 4}, "head_dim", 64),
    "a ratio that V4 does not have": (
        {"model_type": "deepseek_v4", "num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 512,
         "qk_rope_head_dim": 64, "sliding_window": 128, "index_head_dim": 128, "compress_ratios": [0, 8]},
        "compress_ratios[1]", 8),
    "overrides by layer that are not read": (
        {**LLAMA, "per_layer_config": {"1": {"num_key_value_heads": 1}}}, "per_layer_config",
        {"1": {"num_key_value_heads": 1}}),
}  # fmt: skip


@pytest.mark.parametrize(("config", "field", "value"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_names_the_field_and_the_value(config: Any, field: str, value: object) -> None:
    with pytest.raises(AeliusError) as caught:
        from_config(config)
    assert (caught.value.field, caught.value.value) == (field, value)
    assert re.match(re.escape(f"{field}: got {value!r}, expected "), str(caught.value))


def test_a_caller_s_dtype_is_checked() -> None:
    with pytest.raises(AeliusError, match="dtype: got 'q8_0', expected a plain format"):
        from_config(LLAMA, dtype="q8_0")


ACCEPTED = {
    "expand 16 against the inner width, which counts": "tiiuae/falcon-mamba-7b",
    "a head_dim that neither cache uses": "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    "a window that is switched off": "Qwen/Qwen2.5-32B-Instruct-GPTQ-Int4",
    "expand against heads times width": "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4",
    "a share factor that is switched off": "tencent/Hy-MT2-7B",
    "a bare Infinity": "nvidia/Nemotron-H-56B-Base-8K",
}


@pytest.mark.parametrize("name", ACCEPTED.values(), ids=ACCEPTED)
def test_a_field_that_does_not_count_contradicts_nothing(name: str) -> None:
    cases = json.loads((Path(__file__).parents[1] / "golden" / "models.json").read_text("utf-8"))
    assert from_config(next(case["config"] for case in cases if case["name"] == name)).layers


@pytest.mark.parametrize("layers", [("attention",), "attention", (), None], ids=repr)
def test_a_model_of_what_is_no_layer_spec_is_refused_by_name(layers: object) -> None:
    with pytest.raises(AeliusError, match=r"Model\.layers"):
        Model(name="toy", layers=layers)  # type: ignore[arg-type]
