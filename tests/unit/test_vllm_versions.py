"""What changed from release to release, and what is refused; each rule read in the release's own source."""

from __future__ import annotations

import pytest

from aelius_math.cache import (
    MLA,
    ChunkedAttention,
    FullAttention,
    GatedDeltaNet,
    KimiDelta,
    Mamba2,
    SlidingWindow,
)
from aelius_math.cache_kinds import RWKV, LightningAttention, ShortConvolution, SlidingMLA
from aelius_math.model import Model
from aelius_math.units import GIB, AeliusError
from aelius_math.vllm import DoesNotFit, Engine, plan_pool
from aelius_math.vllm_versions import FIRST, RELEASES, parse, rules_for

FULL = FullAttention(num_layers=8, num_kv_heads=8, head_size=128)
WINDOW = SlidingWindow(num_layers=8, num_kv_heads=8, head_size=128, sliding_window=1024)
CHUNK = ChunkedAttention(num_layers=8, num_kv_heads=8, head_size=128, attention_chunk_size=1024)
LATENT = MLA(num_layers=8, kv_lora_rank=512, qk_rope_head_dim=64)
DELTA = GatedDeltaNet(
    num_layers=24,
    num_k_heads=16,
    num_v_heads=32,
    head_k_dim=128,
    head_v_dim=128,
    conv_kernel_size=4,
    state_dtype="fp32",
)
KIMI = KimiDelta(num_layers=24, num_heads=32, head_dim=128, conv_kernel_size=4, state_dtype="fp32")
MAMBA = Mamba2(num_layers=24, num_heads=64, head_dim=64, n_groups=8, state_size=128, conv_kernel_size=4, chunk_size=256)


def plan(*layers, available=20 * GIB, mtp=(), dtype="bf16", **settings):
    model = Model(name="toy", layers=layers, mtp_layers=mtp, dtype=dtype)
    return plan_pool(model, Engine(**{"max_model_len": 32768, "max_num_batched_tokens": 2048} | settings), available)


def refused(*layers, **settings):
    """The field that is named in the refusal."""
    caught = pytest.raises(AeliusError, plan, *layers, **settings)
    assert not isinstance(caught.value, DoesNotFit)
    return caught.value.field


def test_groups_are_padded_below_a_quarter_more_in_0_17_and_below_a_half_more_from_0_18():
    layers = FULL, SlidingWindow(num_layers=11, num_kv_heads=8, head_size=128, sliding_window=1024)
    counts = {v: [group.num_layers for group in plan(*layers, version=v).groups] for v in ("0.17.1", "0.18.0")}
    assert counts == {"0.17.1": [8, 6, 5], "0.18.0": [8, 11]}


def test_at_a_half_more_groups_are_split():
    layers = FULL, SlidingWindow(num_layers=12, num_kv_heads=8, head_size=128, sliding_window=1024)
    assert [group.num_layers for group in plan(*layers).groups] == [8, 6, 6]


def test_before_0_19_only_the_first_group_is_checked_so_the_order_of_layers_matters():
    def starts(version, *layers):
        try:
            return plan(*layers, available=200 << 20, enable_prefix_caching=True, version=version).max_concurrency >= 1
        except DoesNotFit:
            return None

    assert starts("0.19.0", DELTA, FULL) is None and starts("0.19.0", FULL, DELTA) is None
    assert starts("0.18.1", FULL, DELTA) is None
    assert starts("0.18.1", DELTA, FULL) is False  # admitted, though one request does not fit


def test_the_logged_tokens_follow_the_concurrency_from_0_20_1():
    old, new = (plan(FULL, WINDOW, version=version) for version in ("0.20.0", "0.20.1"))
    assert old.num_blocks == new.num_blocks
    assert old.tokens == old.num_blocks // 2 * 16
    assert new.tokens == int(new.num_blocks / new.blocks_per_request * 32768)


