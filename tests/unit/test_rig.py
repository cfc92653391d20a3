"""Your rig: what the page draws is what the commands print; what is missing is asked for, and nothing typed is an error."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from aelius_math import catalogue, cli
from aelius_math.logs import read
from aelius_math.rig import cards, explain_log, work_out
from aelius_math.rig_form import LABELS, MOST_CARDS
from aelius_math.rig_sections import NOTES
from aelius_math.units import GIB, MIB, parse_bytes

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "tests" / "logs"
ARTICLE = {
    "model": "qwen3.8-27b", "available": "5.24 GiB", "tensor_parallel_size": "2", "kv_cache_dtype": "fp8", "num_speculative_tokens": "4",
    "slices": "64K,3x32K", "short_tokens": "6990",
}  # fmt: skip
FIVE = [
    ARTICLE,
    {"model": "llama-3.1-8b", "available": "8 GiB", "max_model_len": "32K"},
    {
        "model": "gemma-3-27b",
        "available": "12 GiB",
        "max_model_len": "65536",
        "max_num_batched_tokens": "8192",
        "tensor_parallel_size": "2",
    },
    {"model": "deepseek-v3", "available": "30 GB", "version": "0.27.0", "tensor_parallel_size": "8", "short_tokens": "8K"},
    {"model": "nemotron-3-super-120b-a12b", "available": "20 GiB", "kv_cache_dtype": "fp8", "enable_prefix_caching": "on"},
    {"model": "qwen3-8b", "available": "1 GiB"},
]
LLAMA = {
    "engine": "llama.cpp", "model": "qwen3.8-27b", "n_ctx": "64K", "n_seq_max": "1", "type_k": "q8_0", "type_v": "q8_0", "draft_max": "1",
    "weights_mib": "16,000", "free": "23962", "build": "jul",
}  # fmt: skip


def command_json(line: str) -> dict[str, object]:
    """What a command line prints with --json."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert cli.main([*shlex.split(line)[3:], "--json"]) in (0, 1)
    found: dict[str, object] = json.loads(printed.getvalue())
    return found


def run_python(code: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env=environment, check=False)
    return run.stdout + run.stderr


@pytest.mark.parametrize("settings", FIVE, ids=lambda one: one["model"])
def test_the_copied_command_line_prints_the_numbers_of_the_page(settings: dict[str, str]) -> None:
    found = work_out(settings)
    pool, *ladder = found["code"]["command"].splitlines()
    printed = command_json(pool)
    shown = found["numbers"]["pool"]
    assert {name: printed[name] for name in shown} == shown
    for line in ladder:
        printed = command_json(line)
        blocks = found["numbers"]["ladder"]["blocks"]
        assert {name: printed[name] for name in blocks} == blocks


@pytest.mark.parametrize("settings", [FIVE[0], FIVE[3], FIVE[5]], ids=lambda one: one["model"])
def test_the_copied_python_prints_the_numbers_of_the_page(settings: dict[str, str], tmp_path: Path) -> None:
    found = work_out(settings)
    printed = run_python(found["code"]["python"], tmp_path)
    pool = found["numbers"]["pool"]
    if pool["refused"]:
        assert f"{pool['needed_bytes']:,}" in printed and f"{pool['longest_max_model_len']:,}" in printed
        return
    assert f"{pool['tokens']:,} tokens in {pool['num_blocks']:,} blocks" in printed
    for name, one in found["numbers"]["ladder"].items():
        assert f"ladder in {name}: {one['seats']:,} seats, {one['shorts']:,} of them short, {one['left']:,} left" in printed


def test_a_pasted_config_is_the_file_of_the_copied_code(tmp_path: Path) -> None:
    config = json.dumps(catalogue.config("qwen3.8-27b"))
    found = work_out({**ARTICLE, "model": "", "config": config})
    assert found["numbers"]["pool"]["tokens"] == work_out(ARTICLE)["numbers"]["pool"]["tokens"]
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    assert "289,661 tokens" in run_python(found["code"]["python"], tmp_path)
    line = found["code"]["command"].splitlines()[0].replace("config.json", str(tmp_path / "config.json"))
    assert command_json(line)["tokens"] == 289661


