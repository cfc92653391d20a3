"""Every pool that the engine itself planned (tests/golden/vllm_pools.json; LEGEND.md says how) comes out exactly."""

from __future__ import annotations

import json
from pathlib import Path

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
    SlidingWindow,
)
from aelius_math.model import Model
from aelius_math.units import GIB
from aelius_math.vllm import DoesNotFit, Engine, plan_pool

CASES = json.loads((Path(__file__).parent.parent / "golden" / "vllm_pools.json").read_text())
DTYPE_OF_BYTES = {2: "bf16", 4: "fp32"}


def layer_of(spec: dict[str, object], case: dict[str, object]) -> Layers:
    """One entry of `layers`, by the legend."""
    s = dict(spec)
    kind, n = s.pop("kind"), s.pop("n")
    if kind == "Attn":
        heads = {"num_layers": n, "num_kv_heads": s["kv_heads"], "head_size": s["head"]}
        if "window" in s:
            return SlidingWindow(**heads, sliding_window=s["window"])
        return ChunkedAttention(**heads, attention_chunk_size=s["chunk"]) if "chunk" in s else FullAttention(**heads)
    if kind == "MLA":
        return MLA(num_layers=n, kv_lora_rank=s["latent"] - 64, qk_rope_head_dim=64)
    common = {
        "num_layers": n,
        "conv_kernel_size": s["conv"],
        "state_dtype": DTYPE_OF_BYTES[case["state_bytes"]],
        "conv_dtype": DTYPE_OF_BYTES[case["conv_bytes"]],
    }
    if kind == "GDN":
        return GatedDeltaNet(
            **common,
            num_k_heads=s["k_heads"],
            num_v_heads=s["v_heads"],
            head_k_dim=s["k_dim"],
            head_v_dim=s["v_dim"],
        )
    if kind == "KDA":
        return KimiDelta(**common, num_heads=s["heads"], head_dim=s["dim"])
    if kind == "Mamba1":
        return Mamba1(**common, intermediate_size=s["inner"], state_size=s["state"])
    assert kind == "Mamba2", kind
    return Mamba2(
        **common,
        num_heads=s["heads"],
        head_dim=s["head"],
        n_groups=s["groups"],
        state_size=s["state"],
        chunk_size=s["chunk"],
    )


def model_and_engine(case: dict[str, object]) -> tuple[Model, Engine]:
    flags = case["flags"]
    model = Model(
        name=case["model"],
        layers=tuple(layer_of(spec, case) for spec in case["layers"]),
        mtp_layers=tuple(layer_of(spec, case) for spec in case.get("mtp_layers", ())),
        dtype=case["dtype"],
    )
    return model, Engine(
        version=case["vllm"],
        tensor_parallel_size=flags["tp"],
        kv_cache_dtype=flags["kv_dtype"],
        max_model_len=flags["max_model_len"],
        max_num_batched_tokens=flags["max_num_batched_tokens"],
        enable_prefix_caching=flags["prefix_caching"],
        num_speculative_tokens=flags["spec_k"],
        speculative_method=flags.get("spec_method") if flags["spec_k"] else None,
        draft=(layer_of(flags["draft"], case),) if "draft" in flags else None,
        mamba_cache_mode=flags.get("mamba_cache_mode"),
        hybrid_kv_cache_manager=flags["hybrid_kv_manager"],
        kernel_block_size=flags.get("kernel_align") if any(s["kind"] in ("KDA",) for s in case["layers"]) else None,
    )


def test_the_golden_file_is_whole():
    assert len(CASES) == 1071


@pytest.mark.parametrize("version", sorted({case["vllm"] for case in CASES}))
def test_every_pool_the_engine_planned_comes_out(version):
    wrong = [problem for i, case in enumerate(CASES) if case["vllm"] == version and (problem := compare(i, case))]
    assert not wrong, f"{len(wrong)} differ, first: {wrong[:5]}"


def compare(number: int, case: dict[str, object]) -> str | None:
    model, engine = model_and_engine(case)
    want = case["engine"]
    try:
        pool = plan_pool(model, engine, case["available_bytes"])
    except DoesNotFit as refused:
        got = {
            "error": "not enough",
            "estimated_max_model_len": refused.longest_max_model_len,
            "needed_gib": round(refused.needed_bytes / GIB, 2),
        }
        want = {key: value for key, value in want.items() if key != "block_size"}
    else:
        got = {
            "block_size": pool.block_size,
            "mamba_block_size": pool.block_size if pool.plan.mode != "none" else None,
            "num_blocks": pool.num_blocks,
            "groups": [list(group) for group in pool.groups],
            "tensors": max(group.num_layers for group in pool.groups),
            "page_size": pool.page_size_bytes,
            "total_bytes": pool.num_blocks * pool.block_size_bytes,
            "max_concurrency": pool.max_concurrency,
            "tokens": pool.tokens,
            "blocks_per_request": pool.blocks_per_request,
        }
    if not engine.hybrid_kv_cache_manager and "groups" in got and "groups" in want:  # what such a group is called was fed in
        got, want = ({**of, "groups": [group[1:] for group in of["groups"]]} for of in (got, want))
    return None if got == want else f"case {number} {case['model']}: got {got}, the engine has {want}"