@pytest.mark.parametrize(("version", "batches"), [("0.25.0", 1), ("0.25.1", 1), ("0.26.0", 2), ("0.27.1", 2)])
def test_window_and_chunk_layers_hold_two_batches_from_0_26(version, batches):
    full = 32768 // 16
    assert plan(FULL, WINDOW, version=version).blocks_per_request == full + -(-(1023 + batches * 2048) // 16) + 1
    assert plan(FULL, CHUNK, version=version).blocks_per_request == full + (1024 + batches * 2048) // 16


@pytest.mark.parametrize(("version", "more"), [("0.20.2", 0), ("0.21.0", 0), ("0.22.0", 3), ("0.28.0", 3)])
def test_mode_all_counts_draft_tokens_from_0_22(version, more):
    pool = plan(FULL, MAMBA, mtp=(FULL,), num_speculative_tokens=3, version=version, enable_prefix_caching=True,
                mamba_cache_mode="all")  # fmt: skip
    each = -(-32768 // pool.block_size)
    assert pool.fixed_blocks_per_request == (each + more) * sum(group.spec == "MambaSpec" for group in pool.groups)


def test_mode_all_aligns_to_a_common_multiple_of_chunk_and_block():
    odd = Mamba2(num_layers=24, num_heads=64, head_dim=64, n_groups=8, state_size=128, conv_kernel_size=4, chunk_size=96)
    pool = plan(FULL, odd, enable_prefix_caching=True, mamba_cache_mode="all", block_size=64)
    assert pool.block_size == 192 * -(-odd.state_bytes("bf16") // (192 * 4096))


def test_mode_all_aligns_to_the_chunk_of_the_kernel():
    assert plan(FULL, MAMBA, enable_prefix_caching=True, mamba_cache_mode="all").block_size % 256 == 0


@pytest.mark.parametrize(("version", "align"), [("0.19.0", 64), ("0.20.0", 16), ("0.26.0", 16), ("0.27.0", 128)])
def test_hybrids_with_mla_align_to_64_then_16_then_128(version, align):
    state = KIMI.state_bytes("bf16")
    assert plan(LATENT, KIMI, version=version).block_size == align * -(-state // (align * 1152))


def test_the_convolution_of_kimi_delta_grows_with_drafts_from_0_27():
    drafts = {"draft": (FULL,), "num_speculative_tokens": 4, "speculative_method": "eagle3"}
    sizes = {v: plan(FULL, KIMI, version=v, **drafts).plan.state_bytes for v in ("0.26.0", "0.27.0")}
    assert sizes["0.26.0"] == KIMI.state_bytes("bf16")
    assert sizes["0.27.0"] - sizes["0.26.0"] == 4 * 3 * 32 * 128 * 2


def test_mamba1_convolutions_do_not_grow_with_drafts_and_short_ones_neither():
    short = ShortConvolution(num_layers=8, hidden_size=2048, conv_kernel_size=3)
    assert short.conv_elements(1, 5) == short.conv_elements(1, 0) == 2 * 2048


def test_a_single_group_of_mamba2_is_copied_to_every_card():
    one = Mamba2(num_layers=8, num_heads=64, head_dim=64, n_groups=1, state_size=128, conv_kernel_size=4)
    assert one.conv_elements(4) == 3 * (64 * 64 + 2 * 4 * 128) // 4
    assert MAMBA.conv_elements(4) == 3 * (64 * 64 + 2 * 8 * 128) // 4


@pytest.mark.parametrize("drafts", [18, 19])  # 1,023 + 17 + 4,096 tokens fill their blocks; one more does not
def test_several_mtp_layers_make_windows_keep_more_tokens_from_0_28(drafts):
    def held(version, layers, **settings):
        mtp = (SlidingWindow(num_layers=layers, num_kv_heads=8, head_size=128, sliding_window=1024),)
        settings = {"num_speculative_tokens": drafts, "version": version} | settings
        pool = plan(FULL, WINDOW, **{"mtp": mtp} | settings)
        return {pool.plan.tables[-1].blocks(32768, pool.plan.request)}

    assert held("0.28.0", 2) == {-(-(1023 + drafts - 1 + 4096) // 16) + 1}
    assert held("0.27.1", 2) == held("0.28.0", 1) == {-(-(1023 + 4096) // 16) + 1}
    draft = SlidingWindow(num_layers=2, num_kv_heads=8, head_size=128, sliding_window=1024)
    assert held("0.28.0", 1, draft=(draft,)) == held("0.28.0", 1)


def test_block_size_aligns_hybrids_from_0_20():
    state = DELTA.state_bytes("bf16")
    for version, align in (("0.19.0", 16), ("0.20.0", 128)):
        pool = plan(FULL, DELTA, version=version, block_size=128)
        assert pool.block_size == align * -(-state // (align * 4096)), version


def test_block_size_of_a_dense_model_is_as_set():
    for size in (1, 16, 64, 256):
        assert plan(FULL, block_size=size).block_size == size


def test_window_layers_start_from_the_kernels_block_from_0_25():
    large = SlidingWindow(num_layers=8, num_kv_heads=16, head_size=128, sliding_window=1024)
    groups = {v: [group.block_size for group in plan(FULL, large, version=v, block_size=64).groups] for v in ("0.24.0", "0.25.0")}
    assert groups == {"0.24.0": [128, 64], "0.25.0": [64, 32]}


def test_num_gpu_blocks_override_replaces_the_memory_from_0_20_1():
    assert plan(FULL, num_gpu_blocks_override=5000).num_blocks == 5000
    caught = pytest.raises(DoesNotFit, plan, FULL, num_gpu_blocks_override=2047)
    assert caught.value.longest_max_model_len == 2047 * 16
    assert plan(FULL, num_gpu_blocks_override=5000, available=1).num_blocks == 5000
    assert pytest.raises(DoesNotFit, plan, FULL, num_gpu_blocks_override=100, version="0.20.1")
    old = plan(FULL, num_gpu_blocks_override=100, version="0.20.0")
    assert old.num_blocks == 100 and old.max_concurrency < 1 and old.notes


def test_a_drafters_smaller_page_takes_more_tokens_where_it_divides():
    small = FullAttention(num_layers=2, num_kv_heads=4, head_size=128)
    pool = plan(FULL, DELTA, draft=(small,), num_speculative_tokens=2, speculative_method="eagle")
    assert {(group.num_layers, group.block_size // pool.block_size) for group in pool.groups if group.spec == "FullAttentionSpec"} == {
        (2, 1),
        (2, 2),
    }


def test_a_page_that_does_not_divide_is_padded_from_0_24():
    odd = FullAttention(num_layers=2, num_kv_heads=3, head_size=128)
    drafts = {"draft": (odd,), "num_speculative_tokens": 2, "speculative_method": "eagle"}
    pool = plan(FULL, DELTA, version="0.24.0", **drafts)
    assert pool.page_size_bytes == pool.block_size * 4096
    assert {group.block_size for group in pool.groups if group.spec == "FullAttentionSpec"} == {pool.block_size}
    assert refused(FULL, DELTA, version="0.23.0", **drafts) == "layers"


def test_a_drafters_larger_page_pads_the_state_from_0_26():
    large = FullAttention(num_layers=2, num_kv_heads=16, head_size=128)
    drafts = {"draft": (large,), "num_speculative_tokens": 2, "speculative_method": "eagle"}
    pool = plan(FULL, DELTA, version="0.26.0", **drafts)
    assert pool.page_size_bytes == pool.block_size * 16 * 128 * 4
    assert refused(FULL, DELTA, version="0.25.1", **drafts) == "layers"


def test_the_releases_stand_newest_first_and_once():
    numbers = [parse(release)[0] for release in RELEASES]
    assert numbers == sorted(set(numbers), reverse=True) and numbers[-1] == FIRST


def test_a_release_that_was_not_read_is_planned_by_the_one_before_it_and_says_so():
    pool = plan(FULL, version="0.22.7")
    assert [note for note in pool.notes if "0.22.7 itself was not read: planned by the rules of 0.22.1" in note]
    assert pool.num_blocks == plan(FULL, version="0.22.1").num_blocks
    for version in ("0.22.1", "v0.22.1+cu129", "0.22.1.post1", "0.23.1rc1.dev531+ga65f93fb2", "0.10.0"):
        assert not [note for note in plan(FULL, version=version).notes if "not read" in note]


def test_formats_came_with_releases():
    assert plan(FULL, version="0.20.0", kv_cache_dtype="nvfp4").page_size_bytes == 16 * 8 * 2 * (64 + 8)
    assert plan(FULL, version="0.25.0", kv_cache_dtype="int4_per_token_head").page_size_bytes == 16 * 8 * (64 + 64 + 8)
    assert plan(FULL, kv_cache_dtype="fp8_per_token_head").page_size_bytes == 16 * 8 * (128 + 128 + 8)
    assert refused(FULL, version="0.19.0", kv_cache_dtype="nvfp4") == "kv_cache_dtype"
    assert refused(FULL, version="0.19.0", kv_cache_dtype="int8_per_token_head") == "kv_cache_dtype"
    assert refused(FULL, version="0.24.0", kv_cache_dtype="int4_per_token_head") == "kv_cache_dtype"
    assert refused(FULL, kv_cache_dtype="q8_0") == "kv_cache_dtype"


def test_window_layers_are_packed_from_0_28_for_int4_and_0_21_for_nvfp4():
    def page(version, dtype):
        return plan(WINDOW, version=version, kv_cache_dtype=dtype).page_size_bytes

    assert page("0.28.0", "int4_per_token_head") == 16 * 8 * (64 + 64 + 8)
    assert page("0.27.1", "int4_per_token_head") == 16 * 8 * (128 + 128 + 8)
    assert page("0.21.0", "nvfp4") == 16 * 8 * 2 * (64 + 8)
    assert page("0.20.2", "nvfp4") == 16 * 8 * 2 * 128
    assert plan(CHUNK, version="0.20.2", kv_cache_dtype="nvfp4").page_size_bytes == 16 * 8 * 2 * 128
    assert plan(CHUNK, version="0.27.1", kv_cache_dtype="int4_per_token_head").page_size_bytes == 16 * 8 * (64 + 64 + 8)


def test_mla_keeps_one_vector_a_token_and_index_keys_beside_it():
    block = 64 * 8
    assert plan(LATENT).block_size_bytes == block * 1152
    assert plan(LATENT, kv_cache_dtype="fp8").block_size_bytes == block * 576
    assert plan(LATENT, kv_cache_dtype="fp8_ds_mla").block_size_bytes == block * 656
    sparse = MLA(num_layers=8, kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128)
    assert plan(sparse, kv_cache_dtype="fp8_ds_mla").block_size_bytes == block * (656 + 132)
    assert plan(sparse, kv_cache_dtype="fp8", version="0.19.0").block_size_bytes == block * (656 + 132)
    assert plan(LATENT, sparse, kv_cache_dtype="fp8", version="0.19.0").block_size_bytes == block * (2 * 656 + 132)
    assert plan(sparse, kv_cache_dtype="fp8").notes
    assert refused(FULL, kv_cache_dtype="fp8_ds_mla") == "dtype"


@pytest.mark.parametrize("version", [version for version in RELEASES if version >= "0.20"])
def test_formats_that_no_backend_keeps_mla_in_are_refused_also_for_a_drafter(version):
    packed = ["int8_per_token_head", "fp8_per_token_head", "nvfp4"] + ["int4_per_token_head"] * (version >= "0.25")
    drafter = {"draft": (LATENT,), "num_speculative_tokens": 2, "speculative_method": "draft_model"}
    for dtype in packed:
        assert "keeps MLA layers" in str(pytest.raises(AeliusError, plan, LATENT, version=version, kv_cache_dtype=dtype).value)
        assert refused(FULL, version=version, kv_cache_dtype=dtype, **drafter) == "kv_cache_dtype"
        assert plan(FULL, version=version, kv_cache_dtype=dtype).num_blocks


def test_layers_of_one_kind_and_several_sizes_are_one_group_of_summed_pages():
    pool = plan(FULL, FullAttention(num_layers=2, num_kv_heads=4, head_size=128))
    assert pool.groups == (("UniformTypeKVCacheSpecs", 10, 16),) and pool.page_size_bytes is None
    assert pool.block_size_bytes == 16 * (8 * 4096 + 2 * 2048)
    assert pool.blocks_per_request == 2048


def test_with_the_hybrid_manager_off_windows_are_planned_as_full():
    pool = plan(FULL, WINDOW, hybrid_kv_cache_manager=False)
    assert pool.groups == (("FullAttentionSpec", 16, 16),) and pool.blocks_per_request == 2048
    other = SlidingWindow(num_layers=8, num_kv_heads=8, head_size=128, sliding_window=512)
    assert refused(FULL, WINDOW, other, hybrid_kv_cache_manager=False) == "hybrid_kv_cache_manager"
    assert refused(FULL, DELTA, hybrid_kv_cache_manager=False) == "hybrid_kv_cache_manager"
    longer = ChunkedAttention(num_layers=8, num_kv_heads=8, head_size=128, attention_chunk_size=8192)
    assert refused(FULL, CHUNK, longer, hybrid_kv_cache_manager=False) == "hybrid_kv_cache_manager"
    assert plan(FULL, CHUNK, WINDOW, hybrid_kv_cache_manager=False).blocks_per_request == 2048
    assert refused(WINDOW, CHUNK, hybrid_kv_cache_manager=False) == "hybrid_kv_cache_manager"
    assert plan(FULL, hybrid_kv_cache_manager=False).num_blocks == plan(FULL).num_blocks


@pytest.mark.parametrize(
    ("version", "layer", "kept"),
    [("0.20.2", WINDOW, False), ("0.21.0", WINDOW, True), ("0.27.1", CHUNK, False), ("0.28.0", CHUNK, True)],
)
def test_layers_planned_as_full_lose_their_scales_in_some_releases(version, layer, kept):
    pool = plan(FULL, layer, hybrid_kv_cache_manager=False, version=version, kv_cache_dtype="int8_per_token_head")
    assert pool.block_size_bytes == 8 * 16 * 8 * (264 + (264 if kept else 256))
    plain = plan(FULL, layer, hybrid_kv_cache_manager=False, version=version, kv_cache_dtype="fp8")
    assert plain.block_size_bytes == 8 * 16 * 8 * 512


@pytest.mark.parametrize(
    ("version", "layer", "dtype", "one"),
    [
        ("0.19.0", WINDOW, "fp8", True),  # no spec says its format yet
        ("0.20.2", WINDOW, "fp8", False),  # the promoted spec loses it
        ("0.21.0", WINDOW, "fp8", True),
        ("0.23.0", CHUNK, "fp8", False),
        ("0.23.0", CHUNK, "auto", True),
        ("0.24.0", WINDOW, "auto", False),  # the promoted spec loses how the backend reads its blocks
        ("0.27.1", CHUNK, "auto", False),
        ("0.28.0", WINDOW, "fp8", True),
    ],
)
def test_layers_planned_as_full_are_one_spec_with_the_full_ones_where_they_keep_all_that_it_says(version, layer, dtype, one):
    flags = {"version": version, "kv_cache_dtype": dtype}
    pool = plan(FULL, layer, hybrid_kv_cache_manager=False, **flags)
    assert pool.groups == (("FullAttentionSpec" if one else "UniformTypeKVCacheSpecs", 16, 16),)
    assert pool.num_blocks == plan(FULL, FULL, **flags).num_blocks


@pytest.mark.parametrize("version", ["0.25.0", "0.26.0"])
def test_windows_of_another_block_are_not_planned_as_full_in_0_25_and_0_26(version):
    off = {"hybrid_kv_cache_manager": False, "block_size": 128}
    assert refused(FULL, WINDOW, version=version, **off) == "hybrid_kv_cache_manager"
    assert plan(FULL, WINDOW, version=version, hybrid_kv_cache_manager=False).num_blocks
    for other in ("0.24.0", "0.27.0"):
        assert plan(FULL, WINDOW, version=other, **off).block_size == 128


def test_windows_beside_mla_are_refused_before_0_26_also_of_a_drafter():
    drafter = {"draft": (WINDOW,), "num_speculative_tokens": 2, "speculative_method": "dflash"}
    for version in ("0.20.0", "0.25.1"):
        assert refused(LATENT, WINDOW, version=version) == refused(LATENT, version=version, **drafter) == "version"
        assert plan(FULL, version=version, **drafter).num_blocks
    assert plan(LATENT, version="0.26.0", **drafter).num_blocks


def test_the_token_budget_is_asked_for_only_where_it_matters():
    assert refused(FULL, WINDOW, max_num_batched_tokens=None) == "max_num_batched_tokens"
    assert refused(FULL, CHUNK, max_num_batched_tokens=None) == "max_num_batched_tokens"
    draft = {"draft": (WINDOW,), "num_speculative_tokens": 2, "speculative_method": "dflash"}
    assert refused(FULL, DELTA, max_num_batched_tokens=None, **draft) == "max_num_batched_tokens"
    assert plan(FULL, DELTA, max_num_batched_tokens=None).num_blocks
    assert plan(FULL, WINDOW, max_num_batched_tokens=None, hybrid_kv_cache_manager=False).num_blocks


def test_recurrent_state_may_be_kept_in_another_dtype():
    half = plan(FULL, DELTA, mamba_ssm_cache_dtype="float16").plan.state_bytes
    assert DELTA.state_bytes("bf16") - half == 2 * 32 * 128 * 128
    assert plan(FULL, DELTA, mamba_ssm_cache_dtype="bfloat16", version="0.22.0").plan.state_bytes == half
    assert refused(FULL, DELTA, mamba_ssm_cache_dtype="bfloat16", version="0.21.0") == "mamba_ssm_cache_dtype"
    assert refused(FULL, DELTA, mamba_ssm_cache_dtype="fp8") == "mamba_ssm_cache_dtype"
    for version, words in (("0.21.0", "float16 (bfloat16 from 0.22)"), ("0.28.0", "float16, bfloat16")):
        caught = pytest.raises(AeliusError, plan, FULL, DELTA, version=version, mamba_ssm_cache_dtype="fp8")
        assert words in str(caught.value)


def test_a_model_of_recurrent_layers_alone_pads_nothing_and_caches_no_prefix_by_default():
    lightning = LightningAttention(num_layers=8, num_heads=16, head_dim=64, state_dtype="fp32")
    pool = plan(lightning, version="0.28.0")
    assert pool.page_size_bytes == 16 * 64 * 64 * 4 and pool.blocks_per_request == 1


def test_max_num_seqs_may_not_exceed_the_blocks_of_a_hybrid_from_0_20():
    blocks = plan(FULL, DELTA).num_blocks
    assert plan(FULL, DELTA, max_num_seqs=blocks).num_blocks == blocks
    assert refused(FULL, DELTA, max_num_seqs=blocks + 1) == "max_num_seqs"
    assert plan(FULL, DELTA, max_num_seqs=blocks + 1, version="0.19.0").num_blocks
    assert refused(FULL, DELTA, max_num_seqs=blocks + 1, version="0.20.0") == "max_num_seqs"
    assert plan(FULL, max_num_seqs=1 << 20).num_blocks


@pytest.mark.parametrize(
    ("version", "field"),
    [("0.34.0", "version"), ("0.99", "version"), ("1.0", "version"), ("0.20.1rc1.dev91", "version"), ("0.20.1rc0", "version"),
     ("latest", "version"), ("", "version"), (None, "version"), ("0", "version")],
)  # fmt: skip
def test_a_version_whose_rules_are_not_known_is_refused(version, field):
    assert refused(FULL, version=version) == field


def test_a_pre_release_is_planned_where_both_sides_agree():
    assert plan(FULL, DELTA, version="0.20.2rc1.dev129", enable_prefix_caching=True).tokens
    assert plan(FULL, DELTA, version="0.23.1rc1.dev531+ga65f93fb2", enable_prefix_caching=True).tokens
    assert refused(FULL, WINDOW, version="0.25.2rc1") == "version"  # one batch in flight, or two
    assert refused(FULL, DELTA, version="0.27.2rc1") == "version"  # prefix caching off, or on
    assert refused(FULL, WINDOW, version="0.26.0rc1") == "version"  # before it 0.25
    assert plan(FULL, version="0.21.0rc1").tokens and plan(FULL, version="0.19.2rc1").tokens
    large = SlidingWindow(num_layers=8, num_kv_heads=16, head_size=128, sliding_window=1024)
    assert plan(FULL, large, version="0.23.1rc1", block_size=64).tokens  # 0.25 would start windows from 16


def test_the_rules_of_a_pre_release_are_those_before_it_where_only_one_set_is_asked_for():
    assert not rules_for("0.20.1rc1").tokens_from_concurrency


def test_a_version_of_two_numbers_is_the_first_of_its_releases():
    assert plan(FULL, WINDOW, version="0.20").tokens == plan(FULL, WINDOW, version="0.20.0").tokens
    assert refused(FULL, version="0." + "9" * 5000) == "version"


def test_before_0_17_only_one_kind_of_full_attention_is_answered():
    assert plan(FULL, version="0.6.4").tokens == 20 * GIB // (8 * 16 * 4096) * 16
    for other in (WINDOW, LATENT, DELTA, FullAttention(num_layers=1, num_kv_heads=4, head_size=128)):
        assert refused(FULL, other, version="0.16.0") == "version"
    assert refused(LATENT, version="0.16.0") == "version"


@pytest.mark.parametrize("field", ["pipeline_parallel_size", "decode_context_parallel_size", "prefill_context_parallel_size"])
def test_parallelism_that_is_not_derived_is_refused_by_name(field):
    assert refused(FULL, **{field: 2}) == field


def test_heads_that_do_not_divide_by_the_cards_are_refused_and_fewer_are_copied():
    assert refused(FULL, tensor_parallel_size=3) == "tensor_parallel_size"
    assert refused(FULL, DELTA, tensor_parallel_size=64) == "tensor_parallel_size"
    assert plan(FULL, tensor_parallel_size=16).num_blocks == plan(FULL, tensor_parallel_size=8).num_blocks


def test_what_the_planner_has_no_rule_for_is_refused_by_its_kind():
    for layer in (
        RWKV(num_layers=2, hidden_size=64, num_heads=2, head_size=32),
        SlidingMLA(num_layers=2, kv_lora_rank=448, qk_rope_head_dim=64, sliding_window=128),
    ):
        caught = pytest.raises(AeliusError, plan, layer)
        assert type(layer).__name__ in str(caught.value)


def test_layers_that_the_engine_plans_by_one_size_must_agree():
    other = FullAttention(num_layers=1, num_kv_heads=4, head_size=128)
    assert refused(FULL, other, DELTA) == "layers"
    assert refused(FULL, DELTA, KIMI) == "layers"
    assert refused(LATENT, KIMI, kv_cache_dtype="fp8_ds_mla") == "kv_cache_dtype"  # aligned by another size than it pages


def test_a_model_without_a_dtype_is_refused_where_it_is_needed():
    assert refused(FULL, dtype=None) == "Model.dtype"
    assert plan(FULL, dtype=None, kv_cache_dtype="fp8").num_blocks
    assert refused(FULL, DELTA, dtype=None, kv_cache_dtype="fp8") == "Model.dtype"


def test_a_stated_kv_scheme_of_the_checkpoint_goes_before_the_models_dtype():
    model = Model(name="toy", layers=(FULL,), kv_cache_dtype="fp8")
    assert plan_pool(model, Engine(max_model_len=1024), GIB).page_size_bytes == 16 * 8 * 128 * 2


def test_drafts_without_a_drafter_are_refused():
    assert refused(FULL, num_speculative_tokens=2) == "num_speculative_tokens"
    assert refused(FULL, num_speculative_tokens=2, speculative_method="mtp") == "num_speculative_tokens"
    assert refused(FULL, num_speculative_tokens=2, speculative_method="eagle3") == "speculative_method"
    assert refused(FULL, num_speculative_tokens=2, speculative_method="mtp", draft=(FULL,)) == "speculative_method"
    assert plan(FULL, num_speculative_tokens=2, speculative_method="ngram").num_blocks == plan(FULL).num_blocks
    assert plan(FULL, draft=(FULL,)).num_blocks == plan(FULL).num_blocks


@pytest.mark.parametrize(
    ("field", "value"),
    [("max_model_len", 0), ("max_model_len", "262144"), ("tensor_parallel_size", 0), ("num_speculative_tokens", -1),
     ("num_speculative_tokens", True), ("block_size", 0), ("kernel_block_size", -16), ("num_gpu_blocks_override", 0),
     ("max_num_batched_tokens", 0), ("max_num_seqs", 0), ("enable_prefix_caching", "yes"), ("hybrid_kv_cache_manager", 2),
     ("mamba_cache_mode", "some"), ("speculative_method", 3), ("kv_cache_dtype", "fp9"), ("draft", (1,)), ("draft", 7),
     ("mamba_ssm_cache_dtype", "float7")],
)  # fmt: skip
def test_a_setting_of_the_wrong_kind_is_refused_by_name(field, value):
    assert refused(FULL, **{field: value}) == field


@pytest.mark.parametrize("available", [-1, 1.5, "5GiB", None, True, [], [1], [GIB, -1]])
def test_available_bytes_must_be_whole_and_one_for_each_card(available):
    cards = {"tensor_parallel_size": 2} if isinstance(available, list) else {}
    caught = pytest.raises(AeliusError, plan, FULL, available=available, **cards)
    assert caught.value.field == "available_bytes"


def test_of_several_cards_the_one_with_the_least_binds():
    assert plan(FULL, available=[3 * GIB, 2 * GIB], tensor_parallel_size=2).available_bytes == 2 * GIB
    assert pytest.raises(DoesNotFit, plan, FULL, available=[GIB, 0], tensor_parallel_size=2).value.value == 0


def test_nothing_available_does_not_fit():
    assert pytest.raises(DoesNotFit, plan, FULL, available=0).value.longest_max_model_len == 0