def test_llama_cpp_is_the_command_fit(tmp_path: Path) -> None:
    found = work_out(LLAMA)
    printed, shown = command_json(found["code"]["command"]), dict(found["numbers"]["fit"])
    assert {name: printed[name] for name in shown} == shown
    assert printed["worth"] and [one["flag"] for one in printed["worth"]] == [one["flag"] for one in found["numbers"]["worth"]]  # type: ignore[index, union-attr]
    assert f"the wall: {shown['wall_tokens']} tokens" in run_python(found["code"]["python"], tmp_path)


def test_free_memory_before_the_start_is_read_as_less_by_the_state_that_july_counts_twice() -> None:
    before, line = (work_out({**LLAMA, "free_is": word})["numbers"]["fit"] for word in ("before", "fit"))
    assert line["free_mib"] == 23962 and before["free_mib"] == 23962 - before["recurrent_mib"] != 23962


def section(found: dict[str, Any], title: str) -> dict[str, Any]:
    (one,) = [each for each in found["sections"] if each["title"].startswith(title)]
    return one


def test_a_context_that_the_fit_pass_shrinks_is_the_one_described() -> None:
    found = work_out({"engine": "llama.cpp", "model": "qwen3.8-27b", "n_seq_max": "1", "free": "23962", "weights_mib": "16000"})
    fit = found["numbers"]["fit"]
    assert fit["verdict"] == "context reduced" and fit["n_ctx"] == 262144
    rows = {label: text for label, text, _ in section(found, "What you have")["rows"]}
    wall = f"{fit['wall_tokens']:,} tokens"
    assert rows["Context"].startswith(wall) and wall in found["headline"][0] and wall in found["short"]
    assert not any("262,144" in text for text in found["headline"])
    assert max(each["tokens"] for each in found["numbers"]["seats"]) == fit["wall_tokens"]
    asked = work_out({**found["settings"], "n_ctx": str(fit["wall_tokens"])})
    assert {label: text for label, text, _ in section(asked, "What you have")["rows"]} == rows


@pytest.mark.parametrize(("n_ctx", "vision"), [("64K", ""), ("64K", "888.5"), ("200K", "")])
def test_the_picture_of_a_device_is_what_it_has_free_and_what_is_wanted(n_ctx: str, vision: str) -> None:
    rig = {"engine": "llama.cpp", "model": "qwen3.8-27b", "n_ctx": n_ctx, "n_seq_max": "1", "free": "23962", "weights_mib": "16000", "vision_mib": vision}  # fmt: skip
    found = work_out(rig)
    (picture,), fit = found["pictures"], found["numbers"]["fit"]
    sizes = {part["what"]: part["bytes"] for part in picture["parts"]}
    free = 23962 * MIB - fit["recurrent_mib"] * MIB
    assert "23.3 GiB free as the fit pass reads it, 23.4 GiB less the state" in picture["total"] and ("vision" in sizes) == bool(vision)
    assert sum(sizes.values()) == picture["bytes"] >= free and sizes["margin, to stay free"] == 1024 * MIB
    if n_ctx == "64K":
        assert picture["bytes"] == free and picture["limit"] is None and fit["verdict"] == "fits"
    else:
        lacking = picture["bytes"] - free
        assert picture["limit"] == free / picture["bytes"] and round(lacking / MIB, 2) == fit["deficit_mib"]
        assert f"{lacking / GIB:.2f} GiB are lacking" in picture["total"] and f"{lacking / GIB:.2f} GiB are lacking" in found["headline"][0]


