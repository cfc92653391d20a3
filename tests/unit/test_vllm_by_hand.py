"""vLLM's pool by hand: Qwen3.8-27B on two cards, 200 blocks of 28,131,328 bytes (5.24 GiB) each, and what follows."""

from __future__ import annotations

import pytest

from aelius_math.cache import MLA, ChunkedAttention, FullAttention, GatedDeltaNet, SlidingWindow
from aelius_math.model import Model
from aelius_math.units import GIB
from aelius_math.vllm import DoesNotFit, Engine, plan_pool

ATTENTION = FullAttention(num_layers=16, num_kv_heads=4, head_size=256)
DELTA = GatedDeltaNet(num_layers=48, num_k_heads=16, num_v_heads=48, head_k_dim=128, head_v_dim=128, conv_kernel_size=4, state_dtype="fp32")
QWEN = Model(
    name="Qwen3.8-27B",
    layers=(DELTA, ATTENTION),
    mtp_layers=(FullAttention(num_layers=1, num_kv_heads=4, head_size=256),),
)
LLAMA = Model(name="Llama-3.1-8B", layers=(FullAttention(num_layers=32, num_kv_heads=8, head_size=128),))
DEEPSEEK = Model(name="DeepSeek-V3", layers=(MLA(num_layers=61, kv_lora_rank=512, qk_rope_head_dim=64),))
GEMMA = Model(
    name="Gemma-3-27B",
    layers=(
        SlidingWindow(num_layers=52, num_kv_heads=16, head_size=128, sliding_window=1024),
        FullAttention(num_layers=10, num_kv_heads=16, head_size=128),
    ),
)
SCOUT = Model(
    name="Llama-4-Scout",
    layers=(
        ChunkedAttention(num_layers=36, num_kv_heads=8, head_size=128, attention_chunk_size=8192),
        FullAttention(num_layers=12, num_kv_heads=8, head_size=128),
    ),
)
BYTES = 200 * 28_131_328
DFLASH = FullAttention(num_layers=5, num_kv_heads=8, head_size=128)
DFLASH2 = SlidingWindow(num_layers=5, num_kv_heads=8, head_size=128, sliding_window=2048)


def qwen(**settings):
    """The article's engine, with some settings changed."""
    settings = {
        "max_model_len": 262144,
        "tensor_parallel_size": 2,
        "kv_cache_dtype": "fp8",
        "enable_prefix_caching": True,
    } | settings
    return Engine(**settings)


def tokens(engine, model=QWEN, available=BYTES):
    """The pool as logged, or where the engine refuses: what the blocks would hold in proportion, and the longest limit."""
    try:
        return plan_pool(model, engine, available).tokens
    except DoesNotFit as refused:
        return int(refused.num_blocks / refused.blocks_per_request * engine.max_model_len), refused.longest_max_model_len


def test_the_articles_pool_is_200_blocks_of_which_a_full_request_takes_181():
    pool = plan_pool(QWEN, qwen(num_speculative_tokens=4), BYTES)
    assert pool.block_size == 1616
    assert sorted((group.num_layers for group in pool.groups), reverse=True) == [17, 16, 16, 16]
    assert (pool.page_size_bytes, pool.block_size_bytes) == (1616 * 2 * 2 * 256, 28_131_328)
    assert (pool.num_blocks, pool.usable_blocks) == (200, 199)
    assert (pool.blocks_per_request, pool.fixed_blocks_per_request) == (163 + 3 * (2 + 4), 18)
    assert pool.tokens == 289_661
    assert f"{pool.max_concurrency:.2f}" == "1.10"


@pytest.mark.parametrize(
    ("limit", "logged"),
    [(1616, 17_010), (4096, 39_009), (8192, 68_266), (16384, 112_993), (32768, 168_041), (65536, 222_155),
     (131072, 262_144), (262144, 289_661)],
)  # fmt: skip
def test_the_same_200_blocks_are_logged_as_other_pools_at_other_limits(limit, logged):
    pool = plan_pool(QWEN, qwen(num_speculative_tokens=4, max_model_len=limit), BYTES)
    assert (pool.num_blocks, pool.tokens) == (200, logged)


