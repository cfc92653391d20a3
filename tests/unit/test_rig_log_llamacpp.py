"""llama.cpp's boot logs on the page "Your rig": what binds, what to change and whether it is enough, which flags print the caches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aelius_math import catalogue
from aelius_math.rig import explain_log, work_out
from aelius_math.rig_log_llamacpp import margin_settings

TESTS = Path(__file__).parents[1]
STARTED = (TESTS / "golden" / "boot_logs" / "12.txt").read_text(encoding="utf-8")
EVICTED = (TESTS / "logs" / "llama_evict.txt").read_text(encoding="utf-8")
FITS = (TESTS / "logs" / "llama_fit.txt").read_text(encoding="utf-8")
CONFIG = json.dumps(catalogue.config("qwen3.6-27b"))


def sections(log: str, config: str | None = None) -> dict[str, dict[str, Any]]:
    (boot,) = explain_log(log, config)["boots"]
    return {section["title"]: section for section in boot["sections"]}


def test_what_binds_and_the_verdict_stand_among_the_figures() -> None:
    rows = {label: (text, note) for label, text, note in sections(EVICTED)["What it says"]["rows"]}
    assert rows["What binds"] == ("the slots", "at most 4 conversations at once")
    assert rows["Verdict"] == ("evict", "77 MiB are lacking")


def test_each_change_says_whether_it_gives_back_what_is_lacking() -> None:
    change = sections(EVICTED)["What to change"]
    assert "77 MiB are lacking" in change["text"]
    assert {row[0]: row[3] for row in change["rows"]} == {
        "-c 6912": "enough",
        "--spec-draft-n-max 1": "enough",
        "-np 3": "enough",
        "-ctk q8_0 -ctv q8_0": "enough",
    }
    more = sections(EVICTED.replace("by 77 MiB", "by 460 MiB"))["What to change"]
    assert {row[0]: row[3] for row in more["rows"]} == {
        "-c 768": "enough",
        "--spec-draft-n-max 1": "enough",
        "-np 3": "not enough alone",
        "-ctk q8_0 -ctv q8_0": "not enough alone",
    }


def test_the_shorter_context_gives_back_the_deficit_and_the_next_longer_one_may_not() -> None:
    size = int(next(row[0] for row in sections(EVICTED)["What to change"]["rows"] if row[0].startswith("-c ")).split()[1])
    per_token, mib = 65_536, 1 << 20
    assert size % 256 == 0 and (8_192 - size) * per_token >= 78 * mib > (8_192 - size - 256) * per_token


def test_without_a_deficit_no_change_is_called_enough_and_room_is_said() -> None:
    change = sections(FITS)["What to change"]
    assert "It fits as it is." in change["text"] and "at most 130,560 tokens" in change["text"]
    assert "to know" not in change["head"] and all(len(row) == len(change["head"]) for row in change["rows"])


def test_the_flags_that_print_the_caches_are_found_for_a_config_that_is_pasted() -> None:
    found = sections(STARTED, CONFIG)["Settings that fit"]
    assert found["rows"] == [["4", "one for all", "q8_0, q8_0", "none"]]
    assert "only these flags" in found["text"]


def test_what_a_log_does_not_say_is_searched() -> None:
    bare = "\n".join(line for line in STARTED.splitlines() if "n_seq_max" not in line and "kv_unified" not in line)
    rows = sections(bare, CONFIG)["Settings that fit"]["rows"]
    assert rows and all(row[0] == "4" for row in rows), "four slots of state are in the log"


@pytest.mark.parametrize("drafts", [1, 2, 3])
def test_drafted_tokens_are_read_off_the_recurrent_state(drafts: int) -> None:
    log = EVICTED.replace("1795.50", f"{598.5 * (1 + drafts):.2f}").replace("2 rs_seq", "9 rs_seq")
    (boot,) = explain_log(log, CONFIG)["boots"]
    assert boot["settings"]["draft_max"] == str(drafts) and boot["settings"]["type_draft"] == "f16"


def test_another_model_is_not_talked_into_fitting() -> None:
    found = sections(STARTED, json.dumps(catalogue.config("qwen3-8b")))["Settings that fit"]
    assert found["rows"] == [] and "it is another" in found["text"]


def test_a_boot_opens_with_its_drafts_and_so_with_its_verdict() -> None:
    found = explain_log(EVICTED)
    (boot,) = found["boots"]
    assert [ask["field"] for ask in found["asks"]] == ["config"]
    assert (boot["settings"]["draft_max"], boot["settings"]["type_draft"]) == ("2", "f16")
    assert "not whole on the device" in boot["title"] and "layers went to the CPU" in boot["headline"][0]
    for name in ("qwen3.6-27b", "qwen3.8-27b"):
        fit = work_out({**boot["settings"], "model": name})["numbers"]["fit"]
        assert fit["verdict"] == "evict" and abs(fit["deficit_mib"] - 77) < 1 and fit["wall_tokens"] == 6912
        assert abs(fit["projected_mib"] + fit["margin_mib"] - 20619 - 1186) < 1


@pytest.mark.parametrize("log", [EVICTED, FITS], ids=["evicted", "fits"])
def test_what_the_server_takes_does_not_count_what_stays_free(log: str) -> None:
    (boot,) = explain_log(log)["boots"]
    (picture,) = boot["pictures"]
    taken = sum(part["bytes"] for part in picture["parts"] if part["kind"] != "free")
    assert picture["total"].startswith(f"{taken / 2**30:,.1f}" if taken >= 10 * 2**30 else f"{taken / 2**30:,.2f}")
    (free,) = [part for part in picture["parts"] if part["kind"] == "free"]
    assert free["text"] in picture["total"] and "the margin asks for" in free["what"]


@pytest.mark.parametrize(
    ("margin", "drafter", "vision", "settings"),
    [
        (1024, None, None, {}), (1186, 162.02, None, {"build": "jul"}), (1024, 162.02, None, {}),
        (2160, None, 1161.02, {"fit_target_mib": "2160.00", "vision_mib": ""}),
        (2322, 162.02, 1161.02, {"build": "jul", "fit_target_mib": "2159.98", "vision_mib": ""}),
        (2160, 162.02, 1161.02, {"fit_target_mib": "2160.00", "vision_mib": ""}), (512, None, None, {"fit_target_mib": "512.00", "vision_mib": ""}),
        (None, None, None, {}),
    ],
)  # fmt: skip
def test_a_margin_is_told_once_whoever_stands_in_it(
    margin: int | None, drafter: float | None, vision: float | None, settings: dict[str, str]
) -> None:
    assert margin_settings({"margin_mib": margin, "draft_estimate_mib": drafter, "vision_estimate_mib": vision}) == settings