def test_where_the_compute_buffers_are_not_known_a_shrunk_context_is_described_and_the_reason_is_said() -> None:
    rig = {"engine": "llama.cpp", "model": "qwen3.8-27b", "n_seq_max": "4", "free": "23962", "weights_mib": "16000"}
    found = work_out(rig)
    assert found["numbers"]["fit"]["verdict"] == "unknown"
    rows = {label: text for label, text, _ in section(found, "What you have")["rows"]}
    context = rows["Context"].split()[0]
    assert context != "1,048,576" and f"at most {context} tokens" in found["headline"][0]
    assert max(each["tokens"] for each in found["numbers"]["seats"]) == int(context.replace(",", ""))
    (ask,) = found["asks"]
    assert ask["field"] == "compute_mib" and "here are 4, one a slot" in ask["text"]
    assert not work_out({**rig, "kv_unified": "on"})["asks"], "one cache for all slots is measured, as the reason says"
    assert "27B models only" in work_out({**rig, "model": "gemma-3-27b"})["asks"][0]["text"]


def test_compute_buffers_that_were_typed_shrink_with_the_context_that_the_fit_pass_shrinks() -> None:
    found = work_out(
        {"engine": "llama.cpp", "model": "gemma-3-27b", "n_seq_max": "1", "free": "23962", "weights_mib": "16000", "compute_mib": "2500"}
    )
    fit, rows = found["numbers"]["fit"], {label: text for label, text, _ in section(found, "What you have")["rows"]}
    assert fit["verdict"] == "context reduced" and rows["Verdict"] == "fits" and rows["The wall"].split()[0] == f"{fit['wall_tokens']:,}"


def test_as_many_cards_can_be_typed_as_are_taken() -> None:
    assert f'name="count" type="number" min="1" max="{MOST_CARDS}"' in (ROOT / "docs" / "rig.md").read_text(encoding="utf-8")


