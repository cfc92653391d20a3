"""No note types a digit into what its cells show; and the check that says so finds what is planted."""

from __future__ import annotations

import pytest

import typed_digits


def test_no_cell_shows_a_typed_digit() -> None:
    assert typed_digits.check() == []


@pytest.mark.parametrize(
    "code",
    [
        'print("289,661")',
        'print("a pool of 289,661 tokens")',
        'print(f"a pool of 289,661, or {pool}")',
        "print(289661)",
        'print("pool", 28)',
        "print(2 * 14)",
        'print(f"{28:,}")',
        'print(f"{2 * 14}")',
        'Markdown("**289,661**")',
        'text = "289,661"\nprint(text)',
        'figures.show(fig, name="x", alt="12 bars of it all", caption="x")',
        'figures.show(fig, name="x", alt="x", caption="There are 12 of them")',
        'figures.label(ax, 1, 2, "{pool}", pool="289,661")',
        'ax.annotate("12", (0, 0))',
        'ax.set_title("All 12")',
        'ax.text(0, 0, "12")',
        'num(x, "requests of 128K")',
        'num(x, "requests", "counted 12 times")',
        'num(x, "requests", "= 12 and so on")',
        'num(x, "requests", how="12 of them")',
        '"""All 12."""',
        "pool = 289661",
        'rows = [("a", "12")]',
        '"".join(["1", "2"])',
    ],
)
def test_a_typed_digit_is_found(code: str) -> None:
    assert typed_digits.in_script(code)


@pytest.mark.parametrize(
    "code",
    [
        'print(f"{pool:,} of {share:.2f}")',
        'print("%.2f of %d" % (a, b))',
        'print("{:,.3f}".format(a))',
        'print("an fp8 cache on an RTX 3090")',
        'num(x, "requests", "= pool // (128 * k_binary)")',
        'num(x, "requests", how="= pool / 2", source="vLLM 0.28.0, vllm/v1/core/kv_cache_utils.py, line 12")',
        'figures.label(ax, 12, 34, "{seats_128k} people", dx=10, seats_128k=seats)',
        'figures.show(fig, name="x", alt="{pool_2} tokens in one bar", caption="{pool_2} live", pool_2=pool)',
        'givens("ladder_2", "fp8_16")',
        'ids = ["fp8_token", "kv_token"]',
        'Engine(version="0.28.0", kv_cache_dtype="fp8")',
        'source = "llama.cpp at 0c1e57098"',
        'x = table["a12"]',
        'assert printed == "1.10x"',
        "assert plan.tokens == 289661",
        "ax.set_ylim(0, 280)",
        "print(1)",
        "# 289,661 in a comment",
    ],
)
def test_what_is_computed_named_or_cited_is_let_through(code: str) -> None:
    assert typed_digits.in_script(code) == []
