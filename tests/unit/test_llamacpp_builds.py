"""llama.cpp build by build: every run of a real one is reproduced; what the package says it was held against is here."""

import json

import pytest
from llamacpp_models import GOLDEN
from llamacpp_runs import difference, says

from aelius_math.gguf_config import LATENT, MIXED, PLAIN, WINDOWED, model_from_gguf
from aelius_math.llamacpp_builds import BUILDS
from aelius_math.llamacpp_context import CACHE_TYPES
from aelius_math.llamacpp_memory import ATTENTION, STATE
from aelius_math.units import AeliusError

FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((GOLDEN / "llamacpp_builds").glob("*.json"))}
COUNTS = {"b9982": (299, 1, 0), "b11352": (307, 11, 0), "b11739": (870, 23, 2)}


def model_of(file, name):
    found = file["models"][name]
    return found["architecture"], file["common_keys"] | found["keys"]


@pytest.mark.parametrize("build", FILES)
def test_every_run_of_a_real_build_is_reproduced_as_printed_or_refused_as_it_refuses(build):
    file = FILES[build]
    made = refused = died = 0
    for row in file["runs"]:
        if "died" in row:
            died += 1
            continue
        assert difference(*model_of(file, row["model"]), row, file["rules"]) is None, row
        refused += "error" in row
        made += "log" in row
    assert (made, refused, died) == COUNTS[build]


@pytest.mark.parametrize("build", FILES)
def test_a_file_says_which_build_it_is_of_and_how_it_was_obtained(build):
    file = FILES[build]
    assert (file["engine"], file["build"], file["package"]) == ("llama.cpp", build, "llama-cpp-py-sync")
    assert file["version"] == "0." + build[1:]
    assert len(file["commit"]) == 9
    assert file["obtained"].startswith("make oracle-llamacpp")
    assert set(file["models"]) == {row["model"] for row in file["runs"]}


def test_the_newest_build_that_each_rules_name_is_the_newest_of_the_files():
    for build in BUILDS.values():
        newest = max((file for file in FILES.values() if file["rules"] == build.name), key=lambda file: int(file["build"][1:]))
        assert build.newest_seen[:2] == (newest["build"], newest["commit"])


@pytest.mark.parametrize("build", FILES)
def test_a_dry_run_allocates_the_recurrent_state_and_no_cache_so_that_the_fit_pass_counts_it_twice(build):
    file, dry = FILES[build], FILES[build]["dry_run"]
    state = says(*model_of(file, dry["model"]), dry, file["rules"])["rs"]["size"]
    assert dry["log"] == {"kv": 0.0, "rs": state}
    assert BUILDS[file["rules"]].state_counted_twice


def test_the_newest_build_was_asked_for_every_kind_of_layer_but_lightning_and_for_every_cache_type():
    file = FILES["b11739"]
    kinds = set()
    for name in file["models"]:
        arch, keys = model_of(file, name)
        full = {"general.architecture": arch, **{f"{arch}.{key}": value for key, value in keys.items()}}
        read = model_from_gguf(full, dtype="bf16")
        kinds |= {type(layer).__name__ for layer in (*read.layers, *read.mtp_layers)}
    assert kinds == {*ATTENTION, *STATE} - {"LightningAttention"}
    assert {row["type_k"] for row in file["runs"] if "log" in row} == set(CACHE_TYPES)
    assert {row["type_v"] for row in file["runs"] if "log" in row} == set(CACHE_TYPES)
    assert {row["drafts"] for row in file["runs"] if "drafts" in row} == {1, 2, 3}
    assert any(row.get("mtp") for row in file["runs"])


def test_the_newest_build_was_asked_for_every_architecture_that_the_reader_of_files_knows_but_one():
    asked = {model["architecture"] for model in FILES["b11739"]["models"].values()}
    assert asked == (PLAIN | WINDOWED.keys() | MIXED | LATENT) - {"apertus"}


def test_a_difference_names_both_answers_and_a_refusal_that_only_one_side_makes():
    file = FILES["b11739"]
    (row,) = [one for one in file["runs"] if (one["model"], one["ctx"], one["slots"]) == ("llama8b", 1000, 3)]
    asked = model_of(file, "llama8b")
    other = json.loads(json.dumps(row))
    other["log"]["kv"][0]["size"] += 0.01
    assert difference(*asked, row, "oct") is None
    assert "192.01" in difference(*asked, other, "oct")
    assert "192.0," in difference(*asked, other, "oct")
    assert difference(*asked, {**row, "error": "no"}, "oct") == "engine refused: no"
    unequal = {**row, "type_k": "q8_0"}
    assert difference(*model_of(file, "dsv2lite"), unequal, "oct").startswith("refused: type_v")


@pytest.mark.parametrize(("build", "other", "name"), [("b11739", "jul", "dsv2lite"), ("b11739", "jul", "lfm2-1.2b"),
    ("b9982", "oct", "dsv2lite"), ("b9982", "oct", "nemotron-nano-part")])  # fmt: skip
def test_what_changed_between_the_rules_is_seen_by_the_runs_of_the_other_build(build, other, name):
    file = FILES[build]
    rows = [row for row in file["runs"] if row["model"] == name]
    assert any(difference(*model_of(file, name), row, other) for row in rows)
    assert not any(difference(*model_of(file, name), row, file["rules"]) for row in rows)


def test_an_architecture_that_the_reader_does_not_know_is_refused():
    with pytest.raises(AeliusError, match=r"general\.architecture: got 'novel'"):
        says("novel", FILES["b11739"]["common_keys"], FILES["b11739"]["runs"][0], "oct")
