"""Every collected config gives the figures that were derived for it by hand (golden/models.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aelius_math.model import Model, from_config

MODELS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "golden" / "models.json").read_text("utf-8"))


def figures(model: Model) -> dict[str, int]:
    return {
        "bytes_per_token_bf16": model.kv_bytes_per_token(),
        "aux_bytes_per_token_bf16": model.index_bytes_per_token(),
        "window_bytes_bf16": model.window_bytes(),
        "conv_elements": model.conv_elements,
        "state_elements": model.state_elements,
        "mtp_bytes_per_token_bf16": model.mtp_bytes_per_token(),
    }


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case["name"])
def test_a_config_gives_the_figures_derived_by_hand(case: dict[str, Any]) -> None:
    truth = case["truth"]
    found = figures(from_config(case["config"]))
    assert found == {name: found[name] if truth[name] is None else truth[name] for name in found}


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case["name"])
def test_the_window_layers_are_as_derived_by_hand(case: dict[str, Any]) -> None:
    found = [
        {"layers": layer.num_layers, "bytes_per_token_per_layer": layer.token_bytes("bf16"), "window": layer.window}
        for layer in from_config(case["config"]).layers
        if layer.window is not None
    ]
    assert sorted(found, key=str) == sorted(case["truth"]["window_layers"], key=str)


def test_none_of_the_82_is_missing() -> None:
    assert len({case["name"] for case in MODELS}) == 82
