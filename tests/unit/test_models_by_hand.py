"""Model families that the golden configs do not hold, each with arithmetic that a reader can redo."""

from __future__ import annotations

from typing import Any

import pytest

from aelius_math.cache import FullAttention, GatedDeltaNet, KimiDelta, Mamba2, SlidingWindow
from aelius_math.model import from_config


def config(model_type: str, layers: int, heads: int, kv: int | None, hidden: int, **more: Any) -> dict[str, Any]:
    """The usual fields under their usual names."""
    usual = {"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv, "hidden_size": hidden}
    return {"model_type": model_type, **usual, **more}


WINDOWS_OFF = {"use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28}
RRA = {"num_attention_heads": 10, "num_key_value_heads": 1, "hidden_size": 2560, "lru_width": 2560, "conv1d_width": 4}

GROWING = {
    "Qwen2.5-7B, window switched off": (config("qwen2", 28, 28, 4, 3584, **WINDOWS_OFF), 28 * 2 * 4 * 128 * 2),
    "Llama 2 7B, KV heads not stated": (config("llama", 32, 32, None, 4096), 32 * 2 * 32 * 128 * 2),
    "Llama 2 70B": (config("llama", 80, 64, 8, 8192), 80 * 2 * 8 * 128 * 2),
    "Falcon 7B": (
        {"model_type": "falcon", "num_hidden_layers": 32, "num_attention_heads": 71, "hidden_size": 4544,
         "multi_query": True, "new_decoder_architecture": False, "num_kv_heads": 71}, 32 * 2 * 1 * 64 * 2),
    "Falcon 40B under its first name": (
        {"model_type": "RefinedWeb", "n_layer": 60, "n_head": 128, "n_head_kv": 8, "hidden_size": 8192},
        60 * 2 * 8 * 64 * 2),
    "Falcon 180B": (
        {"model_type": "falcon", "num_hidden_layers": 80, "num_attention_heads": 232, "hidden_size": 14848,
         "num_kv_heads": 8, "multi_query": True, "new_decoder_architecture": True}, 80 * 2 * 8 * 64 * 2),
    "GPT-2": ({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768}, 12 * 2 * 768 * 2),
    "GPT-J 6B": ({"model_type": "gptj", "n_layer": 28, "n_head": 16, "n_embd": 4096}, 28 * 2 * 4096 * 2),
    "GPT-NeoX 20B": (config("gpt_neox", 44, 64, None, 6144), 44 * 2 * 6144 * 2),
    "GPT-Neo, whose local layers are kept whole": (
        {"model_type": "gpt_neo", "num_layers": 24, "num_heads": 16, "hidden_size": 2048, "window_size": 256},
        24 * 2 * 2048 * 2),
    "BLOOM": ({"model_type": "bloom", "n_layer": 70, "num_attention_heads": 112, "n_embed": 14336}, 70 * 2 * 14336 * 2),
    "MPT 7B": ({"model_type": "mpt", "n_layers": 32, "n_heads": 32, "d_model": 4096}, 32 * 2 * 4096 * 2),
    "DBRX": (
        {"model_type": "dbrx", "n_layers": 40, "n_heads": 48, "d_model": 6144, "attn_config": {"kv_n_heads": 8}},
        40 * 2 * 8 * 128 * 2),
    "StarCoder": (
        {"model_type": "gpt_bigcode", "n_layer": 40, "n_head": 48, "n_embd": 6144, "multi_query": True}, 40 * 2 * 128 * 2),
    "ChatGLM3 6B": (
        {"model_type": "chatglm", "num_layers": 28, "num_attention_heads": 32, "hidden_size": 4096, "kv_channels": 128,
         "multi_query_attention": True, "multi_query_group_num": 2}, 28 * 2 * 2 * 128 * 2),
    "Command R": (config("cohere", 40, 64, 64, 8192), 40 * 2 * 64 * 128 * 2),
    "Phi-2": (config("phi", 32, 32, None, 2560), 32 * 2 * 2560 * 2),
    "Nemotron 4 340B": (config("nemotron", 96, 96, 8, 18432), 96 * 2 * 8 * 192 * 2),
    "GLM-4 9B": (config("glm4", 40, 32, 2, 4096, head_dim=128), 40 * 2 * 2 * 128 * 2),
    "Hunyuan Large, two layers to a cache": (
        config("hunyuan", 64, 80, 8, 6400, attention_head_dim=128, use_cla=True, cla_share_factor=2),
        32 * 2 * 8 * 128 * 2),
    "Step3, one KV head": (
        {"model_type": "step3_text", "num_hidden_layers": 61, "num_attention_heads": 64, "hidden_size": 7168,
         "num_attention_groups": 1, "head_dim": 256}, 61 * 2 * 1 * 256 * 2),
    "DeepSeek-V2-Lite": (
        config("deepseek_v2", 27, 16, 16, 2048, kv_lora_rank=512, qk_rope_head_dim=64), 27 * (512 + 64) * 2),
    "DeepSeek-OCR, without MLA": (
        {"model_type": "deepseek_vl_v2", "language_config": config(
            "deepseek_v2", 12, 10, 10, 1280, kv_lora_rank=None, qk_rope_head_dim=0, use_mla=False)},
        12 * 2 * 10 * 128 * 2),
    "DeciLM 7B, KV heads by layer": (
        config("deci", 4, 32, None, 4096, num_key_value_heads_per_layer=[4, 4, 2, 1]), (4 + 4 + 2 + 1) * 2 * 128 * 2),
    "Whisper large, decoder": (
        {"model_type": "whisper", "decoder_layers": 32, "decoder_attention_heads": 20, "d_model": 1280,
         "encoder_layers": 32}, 32 * 2 * 1280 * 2),
    "BART large, decoder": (
        {"model_type": "bart", "decoder_layers": 12, "decoder_attention_heads": 16, "d_model": 1024}, 12 * 2 * 1024 * 2),
    "Qwen3-VL, nested": (
        {"model_type": "qwen3_vl", "text_config": config("qwen3_vl_text", 36, 32, 8, 4096, head_dim=128)},
        36 * 2 * 8 * 128 * 2),
    "Qwen2.5-VL, flat as at first": (config("qwen2_5_vl", 28, 28, 4, 3584, **WINDOWS_OFF), 28 * 2 * 4 * 128 * 2),
    "Qwen2.5-Omni, nested twice": (
        {"model_type": "qwen2_5_omni", "thinker_config": {"model_type": "qwen2_5_omni_thinker", "text_config": config(
            "qwen2_5_omni_text", 28, 28, 4, 3584, **WINDOWS_OFF)}}, 28 * 2 * 4 * 128 * 2),
    "InternVL, under llm_config": (
        {"model_type": "internvl_chat", "llm_config": config("internlm2", 32, 32, 8, 4096)}, 32 * 2 * 8 * 128 * 2),
}  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), GROWING.values(), ids=GROWING)
def test_a_token_costs_what_the_arithmetic_says(given: dict[str, Any], expected: int) -> None:
    model = from_config(given)
    assert model.kv_bytes_per_token() == expected
    assert model.window_bytes() == model.conv_elements == model.state_elements == 0


