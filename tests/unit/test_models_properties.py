"""What holds of every config: harmless changes change nothing, a change of geometry does, more never costs less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aelius_math.config_families import TEXT
from aelius_math.model import Model, from_config
from aelius_math.units import AeliusError

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "golden" / "models.json").read_text("utf-8"))
CONFIGS = {case["name"]: case["config"] for case in CASES}
configs = st.sampled_from(list(CONFIGS.values()))

NOISE = st.dictionaries(
    st.sampled_from(["bos_token_id", "eos_token_id", "pad_token_id", "vocab_size", "transformers_version", "use_cache",
                     "initializer_range", "rms_norm_eps", "rope_theta", "my_note", "unsloth_fixed"]),
    st.none() | st.integers(0, 10**6) | st.text(max_size=20) | st.floats(allow_nan=True) | st.lists(st.integers(), max_size=5),
    max_size=8,
)  # fmt: skip


def size(model: Model) -> tuple[int, ...]:
    """Everything that is kept, in figures that can only grow with the geometry."""
    return (model.kv_bytes_per_token(), model.index_bytes_per_token(), model.window_bytes(), model.conv_elements,
            model.state_elements, model.mtp_bytes_per_token())  # fmt: skip


def text_of(config: dict[str, Any]) -> dict[str, Any]:
    """The section that describes the text model."""
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else config


def changed(config: dict[str, Any], **fields: Any) -> dict[str, Any]:
    if text_of(config) is config:
        return {**config, **fields}
    return {**config, "text_config": {**config["text_config"], **fields}}


@settings(max_examples=150, deadline=None)
@given(configs, NOISE, st.randoms(use_true_random=False))
def test_extra_keys_token_ids_and_order_change_nothing(config: dict[str, Any], noise: dict[str, Any], chance: Any) -> None:
    noisy = changed(config, **noise)
    items = list(noisy.items())
    chance.shuffle(items)
    shuffled = {name: dict(chance.sample(list(value.items()), len(value))) if isinstance(value, dict) else value
                for name, value in items}  # fmt: skip
    assert from_config(shuffled) == from_config(config)


@pytest.mark.parametrize("name", CONFIGS)
def test_null_is_as_good_as_absent(name: str) -> None:
    config = CONFIGS[name]
    silent = dict.fromkeys(("rope_scaling", "quantization_config", "auto_map", "layer_types", "head_dim", "dtype"))
    assert size(from_config({**silent, **config})) == size(from_config(config))


@settings(max_examples=200, deadline=None)
@given(configs, st.sampled_from(["num_key_value_heads", "head_dim", "kv_lora_rank", "linear_num_value_heads", "state_size"]),
       st.integers(2, 4))  # fmt: skip
def test_more_of_a_size_never_costs_less(config: dict[str, Any], field: str, times: int) -> None:
    stated = text_of(config).get(field)
    if not isinstance(stated, int):
        return
    try:
        more = from_config(changed(config, **{field: stated * times}))
    except AeliusError as error:
        assert field in error.field or "divisor" in str(error) or "num_attention_heads" in str(error)
        return
    assert all(after >= before for before, after in zip(size(from_config(config)), size(more), strict=True))


FAMILIES = [name for name in CONFIGS if "num_hidden_layers" in text_of(CONFIGS[name])]


@pytest.mark.parametrize("name", FAMILIES)
def test_another_number_of_layers_gives_another_answer_or_is_refused(name: str) -> None:
    config = CONFIGS[name]
    fewer = changed(config, num_hidden_layers=text_of(config)["num_hidden_layers"] - 1)
    try:
        assert size(from_config(fewer)) != size(from_config(config))
    except AeliusError as error:
        assert str(error)


WIDE = [name for name in CONFIGS if text_of(CONFIGS[name]).get("num_key_value_heads", 0) and "MLA" not in name]


@pytest.mark.parametrize("name", WIDE)
def test_one_kv_head_costs_less_where_kv_heads_count(name: str) -> None:
    config = CONFIGS[name]
    text = text_of(config)
    if "kv_lora_rank" in text or "compress_ratios" in text or text["num_key_value_heads"] == 1 or "rwkv" in str(config):
        assert size(from_config(changed(config, num_key_value_heads=1))) == size(from_config(config))
    else:
        assert size(from_config(changed(config, num_key_value_heads=1))) < size(from_config(config))


@settings(max_examples=60, deadline=None)
@given(layers=st.integers(1, 200), heads=st.integers(1, 64), share=st.sampled_from([1, 2, 4]), width=st.integers(1, 512))
def test_a_plain_model_is_the_product_of_its_fields(layers: int, heads: int, share: int, width: int) -> None:
    config = {"model_type": "llama", "num_hidden_layers": layers, "num_attention_heads": heads * share,
              "num_key_value_heads": heads, "head_dim": width}  # fmt: skip
    assert from_config(config).kv_bytes_per_token() == layers * 2 * heads * width * 2


@settings(max_examples=60, deadline=None)
@given(layers=st.integers(1, 120), period=st.integers(1, 12))
def test_layers_of_a_pattern_are_all_layers(layers: int, period: int) -> None:
    config = {"model_type": "gemma3_text", "num_hidden_layers": layers, "hidden_size": 2560, "sliding_window": 1024,
              "sliding_window_pattern": period}  # fmt: skip
    found = from_config(config).layers if layers else ()
    assert sum(layer.num_layers for layer in found) == layers
    assert sum(layer.num_layers for layer in found if layer.window is None) == layers // period


@pytest.mark.parametrize("model_type", TEXT)
def test_a_config_with_nothing_but_its_model_type_is_refused_by_a_field(model_type: str) -> None:
    with pytest.raises(AeliusError) as caught:
        from_config({"model_type": model_type})
    assert caught.value.value is None
