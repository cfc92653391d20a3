"""The catalogue: names, sources, and models that read as their origin does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aelius_math import catalogue
from aelius_math.model import from_config
from aelius_math.units import AeliusError

GOLDEN: dict[str, dict[str, Any]] = {
    case["name"]: case for case in json.loads((Path(__file__).parents[1] / "golden" / "models.json").read_text("utf-8"))
}


@pytest.mark.parametrize("name", catalogue.names())
def test_an_entry_is_read_and_has_its_dtype_and_sources(name: str) -> None:
    entry = catalogue.entry(name)
    model = catalogue.load(name)
    assert model.dtype is not None
    assert model.name == entry["repository"]
    assert entry["sources"] and all("https://" in source or "No whole" in source for source in entry["sources"])


@pytest.mark.parametrize("name", [name for name in catalogue.names() if catalogue.entry(name)["repository"] in GOLDEN])
def test_an_entry_has_the_layers_of_the_config_it_was_taken_from(name: str) -> None:
    model, origin = catalogue.load(name), from_config(GOLDEN[catalogue.entry(name)["repository"]]["config"])
    assert (model.layers, model.mtp_layers) == (origin.layers, origin.mtp_layers)
    assert model.max_position_embeddings == origin.max_position_embeddings


def test_about_thirty_models_are_there() -> None:
    assert len(catalogue.names()) >= 30


def test_a_repository_is_as_good_as_a_name_in_any_case() -> None:
    assert catalogue.load("QWEN/qwen3.8-27B") == catalogue.load("qwen3.8-27b")


def test_a_config_from_the_catalogue_may_be_changed_by_the_caller() -> None:
    catalogue.config("qwen3-8b")["num_hidden_layers"] = 1
    assert catalogue.config("qwen3-8b")["num_hidden_layers"] == 36


def test_a_name_that_is_not_there_is_refused_with_the_names() -> None:
    with pytest.raises(AeliusError, match=r"model: got 'qwen9'.*qwen3\.8-27b"):
        catalogue.load("qwen9")
