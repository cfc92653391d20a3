"""What vLLM 0.29 to 0.33 changed, each rule read in the release's own source and run by its own planner."""

from __future__ import annotations

import pytest
from test_vllm_versions import CHUNK, DELTA, FULL, KIMI, LATENT, MAMBA, WINDOW, plan, refused

from aelius_math import catalogue
from aelius_math.cache import Mamba1, Mamba2, SlidingWindow
from aelius_math.cache_kinds import ShortConvolution
from aelius_math.logs import read
from aelius_math.units import GIB, AeliusError
from aelius_math.vllm import DoesNotFit, Engine, explain, plan_pool
from aelius_math.vllm_versions import RELEASES

NEWEST = RELEASES[0]
BLOCK = 8 * 16 * 4096  # of FULL


def test_a_request_must_fit_beside_the_null_block_from_0_29():
    assert plan(FULL, version="0.28.0", available=2048 * BLOCK).blocks_per_request == 2048
    refusal = pytest.raises(DoesNotFit, plan, FULL, version="0.29.0", available=2048 * BLOCK).value
    assert refusal.longest_max_model_len == 2047 * 16
    assert (refusal.needed_bytes, refusal.request_bytes) == (2049 * BLOCK, 2048 * BLOCK)
    assert "2,048 blocks beside the null block of 2,048" in str(refusal)
    pool = plan(FULL, version="0.29.0", available=2049 * BLOCK)
    assert (pool.num_blocks, pool.max_concurrency) == (2049, 2049 / 2048)  # which is still counted in what is logged


def test_before_0_29_what_is_needed_is_what_the_engine_prints():
    refusal = pytest.raises(DoesNotFit, plan, FULL, version="0.28.0", available=2047 * BLOCK).value
    assert refusal.needed_bytes == refusal.request_bytes == 2048 * BLOCK and "null" not in str(refusal)


def test_an_override_of_the_blocks_must_hold_the_null_block_too_from_0_29():
    assert plan(FULL, version="0.28.0", num_gpu_blocks_override=2048).num_blocks == 2048
    refusal = pytest.raises(DoesNotFit, plan, FULL, version="0.29.0", num_gpu_blocks_override=2048).value
    assert refusal.longest_max_model_len == 2047 * 16
    assert plan(FULL, version="0.29.0", num_gpu_blocks_override=2049).num_blocks == 2049


def test_a_pool_that_a_request_fills_to_the_last_block_is_not_explained_from_0_29():
    found = {
        version: explain(32768, 32768, catalogue.load("qwen3-0.6b"), version=version, kv_cache_dtype="auto", block_size=16,
                         tensor_parallel_size=1, num_speculative_tokens=0).candidates
        for version in ("0.28.0", "0.29.0")
    }  # fmt: skip
    assert found["0.28.0"] and not found["0.29.0"]


def test_a_short_convolution_grows_with_drafts_from_0_29():
    short = ShortConvolution(num_layers=8, hidden_size=2048, conv_kernel_size=3)
    drafts = {"num_speculative_tokens": 4, "speculative_method": "ngram"}
    sizes = [plan(FULL, short, version=version, **drafts).plan.state_bytes for version in ("0.28.0", "0.29.0")]
    assert sizes == [2 * 2048 * 2, (2 + 4) * 2048 * 2]
    cards = plan(FULL, short, version="0.29.0", tensor_parallel_size=4, **drafts)
    assert cards.plan.state_bytes == (2 + 4) * 2048 // 4 * 2


def test_window_layers_start_from_whole_kernel_blocks_within_the_block_from_0_30():
    large = SlidingWindow(num_layers=8, num_kv_heads=16, head_size=128, sliding_window=1024)

    def groups(version, **settings):
        return [group.block_size for group in plan(FULL, large, version=version, **settings).groups]

    assert [groups(version, block_size=64) for version in ("0.29.0", "0.30.0")] == [[64, 32], [128, 64]]
    assert groups("0.30.0", block_size=48, kernel_block_size=32) == [48, 32]  # one kernel block of 32 goes into 48
    assert groups("0.30.0", block_size=16, kernel_block_size=64) == [128, 64]  # and at least one is taken


