"""`aelius-math fit`: the contract's names, exit codes, and every mistake in one line."""

import json

import pytest

from aelius_math.cli import main
from aelius_math.llamacpp_context import CACHE_TYPES

BASE = "fit qwen3.8-27b -c 81920 -np 2 -ub 512 -ctk q8_0 -ctv q8_0 --spec-draft-n-max 3 --weights-mib 14497"
REPLAYED = BASE + " --fit-target 1024 --free-mib 20996 --mmproj-mib 1136 --build oct"


@pytest.fixture
def run(capsys):
    def call(line):
        try:
            code = main(line.split())
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_a_replayed_run_prints_its_shape_and_exits_1_because_it_does_not_fit(run):
    code, out, err = run(REPLAYED + " --json")
    found = json.loads(out)
    assert (code, err) == (1, "")
    expected = {
        "schema": 1,
        "kv_mib": 2720.0,
        "recurrent_mib": 1197.0,
        "draft_kv_mib": 320.0,
        "compute_mib": 578.3,
        "projected_mib": 19312.3,
        "margin_mib": 2160.0,
        "verdict": "evict",
        "deficit_mib": 476.3,
        "wall_tokens": 70144,
        "layers_kept": 63,
        "layers_total": 66,
        "n_ctx": 81920,
        "n_ctx_seq": 40960,
        "cells": 40960,
        "streams": 2,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["build"] == {"name": "oct", "commit": "0c1e57098", "date": "2026-10-01"}
    assert {each["flag"] for each in found["worth"]} >= {"--fit-target 0", "-ub 256", "-np 1", "--no-mmproj-offload"}


def test_what_fits_exits_0(run):
    code, out, _ = run(REPLAYED.replace("81920", "65536") + " --json")
    assert (code, json.loads(out)["verdict"], json.loads(out)["deficit_mib"]) == (0, "fits", 0.0)


def test_the_text_says_verdict_wall_and_flags(run):
    code, out, err = run(REPLAYED)
    assert (code, err) == (1, "")
    for words in ("evict: 3 of 64 layers move to the CPU", "the wall: 70,144 tokens (68.5K)", "-ub 256", "2,720.00 MiB"):
        assert words in out
    code, out, _ = run(REPLAYED.replace("--build oct", "--build jul"))
    assert "the fused Gated DeltaNet kernel goes off for every layer" in out
    assert "adds the MTP context to the margin" in out


def test_free_memory_before_the_start_is_counted_twice_by_the_pass_and_said_so(run):
    _, out, _ = run(BASE + " --free-before-mib 22193 --json")
    found = json.loads(out)
    assert (found["counted_twice_mib"], found["free_mib"]) == (1197.0, 20996.0)
    assert any("counts 1,197.00 MiB of recurrent state twice" in note for note in found["notes"])
    _, out, _ = run(BASE + " --free-mib 20996 --json")
    assert any("already short by 1,197.00" in note for note in json.loads(out)["notes"])


def test_ngl_stops_the_pass_and_the_exit_code_still_says_that_it_does_not_fit(run):
    for flag in ("-ngl 99", "-ngl all", "-ot blk=CPU"):
        code, out, _ = run(REPLAYED + f" {flag} --json")
        assert (code, json.loads(out)["verdict"]) == (1, "evict")
        assert "loading goes on" in json.loads(out)["action"]
    code, out, _ = run(REPLAYED + " -ngl auto --json")
    assert json.loads(out)["layers_kept"] == 63


def test_unset_flags_are_the_servers_own(run):
    _, out, _ = run("fit qwen3.8-27b -c 64K --free-mib 24000 --weights-mib 14497 --json")
    found = json.loads(out)
    assert (found["slots"], found["streams"], found["n_ctx"], found["draft_kv_mib"]) == (4, 1, 65536, 0.0)
    _, out, _ = run("fit qwen3.8-27b -c 64K -np -1 --spec-type draft-mtp --free-mib 24000 --weights-mib 14497 --json")
    assert json.loads(out)["recurrent_mib"] == 4 * 4 * 149.625
    _, out, _ = run("fit qwen3.8-27b -c 64K -np 1 --spec-type none --spec-draft-n-max 3 --free-mib 24000 --weights-mib 14497 --json")
    assert json.loads(out)["recurrent_mib"] == 149.625
    code, out, _ = run("fit qwen3.8-27b -np 1 --free-mib 24000 --weights-mib 14497 --json")
    found = json.loads(out)
    assert (code, found["verdict"], found["n_ctx"]) == (0, "context reduced", 262144)
    assert found["n_ctx_after"] < 262144
    code, out, _ = run("fit qwen3.8-27b -np 1 -c 0 --free-mib 24000 --weights-mib 14497 --json")
    assert (code, json.loads(out)["n_ctx_after"]) == (1, 262144)


def test_unified_and_split_can_be_asked_for(run):
    _, out, _ = run(REPLAYED + " -kvu --json")
    assert json.loads(out)["streams"] == 1
    _, out, _ = run("fit qwen3.8-27b -c 64K -np 4 -no-kvu --free-mib 24000 --weights-mib 14497 --json")
    assert (json.loads(out)["streams"], json.loads(out)["verdict"]) == (4, "unknown")


def test_what_is_not_known_is_null_and_said_and_a_log_line_makes_it_known(run, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "num_hidden_layers": 32,
                "hidden_size": 4096,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "torch_dtype": "bfloat16",
            }
        )
    )
    line = f"fit {config} -c 8192 -np 1 --free-mib 20000 --weights-mib 4000"
    code, out, _ = run(line + " --json")
    found = json.loads(out)
    assert (code, found["verdict"], found["compute_mib"], found["projected_mib"]) == (0, "unknown", None, None)
    assert (found["kv_mib"], found["compute_growing_mib"], found["wall_tokens"]) == (1024.0, 8.0, None)
    assert any("--compute-mib" in note for note in found["notes"])
    assert "not known" in run(line)[1]
    code, out, _ = run(line + " --compute-mib 258.5 --json")
    found = json.loads(out)
    assert (code, found["verdict"], found["projected_mib"], found["worth"]) == (0, "fits", 5282.5, [])
    assert (found["compute_mib"], found["weights_mib"]) == (258.5, 4000.0)
    code, out, _ = run(line.replace("20000", "5000"))
    assert code == 1
    assert "lacking at least             1,056.00 MiB" in out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("-c x", "-c: got 'x'"),
        ("-c -5", "-c"),
        ("-c 99999999999", "n_ctx: got 99999999999"),
        ("-np 0", "n_seq_max: got 0"),
        ("-np two", "-np"),
        ("-ub 0", "n_ubatch: got 0"),
        ("-b 0", "n_batch: got 0"),
        ("-ctk fp8", "type_k: got 'fp8', expected one of f32, f16"),
        ("-ctv Q8_0", "type_v: got 'Q8_0'"),
        ("-ctkd int8", "type_k_draft: got 'int8'"),
        ("-ctvd int8", "type_v_draft: got 'int8'"),
        ("--spec-draft-n-max -1", "draft_max: got -1"),
        ("--fit-target 1GB", "--fit-target: got '1GB'"),
        ("--fit-target -1", "--fit-target: got '-1'"),
        ("--weights-mib nan", "--weights-mib: got 'nan'"),
        ("--weights-mib 1e400", "--weights-mib: got '1e400'"),
        ("--mmproj-mib 24,", "--mmproj-mib: got '24,'"),
        ("--build may", "--build"),
        ("-ngl x", "-ngl: got 'x'"),
        ("-ngl 40", "n_gpu_layers: got 40, expected at least 66 (all)"),
        ("--free-before-mib 1", "--free-before-mib"),
        ("-kvu -no-kvu", "-no-kvu"),
        ("--compute-mib 1", "compute_mib: got 1, expected at least the"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_flag_with_nothing_on_standard_output(run, flags, said):
    line = BASE.replace("14497", "16000") + " --free-mib 20996 " + flags
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_free_memory_and_weights_are_needed(run):
    assert run("fit qwen3.8-27b -c 4096 --weights-mib 1")[0] == 2
    assert run("fit qwen3.8-27b -c 4096 --free-mib 1")[0] == 2


def test_help_lists_the_flags_by_llama_cpps_own_names(run):
    code, out, _ = run("fit --help")
    assert code == 0
    for flag in ("-c", "-np", "-kvu", "-ub", "-b", "-ctk", "-ctv", "-ctkd", "-ctvd", "--spec-draft-n-max",
                 "--fit-target", "--free-mib", "--weights-mib", "--mmproj-mib", "--build", "-ngl"):  # fmt: skip
        assert flag in out
    assert all(name in out for name in CACHE_TYPES)