@pytest.mark.parametrize(
    ("request_tokens", "planned"),
    [(1, 19), (4096, 21), (6990, 23), (16384, 29), (32768, 39), (65536, 59), (131072, 100), (262144, 181)],
)
def test_a_request_holds_18_state_blocks_beside_those_of_its_tokens(request_tokens, planned):
    pool = plan_pool(QWEN, qwen(num_speculative_tokens=4), BYTES)
    assert pool.blocks(request_tokens) == planned
    assert pool.blocks(request_tokens, running=True) == planned - 3
    assert pool.blocks(request_tokens, running=True, peak=True) == planned


def test_the_articles_ladder_all_at_once_wants_176_planned_or_164_running():
    pool = plan_pool(QWEN, qwen(num_speculative_tokens=4), BYTES)
    slices = [65536, 32768, 32768, 32768]
    assert sum(pool.blocks(size) for size in slices) == 176
    assert sum(pool.blocks(size, running=True) for size in slices) == 164


def test_without_drafts_the_same_bytes_are_219_blocks():
    pool = plan_pool(QWEN, qwen(), BYTES)
    assert (pool.block_size, pool.num_blocks, pool.usable_blocks) == (1568, 219, 218)
    assert (pool.fixed_blocks_per_request, pool.blocks_per_request, pool.tokens) == (6, 174, 329_939)


def test_without_drafts_and_caching_a_request_holds_three_state_blocks():
    pool = plan_pool(QWEN, qwen(enable_prefix_caching=False), BYTES)
    assert (pool.fixed_blocks_per_request, pool.blocks_per_request, pool.tokens) == (3, 171, 335_728)


def test_a_sixteen_bit_cache_of_the_same_bytes_is_refused():
    with pytest.raises(DoesNotFit) as caught:
        plan_pool(QWEN, qwen(num_speculative_tokens=4, kv_cache_dtype="auto"), BYTES)
    refused = caught.value
    assert (refused.num_blocks, refused.blocks_per_request, refused.longest_max_model_len) == (198, 340, 146_880)
    assert int(198 / 340 * 262144) == 152_660
    assert plan_pool(QWEN, qwen(num_speculative_tokens=4, kv_cache_dtype="auto", max_model_len=146_880), BYTES)
    pool = plan_pool(QWEN, qwen(num_speculative_tokens=4, kv_cache_dtype="auto", max_model_len=4096), BYTES)
    assert pool.block_size == 816


@pytest.mark.parametrize(("drafts", "logged"), [(0, 329_939), (1, 305_585), (3, 295_827), (4, 289_661), (8, 270_422)])
def test_drafts_cost_pool(drafts, logged):
    assert tokens(qwen(num_speculative_tokens=drafts)) == logged


def test_prefix_caching_costs_a_state_block_for_each_recurrent_group():
    assert tokens(qwen(num_speculative_tokens=4, enable_prefix_caching=False)) == 294_543
    assert tokens(qwen(num_speculative_tokens=4)) == 289_661


def test_prefix_caching_of_hybrids_is_off_by_default_up_to_0_27_and_on_from_0_28():
    for version, logged in (("0.27.1", 294_543), ("0.28.0", 289_661)):
        engine = qwen(num_speculative_tokens=4, enable_prefix_caching=None, version=version)
        assert tokens(engine) == logged, version


def test_mode_all_keeps_a_state_for_every_block():
    assert tokens(qwen(mamba_cache_mode="all")) == (85_516, 84_800)


def test_a_separate_drafter_makes_small_groups_and_many_of_them():
    engine = {"num_speculative_tokens": 7, "max_num_batched_tokens": 8192, "speculative_method": "dflash"}
    assert tokens(qwen(draft=(DFLASH,), **engine)) == (196_166, 189_520)
    assert tokens(qwen(draft=(DFLASH2,), **engine)) == (234_976, 230_720)
    assert len(plan_pool(QWEN, qwen(draft=(DFLASH,), **engine | {"max_model_len": 4096}), BYTES).groups) == 15