def test_seats_at_the_wall_need_slots_too() -> None:
    rig = {**LLAMA, "draft_max": "", "kv_unified": "on"}
    for slots in (1, 2):
        found = work_out({**rig, "n_seq_max": str(slots)})
        wall = found["numbers"]["fit"]["wall_tokens"]
        for each in found["numbers"]["seats"]:
            assert each["seats_at_wall"] == min(slots, wall // each["tokens"])


def test_a_pool_that_an_old_release_logs_too_small_is_not_called_what_fits() -> None:
    rig = {"model": "gemma-3-27b", "available": "16 GiB", "max_model_len": "32K", "max_num_batched_tokens": "2048"}
    old, new = (work_out({**rig, "version": version})["headline"][0] for version in ("0.17.0", "0.33.0"))
    assert "vLLM 0.17.0 logs" in old and "more fit than that" in old and "live at once" in new


def test_a_config_that_stands_before_the_list_is_said_to() -> None:
    config = json.dumps(catalogue.config("qwen3-8b"))
    found = work_out({"model": "llama-3.1-8b", "config": config, "available": "8 GiB"})
    assert any("not the list's llama-3.1-8b" in text for text in found["taken"])
    (problem,) = work_out({"model": "llama-3.1-8b", "config": "{\n  ", "available": "8 GiB"})["problems"]
    assert "empty it to take the list's llama-3.1-8b" in problem["text"] and "\\n" not in problem["text"]


def test_drafts_of_a_model_without_mtp_are_refused_with_where_to_plan_them() -> None:
    (problem,) = work_out({"model": "qwen3-8b", "available": "8 GiB", "num_speculative_tokens": "3"})["problems"]
    assert problem["field"] == "num_speculative_tokens" and "--draft" in problem["text"]


def test_a_refused_rig_keeps_its_figures_its_choices_and_a_derivation() -> None:
    refused = {"model": "llama-3.1-8b", "available": "1"}
    found = work_out(refused)
    pool = found["numbers"]["pool"]
    rows = {label: text for label, text, _ in section(found, "What is lacking")["rows"]}
    assert pool["refused"] and rows["Each token"] == "131,072 bytes" and rows["Tokens in a block"] == "16"
    assert rows["Needed"].startswith(f"{pool['needed_bytes']:,} bytes")
    (picture,) = found["pictures"]
    assert picture["bytes"] == pool["needed_bytes"] == sum(part["bytes"] for part in picture["parts"])
    choices = {row[0]: row[-1] for row in section(found, "What each choice costs")["rows"]}
    fp8 = work_out({**refused, "kv_cache_dtype": "fp8"})["numbers"]["pool"]
    assert f"{fp8['longest_max_model_len']:,}" in choices["fp8 cache"] and f"{pool['longest_max_model_len']:,}" in choices["as it is"]
    shorter = work_out({**refused, "max_model_len": str(pool["longest_max_model_len"])})
    assert section(found, "Step by step")["rows"] == section(shorter, "Step by step")["rows"]
    assert section(found, "Seats by length")["rows"] == section(shorter, "Seats by length")["rows"]


def test_a_share_left_open_is_the_releases_own_and_said_where_it_does_not_start() -> None:
    rig = {"model": "qwen3-8b", "memory": "cards", "cards": [{"visible": "24 GiB"}], "weights": "5", "extra": "1"}
    for version, share in (("0.19.1", 0.9), ("0.33.0", 0.92)):
        found = work_out({**rig, "version": version})
        assert any(f"{share}, the default of vLLM {version}" in text for text in found["taken"])
        assert found["numbers"]["pool"]["available_bytes"] == ceil(24 * GIB * share) - 6 * GIB
    (problem,) = work_out({**rig, "cards": [{"visible": "24 GiB", "tenant": "4"}]})["problems"]
    assert problem["field"] == "gpu_memory_utilization" and "vLLM's default" in problem["text"] and "at most 0.8333" in problem["text"]


def test_what_no_share_could_hold_is_the_weights_trouble_and_a_cards_own_fields_are_named() -> None:
    rig = {"model": "qwen3-8b", "memory": "cards", "cards": [{"visible": "24 GiB"}, {"visible": "-3 GiB"}], "weights": "500", "extra": "1"}
    (problem,) = work_out(rig)["problems"]
    assert problem["field"] == "weights" and "'500'" in problem["text"] and "card 1 has 24.0 GiB free" in problem["text"]
    (problem,) = work_out({**rig, "tensor_parallel_size": "2", "weights": ""})["problems"]
    assert problem == {"field": "visible 2", "text": "Card 2, Memory CUDA sees: got '-3 GiB', expected nothing below 0."}
    (problem,) = work_out({**rig, "count": "99"})["problems"]
    assert problem["field"] == "count" and "from 1 to 16" in problem["text"]


def test_cards_that_stand_idle_are_said_in_the_answer() -> None:
    rig = {"model": "qwen3-8b", "memory": "cards", "cards": [{"visible": "24 GiB"}] * 2, "weights": "5", "extra": "1"}
    found = work_out(rig)
    assert "Tensor parallel is 1: of the 2 cards, 1 stands idle." in found["headline"] and "1 stands idle" in found["short"]
    assert not any("idle" in text for text in work_out({**rig, "tensor_parallel_size": "2"})["headline"])


def test_a_bare_number_too_small_for_a_device_is_asked_for_its_unit() -> None:
    (problem,) = work_out({**LLAMA, "free": "24"})["problems"]
    assert problem["field"] == "free" and "24 GiB" in problem["text"]
    assert work_out({**LLAMA, "free": "23.4gib"})["numbers"]["fit"]["free_mib"] > 20_000


def test_recurrent_state_is_spoken_of_only_where_there_is_some() -> None:
    for name, speaks in (("qwen3-8b", False), ("qwen3.8-27b", True)):
        rows = section(work_out({"model": name, "available": "30 GiB"}), "What each choice costs")["rows"]
        (fp8,) = [row for row in rows if row[0] == "fp8 cache"]
        assert ("recurrent" in fp8[-1]) == speaks


def test_a_slice_longer_than_the_longest_request_is_refused() -> None:
    rig = {"model": "qwen3-8b", "available": "40 GiB", "max_model_len": "32K"}
    for change in ({"slices": "64K"}, {"short_tokens": "33K"}):
        found = work_out({**rig, **change})
        assert [problem["field"] for problem in found["problems"]] == list(change) and "32,768" in found["problems"][0]["text"]
        assert found["numbers"]["pool"]["tokens"] and "ladder" not in found["numbers"]


def test_the_choices_are_pools_of_their_own() -> None:
    choices = {one["what"]: one["tokens"] for one in work_out(ARTICLE)["numbers"]["choices"]}
    assert choices["no draft tokens"] == work_out({**ARTICLE, "num_speculative_tokens": "0"})["numbers"]["pool"]["tokens"]
    assert choices["prefix caching off"] == work_out({**ARTICLE, "enable_prefix_caching": "off"})["numbers"]["pool"]["tokens"]
    assert choices["4 cards"] == work_out({**ARTICLE, "tensor_parallel_size": "4"})["numbers"]["pool"]["tokens"]
    assert choices["one GiB more on each card"] == work_out({**ARTICLE, "available": "6.24 GiB"})["numbers"]["pool"]["tokens"]


def test_the_prefill_kernel_is_offered_where_it_decides_and_its_pool_is_a_choice() -> None:
    newest = {**ARTICLE, "version": "0.33.0"}
    assert work_out(ARTICLE)["offered"] == [] == work_out({**newest, "model": "qwen3-8b"})["offered"]
    assert work_out({**newest, "model": "kimi-linear-48b-a3b", "num_speculative_tokens": ""})["offered"] == ["kda_prefill_backend"]
    found, other = work_out(newest), work_out({**newest, "gdn_prefill_backend": "flashinfer"})
    assert found["offered"] == other["offered"] == ["gdn_prefill_backend"]
    tokens = [one["numbers"]["pool"]["tokens"] for one in (found, other)]
    assert tokens == [289661, 284111]
    choices = [{each["what"]: each["tokens"] for each in one["numbers"]["choices"]} for one in (found, other)]
    assert choices[0]["flashinfer prefill"] == tokens[1] and choices[1]["triton prefill"] == tokens[0]
    assert not any("prefill" in what for what in {each["what"] for each in work_out(ARTICLE)["numbers"]["choices"]})
    assert command_json(other["code"]["command"].splitlines()[0])["tokens"] == tokens[1]


def test_the_kernel_that_a_log_names_settles_which_settings_print_its_pool() -> None:
    begins = "(EngineCore pid=80) INFO 10-02 10:00:21"
    told = "(Worker_TP0 pid=89) INFO 10-02 10:00:25 [qwen_gdn_linear_attn.py:300] Using FlashInfer GDN prefill kernel (requested=auto, head_k_dim=128).\n"
    log = (LOGS / "tp2_028.txt").read_text(encoding="utf-8").replace(begins, told + begins)
    for old, new in (("0.28.0", "0.33.0"), ("289,661", "284,111"), ("1.10x", "1.08x"), ("to 1616", "to 1664")):
        log = log.replace(old, new)
    logs = log, log.replace("FlashInfer", "Triton/FLA")
    flashinfer, triton = (explain_log(one)["boots"][0] for one in logs)
    assert flashinfer["settings"]["gdn_prefill_backend"] == "flashinfer"
    assert work_out(flashinfer["settings"])["numbers"]["pool"]["tokens"] == 284111
    assert "None of the" in str(triton["sections"]), "Triton's kernel prints another pool"
    derived = [read(one)["boots"][0]["derived"]["settings"] for one in logs]
    assert derived[0]["gdn_prefill_backend"] == "flashinfer" and derived[1] is None


def test_cards_give_what_is_left_on_the_fullest() -> None:
    rig = {
        **ARTICLE, "memory": "cards", "cards": [{"card": "rtx-3090", "tenant": "2 GiB"}, {"visible": "24126 MiB"}], "weights": "9.8", "extra": "2.8",
        "gpu_memory_utilization": "0.9",
    }  # fmt: skip
    found = work_out(rig)
    left = ceil(24126 * 2**20 * 0.9) - parse_bytes("9.8 GiB") - parse_bytes("2.8 GiB")
    assert found["numbers"]["pool"]["available_bytes"] == left
    for picture in found["pictures"]:
        assert sum(part["bytes"] for part in picture["parts"]) == picture["bytes"], picture["title"]
    assert len(found["pictures"]) == 3
    assert command_json(found["code"]["command"].splitlines()[0])["tokens"] == found["numbers"]["pool"]["tokens"]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, "model"),
        ({"model": "qwen3-8b"}, "available"),
        ({"model": "falcon-mamba-7b", "available": "5 GiB"}, "max_model_len"),
        ({"model": "gemma-3-27b", "available": "5 GiB"}, "max_num_batched_tokens"),
        ({"model": "qwen3-8b", "memory": "cards"}, "cards"),
        ({"model": "qwen3-8b", "memory": "cards", "cards": [{}], "weights": "5", "extra": "1"}, "visible 1"),
        ({"model": "qwen3-8b", "memory": "cards", "cards": [{"card": "rtx-4090"}]}, "weights"),
        ({"model": "qwen3-8b", "memory": "cards", "cards": [{"card": "rtx-4090"}], "weights": "5"}, "extra"),
        ({"engine": "llama.cpp", "model": "llama-3.1-8b"}, "free"),
        ({"engine": "llama.cpp", "model": "llama-3.1-8b", "free": "10 GiB"}, "weights_mib"),
    ],
)
def test_what_is_not_known_is_asked_for(settings: dict[str, object], field: str) -> None:
    found = work_out(settings)
    assert field in [ask["field"] for ask in found["asks"]] and not found["problems"]
    assert "tokens" not in found["numbers"].get("pool", {})


