"""GGUF files: the keys are read within the file's bounds, and give the layers that llama.cpp makes of them."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from gguf_files import gguf_bytes

from aelius_math import catalogue
from aelius_math.cache import ChunkedAttention, FullAttention, GatedDeltaNet, Mamba1, Mamba2, SlidingWindow
from aelius_math.cli_config import load_model
from aelius_math.gguf_config import model_from_gguf
from aelius_math.gguf_header import parse
from aelius_math.model import Model
from aelius_math.units import AeliusError

WRITTEN_BY_THE_PACKAGE = Path(__file__).parents[1] / "golden" / "qwen35.gguf"
"""By GGUFWriter of the gguf package 0.19.0, whose GGUFReader gives the values below for it."""


def model(arch: str, **keys: object) -> Model:
    """The model of a file with these keys; __ stands for a dot."""
    return model_from_gguf(parse(gguf_bytes(arch, {name.replace("__", "."): value for name, value in keys.items()}), "a file"))


LLAMA = {"block_count": 32, "attention__head_count": 32, "attention__head_count_kv": 8, "embedding_length": 4096}


def test_the_package_s_own_file_reads_as_its_reader_reads_it() -> None:
    keys = parse(WRITTEN_BY_THE_PACKAGE.read_bytes(), "a file")
    assert len(keys) == 22
    assert keys["general.architecture"] == "qwen35" and keys["general.name"] == "Qwen3.8 27B"
    assert keys["qwen35.block_count"] == 65 and keys["qwen35.a_long"] == -5 and keys["qwen35.a_truth"] is True
    assert keys["qwen35.rope.freq_base"] == 1e7 and keys["qwen35.rope.dimension_sections"] == [11, 11, 10, 0]
    assert keys["tokenizer.ggml.tokens"] is None and keys["tokenizer.ggml.scores"] == [0.5] * 30


def test_block_count_65_is_64_layers_and_one_for_mtp() -> None:
    found, stated = load_model(str(WRITTEN_BY_THE_PACKAGE)), catalogue.load("qwen3.8-27b")
    assert found.kv_bytes_per_token() == stated.kv_bytes_per_token() == 65_536
    assert found.mtp_bytes_per_token() == stated.mtp_bytes_per_token() == 4_096
    assert (found.conv_elements, found.state_elements) == (stated.conv_elements, stated.state_elements)
    assert [(type(layer), layer.num_layers) for layer in found.layers] == [(GatedDeltaNet, 48), (FullAttention, 16)]
    assert (found.name, found.max_position_embeddings, found.dtype) == ("Qwen3.8 27B", 262_144, None)
    assert load_model(str(WRITTEN_BY_THE_PACKAGE), dtype="bf16").dtype == "bf16"


def test_heads_and_width_are_stated_or_follow_from_the_embedding() -> None:
    assert model("llama", **LLAMA).kv_bytes_per_token() == 32 * 2 * 8 * 128 * 2
    assert model("gpt2", block_count=12, attention__head_count=12, embedding_length=768).kv_bytes_per_token() == 12 * 2 * 768 * 2
    narrow = model("qwen3", **{**LLAMA, "attention__key_length": 64, "attention__value_length": 32})
    assert narrow.kv_bytes_per_token() == 32 * 8 * (64 + 32) * 2


def test_windows_go_by_the_file_s_pattern_or_the_architecture_s() -> None:
    gemma = model("gemma3", **{**LLAMA, "block_count": 34, "attention__sliding_window": 1024})
    assert [(type(layer), layer.num_layers) for layer in gemma.layers] == [(SlidingWindow, 29), (FullAttention, 5)]
    oss = model("gpt-oss", **{**LLAMA, "attention__sliding_window": 128, "attention__sliding_window_pattern": 2})
    assert [layer.num_layers for layer in oss.layers] == [16, 16]
    listed = model("gemma4", block_count=3, embedding_length=2304, attention__head_count=8, attention__key_length=512,
                   attention__value_length=512, attention__key_length_swa=256, attention__value_length_swa=256,
                   attention__sliding_window=512, attention__sliding_window_pattern=[True, True, False],
                   attention__head_count_kv=[4, 4, 2], attention__shared_kv_layers=0)  # fmt: skip
    assert (listed.kv_bytes_per_token(), listed.window_bytes()) == (2 * 2 * 512 * 2, 2 * (2 * 4 * 256 * 2) * 512)
    scout = model("llama4", **{**LLAMA, "block_count": 48})
    assert [(type(layer), layer.num_layers) for layer in scout.layers] == [(ChunkedAttention, 36), (FullAttention, 12)]


def test_a_window_that_llama_cpp_does_not_use_is_not_counted() -> None:
    assert model("llama", **{**LLAMA, "attention__sliding_window": 4096}).window_bytes() == 0


def test_the_last_layers_may_share_another_s_cache() -> None:
    shared = model("gemma3n", **{**LLAMA, "block_count": 30, "attention__sliding_window": 512,
                                 "attention__shared_kv_layers": 10})  # fmt: skip
    assert sum(layer.num_layers for layer in shared.layers) == 20


def test_an_old_file_of_deepseek_keeps_all_heads_and_a_new_one_the_latent() -> None:
    deepseek = {"block_count": 27, "embedding_length": 2048, "attention__head_count": 16, "attention__kv_lora_rank": 512,
                "rope__dimension_count": 64}  # fmt: skip
    new = model("deepseek2", **deepseek, attention__head_count_kv=1, attention__key_length=576,
                attention__value_length=512, attention__key_length_mla=192)  # fmt: skip
    old = model("deepseek2", **deepseek, attention__head_count_kv=16, attention__key_length=192, attention__value_length=128)
    assert (new.kv_bytes_per_token(), old.kv_bytes_per_token()) == (27 * 576 * 2, 27 * 16 * (192 + 128) * 2)
    assert old.kv_bytes_per_token() == 270 * 1024


def test_layers_without_kv_heads_are_recurrent_or_keep_nothing() -> None:
    ssm = {"ssm__conv_kernel": 4, "ssm__inner_size": 8192, "ssm__state_size": 128, "ssm__time_step_rank": 128,
           "ssm__group_count": 8}  # fmt: skip
    nemotron = model("nemotron_h", block_count=3, embedding_length=4096, attention__head_count=32,
                     attention__head_count_kv=[0, 8, 0], feed_forward_length=[0, 0, 21504], attention__key_length=128,
                     attention__value_length=128, **ssm)  # fmt: skip
    assert [(type(layer), layer.num_layers) for layer in nemotron.layers] == [(Mamba2, 1), (FullAttention, 1)]
    jamba = model("jamba", block_count=2, embedding_length=4096, attention__head_count=32,
                  attention__head_count_kv=[0, 8], **{**ssm, "ssm__state_size": 16})  # fmt: skip
    assert isinstance(jamba.layers[0], Mamba1) and jamba.layers[0].state_dtype == "fp32"
    beside = model("falcon-h1", **{**LLAMA, "block_count": 2}, **ssm)
    assert [layer.num_layers for layer in beside.layers] == [2, 2]


SSM = {"ssm__conv_kernel": 4, "ssm__inner_size": 2048, "ssm__state_size": 128, "ssm__time_step_rank": 16, "ssm__group_count": 4}
QWEN35 = {"block_count": 4, "attention__head_count": 8, "attention__head_count_kv": 2, "embedding_length": 1024,
          "attention__key_length": 256, "attention__value_length": 256, **SSM}  # fmt: skip


def counts(model: Model) -> list[tuple[str, int]]:
    return [(type(layer).__name__, layer.num_layers) for layer in model.layers]


def test_every_fourth_layer_is_full_where_the_file_is_silent() -> None:
    assert counts(model("qwen35", **QWEN35)) == [("GatedDeltaNet", 3), ("FullAttention", 1)]
    assert counts(model("qwen3next", **{**QWEN35, "block_count": 3})) == [("GatedDeltaNet", 3)]
    assert counts(model("qwen35moe", **QWEN35, full_attention_interval=2)) == [("GatedDeltaNet", 2), ("FullAttention", 2)]
    listed = model("qwen35", **QWEN35, attention__recurrent_layers=[False, False, False, True])
    assert counts(listed) == [("FullAttention", 3), ("GatedDeltaNet", 1)]


def test_a_gated_delta_net_has_its_heads_and_widths_from_the_ssm_keys() -> None:
    layer = model("qwen35", **QWEN35).layers[0]
    assert layer == GatedDeltaNet(num_layers=3, num_k_heads=4, num_v_heads=16, head_k_dim=128, head_v_dim=128,
                                  conv_kernel_size=4, state_dtype="fp32", conv_dtype="fp32")  # fmt: skip


RECURRENT: dict[str, tuple[dict[str, object], list[tuple[str, int]], int, int]] = {
    "mamba": ({"block_count": 2, **SSM}, [("Mamba1", 2)], 2 * 2048 * 3, 2 * 2048 * 128),
    "mamba2": ({"block_count": 2, **SSM}, [("Mamba2", 2)], 2 * (2048 + 2 * 4 * 128) * 3, 2 * 2048 * 128),
    "rwkv6": ({"block_count": 2, "embedding_length": 512, "wkv__head_size": 64}, [("RWKV", 2)], 2 * 2 * 512, 2 * 512 * 64),
    "rwkv7": ({"block_count": 2, "embedding_length": 512, "wkv__head_size": 64}, [("RWKV", 2)], 2 * 2 * 512, 2 * 512 * 64),
    "lfm2": (
        {**QWEN35, "attention__head_count_kv": [0, 0, 2, 0], "shortconv__l_cache": 3},
        [("ShortConvolution", 3), ("FullAttention", 1)], 3 * 1024 * 2, 0),
    "lfm2moe": (
        {**QWEN35, "attention__head_count_kv": [0, 2, 2, 0], "shortconv__l_cache": 3},
        [("ShortConvolution", 2), ("FullAttention", 2)], 2 * 1024 * 2, 0),
    "granitehybrid": (
        {**QWEN35, "attention__head_count_kv": [0, 2, 0, 0]},
        [("Mamba2", 3), ("FullAttention", 1)], 3 * (2048 + 2 * 4 * 128) * 3, 3 * 2048 * 128),
    "kimi-linear": (
        {**QWEN35, "attention__head_count_kv": [0, 0, 0, 1], "kda__head_dim": 128, "attention__kv_lora_rank": 512,
         "attention__key_length_mla": 192, "rope__dimension_count": 64},
        [("KimiDelta", 3), ("MLA", 1)], 3 * 3 * 8 * 128 * 3, 3 * 8 * 128 * 128),
}  # fmt: skip


@pytest.mark.parametrize("arch", RECURRENT)
def test_recurrent_layers_are_read_from_the_architecture_s_keys(arch: str) -> None:
    keys, layers, conv, state = RECURRENT[arch]
    found = model(arch, **keys)
    assert (counts(found), found.conv_elements, found.state_elements) == (layers, conv, state)
    assert found.name == arch


def test_index_keys_stand_beside_the_latent() -> None:
    found = model("deepseek32", block_count=2, attention__head_count=8, attention__head_count_kv=1, embedding_length=1024,
                  attention__kv_lora_rank=512, attention__key_length_mla=192, rope__dimension_count=64,
                  attention__indexer__key_length=128)  # fmt: skip
    assert (found.kv_bytes_per_token(), found.index_bytes_per_token()) == (2 * 576 * 2, 2 * 128 * 2)


def test_a_pattern_of_0_slides_throughout_and_of_1_never() -> None:
    window = {**LLAMA, "attention__sliding_window": 512}
    assert counts(model("gemma3", **window, attention__sliding_window_pattern=0)) == [("SlidingWindow", 32)]
    assert counts(model("gemma3", **window, attention__sliding_window_pattern=1)) == [("FullAttention", 32)]
    assert counts(model("olmo2", **window)) == [("SlidingWindow", 24), ("FullAttention", 8)]
    assert counts(model("olmo2", **LLAMA)) == counts(model("exaone4", **LLAMA)) == [("FullAttention", 32)]


@pytest.mark.parametrize(
    ("arch", "keys", "field"),
    [
        ("quantum", LLAMA, "general.architecture"),
        ("llama", {**LLAMA, "block_count": 0}, "llama.block_count"),
        ("llama", {**LLAMA, "block_count": 100_000}, "llama.block_count"),
        ("llama", {"attention__head_count": 8}, "llama.block_count"),
        ("llama", {"block_count": 4, "embedding_length": 512}, "llama.attention.head_count"),
        ("llama", {**LLAMA, "attention__head_count": "many"}, "llama.attention.head_count"),
        ("llama", {**LLAMA, "attention__head_count_kv": [8, 8]}, "llama.attention.head_count_kv"),
        ("gemma3", LLAMA, "gemma3.attention.sliding_window"),
        ("gemma4", {**LLAMA, "attention__sliding_window": 512}, "gemma4.attention.sliding_window_pattern"),
        ("qwen35", {**LLAMA, "block_count": 1, "nextn_predict_layers": 1}, "qwen35.nextn_predict_layers"),
        ("llama", {**LLAMA, "embedding_length": 100}, "llama.attention.key_length"),
        ("mamba", {"block_count": 2}, "mamba.ssm.conv_kernel"),
        ("mamba2", {"block_count": 2, **SSM, "ssm__time_step_rank": 7}, "mamba2.ssm.time_step_rank"),
        ("rwkv6", {"block_count": 2, "embedding_length": 500, "wkv__head_size": 64}, "rwkv6.wkv.head_size"),
        ("llama", {**LLAMA, "block_count": 2, "attention__head_count_kv": [8, -1]}, "llama.attention.head_count_kv[1]"),
    ],
)
def test_a_refusal_names_the_key(arch: str, keys: dict[str, object], field: str) -> None:
    with pytest.raises(AeliusError) as caught:
        model(arch, **keys)
    assert caught.value.field == field


def test_a_file_cut_anywhere_is_refused() -> None:
    data = gguf_bytes("llama", {"block_count": 4, "attention.head_count": [8, 8, 8, 8], "flag": True})
    for size in range(len(data)):
        with pytest.raises(AeliusError, match="CONFIG: got"):
            parse(data[:size], "a file")


def test_counts_that_the_file_cannot_hold_are_refused() -> None:
    huge = 2**62
    many_keys = b"GGUF" + struct.pack("<IQQ", 3, 0, huge)
    long_text = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, huge)
    pair = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k"
    arrays = [pair + struct.pack("<IIQ", 9, kind, count) for kind in (4, 8) for count in (huge, 2**24)]
    nested = pair + struct.pack("<IIQ", 9, 9, 1)
    for data in (many_keys, long_text, *arrays, nested):
        with pytest.raises(AeliusError):
            parse(data, "a file")


def test_other_byte_order_and_versions_are_named() -> None:
    with pytest.raises(AeliusError, match=r"got 50331648, expected GGUF version 2 or 3, little-endian"):
        parse(b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "a file")
    with pytest.raises(AeliusError, match="got 1, expected GGUF version 2 or 3"):
        parse(b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "a file")


def test_spoilt_bytes_give_an_answer_or_a_named_refusal() -> None:
    data = WRITTEN_BY_THE_PACKAGE.read_bytes()
    chance = random.Random(0)
    for _ in range(2_000):
        spoilt = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            spoilt[chance.randrange(len(spoilt))] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
        try:
            assert model_from_gguf(parse(bytes(spoilt), "a file")).layers
        except AeliusError as error:
            assert "\n" not in str(error)
