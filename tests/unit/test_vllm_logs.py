"""25 public boot logs (tests/golden/vllm_logs.json, LEGEND.vllm.md): stated ones come out; inferred ones are consistent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aelius_math.cache import FullAttention, GatedDeltaNet, SlidingWindow
from aelius_math.model import Model
from aelius_math.units import GIB
from aelius_math.vllm import DoesNotFit, Engine, explain, fill, plan_pool
from aelius_math.vllm_plan import make_plan

LOGS = {log["id"]: log for log in json.loads((Path(__file__).parent.parent / "golden" / "vllm_logs.json").read_text())}

STATED = ("talos-1995", "club-652")
STATED_WITHOUT_MEMORY = {"club-294": 425, "club-295": 424, "club-1170": 366}
INFERRED = (
    "club-142", "club-594", "club-602", "club-642", "club-1084", "club-1086", "club-46", "spark-200", "vllm-49011",
    "syv-3", "syv-7", "metax-230",
)  # fmt: skip
NOT_CONSISTENT: dict[str, str] = {}
"""Inferred logs that the settings as recorded do not print, with the reason."""


def attention(layers, heads, size):
    return FullAttention(num_layers=layers, num_kv_heads=heads, head_size=size)


def delta(layers, v_heads, state_dtype="fp32"):
    return GatedDeltaNet(
        num_layers=layers, num_k_heads=16, num_v_heads=v_heads, head_k_dim=128, head_v_dim=128, conv_kernel_size=4,
        state_dtype=state_dtype,
    )  # fmt: skip


SHAPES = {
    "qwen3.5-27b": ((delta(48, 48), attention(16, 4, 256)), (attention(1, 4, 256),)),
    "qwen3.5-27b@ssm16": ((delta(48, 48, "bf16"), attention(16, 4, 256)), (attention(1, 4, 256),)),
    "qwen3.5-35b-a3b": ((delta(30, 32), attention(10, 2, 256)), (attention(1, 2, 256),)),
    "qwen3-14b": ((attention(40, 8, 128),), ()),
    "llama3.1-8b": ((attention(32, 8, 128),), ()),
    "llama3.1-70b": ((attention(80, 8, 128),), ()),
    "qwen3-30b-a3b": ((attention(48, 4, 128),), ()),
}
DRAFTERS = {
    "DFLASH": attention(5, 8, 128),
    "DFLASH2": SlidingWindow(num_layers=5, num_kv_heads=8, head_size=128, sliding_window=2048),
}


def setting(log, **changes):
    """The model and the engine as recorded."""
    layers, mtp = SHAPES[log["geometry"]]
    version = log["vllm_version"]
    if name_of_build := {"club-46": "0.20.0"}.get(log["id"]):  # its own lines show the older token rule
        version = name_of_build
    settings = {
        "version": version,
        "tensor_parallel_size": log["tp"],
        "kv_cache_dtype": log["kv_cache_dtype"],
        "max_model_len": log["max_model_len"],
        "max_num_batched_tokens": log["max_num_batched_tokens"],
        "enable_prefix_caching": log["prefix_caching"],
        "num_speculative_tokens": log["num_speculative_tokens"],
        "draft": (DRAFTERS[log["drafter"]],) if log["drafter"] else None,
    }
    return Model(name=log["model"], layers=layers, mtp_layers=mtp), Engine(**settings | changes)


def blocks_that_print(log, **changes):
    """The numbers of blocks, within the printed memory's rounding, that print all that the log prints."""
    model, engine = setting(log, **changes)
    plan = make_plan(model, engine)
    if log["attention_block_size_logged"] not in (None, plan.block_size):
        return []
    printed, full = log["available_kv_gib"], plan.blocks(engine.max_model_len)
    if printed is not None:
        low, high = (int((printed + off) * GIB) // plan.block_size_bytes for off in (-0.005, 0.005))
        counts = range(low, high + 1)
    elif log["max_concurrency"] is not None:
        counts = range(int((log["max_concurrency"] - 0.01) * full), int((log["max_concurrency"] + 0.01) * full) + 2)
    else:
        counts = range(full, 3 * full)
    found = []
    for count in counts:
        try:
            pool = fill(model, engine, plan, count * plan.block_size_bytes)
        except DoesNotFit:
            continue
        if log["gpu_kv_cache_tokens"] not in (None, pool.tokens):
            continue
        if log["max_concurrency"] is None or f"{pool.max_concurrency:.2f}" == f"{log['max_concurrency']:.2f}":
            found.append(count)
    return found


def test_every_log_has_its_class():
    dense = {"lmcache-1739", "vllm-10517a", "vllm-10517b", "vllm-12569", "vllm-25350", "vllm-25350b", "vllm-27508"}
    assert {*STATED, *STATED_WITHOUT_MEMORY, "club-347", *dense, *INFERRED} == set(LOGS)


@pytest.mark.parametrize("name", STATED)
def test_a_log_whose_inputs_are_stated_is_reproduced(name):
    assert blocks_that_print(LOGS[name])


def test_club_652_fixes_prefix_caching_though_it_does_not_state_it():
    assert not blocks_that_print(LOGS["club-652"], enable_prefix_caching=False)


@pytest.mark.parametrize(("name", "blocks"), STATED_WITHOUT_MEMORY.items())
def test_without_a_memory_line_one_number_of_blocks_prints_the_log(name, blocks):
    assert blocks_that_print(LOGS[name]) == [blocks]


def test_club_347_states_its_block_size_in_its_settings():
    model, engine = setting(LOGS["club-347"])
    assert make_plan(model, engine).block_size == 1584
    assert blocks_that_print(LOGS["club-347"])


@pytest.mark.parametrize("name", ["lmcache-1739", "vllm-10517a", "vllm-25350"])
def test_a_dense_model_before_0_17_is_reproduced(name):
    assert blocks_that_print(LOGS[name])


def test_the_oldest_logs_count_blocks_of_16_tokens():
    model, engine = setting(LOGS["vllm-12569"])
    pool = plan_pool(model, engine, 1381 * make_plan(model, engine).block_size_bytes)
    assert (pool.tokens, f"{pool.max_concurrency:.2f}") == (22_096, "10.79")
    assert LOGS["vllm-10517a"]["gpu_kv_cache_tokens"] == 1952 * 16


@pytest.mark.parametrize(("name", "longest"), [("vllm-10517b", 23_648), ("vllm-25350b", 122_080)])
def test_a_dense_model_that_did_not_fit_before_0_17_is_refused_with_the_logged_length(name, longest):
    log = LOGS[name]
    model, engine = setting(log)
    window = {
        pytest.raises(DoesNotFit, plan_pool, model, engine, int((log["available_kv_gib"] + off / 1000) * GIB)).value for off in range(-5, 6)
    }
    assert longest in {refused.longest_max_model_len for refused in window}


def test_a_model_of_two_kinds_is_refused_before_0_17():
    layers = (attention(18, 8, 64), SlidingWindow(num_layers=18, num_kv_heads=8, head_size=64, sliding_window=128))
    engine = Engine(version="0.11.0", max_model_len=131_072, max_num_batched_tokens=1024)
    caught = pytest.raises(ValueError, plan_pool, Model(name="gpt-oss-120b", layers=layers), engine, 1836098519)
    assert caught.value.field == "version"


def test_at_least_ten_logs_with_inferred_inputs_are_consistent():
    consistent = [name for name in INFERRED if blocks_that_print(LOGS[name])]
    assert len(consistent) >= 10
    assert {name for name in INFERRED if name not in consistent} == set(NOT_CONSISTENT)


def test_the_articles_figure_was_also_printed_under_other_flags():
    log = LOGS["club-602"]
    model, _ = setting(log)
    found = explain(289_661, 262_144, model, version="0.24.0", tensor_parallel_size=2, available_kv_gib=5.23)
    settings = [(c.engine.num_speculative_tokens, c.engine.kv_cache_dtype) for c in found.candidates]
    assert (3, "int8_per_token_head") in settings
