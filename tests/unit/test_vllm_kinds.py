"""What each kind of layer answers vLLM's planner, by hand."""

from __future__ import annotations

from inspect import signature

import pytest

from aelius_math.cache import (
    MLA,
    ChunkedAttention,
    FullAttention,
    GatedDeltaNet,
    KimiDelta,
    Layers,
    Mamba1,
    Mamba2,
    Request,
    SlidingWindow,
    heads_per_card,
)
from aelius_math.model import Model
from aelius_math.units import GIB, AeliusError
from aelius_math.vllm import Engine, plan_pool

FULL = FullAttention(num_layers=8, num_kv_heads=8, head_size=128)
WINDOW = SlidingWindow(num_layers=8, num_kv_heads=8, head_size=128, sliding_window=1024)
CHUNK = ChunkedAttention(num_layers=8, num_kv_heads=8, head_size=128, attention_chunk_size=1000)
LATENT = MLA(num_layers=8, kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128)
DELTA = GatedDeltaNet(num_layers=24, num_k_heads=16, num_v_heads=32, head_k_dim=128, head_v_dim=128, conv_kernel_size=4, state_dtype="fp32")
KIMI = KimiDelta(num_layers=24, num_heads=32, head_dim=128, conv_kernel_size=4, state_dtype="fp32")
FIRST = Mamba1(num_layers=24, intermediate_size=8192, state_size=16, conv_kernel_size=4)
SECOND = Mamba2(num_layers=24, num_heads=64, head_dim=64, n_groups=8, state_size=128, conv_kernel_size=4)


def groups(*layers, **settings):
    engine = Engine(**{"max_model_len": 32768, "max_num_batched_tokens": 2048} | settings)
    return plan_pool(Model(name="toy", layers=layers), engine, 20 * GIB).groups


def test_without_cards_or_drafts_stated_there_is_one_card_and_no_draft():
    assert FULL.token_bytes("bf16") == FULL.token_bytes("bf16", 1) == 2 * 8 * 128 * 2
    assert FULL.spec_key() == FULL.spec_key(1) == ("FullAttentionSpec", 8, 128, 128, None)
    assert LATENT.token_bytes("bf16") == LATENT.token_bytes("bf16", 1) and LATENT.spec_key() == LATENT.spec_key(1)
    for layer in (DELTA, KIMI, FIRST, SECOND):
        assert layer.conv_elements() == layer.conv_elements(1, 0)
        assert layer.state_elements() == layer.state_elements(1)
        assert layer.state_bytes("bf16") == layer.state_bytes("bf16", 1, 0)
        assert layer.spec_key() == layer.spec_key(1)
    none = Layers(num_layers=1)
    assert none.token_bytes("bf16") == none.index_token_bytes("bf16") == none.conv_elements() == none.state_elements() == 0
    assert none.window is None and none.divided() == {} and not none.recurrent and not none.vllm_spec


@pytest.mark.parametrize("kind", [Layers, FullAttention, MLA, GatedDeltaNet, KimiDelta, Mamba1, Mamba2])
def test_every_kind_takes_one_card_and_no_draft_where_none_is_stated(kind):
    for method in (kind.token_bytes, kind.conv_elements, kind.state_elements, kind.spec_key):
        given = signature(method).parameters
        assert given["tensor_parallel_size"].default == 1
        assert "num_speculative_tokens" not in given or given["num_speculative_tokens"].default == 0


def test_a_request_is_nothing_in_flight_no_draft_and_no_caching_unless_stated():
    assert Request() == (0, 0, 0, "none", True, 0)