def test_what_is_taken_for_a_setting_left_open_is_said() -> None:
    taken = " ".join(work_out({"model": "qwen3.8-27b", "available": "50 GiB"})["taken"])
    for name in (
        "Version: 0.28.0",
        "Longest request: 262,144",
        "Tensor parallel: 1",
        "Draft tokens: 0",
        "KV cache dtype: auto",
        "Prefix caching",
    ):
        assert name in taken


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": "gpt-7"}, "model"), ({"config": "{"}, "config"), ({"config": '{"model_type": "new"}'}, "model_type"),
        ({"available": "5.24 Gi"}, "available"), ({"available": "5,24"}, "available"), ({"num_speculative_tokens": "-4"}, "num_speculative_tokens"), ({"max_model_len": "long"}, "max_model_len"), ({"version": "0.99"}, "version"),
        ({"tensor_parallel_size": "two"}, "tensor_parallel_size"), ({"kv_cache_dtype": "fp9"}, "kv_cache_dtype"),
        ({"slices": "64X"}, "slices"), ({"reserve": "2"}, "reserve"), ({"k": "1001"}, "k, unit"), ({"enable_prefix_caching": "maybe"}, "enable_prefix_caching"),
    ],
)  # fmt: skip
def test_a_setting_that_is_wrong_is_named_with_what_was_expected(change: dict[str, str], field: str) -> None:
    (problem,) = work_out({**ARTICLE, **change})["problems"]
    assert problem["field"] == field and "expected" in problem["text"]