def test_windows_alone_do_so_with_the_hybrid_manager_off_too():
    sizes = {
        version: plan(WINDOW, version=version, block_size=64, hybrid_kv_cache_manager=False).groups[0].block_size
        for version in ("0.24.0", "0.28.0", "0.29.0", "0.30.0")
    }
    assert sizes == {"0.24.0": 64, "0.28.0": 16, "0.29.0": 16, "0.30.0": 64}
    assert plan(FULL, WINDOW, version="0.28.0", block_size=64, hybrid_kv_cache_manager=False).groups[0].block_size == 64


def test_windows_and_chunks_planned_as_full_are_one_type_but_not_one_spec():
    pool = plan(FULL, WINDOW, CHUNK, hybrid_kv_cache_manager=False)
    assert pool.groups == (("UniformTypeKVCacheSpecs", 24, 16),)
    assert pool.block_size_bytes == 24 * 16 * 4096


def test_windows_beside_mla_whose_pages_cannot_be_made_one_are_planned_as_full_from_0_27():
    large, shorter = (SlidingWindow(num_layers=2, num_kv_heads=16, head_size=256, sliding_window=size) for size in (1024, 512))
    drafts = {"draft": (large,), "num_speculative_tokens": 2, "speculative_method": "eagle3"}
    for version in ("0.27.0", "0.28.0", NEWEST):
        pool = plan(LATENT, version=version, **drafts)  # a page of 16 * 16384 bytes is no multiple of one of 64 * 1152
        assert pool.groups == (("UniformTypeKVCacheSpecs", 10, 64),) and pool.page_size_bytes is None
        assert pool.block_size_bytes == 64 * (8 * 1152 + 2 * 16384)
        assert pool.blocks_per_request == 32768 // 64
    assert plan(LATENT, FULL, version=NEWEST, **drafts).groups == (("UniformTypeKVCacheSpecs", 18, 64),)
    assert refused(LATENT, version="0.26.0", **drafts) == "layers"
    for other in ((CHUNK,), (large, CHUNK), (large, shorter)):
        assert refused(LATENT, version=NEWEST, **drafts | {"draft": other}) == "layers"
    huge = SlidingWindow(num_layers=2, num_kv_heads=64, head_size=512, sliding_window=64)
    assert refused(LATENT, KIMI, version=NEWEST, **drafts | {"draft": (huge,)}) == "layers"  # nor beside a state


def test_the_state_of_kimi_delta_may_be_bfloat16_from_0_30():
    half = KIMI.state_elements() * 2
    sizes = [plan(LATENT, KIMI, version=version, mamba_ssm_cache_dtype="bfloat16").plan.state_bytes for version in ("0.29.0", "0.30.0")]
    assert sizes == [KIMI.state_bytes("bf16"), KIMI.state_bytes("bf16") - half]
    assert plan(LATENT, KIMI, version="0.30.0", mamba_ssm_cache_dtype="float32").plan.state_bytes == sizes[0]
    assert refused(LATENT, KIMI, version="0.30.0", mamba_ssm_cache_dtype="float16") == "mamba_ssm_cache_dtype"
    assert plan(LATENT, KIMI, version="0.29.0", mamba_ssm_cache_dtype="float16").plan.state_bytes == sizes[0]


def test_mode_all_is_gone_from_0_32():
    first = Mamba1(num_layers=8, intermediate_size=8192, state_size=16, conv_kernel_size=4)
    for layers in ((FULL, first), (FULL,)):
        assert plan(*layers, version="0.31.0", mamba_cache_mode="all", enable_prefix_caching=True).num_blocks
        assert refused(*layers, version="0.32.0", mamba_cache_mode="all", enable_prefix_caching=True) == "mamba_cache_mode"


