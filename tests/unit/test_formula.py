"""Formulas of the ledger: exact arithmetic, and nothing else."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aelius_math.formula import evaluate, names_in
from aelius_math.units import AeliusError


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a + b * 2", 14),
        ("a ÷ b", Fraction(4, 5)),
        ("a / b * b", 4),
        ("b // a", 1),
        ("−a", -4),
        ("a ** 2", 16),
        ("floor(b / a)", 1),
        ("ceil(b / a)", 2),
        ("ceil_div(b, a)", 2),
        ("max(a, b)", 5),
        ("100 × a ÷ b", 80),
        ("4.11 * GiB", Fraction(411 * 2**30, 100)),
        ("a < b", True),
        ("a == b or b > 4", True),
        ("4 <= a < b", True),
    ],
)
def test_a_formula_is_exact_arithmetic(text: str, result: object) -> None:
    assert evaluate(text, {"a": 4, "b": 5}) == result


@pytest.mark.parametrize(
    "text",
    ["", "a +", "a.real", "a[0]", "'x'", "lambda: 1", "__import__('os')", "open(a)", "a if a else a", "x + 1", "a / 0", "True",
     "[a]", "a ** 9999", "floor(a, b)", "a := 1", "text + 1", "a and (b", "1" * 5000, "(" * 3000],
)  # fmt: skip
def test_what_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(AeliusError, match="formula"):
        evaluate(text, {"a": 4, "b": 5, "text": "64K"})


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**9))
def test_a_quotient_times_its_divisor_is_the_whole(a: int, b: int) -> None:
    assert evaluate("a / b * b", {"a": a, "b": b}) == a


def test_the_names_of_a_formula_are_its_ids_alone() -> None:
    assert names_in("ceil(a / b) + a * MiB") == ["a", "b"]
