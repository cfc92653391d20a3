"""Other spellings of the same model give the same layers; and what a class makes of a silent config, layer by layer."""

from __future__ import annotations

from typing import Any

import pytest

from aelius_math.cache import ChunkedAttention, FullAttention, Mamba1, Mamba2, SlidingWindow
from aelius_math.cache_kinds import RGLRU, XLSTM, ShortConvolution
from aelius_math.model import from_config
from aelius_math.units import AeliusError

HEADS = {"num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 1024}
MAMBA2 = {"mamba_n_heads": 16, "mamba_n_groups": 1, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2}
ZAMBA2 = {"model_type": "zamba2", "num_hidden_layers": 54, "num_attention_heads": 32, "hidden_size": 2560, "mamba_expand": 2,
          "n_mamba_heads": 8, "mamba_ngroups": 1, "mamba_d_state": 64, "mamba_d_conv": 4}  # fmt: skip
ZAMBA2_HYBRID = [6, 12, 18, 24, 30, 36, 42, 47, 51]
ZAMBA = {"model_type": "zamba", "num_hidden_layers": 7, **HEADS, "mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4}
NEMOTRON: dict[str, Any] = {"model_type": "nemotron_h", **HEADS, "head_dim": 128, "ssm_state_size": 128, "mamba_num_heads": 16,
            "mamba_head_dim": 64, "n_groups": 8, "conv_kernel": 4}  # fmt: skip
WINDOW = {"sliding_window": 512}
GEMMA_R = {"model_type": "recurrent_gemma", "num_hidden_layers": 4, **HEADS, "attention_window_size": 512, "conv1d_width": 4}
FLASH = {"model_type": "phi4flash", "num_hidden_layers": 8, **HEADS, "sliding_window": 512}
BAMBA = {"model_type": "bamba", "num_hidden_layers": 3, **HEADS, **MAMBA2}
GRANITE = {**BAMBA, "model_type": "granitemoehybrid"}
MINIMAX = {"model_type": "minimax", "num_hidden_layers": 3, **HEADS, "head_dim": 128}
LFM2 = {"model_type": "lfm2", "num_hidden_layers": 4, **HEADS, "conv_L_cache": 3}
MLA = {"num_hidden_layers": 4, **HEADS, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128}
V4 = {"model_type": "deepseek_v4", "num_hidden_layers": 3, "num_attention_heads": 8, "head_dim": 512, "qk_rope_head_dim": 64,
      "sliding_window": 128, "index_head_dim": 128, "hidden_size": 1024}  # fmt: skip
M3 = {"model_type": "minimax_m3", "num_hidden_layers": 3, **HEADS, "head_dim": 128}
NEXT = {"model_type": "qwen3_next", "num_hidden_layers": 8, **HEADS, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4}  # fmt: skip
FALCON = {"model_type": "falcon", "hidden_size": 1024}

PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Zamba2: ids, or its class's own of 54": ({**ZAMBA2, "hybrid_layer_ids": ZAMBA2_HYBRID}, ZAMBA2),
    "Zamba2: ids, or words": (
        ZAMBA2, {**ZAMBA2, "layers_block_type": ["hybrid" if i in ZAMBA2_HYBRID else "mamba" for i in range(54)]}),
    "Zamba2: KV heads and width, or as many as heads, twice as wide": (
        {**ZAMBA2, "num_key_value_heads": 32, "attention_head_dim": 160}, ZAMBA2),
    "Zamba: period, or words": (
        {**ZAMBA, "attn_layer_period": 3, "attn_layer_offset": 0},
        {**ZAMBA, "layers_block_type": ["mamba", "mamba", "hybrid", "hybrid", "linear_attention", "mamba", "hybrid"]}),
    "Bamba: the width of a head, or auto": (
        {**BAMBA, "attn_layer_indices": [1], "mamba_d_head": 128}, {**BAMBA, "attn_layer_indices": [1], "mamba_d_head": "auto"}),
    "Bamba: null indices, or none": ({**BAMBA, "attn_layer_indices": None}, {**BAMBA, "attn_layer_indices": []}),
    "Granite: old words, or new": (
        {**GRANITE, "layer_types": ["mamba", "attention", "mamba"]},
        {**GRANITE, "layer_types": ["linear_attention", "full_attention", "linear_attention"]}),
    "Granite: either name of the list": (
        {**GRANITE, "layer_types": ["mamba", "attention", "mamba"]},
        {**GRANITE, "layers_block_type": ["mamba", "attention", "mamba"]}),
    "Granite: silent is all Mamba": (GRANITE, {**GRANITE, "layer_types": ["mamba"] * 3}),
    "Falcon-H1: d_ssm, or expand": (
        {**BAMBA, "model_type": "falcon_h1", "mamba_d_ssm": 2048}, {**BAMBA, "model_type": "falcon_h1"}),
    "Nemotron-H: letters, or words": (
        {**NEMOTRON, "hybrid_override_pattern": "M*-E"}, {**NEMOTRON, "layers_block_type": ["mamba", "attention", "mlp", "moe"]}),
    "Nemotron-H: old words, or new": (
        {**NEMOTRON, "layers_block_type": ["mamba", "attention"]},
        {**NEMOTRON, "layer_types": ["linear_attention", "full_attention"]}),
    "Nemotron-H: letters beside new words": (
        {**NEMOTRON, "hybrid_override_pattern": "M*"},
        {**NEMOTRON, "hybrid_override_pattern": "M*", "layers_block_type": ["linear_attention", "full_attention"]}),
    "Nemotron-H: either name of the width": (
        {**NEMOTRON, "hybrid_override_pattern": "M*", "head_dim": 96},
        {**{k: v for k, v in NEMOTRON.items() if k != "head_dim"}, "hybrid_override_pattern": "M*", "attention_head_dim": 96}),
    "Nemotron-H: mamba_* for groups and kernel": (
        {**NEMOTRON, "hybrid_override_pattern": "M*"},
        {**{k: v for k, v in NEMOTRON.items() if k not in ("n_groups", "conv_kernel")}, "hybrid_override_pattern": "M*",
         "mamba_n_groups": 8, "mamba_d_conv": 4}),
    "RecurrentGemma: width and cycle, or its class's": (
        {**GEMMA_R, "lru_width": 1024, "block_types": ["recurrent", "recurrent", "attention"]}, GEMMA_R),
    "Phi-4 flash: mamba_*, or its class's": (
        {**FLASH, "mb_per_layer": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}, FLASH),
    "xLSTM: either name, factors stated or its class's": (
        {"model_type": "xlstm", "num_hidden_layers": 2, "hidden_size": 512, "num_heads": 4, "qk_dim_factor": 0.5,
         "v_dim_factor": 1.0, "inference_state_dtype": "float32"},
        {"model_type": "xlstm", "num_blocks": 2, "embedding_dim": 512, "num_heads": 4}),
    "RWKV: either name of the width, attention as wide as the model": (
        {"model_type": "rwkv6", "num_hidden_layers": 2, "hidden_size": 512, "head_size": 64},
        {"model_type": "rwkv7", "num_hidden_layers": 2, "hidden_size": 512, "head_dim": 64, "attention_hidden_size": 512}),
    "RWKV 4: attention as wide as the model": (
        {"model_type": "rwkv", "num_hidden_layers": 2, "hidden_size": 512, "attention_hidden_size": 512},
        {"model_type": "rwkv", "num_hidden_layers": 2, "hidden_size": 512}),
    "Mamba: the inner width, or expand": (
        {"model_type": "mamba", "num_hidden_layers": 2, "intermediate_size": 1536, "state_size": 16, "conv_kernel": 4},
        {"model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 768, "expand": 2, "state_size": 16, "conv_kernel": 4}),
    "MiniMax: numbers, words, or every other one full": (
        {**MINIMAX, "attn_type_list": [1, 0, 1]}, {**MINIMAX, "layer_types": ["full_attention", "linear_attention", "full_attention"]}),
    "MiniMax: silent": ({**MINIMAX, "attn_type_list": [1, 0, 1]}, MINIMAX),
    "LFM2: numbers, or words": (
        {**LFM2, "full_attn_idxs": [2]}, {**LFM2, "layer_types": ["conv", "conv", "full_attention", "conv"]}),
    "DeepSeek-V3.2: silent, or words old and new": (
        {**MLA, "model_type": "deepseek_v32"},
        {**MLA, "model_type": "deepseek_v32", "layer_types": ["indexed_attention"] * 2 + ["deepseek_sparse_attention"] * 2}),
    "GLM-5: indexer_types, or a pattern": (
        {**MLA, "model_type": "glm_moe_dsa", "indexer_types": ["full", "shared", "full", "shared"]},
        {**MLA, "model_type": "glm_moe_dsa", "index_topk_pattern": "FSFS"}),
    "GLM-5: indexer_types, or frequency and offset": (
        {**MLA, "model_type": "glm_moe_dsa", "indexer_types": ["full", "full", "shared", "full"]},
        {**MLA, "model_type": "glm_moe_dsa", "index_topk_freq": 2, "index_skip_topk_offset": 2}),
    "GLM-5: all full where silent": (
        {**MLA, "model_type": "glm_moe_dsa", "indexer_types": ["full"] * 4}, {**MLA, "model_type": "glm_moe_dsa"}),
    "GLM-5: another offset": (
        {**MLA, "model_type": "glm_moe_dsa", "indexer_types": ["full", "full", "full", "shared"]},
        {**MLA, "model_type": "glm_moe_dsa", "index_topk_freq": 3, "index_skip_topk_offset": 3}),
    "HY-V4: indexer_types, or its class's": (
        {**MLA, "model_type": "hy_v4", "num_hidden_layers": 7,
         "indexer_types": ["full", "full", "shared", "shared", "shared", "full", "shared"]},
        {**MLA, "model_type": "hy_v4", "num_hidden_layers": 7}),
    "DeepSeek-V3: KV heads count for nothing, null latent does": (
        {**MLA, "model_type": "deepseek_v3", "use_mla": False}, {**MLA, "model_type": "deepseek_v3", "kv_lora_rank": None}),
    "DeepSeek-V4: ratios, or words and rates": (
        {**V4, "compress_ratios": [0, 4, 128]},
        {**V4, "layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
         "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}}),
    "DeepSeek-V4: rates of its class where silent": (
        {**V4, "compress_ratios": [0, 4, 128]},
        {**V4, "layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]}),
    "DeepSeek-V4: an entry for the MTP layer beside": (
        {**V4, "compress_ratios": [0, 4, 128]}, {**V4, "compress_ratios": [0, 4, 128, 0], "num_nextn_predict_layers": 1}),
    "MiniMax-M3: numbers in a section, or words": (
        {**M3, "sparse_attention_config": {"sparse_attention_freq": [0, 1, 1], "sparse_index_dim": 128}},
        {**M3, "layer_types": ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"], "index_head_dim": 128}),
    "LongCat: its architecture alone, or its model_type": (
        {"architectures": ["LongcatFlashForCausalLM"], "num_layers": 2, **HEADS, "kv_lora_rank": 512, "qk_rope_head_dim": 64},
        {"model_type": "longcat_flash", "num_layers": 2, **HEADS, "kv_lora_rank": 512, "qk_rope_head_dim": 64}),
    "Falcon: old names, or new": (
        {**FALCON, "n_layer": 2, "n_head": 8, "multi_query": False},
        {**FALCON, "num_hidden_layers": 2, "num_attention_heads": 8, "multi_query": False}),
    "Falcon: multi_query where silent": (
        {**FALCON, "num_hidden_layers": 2, "num_attention_heads": 8, "multi_query": True},
        {**FALCON, "num_hidden_layers": 2, "num_attention_heads": 8}),
    "MPT: stated, or one query to a KV head": (
        {"model_type": "mpt", "n_layers": 2, "n_heads": 8, "d_model": 512, "attn_config": {"attn_type": "multihead_attention"}},
        {"model_type": "mpt", "n_layers": 2, "n_heads": 8, "d_model": 512, "attn_config": {"kv_n_heads": 8}}),
    "MPT: multiquery": (
        {"model_type": "mpt", "n_layers": 2, "n_heads": 8, "d_model": 512, "attn_config": {"attn_type": "multiquery_attention"}},
        {"model_type": "mpt", "n_layers": 2, "n_heads": 8, "d_model": 512, "attn_config": {"kv_n_heads": 1}}),
    "StarCoder: one KV head where silent": (
        {"model_type": "gpt_bigcode", "n_layer": 2, "n_head": 8, "n_embd": 512, "multi_query": True},
        {"model_type": "gpt_bigcode", "num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 512}),
    "ChatGLM: as many KV heads as heads where silent": (
        {"model_type": "chatglm", "num_layers": 2, "num_attention_heads": 8, "hidden_size": 512, "kv_channels": 64,
         "multi_query_attention": True, "multi_query_group_num": 8},
        {"model_type": "chatglm", "num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 512,
         "multi_query_group_num": 2}),
    "MPT: transformers' names": (
        {"model_type": "mpt", "n_layers": 2, "n_heads": 8, "d_model": 512},
        {"model_type": "mpt", "num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 512}),
    "T5: as many decoder layers as encoder layers, d_model over heads": (
        {"model_type": "t5", "num_layers": 9, "num_decoder_layers": 6, "num_heads": 8, "d_model": 512, "d_kv": 64},
        {"model_type": "mt5", "num_layers": 6, "num_heads": 8, "d_model": 512}),
    "Step 3.5: sliding heads as the full ones where silent": (
        {"model_type": "step3p5", "num_hidden_layers": 2, **HEADS, **WINDOW, "num_attention_groups": 2,
         "layer_types": ["full_attention", "sliding_attention"], "attention_other_setting": {"num_attention_groups": 2}},
        {"model_type": "step3p5", "num_hidden_layers": 2, **HEADS, **WINDOW,
         "layer_types": ["full_attention", "sliding_attention"]}),
    "Step 3.5: all full where silent, MTP too": (
        {"model_type": "step3p5", "num_hidden_layers": 2, **HEADS, "num_nextn_predict_layers": 1},
        {"model_type": "step3p5", "num_hidden_layers": 2, **HEADS, "num_nextn_predict_layers": 1,
         "layer_types": ["full_attention"] * 2}),
    "Gemma 4: widths of its class, global heads not used": (
        {"model_type": "gemma4_text", "num_hidden_layers": 6, **HEADS, **WINDOW, "head_dim": 256, "global_head_dim": 512},
        {"model_type": "gemma4", "text_config": {"num_hidden_layers": 6, **HEADS, **WINDOW, "num_global_key_value_heads": 1}}),
    "MiniMax-M3: sparse attention switched off": (
        {**M3, "sparse_attention_config": {"use_sparse_attention": False, "sparse_attention_freq": [0, 1, 1],
                                           "sparse_index_dim": 128}}, M3),
    "Hunyuan: either name of the width": (
        {"model_type": "hunyuan", "num_hidden_layers": 2, **HEADS, "head_dim": 96},
        {"model_type": "hunyuan_v1_moe", "num_hidden_layers": 2, **HEADS, "attention_head_dim": 96}),
    "Hunyuan: the factor of an odd number of layers": (
        {"model_type": "hunyuan", "num_hidden_layers": 3, **HEADS, "use_cla": True, "cla_share_factor": 2},
        {"model_type": "hunyuan", "num_hidden_layers": 2, **HEADS, "cla_share_factor": 2}),
    "Gemma 3n: heads and sharing, or its class's": (
        {"model_type": "gemma3n_text", "num_hidden_layers": 35, "hidden_size": 2048, "num_attention_heads": 8,
         "num_key_value_heads": 2, "head_dim": 256, "sliding_window": 512, "num_kv_shared_layers": 15},
        {"model_type": "gemma3n_text", "num_hidden_layers": 35, "hidden_size": 2048}),
    "MiMo-V2: numbers, or words; V as its class has it": (
        {"model_type": "mimo_v2", "num_hidden_layers": 2, **HEADS, "head_dim": 192, "v_head_dim": 128, "swa_head_dim": 192,
         "swa_v_head_dim": 128, "swa_num_key_value_heads": 2, "sliding_window": 128, "hybrid_layer_pattern": [0, 1]},
        {"model_type": "mimo_v2_flash", "num_hidden_layers": 2, **HEADS, "head_dim": 192, "v_head_dim": 128,
         "sliding_window_size": 128, "layer_types": ["full_attention", "sliding_attention"]}),
    "Inkling: numbers of local layers, or words": (
        {"model_type": "inkling_text", "num_hidden_layers": 6, **HEADS, "head_dim": 128, "swa_num_key_value_heads": 4,
         "swa_num_attention_heads": 8, "swa_head_dim": 128, "sliding_window_size": 512},
        {"model_type": "inkling_text", "num_hidden_layers": 6, **HEADS, "head_dim": 128, "swa_num_key_value_heads": 4,
         "swa_num_attention_heads": 8, "swa_head_dim": 128, "sliding_window_size": 512, "conv_kernel_size": 4,
         "layer_types": ["hybrid_sliding"] * 5 + ["hybrid"]}),
    "Qwen3-Next: every 4th layer is full where silent": (
        {**NEXT, "full_attention_interval": 4}, NEXT),
    "Qwen3-Next: an interval, or words": (
        {**NEXT, "full_attention_interval": 2}, {**NEXT, "layer_types": ["linear_attention", "full_attention"] * 4}),
    "OLMo Hybrid: linear_*, or from the heads": (
        {"model_type": "olmo_hybrid", "num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 8,
         "linear_num_key_heads": 8, "linear_num_value_heads": 8, "linear_key_head_dim": 96, "linear_value_head_dim": 192,
         "linear_conv_kernel_dim": 4},
        {"model_type": "olmo_hybrid", "num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 8}),
}  # fmt: skip


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_two_spellings_give_the_same_layers(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = from_config(one), from_config(other)
    assert (first.layers, first.mtp_layers) == (second.layers, second.mtp_layers)


MADE: list[tuple[str, str, dict[str, Any]]] = [  # F full, S sliding, C chunked; a window where the class has none of its own
    ("gemma2", "SFSFSFS", WINDOW),
    ("gemma3_text", "SSSSSFS", WINDOW),
    ("gemma3n_text", "SSSSFS", {**WINDOW, "num_kv_shared_layers": 0}),
    ("gemma4_text", "SSSSSFF", WINDOW),
    ("cohere2", "SSSFSS", WINDOW),
    ("cohere2_moe", "FSSSFS", {**WINDOW, "first_k_dense_replace": 1}),
    ("exaone4", "SSSFSS", {**WINDOW, "sliding_window_pattern": 4}),
    ("exaone_moe", "SSSFSF", {**WINDOW, "sliding_window_pattern": "LLLG"}),
    ("olmo3", "SSSFSS", WINDOW),
    ("cwm", "FSSSFS", WINDOW),
    ("afmoe", "SSFSSF", {**WINDOW, "global_attn_every_n_layers": 3}),
    ("gpt_oss", "SFSFS", {}),
    ("flint", "FFSSSFSF", {}),
    ("beam", "SSSSSFSF", {}),
    ("kolibri1", "SSSSFS", {}),
    ("granite_swa", "FSSSFS", {}),
    ("muse_spark_text", "SFSSSF", {}),
    ("laguna", "FFF", {}),
    ("mistral", "SSS", {}),
    ("ministral", "SSS", {}),
    ("ministral3", "FFF", {}),
    ("mixtral", "SS", WINDOW),
    ("phi3", "FF", {}),
    ("starcoder2", "SS", WINDOW),
    ("qwen2", "FFS", {**WINDOW, "use_sliding_window": True, "max_window_layers": 2}),
    ("qwen3", "FFF", {**WINDOW, "max_window_layers": 1}),
    ("qwen2_moe", "SFSFFF", {**WINDOW, "use_sliding_window": True, "max_window_layers": 4}),
    ("qwen3_moe", "SS", {**WINDOW, "use_sliding_window": True}),
    ("smollm3", "FFFSFF", {**WINDOW, "use_sliding_window": True}),
    ("dots1", "FFF", {"max_window_layers": 1}),
    ("dots1", "F" * 62 + "S", WINDOW),
    ("dots1", "FFS", {**WINDOW, "max_window_layers": 2}),
    ("llama4_text", "CCCFCC", {"attention_chunk_size": 512}),
    ("llama", "FF", WINDOW),
    ("flint", "FFSSSFSSSFSSSFSF", {}),
    ("beam", "SSSSSFSSSSSFSF", {}),
    ("muse_glimmer_text", "SFSSSFSSSF", {}),
    ("cohere2", "SSFSS", {**WINDOW, "_sliding_window_pattern": 3}),
    ("cohere2_moe", "SSSFSSSF", WINDOW),
    ("cohere2_moe", "SFSSFSSF", {**WINDOW, "first_k_dense_replace": 2, "prefix_dense_sliding_window_pattern": 2,
                                 "sliding_window_pattern": 3}),
    ("cohere2_moe", "SFSFS", {**WINDOW, "_sliding_window_pattern": 2}),
    ("exaone4", "SSSFSSSF", WINDOW),
    ("exaone4", "SSFSS", {**WINDOW, "sliding_window_pattern": 3}),
    ("exaone4", "FFFF", {"sliding_window_pattern": 4}),
    ("smollm3", "SFSF", {**WINDOW, "use_sliding_window": True, "no_rope_layers": [0, 1, 0, 1]}),
    ("smollm3", "FSFS", {**WINDOW, "use_sliding_window": True, "no_rope_layer_interval": 2}),
    ("smollm3", "FFFF", {"use_sliding_window": True}),
    ("smollm3", "FFFF", WINDOW),
    ("qwen2_moe", "SF" * 14 + "FF", {**WINDOW, "use_sliding_window": True}),
    ("qwen2", "SS", {**WINDOW, "use_sliding_window": True, "max_window_layers": 0}),
    ("llama4_text", "CFCF", {"attention_chunk_size": 512, "no_rope_layer_interval": 2}),
    ("llama4_text", "FFFF", {"no_rope_layer_interval": 2}),
]  # fmt: skip
LETTERS = {FullAttention: "F", SlidingWindow: "S", ChunkedAttention: "C"}


@pytest.mark.parametrize(("model_type", "kinds", "more"), MADE)
def test_a_class_makes_these_kinds_of_so_many_layers(model_type: str, kinds: str, more: dict[str, Any]) -> None:
    layers = from_config({"model_type": model_type, "num_hidden_layers": len(kinds), **HEADS, "head_dim": 128, **more}).layers
    found = {LETTERS[type(layer)]: layer.num_layers for layer in layers}
    assert found == {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    assert [*found] == [*dict.fromkeys(kinds)]


FIXED_WINDOWS = {"gemma2": 4096, "gemma3_text": 4096, "gemma3n_text": 512, "cohere2": 4096, "olmo3": 4096, "cwm": 8192,
                 "afmoe": 1024, "gpt_oss": 128, "mistral": 4096, "kolibri1": 513, "granite_swa": 128, "beam": 512,
                 "muse_glimmer_text": 2048}  # fmt: skip


@pytest.mark.parametrize("model_type", FIXED_WINDOWS)
def test_a_silent_config_has_its_class_s_window(model_type: str) -> None:
    layers = from_config({"model_type": model_type, "num_hidden_layers": 35, **HEADS, "head_dim": 128}).layers
    assert {layer.window for layer in layers} - {None} == {FIXED_WINDOWS[model_type]}


FIXED_WIDTHS = {"qwen3": 128, "gemma": 256, "gemma2": 256, "gemma3_text": 256, "gpt_oss": 64, "glm4": 128, "seed_oss": 128,
                "cohere2_moe": 128, "minimax_m2": 128, "ministral3": 128, "afmoe": 128, "sarvam_moe": 64, "qwen3_vl_text": 128}  # fmt: skip


@pytest.mark.parametrize("model_type", FIXED_WIDTHS)
def test_a_silent_config_has_its_class_s_width_of_a_head(model_type: str) -> None:
    layer = from_config({"model_type": model_type, "num_hidden_layers": 4, **HEADS, "hidden_size": 8 * 80}).layers[0]
    assert isinstance(layer, FullAttention) and layer.head_size == FIXED_WIDTHS[model_type]


MTP: dict[str, tuple[dict[str, Any], int]] = {
    "deepseek_v3": ({**MLA, "num_nextn_predict_layers": 2}, 2 * 576 * 2),
    "deepseek_v32": ({**MLA, "num_nextn_predict_layers": 1}, (576 + 128) * 2),
    "glm4_moe": ({"num_hidden_layers": 4, **HEADS, "num_nextn_predict_layers": 1}, 2 * 2 * 128 * 2),
    "mimo": ({"num_hidden_layers": 4, **HEADS, "num_nextn_predict_layers": 1}, 2 * 2 * 128 * 2),
    "mimo_v2": (
        {"num_hidden_layers": 1, **HEADS, "head_dim": 192, "v_head_dim": 128, "hybrid_layer_pattern": [0],
         "sliding_window_size": 128, "num_nextn_predict_layers": 3}, 3 * 2 * (192 + 128) * 2),
    "bailing_moe": ({"num_hidden_layers": 4, **HEADS, "num_nextn_predict_layers": 1}, 2 * 2 * 128 * 2),
    "hunyuan_v1_moe": ({"num_hidden_layers": 4, **HEADS, "num_nextn_predict_layers": 1}, 2 * 2 * 128 * 2),
    "step3p5": ({"num_hidden_layers": 4, **HEADS, "num_nextn_predict_layers": 3}, 3 * 2 * 2 * 128 * 2),
    "minimax_m2": (
        {"num_hidden_layers": 4, **HEADS, "num_mtp_modules": 3, "mtp_transformer_layers": 2}, 6 * 2 * 2 * 128 * 2),
    "qwen3_next": (
        {"num_hidden_layers": 4, **HEADS, "head_dim": 256, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
         "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4}, 2 * 2 * 256 * 2),
    "kimi_linear": (
        {**MLA, "layer_types": ["full_attention"] * 4, "num_nextn_predict_layers": 1}, 576 * 2),
    "bailing_hybrid": ({**MLA, "layer_group_size": 2, "head_dim": 128, "num_nextn_predict_layers": 2}, 2 * 576 * 2),
    "llama": ({"num_hidden_layers": 4, **HEADS, "num_nextn_predict_layers": 1}, 0),
    "nemotron_h": (
        {**NEMOTRON, "hybrid_override_pattern": "M*",
         "num_nextn_predict_layers": 2, "mtp_hybrid_override_pattern": "*E"}, 2 * 2 * 2 * 128 * 2),
}  # fmt: skip


@pytest.mark.parametrize("model_type", MTP)
def test_mtp_layers_are_counted_where_the_class_has_them(model_type: str) -> None:
    config, expected = MTP[model_type]
    assert from_config({"model_type": model_type, **config}).mtp_bytes_per_token() == expected


def test_mtp_that_is_switched_off_adds_nothing() -> None:
    m2 = {"model_type": "minimax_m2", "num_hidden_layers": 4, **HEADS, "num_mtp_modules": 3, "use_mtp": False}
    assert from_config(m2).mtp_layers == ()


def test_chunks_of_mamba_2_are_those_of_the_config_or_the_class() -> None:
    layer = from_config({**GRANITE, "mamba_chunk_size": 128}).layers[0]
    silent = from_config(GRANITE).layers[0]
    assert isinstance(layer, Mamba2) and isinstance(silent, Mamba2)
    assert (layer.chunk_size, silent.chunk_size) == (128, 256)
    zamba = from_config({**ZAMBA2, "chunk_size": 64}).layers[0]
    assert isinstance(zamba, Mamba2) and zamba.chunk_size == 64


def test_states_that_a_class_keeps_in_fp32_are_in_fp32() -> None:
    unit, _ = from_config(GEMMA_R).layers
    assert isinstance(unit, RGLRU) and unit.state_dtype == "fp32"
    matrix = from_config({"model_type": "xlstm", "num_blocks": 2, "embedding_dim": 512, "num_heads": 4}).layers[0]
    assert isinstance(matrix, XLSTM) and matrix.state_dtype == "fp32"
    half = from_config({"model_type": "xlstm", "num_blocks": 2, "embedding_dim": 512, "num_heads": 4,
                        "inference_state_dtype": "bfloat16"}).layers[0]  # fmt: skip
    assert isinstance(half, XLSTM) and half.state_dtype == "bf16"
    jamba = from_config({"model_type": "jamba", "num_hidden_layers": 2, **HEADS, "attn_layer_period": 2, "mamba_expand": 2,
                         "attn_layer_offset": 0, "mamba_d_state": 16, "mamba_d_conv": 4}).layers  # fmt: skip
    assert isinstance(jamba[1], Mamba1) and jamba[1].state_dtype is None
    nemotron = from_config({**NEMOTRON, "hybrid_override_pattern": "M", "mamba_ssm_cache_dtype": "float16"}).layers[0]
    assert isinstance(nemotron, Mamba2) and nemotron.state_dtype == "fp16"


def test_xlstm_widths_are_rounded_up_to_64_for_all_heads_together() -> None:
    layer = from_config({"model_type": "xlstm", "num_blocks": 1, "embedding_dim": 200, "num_heads": 2}).layers[0]
    assert isinstance(layer, XLSTM) and (layer.qk_head_dim, layer.v_head_dim) == (64, 128)


def test_the_index_key_of_v4_goes_with_the_sparse_kind_whatever_its_rate() -> None:
    v4 = {**V4, "layer_types": ["compressed_sparse_attention"] * 3, "compress_rates": {"compressed_sparse_attention": 8}}
    model = from_config(v4)
    assert (model.kv_bytes_per_token(), model.index_bytes_per_token()) == (3 * 512 // 8 * 2, 3 * 128 // 8 * 2)


def test_inkling_s_local_layers_are_five_of_six_where_it_is_silent() -> None:
    silent = {"model_type": "inkling_text", "num_hidden_layers": 13, **HEADS, "head_dim": 128, "swa_num_key_value_heads": 2,
              "swa_num_attention_heads": 8, "swa_head_dim": 128, "sliding_window_size": 512}  # fmt: skip
    layers = from_config(silent).layers
    assert sum(layer.num_layers for layer in layers if layer.window) == 11


def test_lfm3_has_three_kinds() -> None:
    lfm3 = {"model_type": "lfm3", "num_hidden_layers": 8, **HEADS, "conv_L_cache": 7}
    kinds = [(type(layer), layer.num_layers) for layer in from_config(lfm3).layers]
    assert kinds == [(ShortConvolution, 5), (FullAttention, 2), (SlidingWindow, 1)]


MORE_REFUSED = {
    "heads of Mamba against its width": ({**BAMBA, "attn_layer_indices": [], "mamba_d_head": 64}, "mamba_d_head"),
    "Bamba that does not say where it attends": (BAMBA, "attn_layer_indices"),
    "Zamba2 of another depth without ids": ({**ZAMBA2, "num_hidden_layers": 38}, "hybrid_layer_ids"),
    "Zamba2 whose heads do not divide": ({**ZAMBA2, "n_mamba_heads": 7}, "n_mamba_heads"),
    "a word that Zamba does not have": ({**ZAMBA, "layers_block_type": ["mamba"] * 6 + ["moe"]}, "layers_block_type[6]"),
    "MiniMax-Text without its list": ({**MINIMAX, "model_type": "minimax_text_01"}, "attn_type_list"),
    "DBRX without KV heads": ({"model_type": "dbrx", "n_layers": 2, "n_heads": 8, "d_model": 512}, "attn_config.kv_n_heads"),
    "KV heads of MPT that do not divide": (
        {"model_type": "mpt", "n_layers": 2, "n_heads": 8, "d_model": 512, "attn_config": {"kv_n_heads": 3}},
        "attn_config.kv_n_heads"),
    "a factor that is no number": (
        {"model_type": "xlstm", "num_blocks": 2, "embedding_dim": 512, "num_heads": 4, "v_dim_factor": True}, "v_dim_factor"),
    "a factor of nothing": (
        {"model_type": "xlstm", "num_blocks": 2, "embedding_dim": 512, "num_heads": 4, "v_dim_factor": 0}, "v_dim_factor"),
    "attention among RWKV layers": (
        {"model_type": "rwkv7", "num_hidden_layers": 2, "hidden_size": 512, "head_dim": 64, "attn": {"layers": [1]}}, "attn"),
    "RWKV whose head does not divide": (
        {"model_type": "rwkv6", "num_hidden_layers": 2, "hidden_size": 500, "head_size": 64}, "head_size"),
    "all layers sharing": (
        {"model_type": "gemma3n_text", "num_hidden_layers": 4, **HEADS, "num_kv_shared_layers": 4}, "num_kv_shared_layers"),
    "a word of other letters": (
        {"model_type": "exaone4", "num_hidden_layers": 4, **HEADS, **WINDOW, "sliding_window_pattern": "LLX"},
        "sliding_window_pattern"),
    "global heads that do not divide": (
        {"model_type": "gemma4_text", "num_hidden_layers": 6, **HEADS, **WINDOW, "attention_k_eq_v": True,
         "num_global_key_value_heads": 3}, "num_global_key_value_heads"),
    "a pattern that is too short": ({**MLA, "model_type": "glm_moe_dsa", "index_topk_pattern": "FS"}, "index_topk_pattern"),
    "a letter that GLM does not have": ({**MLA, "model_type": "glm_moe_dsa", "index_topk_pattern": "FSXF"}, "index_topk_pattern[2]"),
    "MLA without its rope part": ({**MLA, "model_type": "deepseek_v3", "qk_rope_head_dim": 0}, "qk_rope_head_dim"),
    "V4 with KV heads": ({**V4, "compress_ratios": [0, 0, 0], "num_key_value_heads": 2}, "num_key_value_heads"),
    "V4 all rope": ({**V4, "compress_ratios": [0, 0, 0], "qk_rope_head_dim": 512}, "qk_rope_head_dim"),
    "V4 with ratios for other layers": ({**V4, "compress_ratios": [0, 4]}, "compress_ratios"),
    "a block that does not say how it shares": (
        {"model_type": "nemotron-nas", "num_hidden_layers": 1, **HEADS, "block_configs": [{"attention": {"no_op": False}}]},
        "block_configs[0].attention.n_heads_in_group"),
    "no attention in any block": (
        {"model_type": "nemotron-nas", "num_hidden_layers": 1, **HEADS, "block_configs": [{"attention": {"no_op": True}}]},
        "block_configs"),
    "a cache dtype of another name": (
        {"model_type": "llama", "num_hidden_layers": 1, **HEADS, "quantization_config": {"kv_cache_quant_algo": "INT3"}},
        "quantization_config.kv_cache_quant_algo"),
}  # fmt: skip


@pytest.mark.parametrize(("config", "field"), MORE_REFUSED.values(), ids=MORE_REFUSED)
def test_a_refusal_of_a_family_names_its_field(config: dict[str, Any], field: str) -> None:
    with pytest.raises(AeliusError) as caught:
        from_config(config)
    assert caught.value.field == field


def test_blocks_of_nemotron_attend_slide_or_do_nothing() -> None:
    blocks = [{"attention": {"n_heads_in_group": 4}}, {"attention": {"no_op": True}},
              {"attention": {"replace_with_linear": True}}, {"attention": {"n_heads_in_group": 8, "window_length": 256}}]  # fmt: skip
    layers = from_config({"model_type": "nemotron-nas", "num_hidden_layers": 4, **HEADS, "num_key_value_heads": None,
                          "block_configs": blocks}).layers  # fmt: skip
    assert layers == (FullAttention(num_layers=1, num_kv_heads=2, head_size=128),
                      SlidingWindow(num_layers=1, num_kv_heads=1, head_size=128, sliding_window=256))  # fmt: skip