@pytest.mark.parametrize(("version", "more"), [("0.31.0", 0), ("0.32.0", 1), (NEWEST, 1)])
def test_mamba2_sets_one_block_more_aside_in_mode_align_from_0_32(version, more):
    on, off = (plan(FULL, MAMBA, version=version, enable_prefix_caching=caching) for caching in (True, False))
    groups = sum(group.spec == "MambaSpec" for group in on.groups)
    assert (on.fixed_blocks_per_request, off.fixed_blocks_per_request) == ((2 + more) * groups, groups)
    assert on.blocks(1, running=True) - off.blocks(1, running=True) == 0  # it is held during a prefill only
    assert on.blocks(1, running=True, peak=True) == on.blocks(1)


def test_kinds_of_one_size_that_differ_in_such_a_block_are_refused():
    second = Mamba2(num_layers=8, num_heads=64, head_dim=64, n_groups=1, state_size=128, conv_kernel_size=4)
    first = Mamba1(num_layers=8, intermediate_size=256, state_size=2096, conv_kernel_size=4)
    assert first.state_bytes("bf16") == second.state_bytes("bf16")
    assert plan(FULL, first, second, version="0.31.0").num_blocks
    assert refused(FULL, first, second, version="0.32.0") == "layers"


@pytest.mark.parametrize(("version", "block_size"), [("0.31.0", 576), ("0.32.0", 576), ("0.31.1", 576)])
def test_a_hybrids_block_already_of_whole_kernel_blocks_stays(version, block_size):
    assert plan(FULL, DELTA, version=version, block_size=64).block_size == block_size


