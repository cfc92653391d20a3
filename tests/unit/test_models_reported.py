"""Faults that users reported of other calculators, each with the right value and the thread that has it."""

from __future__ import annotations

import json
from pathlib import Path

from aelius_math import catalogue
from aelius_math.cache import MLA, Recurrent
from aelius_math.dtypes import element_bytes
from aelius_math.model import Model, from_config

GOLDEN = {
    case["name"]: from_config(case["config"])
    for case in json.loads((Path(__file__).parents[1] / "golden" / "models.json").read_text("utf-8"))
}


def sequence_bytes(model: Model, tokens: int) -> int:
    """Bytes of one conversation at 16 bits without state: what grows, and each window up to its size."""
    grows = (model.kv_bytes_per_token() + model.index_bytes_per_token()) * tokens
    bounded = (layer for layer in model.layers if layer.window is not None)
    return grows + sum(layer.num_layers * layer.token_bytes("bf16") * min(tokens, layer.window or 0) for layer in bounded)


def test_a_head_is_as_wide_as_the_config_says_not_hidden_over_heads() -> None:
    """github.com/LMCache/LMCache/issues/688: 92,160 for Qwen3-4B, as 2560 / 32 is not 128."""
    qwen = {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
            "hidden_size": 2560, "head_dim": 128}  # fmt: skip
    assert from_config(qwen).kv_bytes_per_token() == 147_456


def test_mla_keeps_one_vector_with_its_rope_part_and_no_factor_of_two() -> None:
    """github.com/LMCache/LMCache/pull/694: 124,928 for DeepSeek-V3."""
    assert catalogue.load("deepseek-v3").kv_bytes_per_token() == 70_272


def test_only_the_full_layers_of_a_hybrid_grow() -> None:
    """github.com/gpustack/gguf-parser-go/issues/28: four times too much for Qwen3.6-35B-A3B."""
    model = catalogue.load("qwen3.6-35b-a3b")
    assert model.kv_bytes_per_token() == 20_480
    assert model.kv_bytes_per_token() * 262_144 == 5 * 2**30


def test_a_block_of_64_tokens_of_qwen_3_8_is_4_mib() -> None:
    """github.com/jundot/omlx/issues/2725: it counted 16 layers and multiplied by 64."""
    assert catalogue.load("qwen3.8-27b").kv_bytes_per_token() * 64 == 4 * 2**20
    assert catalogue.load("qwen3.6-35b-a3b").kv_bytes_per_token() * 64 * 4 == 5 * 2**20


def test_deepseek_v4_without_kv_lora_rank_is_not_expanded() -> None:
    """github.com/jundot/omlx/pull/2626: 84 KB a token."""
    model = GOLDEN["deepseek-ai/DeepSeek-V4-Flash"]
    assert model.kv_bytes_per_token() + model.index_bytes_per_token() == 6_880
    assert model.window_bytes() == 5_636_096


def test_a_mamba_hybrid_has_attention_for_few_layers_and_a_state_for_each_conversation() -> None:
    """github.com/inference-sim/inference-sim/issues/1558: all layers counted, no state."""
    model = catalogue.load("nemotron-3.5-lightning-30b-a3b")
    state = sum(
        layer.num_layers * (layer.state_elements() * element_bytes(layer.state_dtype) + layer.conv_elements() * 2)
        for layer in model.layers
        if isinstance(layer, Recurrent)
    )
    assert (model.kv_bytes_per_token(), state) == (6_144, 49_082_368)


def test_mistral_small_and_gpt_oss_have_heads_of_128_and_64() -> None:
    """github.com/NVIDIA/Model-Optimizer/issues/2482: 160 and 45."""
    assert catalogue.load("mistral-small-3.1-24b").kv_bytes_per_token() == 163_840
    oss = catalogue.load("gpt-oss-20b")
    assert sum(layer.num_layers * layer.token_bytes("bf16") for layer in oss.layers) == 49_152


def test_an_indexer_s_keys_are_counted_beside_the_vector() -> None:
    """github.com/NVIDIA/TensorRT-LLM/pull/16707: 25 times over, and the review misses the indexer."""
    model = catalogue.load("deepseek-v3.2")
    assert (model.kv_bytes_per_token(), model.index_bytes_per_token()) == (70_272, 15_616)


def test_a_draft_module_has_its_own_few_layers() -> None:
    """github.com/sgl-project/sglang/pull/8482: sized for all layers of GLM-4.5."""
    model = GOLDEN["zai-org/GLM-4.5"]
    assert model.mtp_bytes_per_token() == model.kv_bytes_per_token() // 92 == 4_096


def test_a_context_is_what_the_config_claims_right_or_wrong() -> None:
    """github.com/huggingface/transformers/issues/24986: Llama 2 first said 2,048 and meant 4,096. It is passed on as a
    claim, and no size follows from it."""
    llama = {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}
    first, mended = (from_config({**llama, "max_position_embeddings": context}) for context in (2048, 4096))
    assert (first.max_position_embeddings, mended.max_position_embeddings) == (2048, 4096)
    assert first.layers == mended.layers


def test_a_conversation_does_not_grow_at_one_rate() -> None:
    """github.com/ai-dynamo/aiconfigurator/pull/1201: bytes of one token taken as the rate of all."""
    model = catalogue.load("gemma-3-27b")
    assert sequence_bytes(model, 1) == 62 * 8_192
    assert sequence_bytes(model, 131_072) == 10 * 8_192 * 131_072 + 52 * 8_192 * 1_024


def test_cards_share_heads_and_copy_what_has_none() -> None:
    """github.com/ModelEngine-Group/unified-cache-management/issues/1217: divided by all cards in all cases."""
    llama, deepseek = (catalogue.load(name).layers[0] for name in ("llama-3.1-8b", "deepseek-v3"))
    assert [llama.token_bytes("bf16", cards) for cards in (1, 2, 8, 16)] == [4096, 2048, 512, 512]
    assert isinstance(deepseek, MLA)
    assert deepseek.token_bytes("bf16", 8) == deepseek.token_bytes("bf16", 1)