def test_a_wrong_ladder_leaves_the_pool_standing() -> None:
    assert work_out({**ARTICLE, "slices": "64X"})["numbers"]["pool"]["tokens"] == 289661


@hypothesis_settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*LABELS, "engine", "memory", "k", "unit"]),
        st.text(max_size=12) | st.sampled_from(["1", "on", "llama.cpp", "cards"]),
    )
)
def test_nothing_typed_raises(settings: dict[str, str]) -> None:
    json.dumps(work_out({"model": "qwen3.8-27b", **settings}))


def test_k_and_the_unit_of_bytes_are_read_and_shown_as_chosen() -> None:
    found = work_out({"model": "llama-3.1-8b", "available": "10", "max_model_len": "64K", "k": "1000", "unit": "GB"})
    assert found["numbers"]["pool"]["available_bytes"] == 10 * 10**9 and found["numbers"]["pool"]["max_model_len"] == 64000
    assert found["pictures"][0]["total"] == "10.0 GB"
    assert [one["tokens"] for one in found["numbers"]["seats"]] == [1000, 2000, 4000, 8000, 16000, 32000, 64000]


def test_the_first_answer_is_the_whole_one_without_the_choices() -> None:
    first, whole = work_out(ARTICLE, False), work_out(ARTICLE)
    assert [one["title"] for one in whole["sections"] if one not in first["sections"]] == ["What each choice costs"]
    assert first["headline"] == whole["headline"] and first["code"] == whole["code"]


