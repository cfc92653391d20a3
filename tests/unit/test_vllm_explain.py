"""Which settings print a logged pool."""

from __future__ import annotations

import json

import pytest

from aelius_math.cache import FullAttention, GatedDeltaNet, Mamba2, SlidingWindow
from aelius_math.cli import main
from aelius_math.model import Model
from aelius_math.units import AeliusError
from aelius_math.vllm import Engine, explain, plan_pool

QWEN = Model(
    name="Qwen3.8-27B",
    layers=(
        GatedDeltaNet(
            num_layers=48, num_k_heads=16, num_v_heads=48, head_k_dim=128, head_v_dim=128, conv_kernel_size=4,
            state_dtype="fp32",
        ),
        FullAttention(num_layers=16, num_kv_heads=4, head_size=256),
    ),
    mtp_layers=(FullAttention(num_layers=1, num_kv_heads=4, head_size=256),),
)  # fmt: skip
GEMMA = Model(
    name="Gemma-3-27B",
    layers=(
        SlidingWindow(num_layers=52, num_kv_heads=16, head_size=128, sliding_window=1024),
        FullAttention(num_layers=10, num_kv_heads=16, head_size=128),
    ),
)
NEMOTRON = Model(
    name="Nemotron",
    layers=(
        Mamba2(
            num_layers=23, num_heads=64, head_dim=64, n_groups=8, state_size=128, conv_kernel_size=4, chunk_size=128,
            state_dtype="fp32",
        ),
        FullAttention(num_layers=6, num_kv_heads=2, head_size=128),
    ),
)  # fmt: skip


def short(found):
    """Draft tokens, format, caching, state dtype of each candidate."""
    names = ("num_speculative_tokens", "kv_cache_dtype", "enable_prefix_caching", "mamba_ssm_cache_dtype")
    return [tuple(getattr(candidate.engine, name) for name in names) for candidate in found.candidates]


def test_six_settings_print_the_articles_pool_and_the_usual_one_comes_first():
    found = explain(289_661, 262_144, QWEN, tensor_parallel_size=2)
    assert short(found) == [
        (4, "fp8", True, None),
        (3, "int8_per_token_head", True, None),
        (5, "fp8", False, None),
        (4, "int8_per_token_head", False, None),
        (5, "int4_per_token_head", True, "bfloat16"),
        (8, "int4_per_token_head", False, "bfloat16"),
    ]
    assert found.ambiguous
    assert {(candidate.num_blocks, candidate.blocks_per_request) for candidate in found.candidates} == {(200, 181)}


def test_what_the_article_states_leaves_four_draft_tokens():
    found = explain(289_661, 262_144, QWEN, tensor_parallel_size=2, kv_cache_dtype="fp8", enable_prefix_caching=True)
    assert short(found) == [(4, "fp8", True, None)] and not found.ambiguous


def test_what_else_a_log_prints_narrows_the_search():
    def left(**printed):
        return short(explain(289_661, 262_144, QWEN, tensor_parallel_size=2, **printed))

    assert len(left(max_concurrency=1.10)) == 6 and left(max_concurrency=1.11) == []
    assert {dtype for _, dtype, *_ in left(available_kv_gib=5.24)} == {"fp8", "int8_per_token_head"}
    assert left(available_kv_gib=2.76) == [(5, "int4_per_token_head", True, "bfloat16")]
    assert left(block_size=1616) == [(4, "fp8", True, None), (5, "fp8", False, None)]


def test_the_space_searched_is_stated():
    found = explain(289_661, 262_144, QWEN, kv_cache_dtype="fp8")
    assert found.fixed == {"kv_cache_dtype": "fp8"}
    assert found.searched == {
        "num_speculative_tokens": tuple(range(17)),
        "enable_prefix_caching": (True, False),
        "mamba_cache_mode": ("align",),
        "mamba_ssm_cache_dtype": (None, "bfloat16"),
        "block_size": (None, 32, 64, 128),
    }
    assert found.tried == 17 * 2 * 2 * 4


def test_nothing_that_prints_it_is_an_empty_list():
    found = explain(289_662, 262_144, QWEN)
    assert found.candidates == () and not found.ambiguous


@pytest.mark.parametrize(
    ("model", "settings", "available"),
    [
        (QWEN, {"num_speculative_tokens": 2, "kv_cache_dtype": "fp8", "enable_prefix_caching": True}, 7 << 30),
        (QWEN, {"num_speculative_tokens": 0, "kv_cache_dtype": "auto", "enable_prefix_caching": False}, 20 << 30),
        (QWEN, {"num_speculative_tokens": 3, "kv_cache_dtype": "int8_per_token_head", "version": "0.20.0"}, 9 << 30),
        (GEMMA, {"max_num_batched_tokens": 8192, "version": "0.25.1"}, 21 << 30),
        (GEMMA, {"max_num_batched_tokens": 4096, "kv_cache_dtype": "fp8"}, 21 << 30),
        (NEMOTRON, {"mamba_cache_mode": "all", "enable_prefix_caching": True}, 30 << 30),
    ],
)
def test_a_planned_pool_is_among_its_own_candidates(model, settings, available):
    engine = Engine(max_model_len=100_000, **settings)
    pool = plan_pool(model, engine, available)
    found = explain(pool.tokens, 100_000, model, version=engine.version)
    same = [candidate for candidate in found.candidates if candidate.num_blocks == pool.num_blocks]
    assert pool.blocks_per_request in {candidate.blocks_per_request for candidate in same}
    wanted = {name: value for name, value in settings.items() if name in found.searched}
    assert any(all(candidate.settings[name] == value for name, value in wanted.items()) for candidate in same)


def test_a_setting_that_vllm_does_not_have_is_refused():
    assert pytest.raises(AeliusError, explain, 1, 1, QWEN, drafts=3).value.field == "drafts"


def test_a_given_setting_that_the_release_refuses_is_refused():
    caught = pytest.raises(AeliusError, explain, 9, 9, QWEN, kv_cache_dtype="nvfp4", version="0.19.0")
    assert caught.value.field == "kv_cache_dtype"


def test_the_command_lists_candidates_the_most_usual_first(capsys):
    words = "explain Qwen3.8-27B --tokens 289,661 --max-model-len 256K -tp 2 --enable-prefix-caching --json"
    assert main(words.split()) == 0
    shape = json.loads(capsys.readouterr().out)
    assert shape["ambiguous"] is True
    first = shape["candidates"][0]
    assert (first["num_speculative_tokens"], first["kv_cache_dtype"], first["enable_prefix_caching"]) == (4, "fp8", True)
    assert main([*words.split(), "--kv-cache-dtype", "fp8"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert shape["ambiguous"] is False and len(shape["candidates"]) == 1
