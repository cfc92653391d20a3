"""Pools that the planner of each release planned (tests/golden/vllm_planner.json): what the other golden file leaves open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aelius_math import cache, cache_kinds
from aelius_math.model import Model
from aelius_math.units import GIB
from aelius_math.vllm import DoesNotFit, Engine, plan_pool

CASES = json.loads((Path(__file__).parent.parent / "golden" / "vllm_planner.json").read_text())
VERSIONS = sorted({case["engine"].get("version", "0.28.0") for case in CASES})


def layer(fields):
    fields = dict(fields)
    kind = fields.pop("kind")
    return (getattr(cache, kind, None) or getattr(cache_kinds, kind))(**fields)


def planned(case):
    """What the case holds of the engine's plan, by our own."""
    settings = dict(case["engine"])
    if "draft" in settings:
        settings["draft"] = tuple(layer(fields) for fields in settings["draft"])
    model = Model(name="toy", **{name: tuple(layer(each) for each in case[name]) for name in ("layers", "mtp_layers")})
    try:
        pool = plan_pool(model, Engine(**settings), case["available_bytes"])
    except DoesNotFit as refused:
        needed = round(refused.needed_bytes / GIB, 2)
        return {"error": "not enough", "estimated_max_model_len": refused.longest_max_model_len, "needed_gib": needed}
    groups = []
    for group in pool.groups:
        if groups and groups[-1][:3] == list(group):
            groups[-1][3] += 1
        else:
            groups.append([*group, 1])
    own = {"num_blocks": pool.num_blocks, "max_concurrency": pool.max_concurrency, "tokens": pool.tokens, "groups": groups}
    own["block_size"] = pool.block_size
    return {name: own[name] if case["planned"][name] is not None else None for name in case["planned"]}


def test_every_release_is_there():
    assert len(VERSIONS) == 14 and len(CASES) == 560


@pytest.mark.parametrize("version", VERSIONS)
def test_every_plan_of_a_releases_own_planner_comes_out(version):
    cases = [case for case in CASES if case["engine"].get("version", "0.28.0") == version]
    wrong = [(case, mine) for case in cases if (mine := planned(case)) != case["planned"]]
    assert not wrong, f"{len(wrong)} of {len(cases)} differ, first: {wrong[:1]}"