WINDOWED = {
    "Mistral 7B v0.1 slides throughout": (
        config("mistral", 32, 32, 8, 4096, sliding_window=4096), 0, 32 * (2 * 8 * 128 * 2) * 4096),
    "Mistral 7B v0.3: null, all full": (
        config("mistral", 32, 32, 8, 4096, sliding_window=None), 32 * 2 * 8 * 128 * 2, 0),
    "Qwen2 with its window on, from layer 20": (
        config("qwen2", 28, 28, 4, 3584, use_sliding_window=True, sliding_window=4096, max_window_layers=20),
        20 * 2 * 4 * 128 * 2, 8 * (2 * 4 * 128 * 2) * 4096),
    "Gemma 3 with its pattern left to the class": (
        {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560,
                                                 "sliding_window": 1024}},
        5 * 2 * 4 * 256 * 2, 29 * (2 * 4 * 256 * 2) * 1024),
    "EXAONE 4 by a word": (
        config("exaone4", 6, 8, 2, 1024, sliding_window=4096, sliding_window_pattern="LLLG"),
        2 * 2 * 2 * 128 * 2, 4 * (2 * 2 * 128 * 2) * 4096),  # LLLGL, and the last is full
    "MiMo-V2-Flash, V narrower than K": (
        config("mimo_v2_flash", 6, 64, 4, 4096, head_dim=192, v_head_dim=128, hybrid_layer_pattern=[0, 1, 1, 1, 1, 0],
               swa_num_key_value_heads=8, swa_head_dim=192, swa_v_head_dim=128, sliding_window_size=128,
               attention_chunk_size=128),
        2 * 4 * (192 + 128) * 2, 4 * 8 * (192 + 128) * 2 * 128),
    "Llama 4 by no_rope_layers": (
        config("llama4_text", 4, 40, 8, 5120, head_dim=128, attention_chunk_size=8192, no_rope_layers=[1, 1, 0, 0]),
        2 * 2 * 8 * 128 * 2, 2 * (2 * 8 * 128 * 2) * 8192),
    "Step 3.5, sliding layers with heads of their own": (
        {"model_type": "step3p5", "num_hidden_layers": 2, "num_attention_heads": 64, "num_attention_groups": 8,
         "head_dim": 128, "hidden_size": 4096, "sliding_window": 512, "num_nextn_predict_layers": 1,
         "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
         "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_groups": 4, "head_dim": 128}},
        2 * 8 * 128 * 2, 2 * 4 * 128 * 2 * 512),
}  # fmt: skip


