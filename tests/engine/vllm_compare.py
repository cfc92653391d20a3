"""A golden case by the package's own planner, in the fields of `planned`: what the tests and `make oracle-vllm` compare."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from aelius_math import cache, cache_kinds
from aelius_math.cache import Layers
from aelius_math.model import Model
from aelius_math.units import GIB
from aelius_math.vllm import DoesNotFit, Engine, plan_pool

Case = dict[str, Any]


def layer(fields: dict[str, Any]) -> Layers:
    fields = dict(fields)
    kind = fields.pop("kind")
    made: Layers = (getattr(cache, kind, None) or getattr(cache_kinds, kind))(**fields)
    return made


def planned(case: Case) -> dict[str, Any]:
    """Our own plan of a case. Raises AeliusError for settings that are not derived, or that the engine would not take."""
    settings = dict(case["engine"])
    if "draft" in settings:
        settings["draft"] = tuple(layer(fields) for fields in settings["draft"])
    model = Model(name="toy", **{name: tuple(layer(each) for each in case[name]) for name in ("layers", "mtp_layers")})
    try:
        pool = plan_pool(model, Engine(**settings), case["available_bytes"])
    except DoesNotFit as refused:
        needed = round(refused.request_bytes / GIB, 2)
        return {"error": "not enough", "estimated_max_model_len": refused.longest_max_model_len, "needed_gib": needed}
    groups = [[*group, len(list(alike))] for group, alike in groupby(pool.groups)]
    own = {"num_blocks": pool.num_blocks, "max_concurrency": pool.max_concurrency, "tokens": pool.tokens, "groups": groups}
    return own | {"block_size": pool.block_size}


def compared(case: Case, theirs: dict[str, Any]) -> dict[str, Any]:
    """Our plan in the fields that theirs has; None where the release does not say."""
    ours = planned(case)
    if "error" in ours or "error" in theirs:
        return ours
    return {name: ours[name] if theirs[name] is not None else None for name in theirs}