def test_per_token_head_formats_carry_two_scales_a_head():
    pool = plan_pool(QWEN, qwen(kv_cache_dtype="int8_per_token_head"), BYTES)
    assert (pool.block_size, pool.tokens) == (1552, 325_058)
    assert tokens(qwen(kv_cache_dtype="fp8_per_token_head")) == 325_058
    assert tokens(qwen(kv_cache_dtype="auto")) == (168_356, 166_992)


def test_more_cards_help_until_there_is_one_head_on_each():
    assert tokens(qwen(tensor_parallel_size=1)) == (164_216, 161_504)
    assert [tokens(qwen(tensor_parallel_size=cards)) for cards in (2, 4, 8)] == [329_939, 659_879, 673_425]
    sixteen = {"max_model_len": 131072, "kv_cache_dtype": "auto"}
    llama = [tokens(qwen(tensor_parallel_size=cards, **sixteen), LLAMA, 10 * GIB) for cards in (4, 8, 16)]
    assert llama == [327_680, 655_360, 655_360]


def test_mla_is_the_same_on_every_card():
    for cards in (8, 16):
        engine = Engine(max_model_len=163840, tensor_parallel_size=cards)
        assert plan_pool(DEEPSEEK, engine, 20 * GIB).tokens == 305_536


def test_old_logs_print_another_number_for_the_same_pool():
    old, new = (plan_pool(QWEN, qwen(num_speculative_tokens=4, version=v), BYTES) for v in ("0.20.0", "0.20.1"))
    assert (old.tokens, new.tokens) == (80_800, 289_661)
    assert old.max_concurrency == new.max_concurrency


def test_window_layers_hold_a_batch_beside_their_window_and_from_0_26_two():
    def gemma(version, batch, **settings):
        engine = Engine(max_model_len=131072, version=version, max_num_batched_tokens=batch, **settings)
        return tokens(engine, GEMMA, 20 * GIB)

    assert [gemma("0.24.0", 2048), gemma("0.24.0", 8192)] == [229_677, 184_270]
    assert [gemma("0.28.0", 2048), gemma("0.28.0", 8192)] == [212_243, 145_829]
    assert gemma("0.25.1", 8192) == gemma("0.24.0", 8192)
    assert gemma("0.26.0", 8192) == gemma("0.28.0", 8192)
    assert gemma("0.28.0", 2048, hybrid_kv_cache_manager=False)[0] == 42_272
    assert 20 * GIB // (62 * 2 * 16 * 128 * 2) == 42_281


def test_chunk_layers_hold_a_batch_beside_their_chunk():
    pool = plan_pool(SCOUT, Engine(max_model_len=131072, max_num_batched_tokens=8192), 20 * GIB)
    assert pool.blocks_per_request == 131072 // 16 + 3 * (8192 + 2 * 8192) // 16


def test_a_pool_in_gb_read_as_gib_is_seven_percent_too_large():
    assert round(GIB / 10**9 - 1, 3) == 0.074


def test_one_block_too_few_is_refused_with_the_lengths_a_public_post_shows():
    engine = qwen(tensor_parallel_size=1)
    block = 1568 * 2 * 4 * 256 * 16
    refused = pytest.raises(DoesNotFit, plan_pool, QWEN, engine, 173 * block).value
    assert round(refused.needed_bytes / GIB, 2) == 8.33
    assert refused.longest_max_model_len == 261_856 == 167 * 1568


def test_one_token_that_does_not_fit_is_a_longest_length_of_zero():
    refused = pytest.raises(DoesNotFit, plan_pool, QWEN, qwen(), 6 * 25_690_112).value
    assert refused.longest_max_model_len == 0
    assert plan_pool(QWEN, qwen(max_model_len=1), 7 * 25_690_112).usable_blocks == 6
