"""Boot logs: six real ones, logs written by hand, refusals, and the same reading under any disguise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aelius_math.logs import read
from aelius_math.units import AeliusError

GOLDEN = Path(__file__).parent.parent / "golden" / "boot_logs"
NAMES = {
    "gpu_kv_cache_tokens": "tokens", "tp": "tensor_parallel_size", "prefix_caching": "enable_prefix_caching",
    "attention_block_size": "block_size", "estimated_longest": "longest_max_model_len", "pp": "pipeline_parallel_size",
}  # fmt: skip
STATED = (
    "engine", "version", "model", "tp", "pp", "kv_cache_dtype", "max_model_len", "prefix_caching", "attention_block_size",
    "available_kv_gib", "gpu_kv_cache_tokens", "max_concurrency", "kv_reserved_gib", "architecture", "draft_architecture",
    "max_num_batched_tokens", "max_num_seqs", "gpu_memory_utilization", "mamba_cache_mode", "model_loading_gib", "needed_gib",
    "estimated_longest", "status", "n_ctx_seq", "n_ctx_train", "kv_unified", "flash_attn",
)  # fmt: skip


def golden(number: str) -> tuple[str, dict]:
    """A real log and what a perfect reader gets out of it."""
    text = (GOLDEN / f"{number}.txt").read_bytes().decode()
    return text, json.loads((GOLDEN / f"{number}.json").read_text())


def compare(boot: dict, expect: dict) -> None:
    """Every stated field of the expectation, by its name here."""
    for key in STATED:
        if key in expect:
            assert boot[NAMES.get(key, key)] == expect[key], key
    if "speculative" in expect:
        assert boot["num_speculative_tokens"] == (expect["speculative"] or {}).get("num_speculative_tokens")


@pytest.mark.parametrize("number", ["01", "03", "06", "12", "15"])
def test_a_real_log_is_read_as_a_perfect_reader_reads_it(number: str) -> None:
    text, truth = golden(number)
    expect = truth["expect"]
    found = read(text)
    assert len(found["boots"]) == 1
    compare(found["boots"][0], {key: value for key, value in expect.items() if key != "build"})
    if "derived" in expect:
        assert {key: found["boots"][0]["derived"][key] for key in expect["derived"]} == expect["derived"]


def test_two_boots_of_one_paste_are_told_apart() -> None:
    text, truth = golden("08")
    boots = read(text)["boots"]
    assert len(boots) == 2
    for boot, expect in zip(boots, truth["expect"]["boots"], strict=True):
        compare(boot, expect)
    assert 784 in boots[0]["derived"]["block_size_candidates"]


def test_a_hand_reserved_pool_is_not_taken_for_free_memory_and_its_blocks_stay_open() -> None:
    boot = read(golden("06")[0])["boots"][0]
    assert boot["available_kv_gib"] is None and boot["kv_reserved_gib"] == 8.0
    assert boot["derived"]["num_blocks"] is None and boot["derived"]["ambiguous"]


def test_llama_cpp_caches_and_state_are_read_by_role() -> None:
    boot = read(golden("12")[0])["boots"][0]
    assert (boot["kv_mib"], boot["recurrent_mib"], boot["compute_mib"], boot["n_ctx"], boot["cells"]) == (
        4352.0,
        598.5,
        495.0,
        131072,
        131072,
    )
    expect = golden("12")[1]["expect"]
    assert boot["compute_mib_by_device"] == expect["compute_mib"]
    assert boot["recurrent"] == {key: value for key, value in expect["recurrent"].items() if key != "devices"}
    assert boot["derived"]["state_mib_per_conversation"] == 149.625
    assert boot["derived"]["kv_bytes_per_token"] == 16 * 2 * 1088


def test_a_drafters_caches_do_not_shadow_the_targets() -> None:
    boot = read(golden("15")[0])["boots"][0]
    assert boot["version"] == "10375 (ba360efe1)"
    assert (boot["kv_mib"], boot["cells"], boot["draft_kv_mib"]) == (1088.0, 32768, 50.0)
    assert [cache["role"] for cache in boot["caches"]] == ["target", "draft", "draft, sliding"]


# logs that are none

NO_LOGS = {
    "empty": "",
    "blank": "\n \n\t\n",
    "traceback": 'Traceback (most recent call last):\n  File "serve.py", line 3, in <module>\n    main()\nValueError: bad value 262144\n',
    "prose": "The GPU KV cache size is what counts. My log says GPU KV cache size: 289,661 tokens, and I wonder what that means.\n"
    "People often ask for the Maximum concurrency for 262,144 tokens per request: 1.10x is typical.\n",
    "question": 'What does "KV cache size" mean? I have 24 GB and n_ctx = 4096.\n',
    "sglang": "[2026-05-01 10:00:00 TP0] KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB\n"
    "[2026-05-01 10:00:01] max_total_num_tokens=367404, chunked_prefill_size=8192, max_running_requests=2048, context_len=40960\n",
    "tensorrt-llm": "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 20.11 GiB for max tokens in paged KV cache (164,736).\n",
    "ollama engine": 'time=2026-06-28T20:51:02Z level=INFO source=ggml.go:487 msg="kv cache" device=CUDA0 size="1.0 GiB"\n',
    "binary": bytes(range(256)).decode("latin-1") * 40,
}


@pytest.mark.parametrize("name", NO_LOGS)
def test_what_is_no_boot_log_is_refused_with_the_lines_looked_for(name: str) -> None:
    with pytest.raises(AeliusError, match="GPU KV cache size: .*llama_kv_cache: size ="):
        read(NO_LOGS[name])


def test_what_is_not_text_is_refused() -> None:
    for source in (None, 5, [1, 2]):
        with pytest.raises(AeliusError):
            read(source)  # type: ignore[arg-type]