def test_a_window_holds_the_window_and_what_is_in_flight():
    assert WINDOW.planned_blocks(32768, 16, Request(in_flight_tokens=2048)) == -(-(1023 + 2048) // 16) + 1
    assert WINDOW.planned_blocks(100, 16, Request(in_flight_tokens=2048)) == 7 + 1


@pytest.mark.parametrize(
    ("tokens", "held"),
    # the tokens that the next one sees are the last 1,023; blocks of 16 wholly before them are given back
    [(1, 1), (16, 1), (17, 2), (1023, 64), (1024, 64), (1038, 65), (1039, 64), (2000, 125 - 61)],
)
def test_a_window_gives_back_the_blocks_before_it(tokens, held):
    assert WINDOW.running_blocks(tokens, 16, Request()) == held
    first_seen = max(0, tokens - 1023)
    assert held == len({position // 16 for position in range(first_seen, tokens)})
    assert WINDOW.running_blocks(tokens, 1, Request()) == min(tokens, 1023)


def test_a_chunk_layer_holds_its_chunk_and_what_is_in_flight():
    assert CHUNK.planned_blocks(32768, 16, Request(in_flight_tokens=1)) == 63  # 1,001 tokens
    assert CHUNK.planned_blocks(50, 16, Request(in_flight_tokens=2048)) == 4


@pytest.mark.parametrize(("tokens", "held"), [(1, 1), (999, 63), (1000, 1), (1001, 1), (1009, 2), (2500, 157 - 125)])
def test_a_chunk_layer_gives_back_the_blocks_before_its_chunk(tokens, held):
    assert CHUNK.running_blocks(tokens, 16, Request()) == held


def test_recurrent_layers_hold_a_block_and_one_for_each_draft_and_one_more_to_cache_it():
    for layer in (DELTA, KIMI, FIRST, SECOND):
        assert layer.planned_blocks(32768, 1600, Request(num_speculative_tokens=3)) == 1 + 3
        align = Request(num_speculative_tokens=3, mamba_cache_mode="align")
        assert layer.planned_blocks(32768, 1600, align) == 2 + 3 and layer.running_blocks(32768, 1600, align) == 1 + 3
        every = Request(num_speculative_tokens=3, mamba_cache_mode="all")
        assert layer.planned_blocks(32768, 1600, every) == layer.running_blocks(32768, 1600, every) == 21 + 3


def test_what_the_cards_must_divide():
    assert FULL.divided() == {"num_kv_heads": 8} and LATENT.divided() == {}
    assert DELTA.divided() == {"num_k_heads": 16, "num_v_heads": 32} and KIMI.divided() == {"num_heads": 32}
    assert FIRST.divided() == {"intermediate_size": 8192}
    assert SECOND.divided() == {"num_heads": 64, "n_groups": 8}
    single = Mamba2(num_layers=1, num_heads=64, head_dim=64, n_groups=1, state_size=128, conv_kernel_size=4)
    two = Mamba2(num_layers=1, num_heads=64, head_dim=64, n_groups=2, state_size=128, conv_kernel_size=4)
    assert single.divided() == {"num_heads": 64} and two.divided() == {"num_heads": 64, "n_groups": 2}
    assert [heads_per_card(4, cards) for cards in (1, 2, 4, 8)] == [4, 2, 1, 1]


def test_kinds_that_may_cache_a_state_for_every_block_and_the_chunk_they_align_to():
    assert [layer.offers_mode_all for layer in (DELTA, KIMI, FIRST, SECOND)] == [False, False, True, True]
    assert [layer.mode_all_chunk for layer in (DELTA, KIMI, FIRST, SECOND)] == [64, 64, 2048, 256]
    assert [layer.drafts_widen_conv for layer in (DELTA, KIMI, FIRST, SECOND)] == [True, True, False, True]
    assert all(layer.recurrent for layer in (DELTA, KIMI, FIRST, SECOND))


def test_drafts_widen_the_convolution_by_a_column_each():
    assert DELTA.conv_elements(2, 4) == (3 + 4) * (2 * 16 * 128 + 32 * 128) // 2
    assert SECOND.conv_elements(2, 4) == (3 + 4) * (64 * 64 + 2 * 8 * 128) // 2
    assert FIRST.conv_elements(2, 4) == 3 * 8192 // 2


def test_state_is_split_over_the_cards():
    assert [layer.state_elements(4) * 4 for layer in (DELTA, KIMI, FIRST, SECOND)] == [
        32 * 128 * 128, 32 * 128 * 128, 8192 * 16, 64 * 64 * 128,
    ]  # fmt: skip


def test_index_keys_are_kept_in_fp8_with_a_scale_whatever_the_cache():
    assert LATENT.vllm_index_bytes() == 128 + 4 and LATENT.index_token_bytes("bf16") == 256
    plain = MLA(num_layers=8, kv_lora_rank=512, qk_rope_head_dim=64)
    assert plain.vllm_index_bytes() == plain.index_token_bytes("bf16") == 0


def test_layers_with_other_values_are_another_spec_and_equal_ones_are_not():
    narrow = FullAttention(num_layers=2, num_kv_heads=8, head_size=128, head_size_v=64)
    same = FullAttention(num_layers=2, num_kv_heads=8, head_size=128, head_size_v=128)
    assert groups(FULL, same) == (("FullAttentionSpec", 10, 16),)
    assert groups(FULL, narrow) == (("UniformTypeKVCacheSpecs", 10, 16),)
    assert narrow.spec_key() != FULL.spec_key() == same.spec_key()
    latent = MLA(num_layers=2, kv_lora_rank=576, qk_rope_head_dim=64)
    assert groups(MLA(num_layers=8, kv_lora_rank=512, qk_rope_head_dim=128), latent) == (("MLAAttentionSpec", 10, 64),)


def test_windows_of_one_length_share_a_group_and_others_do_not():
    few = SlidingWindow(num_layers=8, num_kv_heads=4, head_size=128, sliding_window=1024)
    short = SlidingWindow(num_layers=8, num_kv_heads=8, head_size=128, sliding_window=512)
    assert groups(WINDOW, few) == (("UniformTypeKVCacheSpecs", 16, 16),)
    assert groups(WINDOW, short) == (("SlidingWindowSpec", 8, 16),) * 2
    assert groups(WINDOW, few, FULL)[0] == ("SlidingWindowSpec", 8, 16)
    assert groups(FULL, MLA(num_layers=8, kv_lora_rank=512, qk_rope_head_dim=64), block_size=16) == (
        ("UniformTypeKVCacheSpecs", 16, 16),
    )  # fmt: skip


def test_mla_among_others_decides_the_block():
    assert groups(FULL, MLA(num_layers=8, kv_lora_rank=512, qk_rope_head_dim=64))[0].block_size == 64


def test_windows_alone_are_not_full_with_the_hybrid_manager_off():
    engine = Engine(max_model_len=32768, max_num_batched_tokens=2048, hybrid_kv_cache_manager=False)
    pool = plan_pool(Model(name="toy", layers=(WINDOW,)), engine, GIB)
    assert pool.blocks_per_request == -(-(1023 + 2 * 2048) // 16) + 1
    assert plan_pool(Model(name="toy", layers=(WINDOW, FULL)), engine, GIB * 9).plan.request.in_flight_tokens == 0
    assert plan_pool(Model(name="toy", layers=(FULL,)), engine, GIB * 9).plan.request.in_flight_tokens == 0


def test_what_a_model_does_not_have_counts_nothing():
    engine = Engine(max_model_len=1024)
    assert plan_pool(Model(name="toy", layers=(FULL,)), engine, GIB).plan.state_bytes == 0
    assert plan_pool(Model(name="toy", layers=(FULL,)), engine, GIB).plan.request.in_flight_tokens == 0
    assert plan_pool(Model(name="toy", layers=(SECOND,)), engine, GIB).plan.token_bytes == 0


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [(FullAttention, "num_layers", None), (FullAttention, "num_layers", 0), (FullAttention, "head_size_v", 0),
     (FullAttention, "num_kv_heads", -1), (FullAttention, "head_size", "128"), (FullAttention, "num_layers", True)],
)  # fmt: skip
def test_a_number_that_is_none_is_refused_by_kind_and_field(kind, field, value):
    fields = {"num_layers": 1, "num_kv_heads": 1, "head_size": 1} | {field: value}
    assert pytest.raises(AeliusError, kind, **fields).value.field == f"{kind.__name__}.{field}"
