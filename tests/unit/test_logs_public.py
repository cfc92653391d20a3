"""The figures of public logs, set in the engine's own lines: the blocks behind them, or the candidates, never a guess."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aelius_math.logs import read

PUBLIC = {row["id"]: row for row in json.loads((Path(__file__).parents[1] / "golden" / "vllm_logs.json").read_text("utf-8"))}
HEAD = "INFO 10-02 10:00:02 [vllm.py:1] "


def log(row: dict, settings: bool = True) -> str:
    """A boot's lines with the row's figures; without `settings`, only what follows the planning."""
    lines = []
    name = row["model"].split(" ")[0]
    if settings:
        args = {
            "model": name, "max_model_len": row["max_model_len"], "tensor_parallel_size": row["tp"],
            "kv_cache_dtype": row["kv_cache_dtype"], "enable_prefix_caching": row["prefix_caching"],
            "max_num_batched_tokens": row["max_num_batched_tokens"],
        }  # fmt: skip
        if row["spec_method"]:
            tokens = row["num_speculative_tokens"]
            args["speculative_config"] = {"method": row["spec_method"], "num_speculative_tokens": tokens}
        lines.append(f"non-default args: {args}")
        lines.append(f"Initializing a V1 LLM engine (v{row['vllm_version']}) with config: model='{name}',")
    if row["attention_block_size_logged"]:
        lines.append(f"Setting attention block size to {row['attention_block_size_logged']} tokens.")
    if row["available_kv_gib"]:
        lines.append(f"Available KV cache memory: {row['available_kv_gib']} GiB")
    if row["gpu_kv_cache_tokens"]:
        lines.append(f"GPU KV cache size: {row['gpu_kv_cache_tokens']:,} tokens")
    if row["max_concurrency"]:
        times = f"{row['max_concurrency']:.2f}x"
        lines.append(f"Maximum concurrency for {row['max_model_len']:,} tokens per request: {times}")
    return "\n".join(HEAD + line for line in lines)


@pytest.mark.parametrize(
    ("name", "blocks", "per_request"),
    [
        ("talos-1995", 208, 90), ("club-294", 425, 179), ("club-295", 424, 179), ("club-1170", 366, 181), ("club-652", 300, 69),
        ("club-602", 200, 181), ("lmcache-1739", 2666, 2048), ("vllm-10517a", 1952, 1250), ("vllm-12569", 1381, 128),
    ],
)  # fmt: skip
def test_a_log_with_its_settings_gives_its_blocks(name: str, blocks: int, per_request: int) -> None:
    (boot,) = read(log(PUBLIC[name]))["boots"]
    assert (boot["derived"]["num_blocks"], boot["derived"]["blocks_per_request"]) == (blocks, per_request)


@pytest.mark.parametrize("name", ["talos-1995", "club-294", "club-602", "club-652", "lmcache-1739"])
def test_without_its_settings_the_same_figures_are_ambiguous(name: str) -> None:
    (boot,) = read(log(PUBLIC[name], settings=False))["boots"]
    assert boot["derived"]["num_blocks"] is None and boot["derived"]["ambiguous"]
    assert boot["derived"]["candidates_total"] > 1


@pytest.mark.parametrize("name", ["club-46", "club-1084", "club-1086", "syv-7"])
def test_a_drafter_whose_layers_no_log_tells_is_left_open(name: str) -> None:
    (boot,) = read(log(PUBLIC[name]))["boots"]
    assert boot["derived"]["num_blocks"] is None


def test_up_to_0_20_0_as_many_counts_print_the_same_tokens_as_there_are_groups() -> None:
    row = PUBLIC["spark-200"]
    for memory, counts in ((None, [2356, 2357, 2358, 2359]), (row["available_kv_gib"], [2358, 2359])):
        (boot,) = read(log({**row, "available_kv_gib": memory}))["boots"]
        assert boot["derived"]["num_blocks"] is None and boot["derived"]["blocks_per_request"] == 43
        assert [one["num_blocks"] for one in boot["derived"]["candidates"]] == counts


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_logs_figures_are_read_as_printed(name: str) -> None:
    row = PUBLIC[name]
    (boot,) = read(log(row))["boots"]
    assert boot["tokens"] == row["gpu_kv_cache_tokens"]
    assert boot["max_concurrency"] == row["max_concurrency"]
    assert (boot["max_model_len"], boot["version"]) == (row["max_model_len"], row["vllm_version"])
    assert boot["available_kv_gib"] == row["available_kv_gib"]
