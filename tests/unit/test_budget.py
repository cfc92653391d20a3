"""A card's memory by hand: two RTX 3090s, the engine on both, an image model on the second."""

from __future__ import annotations

import pytest

from aelius_math.budget import Card, Part, budget
from aelius_math.units import GIB, MIB, AeliusError

VISIBLE = 24_126 * MIB


def part(gib, label="estimated"):
    return Part(round(gib * GIB), label, "public threads on this model")


def card(name, tenant=0.0, **changes):
    parts = {
        "visible": Part(VISIBLE, "measured", "public logs of an RTX 3090"),
        "weights": part(9.8),
        "non_torch": part(0.9),
        "activation_peak": part(1.7),
        "cuda_graphs": part(0.2),
        "tenant": part(tenant),
    }
    return Card(name=name, **parts | changes)


def test_what_is_left_is_what_is_asked_for_less_what_the_engine_needs():
    left = budget([card("first")], gpu_memory_utilization=0.92).available_bytes[0]
    assert left == -(-VISIBLE * 92 // 100) - sum(round(gib * GIB) for gib in (9.8, 0.9, 1.7, 0.2))
    assert left // 28_131_328 == 346


def test_the_articles_pool_asks_for_three_quarters_of_a_card():
    needed = 5.24 + 9.8 + 0.9 + 1.7 + 0.2
    assert round(needed / (VISIBLE / GIB), 2) == 0.76
    with_image_model = budget([card("first"), card("second", tenant=4.11)], gpu_memory_utilization=0.76)
    assert with_image_model.fullest == "second"
    assert round(with_image_model.available_bytes[0] / GIB, 1) == 5.3


def test_the_fullest_card_binds_and_its_tenant_strands_as_much_on_the_other():
    found = budget([card("first"), card("second", tenant=4.11)])
    assert found.requested_bytes == (VISIBLE - round(4.11 * GIB),) * 2
    assert found.available_bytes[0] == found.available_bytes[1]
    assert found.stranded_bytes == (round(4.11 * GIB), 0)


def test_a_card_whose_weights_are_larger_strands_the_difference_on_the_other():
    found = budget([card("first"), card("second", weights=part(10.8))], gpu_memory_utilization=0.9)
    assert found.available_bytes[0] - found.available_bytes[1] == round(10.8 * GIB) - round(9.8 * GIB)
    asked = found.requested_bytes[0]
    assert found.stranded_bytes[1] == VISIBLE - asked
    assert found.stranded_bytes[0] == VISIBLE - asked + round(10.8 * GIB) - round(9.8 * GIB)


def test_graphs_are_taken_off_from_0_20_only():
    old, new = (budget([card("a")], gpu_memory_utilization=0.9, version=v).available_bytes[0] for v in ("0.19.0", "0.20.0"))
    assert old - new == round(0.2 * GIB)


def test_every_line_has_its_label_and_source_and_they_add_up():
    found = budget([card("first", tenant=1)], gpu_memory_utilization=0.9)
    assert all(line.label in ("measured", "estimated", "assumed", "computed") and line.source for line in found.lines)
    sizes = {line.what: line.size_bytes for line in found.lines}
    parts = sizes["weights"] + sizes["non-torch"] + sizes["activation peak"] + sizes["CUDA graphs"]
    assert sizes["asked for"] + parts == sizes["KV cache"] == found.available_bytes[0]


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: budget([card("a", tenant=8)], gpu_memory_utilization=0.9), "gpu_memory_utilization"),
        (lambda: budget([card("a", tenant=24)]), "tenant"),
        (lambda: budget([card("a", tenant=12)]), "weights"),
        (lambda: budget([card("a")], gpu_memory_utilization=0.5), "gpu_memory_utilization"),
        (lambda: budget([card("a")], gpu_memory_utilization=1.5), "gpu_memory_utilization"),
        (lambda: budget([]), "cards"),
        (lambda: Part(1, "guessed", "x"), "label"),
        (lambda: Part(1, "measured", " "), "source"),
        (lambda: Part(-1, "measured", "x"), "size_bytes"),
    ],
)
def test_what_the_engine_would_refuse_is_refused_by_name(call, field):
    assert pytest.raises(AeliusError, call).value.field == field