def test_a_hybrids_block_is_whole_kernel_blocks_from_0_32():
    sizes = [plan(FULL, DELTA, version=version, block_size=48, kernel_block_size=32).block_size for version in ("0.31.0", "0.32.0")]
    assert sizes[0] == 48 * -(-DELTA.state_bytes("bf16") // (48 * 4096)) and sizes[0] % 32
    assert sizes[1] == -(-sizes[0] // 32) * 32


def test_gated_deltanet_with_flashinfers_prefill_aligns_and_sets_a_block_aside_from_0_33():
    def pool(version, backend, **settings):
        given = {"enable_prefix_caching": True, "gdn_prefill_backend": backend} | settings
        return plan(FULL, DELTA, version=version, **given)

    old, triton, flashinfer = (pool(*pair) for pair in (("0.32.0", "flashinfer"), (NEWEST, "triton"), (NEWEST, "flashinfer")))
    groups = sum(group.spec == "MambaSpec" for group in old.groups)
    assert (old.block_size, old.fixed_blocks_per_request) == (triton.block_size, triton.fixed_blocks_per_request)
    assert flashinfer.block_size == -(-triton.block_size // 64) * 64
    assert flashinfer.fixed_blocks_per_request - triton.fixed_blocks_per_request == groups
    assert pool(NEWEST, "flashinfer", enable_prefix_caching=False).groups == pool(NEWEST, "triton", enable_prefix_caching=False).groups
    assert any("gdn_prefill_backend" in note for note in pool(NEWEST, None).notes)
    assert not triton.notes and not flashinfer.notes and not pool("0.32.0", None).notes
    assert any("3 + num_speculative_tokens" in step.formula for step in flashinfer.steps)


def test_which_prefill_printed_a_pool_is_searched_from_0_33():
    def found(tokens, **given):
        settings = {"tensor_parallel_size": 2, "kv_cache_dtype": "fp8", "num_speculative_tokens": 4, "mamba_ssm_cache_dtype": "float32"}
        explained = explain(tokens, 262144, catalogue.load("Qwen3.8-27B"), max_concurrency=1.08, **settings | given)
        return {(one.num_blocks, one.engine.gdn_prefill_backend, one.engine.enable_prefix_caching) for one in explained.candidates}

    assert (194, "flashinfer", True) in found(284_111, version="0.33.0")
    assert not any(backend == "flashinfer" and not caching for _, backend, caching in found(284_111, version="0.33.0"))
    assert {backend for _, backend, _ in found(284_111, version="0.32.0")} <= {None}
    assert (194, "flashinfer", True) not in found(284_111, version="0.33.0", gdn_prefill_backend="triton")


def test_kimi_delta_with_flashkdas_prefill_sets_a_block_aside_from_0_29():
    def fixed(version, backend, caching=True):
        return plan(LATENT, KIMI, version=version, enable_prefix_caching=caching, kda_prefill_backend=backend)

    groups = sum(group.spec == "MambaSpec" for group in fixed("0.28.0", None).groups)
    counts = [fixed(*pair).fixed_blocks_per_request // groups for pair in
              (("0.28.0", "flashkda"), ("0.29.0", "triton"), ("0.29.0", "flashkda"), ("0.33.0", "flashkda"), ("0.33.0", "flashkda", False))]  # fmt: skip
    assert counts == [2, 2, 3, 3, 1]
    assert any("kda_prefill_backend" in note for note in fixed("0.29.0", None).notes) and not fixed("0.29.0", "triton").notes


@pytest.mark.parametrize(
    ("kernel", "backend"),
    [("Triton/FLA", "triton"), ("FlashInfer", "flashinfer"), ("CuteDSL", "cutedsl"), ("AITER FlyDSL", "aiter_flydsl"), ("SYCL", "sycl")],
)
def test_the_line_of_the_prefill_kernel_is_read_under_the_flags_names(kernel, backend):
    pool = "INFO [kv_cache_utils.py:2312] GPU KV cache size: 284,111 tokens\n"
    line = f"INFO [qwen_gdn_linear_attn.py:300] Using {kernel} GDN prefill kernel (requested=auto, head_k_dim=128).\n"
    assert read(line + pool)["boots"][0]["gdn_prefill_backend"] == backend
    assert Engine(max_model_len=1, gdn_prefill_backend=backend)
    assert read(pool)["boots"][0]["gdn_prefill_backend"] is None
    assert len(read(pool + line + pool.replace("284", "294"))["boots"]) == 2, "the kernel's line begins one more boot"


@pytest.mark.parametrize("field", ["gdn_prefill_backend", "kda_prefill_backend"])
def test_a_prefill_backend_that_is_not_known_is_refused_by_name(field):
    caught = pytest.raises(AeliusError, Engine, max_model_len=1, **{field: "cuda"})
    assert caught.value.field == field and "triton" in str(caught.value)


def test_the_articles_pool_is_the_same_in_every_release_from_0_28_but_with_flashinfers_prefill():
    def logged(version, **settings):
        engine = Engine(version=version, max_model_len=262144, tensor_parallel_size=2, kv_cache_dtype="fp8",
                        num_speculative_tokens=4, **settings)  # fmt: skip
        return plan_pool(catalogue.load("Qwen3.8-27B"), engine, 200 * 28_131_328).tokens

    newest = RELEASES[: RELEASES.index("0.28.0") + 1]
    assert {logged(version) for version in newest} == {289_661}
    assert [logged(version, gdn_prefill_backend="flashinfer") for version in newest] == [284_111] + [289_661] * 5


def test_the_release_after_the_newest_is_refused_and_its_patches_are_not():
    major, minor, _ = map(int, NEWEST.split("."))
    for version in (f"{major}.{minor + 1}.0", f"{major}.{minor + 1}.0rc1", f"{major + 1}.0.0"):
        assert refused(FULL, version=version) == "version"
    assert plan(FULL, version=f"{major}.{minor}.1", available=2 * GIB).num_blocks
    assert NEWEST in str(pytest.raises(AeliusError, plan, FULL, version="9.9.9").value)