@pytest.mark.parametrize(("given", "growing", "windows"), WINDOWED.values(), ids=WINDOWED)
def test_windows_are_kept_apart_from_what_grows(given: dict[str, Any], growing: int, windows: int) -> None:
    model = from_config(given)
    assert (model.kv_bytes_per_token(), model.window_bytes()) == (growing, windows)


RECURRENT = {
    "RecurrentGemma 2B": (
        {"model_type": "recurrent_gemma", "num_hidden_layers": 26, "attention_window_size": 2048, **RRA},
        0, 8 * (2 * 1 * 256 * 2) * 2048, 18 * 2560 * 3, 18 * 2560),
    "Zamba 7B": (
        config("zamba", 76, 16, 16, 3712, attn_layer_period=6, attn_layer_offset=4, mamba_d_state=16, mamba_d_conv=4,
               mamba_expand=2), 13 * 2 * 16 * 464 * 2, 0, 76 * 7424 * 3, 76 * 7424 * 16),
    "Codestral Mamba 7B": (
        {"model_type": "mamba2", "num_hidden_layers": 64, "hidden_size": 4096, "num_heads": 128, "head_dim": 64,
         "n_groups": 8, "state_size": 128, "conv_kernel": 4, "expand": 2},
        0, 0, 64 * (8192 + 2 * 8 * 128) * 3, 64 * 128 * 64 * 128),
    "Phi-4-mini-flash, whose second half shares": (
        config("phi4flash", 32, 40, 20, 2560, mb_per_layer=2, sliding_window=512),
        1 * 2 * 20 * 64 * 2, 8 * (2 * 20 * 64 * 2) * 512, 9 * 5120 * 3, 9 * 5120 * 16),
    "Bamba 9B": (
        config("bamba", 32, 32, 8, 4096, attn_layer_indices=[9, 18, 27], mamba_n_heads=128, mamba_d_head=64,
               mamba_n_groups=1, mamba_d_state=128, mamba_d_conv=4, mamba_expand=2),
        3 * 2 * 8 * 128 * 2, 0, 29 * (8192 + 2 * 128) * 3, 29 * 128 * 64 * 128),
    "Granite 4 without a Mamba layer": (
        config("granitemoehybrid", 4, 16, 4, 2048, layer_types=["attention"] * 4, mamba_n_heads=48), 4 * 2 * 4 * 128 * 2,
        0, 0, 0),
    "RWKV 4": ({"model_type": "rwkv", "num_hidden_layers": 12, "hidden_size": 768}, 0, 0, 12 * 2 * 768, 12 * 3 * 768),
    "Ring, whose tail after the last whole group is full": (
        config("bailing_moe_linear", 7, 16, 4, 2048, layer_group_size=3, head_dim=128),
        3 * 2 * 4 * 128 * 2, 0, 0, 4 * 16 * 128 * 128),
    "Ring with two layers after the last whole group": (
        config("bailing_moe_linear", 8, 16, 4, 2048, layer_group_size=3, head_dim=128),
        4 * 2 * 4 * 128 * 2, 0, 0, 4 * 16 * 128 * 128),
    "Ling 3, KDA and MLA": (
        config("bailing_hybrid", 4, 16, 16, 2048, layer_group_size=4, head_dim=128, kv_lora_rank=512, qk_rope_head_dim=64,
               short_conv_kernel_size=4), 576 * 2, 0, 3 * 3 * 16 * 128 * 3, 3 * 16 * 128 * 128),
    "OLMo Hybrid of two layers, whose last is full": (
        config("olmo_hybrid", 2, 8, None, 1024), 2 * 8 * 128 * 2, 0, (2 * 8 * 96 + 8 * 192) * 3, 8 * 96 * 192),
    "Lara Mini, three kinds in fives": (
        config("lara_mini", 7, 16, 4, 1024, linear_num_key_heads=8, linear_num_value_heads=16, linear_key_head_dim=128,
               linear_value_head_dim=128, linear_conv_kernel_dim=4),
        1 * 2 * 4 * 128 * 2, 3 * 2 * 4 * 128 * 2 * 512, 3 * (2 * 8 * 128 + 16 * 128) * 3, 3 * 16 * 128 * 128),
    "Inkling, with four short convolutions a layer": (
        config("inkling_text", 2, 8, 2, 1024, head_dim=128, swa_num_attention_heads=8, swa_num_key_value_heads=4,
               swa_head_dim=128, sliding_window_size=512, local_layer_ids=[0], conv_kernel_size=4),
        2 * 2 * 128 * 2, 2 * 4 * 128 * 2 * 512, (2 * 4 * 128 + 2 * 1024 + 2 * 2 * 128 + 2 * 1024) * 3, 0),
}  # fmt: skip