def test_each_step_leads_to_a_note_that_is_there() -> None:
    rigs = [work_out(ARTICLE), work_out(LLAMA)]
    for found in rigs:
        (steps,) = [one for one in found["sections"] if one["kind"] == "steps"]
        assert all((ROOT / "notebooks" / f"{row['note']}.ipynb").exists() for row in steps["rows"])
    assert all((ROOT / "notebooks" / f"{note}.py").exists() for note in NOTES)


def test_the_markdown_says_every_figure() -> None:
    found = work_out(ARTICLE)
    for one in found["sections"]:
        if one["kind"] == "figures":
            assert all(f"{label}: **{text}**" in found["markdown"] for label, text, _ in one["rows"])
    assert found["code"]["command"] in found["markdown"] and found["code"]["python"].strip() in found["markdown"]


def test_every_card_has_a_size_and_says_who_measured_it() -> None:
    for card in cards().values():
        assert 8 * 2**30 < parse_bytes(card.visible) < 200 * 2**30
        assert re.search(r"https://github\.com/\S+/issues/\d+", card.source)


def test_a_log_of_the_article_is_explained_down_to_one_setting_which_opens_as_the_same_rig() -> None:
    found = explain_log((LOGS / "tp2_028.txt").read_text(encoding="utf-8"))
    (boot,) = found["boots"]
    assert not found["asks"] and not found["problems"] and found["numbers"]["boots"][0]["tokens"] == 289661
    assert work_out(boot["settings"])["numbers"]["pool"]["tokens"] == 289661
    assert sum(part["bytes"] for part in boot["pictures"][-1]["parts"]) == boot["pictures"][-1]["bytes"]
    assert {"Settings that fit", "What to change"} <= {one["title"] for one in boot["sections"]}


def test_a_log_of_a_model_outside_the_catalogue_asks_for_its_config_and_then_uses_it() -> None:
    log = (LOGS / "tp2_028.txt").read_text(encoding="utf-8").replace("Qwen3.8-27B", "Mine")
    assert [ask["field"] for ask in explain_log(log)["asks"]] == ["config"]
    config = json.dumps(catalogue.config("qwen3.8-27b"))
    found = explain_log(log, config)
    assert not found["asks"] and work_out(found["boots"][0]["settings"])["numbers"]["pool"]["tokens"] == 289661
    assert explain_log(log, "{")["problems"][0]["field"] == "config"
    chosen = explain_log(log, "qwen3.8-27b")
    assert chosen["boots"][0]["settings"]["model"] == "qwen3.8-27b" and not chosen["asks"]
    assert work_out(chosen["boots"][0]["settings"])["numbers"]["pool"]["tokens"] == 289661


def test_a_memory_that_does_not_go_with_the_settings_found_is_said_and_of_a_single_card_is_not_left_out() -> None:
    log = (LOGS / "tp2_028.txt").read_text(encoding="utf-8")
    fits, other = (explain_log(log.replace("5.24 GiB", size).replace("5.31 GiB", size))["boots"][0] for size in ("5.24 GiB", "9.99 GiB"))
    assert "memory line" not in section(fits, "Settings that fit")["text"]
    assert "do not go with the 9.99 GiB of the memory line" in section(other, "Settings that fit")["text"]
    line = "INFO 10-02 10:00:20 [core.py:114] Initializing a V1 LLM engine (v0.28.0) with config: model='Qwen/Qwen3-8B', max_seq_len=32768, tensor_parallel_size=1, kv_cache_dtype=auto, enable_prefix_caching=True,\n"
    line += "INFO [gpu_worker.py:508] Available KV cache memory: 5.00 GiB\n"
    line += "INFO [kv_cache_utils.py:2312] GPU KV cache size: 36,400 tokens, Maximum concurrency for 32,768 tokens per request: 1.11x\n"
    assert "None of the" not in str(section(explain_log(line)["boots"][0], "Settings that fit"))
    assert "None of the" in str(section(explain_log(line.replace("5.00", "7.77"))["boots"][0], "Settings that fit"))


