"""A log is read the same whatever it went through before it was pasted."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aelius_math.logs import read, read_stream

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(TESTS))
from disguises import disguise

LOGS = sorted((TESTS / "golden" / "boot_logs").glob("*.txt")) + sorted((TESTS / "logs").glob("*.txt"))
TEXTS = {path.stem: path.read_bytes().decode() for path in LOGS}
READ = {name: read(text)["boots"] for name, text in TEXTS.items()}


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_colours_prefixes_clocks_line_ends_and_hard_wraps_change_nothing(name: str, seed: int) -> None:
    text = disguise(TEXTS[name], random.Random(seed), whole=name == "06")
    assert read(text)["boots"] == READ[name]


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_its_lines_its_bytes_and_its_pieces_read_alike(name: str) -> None:
    text = TEXTS[name]
    assert read(text.encode())["boots"] == READ[name]
    assert read(text.splitlines())["boots"] == READ[name]
    assert read(text.splitlines(keepends=True))["boots"] == READ[name]
    for size in (1, 7, 4096):
        assert read_stream(text[at : at + size] for at in range(0, len(text), size))["boots"] == READ[name]


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_boot_three_times_is_three_boots(name: str) -> None:
    text = TEXTS[name].rstrip("\n") + "\n"
    boots = read(text * 3)["boots"]
    if name not in ONE_OF_MANY:
        assert boots == READ[name] * 3


ONE_OF_MANY = {"06"}
"""A paste with nothing but a pool in it: the same pool again may be another rank's."""


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=25, deadline=None)
@given(share=st.floats(0.1, 0.95))
def test_what_a_cut_log_states_is_what_the_whole_one_states(name: str, share: float) -> None:
    """A crash before the end: nothing is invented; a field is as in the whole log, or it is not there."""
    text = TEXTS[name]
    lines = text.split("\n")
    try:
        boots = read("\n".join(lines[: int(len(lines) * share)]))["boots"]
    except ValueError:
        return
    for boot, whole in zip(boots, READ[name], strict=False):
        for key in ("tokens", "max_concurrency", "model", "version", "kv_mib", "recurrent_mib", "needed_gib", "projected_mib"):
            assert boot[key] in (None, whole[key]), key