@pytest.mark.parametrize(("given", "growing", "windows", "conv", "state"), RECURRENT.values(), ids=RECURRENT)
def test_fixed_state_is_counted_beside_attention(given: dict[str, Any], growing: int, windows: int, conv: int, state: int) -> None:
    model = from_config(given)
    found = model.kv_bytes_per_token(), model.window_bytes(), model.conv_elements, model.state_elements
    assert found == (growing, windows, conv, state)


QWEN35 = {
    "model_type": "qwen3_5_text", "num_hidden_layers": 8, "full_attention_interval": 4, "hidden_size": 5120,
    "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256, "linear_num_key_heads": 16,
    "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
    "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1,
}  # fmt: skip


def test_layers_stand_in_the_order_in_which_their_kinds_first_appear() -> None:
    layers = from_config(QWEN35).layers
    assert [(type(layer), layer.num_layers) for layer in layers] == [(GatedDeltaNet, 6), (FullAttention, 2)]
    first_full = from_config(config("cwm", 4, 8, 2, 1024, sliding_window=512)).layers
    assert [type(layer) for layer in first_full] == [FullAttention, SlidingWindow]


def test_a_state_is_kept_in_the_dtype_that_the_config_or_the_class_says() -> None:
    linear, _ = from_config(QWEN35).layers
    assert isinstance(linear, GatedDeltaNet) and (linear.state_dtype, linear.conv_dtype) == ("fp32", None)
    silent, _ = from_config({**QWEN35, "mamba_ssm_dtype": None}).layers
    assert isinstance(silent, GatedDeltaNet) and silent.state_dtype is None
    nemotron = config("nemotron_h", 2, 32, 8, 4096, hybrid_override_pattern="M*", ssm_state_size=128, mamba_num_heads=128,
                      mamba_head_dim=64, n_groups=8, conv_kernel=4)  # fmt: skip
    mamba, _ = from_config(nemotron).layers
    assert isinstance(mamba, Mamba2) and (mamba.state_dtype, mamba.chunk_size) == ("fp32", 128)


