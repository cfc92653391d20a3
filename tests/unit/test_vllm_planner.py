"""Pools that the planner of each release planned (tests/golden/vllm_planner.json): what the other golden file leaves open."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from vllm_compare import compared

from aelius_math import catalogue
from aelius_math.vllm_versions import RELEASES, parse

CASES = json.loads((Path(__file__).parent.parent / "golden" / "vllm_planner.json").read_text())
COUNTS = Counter(case["engine"].get("version", "0.28.0") for case in CASES)
ASKED = [version for version in RELEASES if parse(version)[0] >= (0, 29, 0)]
"""The releases whose cases `make oracle-vllm` wrote."""


def test_every_release_is_there():
    assert set(RELEASES) - set(COUNTS) == {"0.27.0", "0.20.1"}  # between releases that are
    assert {COUNTS[version] for version in set(COUNTS) - set(ASKED)} == {40}


def test_of_a_release_that_was_asked_there_are_models_of_the_catalogue_twice_and_toys():
    for version in ASKED:
        cases = [case for case in CASES if case["engine"].get("version") == version]
        models = Counter(case.get("model", "a toy") for case in cases)
        assert models.pop("a toy") == 30 and set(models.values()) == {2}
        assert len(models) >= 38 and set(models) <= set(catalogue.names())


@pytest.mark.parametrize("version", sorted(COUNTS, key=parse))
def test_every_plan_of_a_releases_own_planner_comes_out(version):
    cases = [case for case in CASES if case["engine"].get("version", "0.28.0") == version]
    wrong = [(case, mine) for case in cases if (mine := compared(case, case["planned"])) != case["planned"]]
    assert not wrong, f"{len(wrong)} of {len(cases)} differ, first: {wrong[:1]}"
