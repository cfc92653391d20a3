"""What holds for every model and engine: generated, not listed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from aelius_math.cache import ChunkedAttention, FullAttention, GatedDeltaNet, Mamba2, SlidingWindow
from aelius_math.model import Model
from aelius_math.vllm import DoesNotFit, Engine, explain, plan_pool

HEADS = st.sampled_from([1, 2, 4, 8, 16])
SIZES = st.sampled_from([64, 128, 256])
LAYERS = st.integers(1, 40)
BYTES = st.integers(1 << 20, 80 << 30)
LENGTHS = st.integers(1, 1 << 20)


@st.composite
def models(draw, state=True):
    """Full attention, perhaps windows or chunks, perhaps recurrent layers and an MTP layer beside it."""
    heads, size = draw(HEADS), draw(SIZES)
    full = FullAttention(num_layers=draw(LAYERS), num_kv_heads=heads, head_size=size)
    kind = draw(st.sampled_from(["full", "window", "chunk", "delta", "mamba"] if state else ["full"]))
    layers = {
        "full": (full,),
        "window": (full, SlidingWindow(num_layers=draw(LAYERS), num_kv_heads=heads, head_size=size, sliding_window=1024)),
        "chunk": (full, ChunkedAttention(num_layers=draw(LAYERS), num_kv_heads=heads, head_size=size, attention_chunk_size=8192)),
        "delta": (
            GatedDeltaNet(
                num_layers=draw(LAYERS), num_k_heads=16, num_v_heads=draw(st.sampled_from([16, 32, 48])), head_k_dim=128,
                head_v_dim=128, conv_kernel_size=4, state_dtype="fp32",
            ),
            full,
        ),
        "mamba": (
            Mamba2(num_layers=draw(LAYERS), num_heads=64, head_dim=64, n_groups=8, state_size=128, conv_kernel_size=4),
            full,
        ),
    }[kind]  # fmt: skip
    mtp = (FullAttention(num_layers=1, num_kv_heads=heads, head_size=size),)
    return Model(name=kind, layers=layers, mtp_layers=mtp)


@st.composite
def engines(draw, **fixed):
    drawn = {
        "version": draw(st.sampled_from(["0.19.0", "0.20.0", "0.22.0", "0.25.1", "0.26.0", "0.28.0", "0.29.0", "0.33.0"])),
        "kv_cache_dtype": draw(st.sampled_from(["auto", "fp8"])),
        "max_model_len": draw(LENGTHS),
        "max_num_batched_tokens": draw(st.sampled_from([2048, 8192])),
        "enable_prefix_caching": draw(st.booleans()),
        "num_speculative_tokens": draw(st.integers(0, 8)),
        "tensor_parallel_size": draw(st.sampled_from([1, 2, 4, 8])),
    }
    return Engine(**drawn | fixed)


def planned(model, engine, available):
    """The pool, or None where it is refused for its size."""
    try:
        return plan_pool(model, engine, available)
    except DoesNotFit:
        return None


def changed(engine, **settings):
    return Engine(**{name: getattr(engine, name) for name in Engine.__dataclass_fields__} | settings)


@given(models(), engines(), BYTES)
@settings(max_examples=150, deadline=None)
def test_a_pool_never_takes_more_than_is_available_and_leaves_less_than_a_block(model, engine, available):
    pool = planned(model, engine, available)
    if pool:
        used = pool.num_blocks * pool.block_size_bytes
        assert used <= available < used + pool.block_size_bytes
        assert pool.usable_blocks == pool.num_blocks - 1
        assert pool.blocks_per_request == pool.blocks(engine.max_model_len) <= pool.num_blocks - pool.plan.null_blocks


@given(models(), engines(), BYTES)
@settings(max_examples=150, deadline=None)
def test_a_refusal_names_what_is_needed_and_the_longest_length_that_fits(model, engine, available):
    try:
        plan_pool(model, engine, available)
    except DoesNotFit as refused:
        assert refused.needed_bytes > available
        assert plan_pool(model, engine, refused.needed_bytes)
        assert planned(model, engine, refused.needed_bytes - 1) is None
        longest = refused.longest_max_model_len
        assert longest < engine.max_model_len
        if longest:
            assert planned(model, changed(engine, max_model_len=longest), available)
        assert planned(model, changed(engine, max_model_len=longest + 1), available) is None


@given(models(), engines(), st.integers(1, 1 << 20), st.integers(1, 1 << 20))
@settings(max_examples=150, deadline=None)
def test_a_longer_request_takes_no_fewer_blocks(model, engine, one, other):
    pool = plan_pool(model, changed(engine, max_model_len=1), 1 << 45)
    low, high = sorted((one, other))
    assert pool.blocks(low) <= pool.blocks(high)
    assert pool.blocks(low, running=True, peak=True) <= pool.blocks(low) + len(pool.groups)
    assert pool.blocks(low, running=True) <= pool.blocks(low, running=True, peak=True)
    assert pool.fixed_blocks_per_request < pool.blocks(low)


@given(engines(num_speculative_tokens=0), HEADS, SIZES, LAYERS, BYTES, st.sampled_from(["heads", "layers"]))
@settings(max_examples=150, deadline=None)
def test_more_heads_or_layers_never_hold_more_tokens(engine, heads, size, layers, available, more):
    engine = changed(engine, max_model_len=1024)
    small = FullAttention(num_layers=layers, num_kv_heads=heads, head_size=size)
    twice = {"num_kv_heads": heads * 2} if more == "heads" else {"num_layers": layers * 2}
    large = FullAttention(**{"num_layers": layers, "num_kv_heads": heads, "head_size": size} | twice)
    pools = [planned(Model(name="toy", layers=(layer,)), engine, available) for layer in (large, small)]
    assert pools[0] is None or pools[0].tokens <= pools[1].tokens


@given(engines(num_speculative_tokens=0), st.integers(1, 1 << 20), HEADS, SIZES, LAYERS, BYTES)
@settings(max_examples=150, deadline=None)
def test_blocks_of_one_token_and_no_state_are_the_unpaged_formula(engine, limit, heads, size, layers, available):
    engine = changed(engine, max_model_len=limit, block_size=1, version="0.28.0")
    layer = FullAttention(num_layers=layers, num_kv_heads=heads, head_size=size)
    pool = planned(Model(name="toy", layers=(layer,)), engine, available)
    each = layers * layer.token_bytes("fp8" if engine.kv_cache_dtype == "fp8" else "bf16", engine.tensor_parallel_size)
    assert (pool.num_blocks if pool else None) == (available // each if limit * each <= available else None)
    if pool:
        assert pool.blocks_per_request == limit and abs(pool.tokens - pool.num_blocks) <= 1


@given(models(), engines(tensor_parallel_size=4), st.lists(BYTES, min_size=4, max_size=4))
@settings(max_examples=100, deadline=None)
def test_the_pool_of_several_cards_is_that_of_the_smallest(model, engine, sizes):
    listed, least = planned(model, engine, sizes), planned(model, engine, min(sizes))
    assert (listed is None) == (least is None)
    if listed:
        assert (listed.num_blocks, listed.tokens) == (least.num_blocks, least.tokens)


@given(models(state=False), engines(), BYTES)
@settings(max_examples=100, deadline=None)
def test_more_cards_than_kv_heads_gain_nothing(model, engine, available):
    heads = model.layers[0].num_kv_heads
    pools = [planned(model, changed(engine, tensor_parallel_size=cards), available) for cards in (heads, heads * 2)]
    assert (pools[0] and pools[0].tokens) == (pools[1] and pools[1].tokens)


@given(models(), engines(), BYTES)
@settings(max_examples=25, deadline=None)
def test_every_plan_is_among_the_candidates_of_its_own_figure(model, engine, available):
    pool = planned(model, engine, available)
    if not pool:
        return
    fixed = {name: getattr(engine, name) for name in ("version", "tensor_parallel_size", "max_num_batched_tokens")}
    found = explain(pool.tokens, engine.max_model_len, model, kv_cache_dtype=engine.kv_cache_dtype, **fixed)
    recurrent = any(layer.recurrent for layer in model.layers)
    assert any(
        candidate.engine.num_speculative_tokens == engine.num_speculative_tokens
        and candidate.blocks_per_request == pool.blocks_per_request
        and (not recurrent or candidate.engine.enable_prefix_caching == engine.enable_prefix_caching)
        for candidate in found.candidates
    )
