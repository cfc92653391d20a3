"""Arithmetic written as text: what stands after the "=" of a ledger entry, and the condition of a word.

Exact: whole numbers and fractions, never a float unless a number that comes in is one. Nothing but arithmetic,
comparison and the names given is understood; anything else is refused by name.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from aelius_math.units import BYTE_UNITS, AeliusError, ceil_div

Number = int | float | Fraction

UNITS: dict[str, int] = {unit: size for unit, size in BYTE_UNITS.items() if unit not in ("B", "KB")}
"""Names that a formula may use for sizes: KiB, MiB, GiB, TiB, kB, MB, GB, TB."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floor": math.floor, "ceil": math.ceil, "round": round, "min": min, "max": max, "abs": abs, "sum": lambda *terms: sum(terms),
    "ceil_div": ceil_div, "log2": math.log2, "sqrt": math.sqrt, "lcm": math.lcm,
}  # fmt: skip

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip

SIGNS = str.maketrans("×÷−·", "*/-*")
LONGEST_POWER = 256


def parsed(text: str) -> ast.expr:
    """The syntax tree of a formula; × and ÷ and − are taken as *, / and -."""
    try:
        tree: ast.Expression = ast.parse(text.translate(SIGNS).strip(), mode="eval")
        return tree.body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise AeliusError("formula", text, "arithmetic such as pool / request_limit") from error


def names_in(text: str) -> list[str]:
    """The ids that a formula is built from, in order, each once.

    >>> names_in("floor(blocks ÷ per_request * request_limit) + 2 * MiB")
    ['blocks', 'per_request', 'request_limit']
    """
    found = [node for node in ast.walk(parsed(text)) if isinstance(node, ast.Name)]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return [name for name in dict.fromkeys(node.id for node in found) if name not in UNITS and name not in FUNCTIONS]


def evaluate(text: str, values: Mapping[str, object]) -> Number | bool:
    """The number that a formula comes to, with each name's value; a quotient of whole numbers stays a fraction.

    >>> evaluate("floor(blocks ÷ per_request * limit)", {"blocks": 200, "per_request": 181, "limit": 262144})
    289661
    >>> evaluate("0.45 <= x < 0.5", {"x": Fraction(48, 100)})
    True
    >>> evaluate("blocks / 2", {})
    Traceback (most recent call last):
    aelius_math.units.AeliusError: formula: got 'blocks / 2', expected known ids; 'blocks' is none
    """

    def refuse(expected: str) -> AeliusError:
        return AeliusError("formula", text, expected)

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, float):
                return Fraction(ast.unparse(node))
            if isinstance(node.value, int) and not isinstance(node.value, bool):
                return node.value
        if isinstance(node, ast.Name):
            found = values[node.id] if node.id in values else UNITS.get(node.id)
            if found is None:
                raise refuse(f"known ids; {node.id!r} is none")
            if isinstance(found, bool) or not isinstance(found, int | float | Fraction):
                raise refuse(f"ids of numbers; {node.id!r} is {found!r}")
            return found
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.operand))
        if isinstance(node, ast.BinOp):
            return binary(node, value(node.left), value(node.right))
        if isinstance(node, ast.Compare):
            terms = [value(node.left), *(value(term) for term in node.comparators)]
            tests = [OPERATORS.get(type(op)) for op in node.ops]
            if None not in tests:
                return all(test(a, b) for test, a, b in zip(tests, terms, terms[1:], strict=False) if test)
        if isinstance(node, ast.BoolOp):
            results = [value(term) for term in node.values]
            return all(results) if isinstance(node.op, ast.And) else any(results)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords:
            return FUNCTIONS[node.func.id](*(value(argument) for argument in node.args))
        raise refuse(f"arithmetic; {ast.unparse(node)!r} is none")

    def binary(node: ast.BinOp, left: Any, right: Any) -> Any:
        if isinstance(node.op, ast.Div):
            rough = isinstance(left, float) or isinstance(right, float)
            return left / right if rough else Fraction(left) / Fraction(right)
        if isinstance(node.op, ast.Pow) and abs(right) <= LONGEST_POWER:
            return left**right
        if type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](left, right)
        raise refuse("arithmetic: + - * / // % **")

    try:
        return value(parsed(text))  # type: ignore[no-any-return]
    except (ZeroDivisionError, OverflowError, TypeError) as error:
        raise refuse(f"arithmetic that comes to a number ({error})") from error