def test_both_spellings_of_kimi_linear_give_the_same_layers() -> None:
    shared = config("kimi_linear", 4, 32, 32, 2304, kv_lora_rank=512, qk_rope_head_dim=64, head_dim=72)
    lists = {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}
    words = {"layer_types": ["linear_attention"] * 3 + ["full_attention"], "linear_num_heads": 32,
             "linear_head_dim": 128, "linear_conv_kernel_dim": 4}  # fmt: skip
    moonshot, transformers = from_config({**shared, "linear_attn_config": lists}), from_config({**shared, **words})
    assert moonshot.layers == transformers.layers
    assert isinstance(moonshot.layers[0], KimiDelta) and moonshot.layers[0].state_dtype == "fp32"


def test_gemma_4_as_transformers_writes_it_gives_the_same_layers() -> None:
    shared = config("gemma4_text", 6, 8, 4, 2304, head_dim=256, sliding_window=512)
    google = {"global_head_dim": 640, "num_global_key_value_heads": 2, "attention_k_eq_v": True}
    written = {"attention_k_eq_v": True, "per_layer_config": {"5": {"head_dim": 640, "num_key_value_heads": 2}}}
    assert from_config({**shared, **google}).layers == from_config({**shared, **written}).layers


def test_the_caller_s_dtype_goes_before_the_config_s_and_none_means_unknown() -> None:
    bare = config("llama", 2, 4, 2, 512)
    assert from_config(bare).dtype is None
    assert from_config(bare, dtype="bfloat16").dtype == "bf16"
    assert from_config({**bare, "torch_dtype": "float16"}).dtype == "fp16"
    assert from_config({**bare, "torch_dtype": "float16"}, dtype="bf16").dtype == "bf16"
    assert from_config({"model_type": "llava", "dtype": "float16", "text_config": {**bare, "dtype": "bfloat16"}}).dtype == "fp16"


@pytest.mark.parametrize(
    ("quantization", "stated"),
    [
        ({"quant_method": "awq", "bits": 4}, None),
        ({"quant_method": "fp8", "kv_cache_scheme": None}, None),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8"),
        ({"kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"kv_cache_scheme": {"num_bits": 4, "type": "float"}}, "nvfp4"),
        ({"kv_cache_quant_algo": "NVFP4"}, "nvfp4"),
        ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, "fp8"),
        ({"quantization": {"group_size": 64, "bits": 4}}, None),
    ],
)
def test_only_a_stated_scheme_sets_the_dtype_of_the_cache(quantization: dict[str, Any], stated: str | None) -> None:
    plain = config("llama", 2, 4, 2, 512)
    model = from_config({**plain, "quantization_config": quantization})
    assert model.kv_cache_dtype == stated
    assert model.layers == from_config(plain).layers
    assert from_config({**plain, "compression_config": quantization}).kv_cache_dtype == stated


def test_a_nested_quantisation_counts_too() -> None:
    text = config("qwen3", 2, 4, 2, 512, quantization_config={"kv_cache_scheme": {"num_bits": 8, "type": "float"}})
    assert from_config({"model_type": "internvl", "text_config": text}).kv_cache_dtype == "fp8"


def test_a_name_of_the_form_owner_and_model_is_kept_and_a_path_is_not() -> None:
    plain = config("llama", 2, 4, 2, 512)
    names = {"meta-llama/Llama-3.1-8B": "meta-llama/Llama-3.1-8B", "/home/me/llama": "llama", "./": "llama", "": "llama"}
    assert {given: from_config({**plain, "_name_or_path": given}).name for given in names} == names
    assert from_config({**plain, "name_or_path": "owner/model"}).name == "owner/model"


def test_every_name_of_the_context_is_read_the_text_model_s_first() -> None:
    plain = config("llama", 2, 4, 2, 512)
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
                 "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len", "n_ctx"):  # fmt: skip
        assert from_config({**plain, name: 1}).max_position_embeddings == 1
    nested = {"model_type": "llava", "max_position_embeddings": 7, "text_config": {**plain, "n_ctx": 5}}
    assert from_config(nested).max_position_embeddings == 5
    assert from_config({**nested, "text_config": plain}).max_position_embeddings == 7


def test_context_is_the_text_model_s_and_none_where_a_config_says_nothing_sensible() -> None:
    assert from_config(config("llama", 2, 4, 2, 512, max_position_embeddings=4096)).max_position_embeddings == 4096
    assert from_config(config("llama", 2, 4, 2, 512, model_max_length=10**30)).max_position_embeddings is None
