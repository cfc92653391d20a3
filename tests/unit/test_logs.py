"""Boot logs: six real ones, logs written by hand, refusals, and the same reading under any disguise."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aelius_math import catalogue
from aelius_math.logs import read
from aelius_math.units import GIB, AeliusError
from aelius_math.vllm import DoesNotFit, Engine, plan_pool
from aelius_math.vllm_plan import make_plan

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


# logs written by hand from the engines' own lines: one pool in two generations, ranks, restarts, the fit pass

LOGS = Path(__file__).parent.parent / "logs"


def by_hand(name: str) -> list[dict]:
    """The boots of one of the logs in tests/logs."""
    return read((LOGS / f"{name}.txt").read_text("utf-8"))["boots"]


def test_the_articles_pool_in_one_line_is_200_blocks_of_which_18_are_state() -> None:
    (boot,) = by_hand("tp2_028")
    derived = boot["derived"]
    assert (boot["tokens"], boot["max_concurrency"], boot["status"]) == (289661, 1.1, "started")
    assert (derived["num_blocks"], derived["blocks_per_request"], derived["fixed_blocks_per_request"]) == (200, 181, 18)
    assert (derived["usable_blocks"], derived["fixed_tokens"]) == (199, 29088)
    assert (derived["most_conversations"], derived["binds"]) == (8, "max_num_seqs")
    assert derived["flags"][0] == {
        "flag": "no --speculative-config", "tokens": 329939, "gain_tokens": 40278, "longest_max_model_len": None,
    }  # fmt: skip


def test_the_smallest_ranks_memory_binds_and_the_difference_is_noted() -> None:
    (boot,) = by_hand("tp2_028")
    assert boot["available_kv_gib"] == 5.24
    assert any("5.31" in note and "Worker_TP0" in note for note in boot["notes"])


def test_a_memory_line_of_another_rank_is_noted_not_believed() -> None:
    log = (LOGS / "tp2_028.txt").read_text("utf-8")
    lines = [line.replace("5.31 GiB", "6.02 GiB") for line in log.split("\n") if "Worker_TP1" not in line]
    (boot,) = read("\n".join(lines))["boots"]
    assert boot["derived"]["num_blocks"] == 200
    assert any("not the binding rank's" in note for note in boot["notes"])


def test_a_crash_and_a_restart_are_two_boots_and_the_crash_started_nothing() -> None:
    crashed, started = by_hand("restarts")
    assert (crashed["status"], started["status"]) == ("unknown", "started")
    assert any("CUDA ran out of memory" in note for note in crashed["notes"])
    assert (started["tokens"], started["derived"]["num_blocks"], started["derived"]["blocks_per_request"]) == (40976, 2561, 2560)


def test_the_old_engine_logs_blocks() -> None:
    (boot,) = by_hand("v0")
    assert boot["tokens"] is None
    assert (boot["derived"]["num_blocks"], boot["derived"]["blocks_per_request"]) == (1952, 1250)
    (refused,) = by_hand("v0_refused")
    assert (refused["status"], refused["tokens"], refused["longest_max_model_len"]) == ("refused", 23648, 23648)
    assert (refused["derived"]["num_blocks"], refused["derived"]["blocks_per_request"]) == (1478, 1813)


def test_blocks_that_two_settings_print_are_both_told() -> None:
    log = "Setting attention block size to 1568 tokens.\nGPU KV cache size: 302,921 tokens\n"
    log += "Maximum concurrency for 131,072 tokens per request: 2.31x\n"
    derived = read(log)["boots"][0]["derived"]
    assert derived["num_blocks"] is None and derived["ambiguous"]
    assert {"num_blocks": 208, "blocks_per_request": 90} in derived["candidates"]
    known = read("non-default args: {'enable_prefix_caching': True, 'max_model_len': 131072}\n" + log)["boots"][0]["derived"]
    assert (known["num_blocks"], known["blocks_per_request"]) == (208, 90)


def test_tokens_by_the_old_rule_are_noted() -> None:
    log = "(EngineCore pid=109) INFO 05-04 01:05:57 [interface.py:606] Setting attention block size to 816 tokens\n"
    log += "(EngineCore pid=109) INFO 05-04 01:05:57 [kv_cache_utils.py:1713] GPU KV cache size: 67,728 tokens\n"
    log += "(EngineCore pid=109) INFO 05-04 01:05:57 [kv_cache_utils.py:1718] Maximum concurrency for 180,000 tokens per request: 1.06x\n"
    (boot,) = read(log)["boots"]
    assert any("up to 0.20.0" in note for note in boot["notes"])


def test_two_lines_that_disagree_are_told() -> None:
    log = "non-default args: {'max_model_len': 262144, 'kv_cache_dtype': 'fp8'}\n"
    log += "INFO 05-04 01:05:57 [kv_cache_utils.py:1] GPU KV cache size: 100,000 tokens\n"
    log += "INFO 05-04 01:05:57 [kv_cache_utils.py:1] GPU KV cache size: 98,000 tokens\n"
    log += "INFO 05-04 01:05:57 [kv_cache_utils.py:1] Maximum concurrency for 27,440 tokens per request: 3.57x\n"
    (boot,) = read(log)["boots"]
    assert (boot["tokens"], boot["max_model_len"]) == (98000, 27440)
    assert any("disagree" in note for note in boot["notes"]) and any("262,144" in note for note in boot["notes"])


@pytest.mark.parametrize(
    ("line", "needed", "available", "longest"),
    [
        (("models's max seq len (131072), (24.00 GiB KV cache is needed, which is larger than the available KV cache memory (10.91 GiB). "
         "Based on the available memory, the estimated maximum model length is 59584."), 24.0, 10.91, 59584),
        (("model's max seq len (917504), 23.38 GiB KV cache is needed, which is larger than the available KV cache memory (22.61 GiB). "
         "Estimated maximum model length is 886912."), 23.38, 22.61, 886912),
        ("model's max seq len (131072), 16.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.97 GiB).",
         16.0, 3.97, None),
    ],
)  # fmt: skip
def test_every_wording_of_a_refusal_is_read(line: str, needed: float, available: float, longest: int | None) -> None:
    (boot,) = read("ValueError: To serve at least one request with the " + line)["boots"]
    assert (boot["status"], boot["needed_gib"], boot["available_kv_gib"]) == ("refused", needed, available)
    assert boot["longest_max_model_len"] == longest


def test_nothing_left_for_the_cache_is_a_refusal() -> None:
    log = "INFO 05-04 01:05:57 [gpu_worker.py:1] Available KV cache memory: -0.3 GiB\n"
    log += "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`."
    (boot,) = read(log)["boots"]
    assert (boot["status"], boot["available_kv_gib"], boot["tokens"]) == ("refused", -0.3, None)


def test_a_fit_pass_that_fits_says_by_how_much() -> None:
    (boot,) = by_hand("llama_fit")
    assert (boot["projected_mib"], boot["free_mib"], boot["verdict"], boot["leave_mib"]) == (6007, 11111, "fits", 5104)
    assert (boot["kv_mib"], boot["recurrent_mib"], boot["compute_mib"], boot["n_ctx"]) == (256.0, 201.0, 416.44, 8192)
    assert boot["derived"]["room_mib"] == 5104 - 1024


def test_a_dry_runs_caches_are_not_the_models() -> None:
    log = (LOGS / "llama_fit.txt").read_text("utf-8").replace("size =  256.00 MiB (  8192 cells", "size =  999.00 MiB (  9984 cells", 1)
    (boot,) = read(log)["boots"]
    assert boot["kv_mib"] == 256.0 and boot["cells"] is None


def test_a_fit_pass_that_evicts_tells_the_deficit_and_the_state_counted_twice() -> None:
    (boot,) = by_hand("llama_evict")
    assert (boot["verdict"], boot["deficit_mib"], boot["layers_on_device"]) == ("evict", 77, [65, 66])
    assert (boot["kv_mib"], boot["draft_kv_mib"], boot["recurrent_mib"]) == (512.0, 32.0, 1795.5)
    assert any("counts recurrent state twice" in note for note in boot["notes"])
    assert boot["derived"]["flags"][0] == {"flag": "--spec-draft-n-max 1", "saves_mib": 598.5, "tokens": 9576}


def test_a_fit_pass_that_gives_up_says_why() -> None:
    log = "common_params_fit_impl: projected to use 18414 MiB of device memory vs. 15020 MiB of free device memory\n"
    log += "common_params_fit_impl: cannot meet free memory target of 1024 MiB, need to reduce device memory by 4418 MiB\n"
    log += "common_fit_params: failed to fit params to free device memory: n_gpu_layers already set by user to 100, abort\n"
    (boot,) = read(log)["boots"]
    assert (boot["verdict"], boot["deficit_mib"]) == ("abort", 4418)
    assert "setbyuserto100" in boot["fit_reason"].replace(" ", "")


def test_sliding_windows_are_the_targets_second_cache() -> None:
    log = "llama_kv_cache: size =  544.00 MiB ( 65536 cells,   4 layers,  1/1 seqs), K (q8_0):  272.00 MiB, V (q8_0):  272.00 MiB\n"
    log += "llama_kv_cache: size =   21.25 MiB (  1024 cells,  20 layers,  1/1 seqs), K (q8_0):   10.62 MiB, V (q8_0):   10.62 MiB\n"
    (boot,) = read(log)["boots"]
    assert (boot["kv_mib"], boot["swa_mib"], boot["cells"], boot["draft_kv_mib"]) == (544.0, 21.25, 65536, None)


# the sentences

NUMBER = re.compile(r"(?<![\w.])-?\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w.]*[A-Za-z])")


def numbers(value: object) -> set[float]:
    """Every number of a JSON value, those in its texts too."""
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, int | float):
        return {float(value)}
    if isinstance(value, str):
        return {float(text.replace(",", "")) for text in NUMBER.findall(value)}
    return set().union(*map(numbers, value.values() if isinstance(value, dict) else value))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")) + sorted(LOGS.glob("*.txt")), ids=lambda path: path.stem)
def test_every_number_of_a_sentence_is_one_of_the_jsons(path: Path) -> None:
    for boot in read(path.read_bytes())["boots"]:
        known = numbers({key: value for key, value in boot.items() if key not in ("sentences", "notes")})
        for sentence in boot["sentences"]:
            assert numbers(sentence) <= known, sentence


def test_a_pool_over_context_ranks_is_told_and_not_derived() -> None:
    log = "INFO 05-04 01:05:57 [kv_cache_utils.py:1] Multiplying the GPU KV cache size by the cp_world_size 2 (pcp_world_size 1 * dcp_world_size 2).\n"
    log += "INFO 05-04 01:05:57 [kv_cache_utils.py:1] GPU KV cache size: 100,000 tokens\n"
    log += "INFO 05-04 01:05:57 [kv_cache_utils.py:1] Maximum concurrency for 20,000 tokens per request: 5.00x\n"
    (boot,) = read(log)["boots"]
    assert boot["tokens"] == 100000 and boot["derived"]["num_blocks"] is None
    assert any("Context parallel" in note for note in boot["notes"])


REFUSED_0_33 = """\
INFO [core.py:140] Initializing a V1 LLM engine (v0.33.0) with config: model='Qwen/Qwen3.8-27B', speculative_config=None, max_seq_len=262144, tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1, kv_cache_dtype=auto, enable_prefix_caching=True,
INFO [gpu_worker.py:773] Available KV cache memory: {line} GiB
ValueError: To serve at least one request with the model's max seq len (262144), (8.52 GiB KV cache is needed, which is larger than the available KV cache memory ({error} GiB). Based on the available memory, the estimated maximum model length is {longest}. Try increasing `gpu_memory_utilization`.
"""


def refused_0_33(line: str | None) -> dict:
    """Qwen3.8-27B without drafts refused by 0.33; its numbers as the planner gives them for 5.24 GiB."""
    engine = Engine(version="0.33.0", max_model_len=262144, tensor_parallel_size=2, enable_prefix_caching=True)
    model, memory = catalogue.load("qwen3.8-27b"), int(5.24 * GIB)
    longest = pytest.raises(DoesNotFit, plan_pool, model, engine, memory).value.longest_max_model_len
    error = (memory - make_plan(model, engine).block_size_bytes) / GIB
    text = REFUSED_0_33.format(line=line, error=f"{error:.2f}", longest=longest)
    if line is None:
        text = "\n".join(each for each in text.split("\n") if "Available" not in each)
    (boot,) = read(text)["boots"]
    assert boot["longest_max_model_len"] == longest and "null_block_left_out" not in boot
    return boot


def test_from_0_29_the_error_leaves_the_null_block_out_and_the_memory_line_holds() -> None:
    boot = refused_0_33("5.24")
    assert boot["available_kv_gib"] == 5.24
    assert any("leave out the null block" in note for note in boot["notes"])
    assert not any("binding rank" in note for note in boot["notes"])


def test_from_0_29_an_error_alone_is_given_its_null_block_back() -> None:
    one, both = refused_0_33(None), refused_0_33("5.24")
    assert one["available_kv_gib"] < 5.24 and any("one block more" in note for note in one["notes"])
    assert one["derived"]["flags"] and one["derived"]["flags"] == both["derived"]["flags"]
