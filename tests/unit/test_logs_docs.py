"""The page on boot logs: every line it shows is read, every kind of line that is read is shown, its example is real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aelius_math import log_llamacpp_lines, log_vllm_lines
from aelius_math.log_lines import Keys, blocks, statements
from aelius_math.log_sentences import text
from aelius_math.log_table import find
from aelius_math.logs import read

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text("utf-8")
FORMS = log_vllm_lines.FORMS + log_llamacpp_lines.FORMS
KEYS = Keys(log_vllm_lines.KEYS + log_llamacpp_lines.KEYS, log_vllm_lines.PARTS + log_llamacpp_lines.PARTS)
SHOWN = re.findall(r"^```log\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LINES = [line for block in SHOWN for line in block.splitlines()]


def names(line: str) -> set[str]:
    """The kinds of line that are found in a line."""
    return {found.name for statement in statements(blocks(line), KEYS) for found in find(FORMS, statement)}


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_the_page_shows_is_read(line: str) -> None:
    assert names(line)


def test_the_lines_that_carry_figures_are_shown() -> None:
    shown = set().union(*map(names, LINES))
    assert shown >= {
        "tokens", "concurrency", "block", "padding", "available", "reserved", "needed", "longest", "no_memory", "args",
        "engine", "architecture", "batched", "mamba_mode", "prefill", "gpu_blocks", "older_available", "too_long", "cache", "state",
        "compute", "kv_buffer", "rs_buffer", "model_buffer", "n_ctx", "n_ctx_seq", "n_seq_max", "kv_unified", "projected",
        "short", "leaves", "fit_failed",
    }  # fmt: skip


def test_the_pages_example_is_what_the_command_prints() -> None:
    (printed,) = re.findall(r"^```output\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert text(read(SHOWN[0])) == printed.rstrip("\n")


@pytest.mark.parametrize("keys", [log_vllm_lines, log_llamacpp_lines], ids=["vllm", "llama.cpp"])
def test_every_form_has_a_key_and_every_key_a_part(keys: object) -> None:
    for key in keys.KEYS:  # type: ignore[attr-defined]
        assert any(part in "".join(key.split()) for part in keys.PARTS), key  # type: ignore[attr-defined]
    tight = ["".join(key.split()) for key in keys.KEYS]  # type: ignore[attr-defined]
    for form in keys.FORMS:  # type: ignore[attr-defined]
        words = "".join(form.form.split())
        written_out = len(form.literal) > 6  # else the wording is an alternation, and a key is one of its branches
        assert any(key in words for key in tight) or not written_out or form.name in ("placed", "device"), form.form