@pytest.mark.parametrize(
    ("old", "new"),
    [("pipeline_parallel_size=1", "pipeline_parallel_size=2"), ("(EngineCore pid=80) INFO 10-02 10:01:06 [kv_cache_utils.py:2312] GPU KV", "(EngineCore pid=80) INFO 10-02 10:01:06 [kv_cache_utils.py:1] Multiplying the GPU KV cache size by the dcp_world_size 2.\n(EngineCore pid=80) INFO 10-02 10:01:06 [kv_cache_utils.py:2312] GPU KV")],
    ids=["stages", "context"],
)  # fmt: skip
def test_a_pool_of_several_stages_or_ranks_of_context_is_refused_by_name(old: str, new: str) -> None:
    log = (LOGS / "tp2_028.txt").read_text(encoding="utf-8")
    assert old in log
    found = explain_log(log.replace(old, new))
    (boot,) = found["boots"]
    settings = section(boot, "Settings that fit")
    assert "not derived" in settings["text"] and settings["rows"] == [] and settings["text"] in boot["notes"]
    assert not found["numbers"]["boots"][0]["derived"]["num_blocks"] and "What to change" not in str(boot["sections"])


def test_a_refused_log_is_drawn_and_says_what_binds_and_what_to_change() -> None:
    (boot,) = explain_log((LOGS / "tp2_refused.txt").read_text(encoding="utf-8"))["boots"]
    (picture,) = boot["pictures"]
    assert picture["bytes"] == 9 * GIB and picture["parts"][1]["kind"] == "lacking"
    assert ["What binds", "the memory for the cache", "one full request needs more"] in section(boot, "What it says")["rows"]
    rows = {row[0]: row[1:] for row in section(boot, "What to change")["rows"]}
    assert rows["--kv-cache-dtype fp8"][0] == "262,144" and rows["--max-model-len 146880"][0] == "146,880"
    rig = work_out(boot["settings"])["numbers"]["pool"]
    assert rig["refused"] and rig["longest_max_model_len"] == 146880


def test_a_logs_sizes_are_told_in_the_unit_that_was_chosen() -> None:
    for path in (LOGS / "tp2_028.txt", LOGS / "llama_fit.txt", LOGS / "tp2_refused.txt"):
        shown = explain_log(path.read_text(encoding="utf-8"), unit="GB")["boots"][0]
        told = json.dumps({name: shown[name] for name in ("headline", "sections", "pictures", "notes")})
        assert not re.search(r"\d (GiB|MiB)", told) and re.search(r"\d (GB|MB)", told)


def test_two_boots_are_told_apart_and_each_opens_with_its_own_release() -> None:
    log = (LOGS / "v0.txt").read_text(encoding="utf-8")
    found = explain_log(log + log.replace("0.6.4.post1", "0.6.5"))
    titles = [boot["title"] for boot in found["boots"]]
    assert titles[0].startswith("Boot 2 of 2: ") and titles[1].startswith("Boot 1 of 2: ")
    assert any("newest" in text for text in found["taken"])
    assert [boot["settings"]["version"] for boot in found["boots"]] == ["0.6.5", "0.6.4.post1"]
    (alone,) = explain_log(log)["boots"]
    assert not alone["title"].startswith("Boot")


@pytest.mark.parametrize(
    "path", sorted([*LOGS.glob("*.txt"), *(ROOT / "tests/golden/boot_logs").glob("*.txt")]), ids=lambda path: path.name
)
def test_every_log_is_explained_in_the_words_of_the_command(path: Path) -> None:
    found = explain_log(path.read_text(encoding="utf-8", errors="replace"))
    json.dumps(found)
    stated = found["numbers"]["boots"]
    assert [boot["headline"] for boot in reversed(found["boots"])] == [boot["sentences"] for boot in stated[-5:]]
    for boot in found["boots"]:
        json.dumps(work_out(boot["settings"]))


def test_a_text_that_is_no_log_is_said_to_be_none() -> None:
    assert explain_log("hello")["problems"][0]["field"] == "log"
