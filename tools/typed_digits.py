"""Finds digits that are typed into what a note's cell shows: printed text, labels, captions, alt texts, tables.

What a cell shows is skipped by the other checks, because it was computed. So it has to be: no string of a cell holds a
digit, but for names (names.toml), exemptions, format specifications, formulas that are evaluated, and citations.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from aelius_math.formula import names_in
from aelius_math.ledger import published
from aelius_math.units import AeliusError
from prose import exempt, names

ROOT = Path(__file__).parent.parent

CITATIONS = {"source", "version", "vllm_version", "engine_version", "build"}
"""Keywords whose text names where something comes from, or which release is meant."""

SHOWING = {"print", "display", "Markdown", "HTML", "Latex", "Math", "SVG", "text", "annotate", "set_title", "title", "suptitle", "label"}
PLACEHOLDER = re.compile(r"\{[^{}]*\}|%[-+ #]*\d*(?:\.\d+)?[dfgse%]|\b[a-z]+\d*(?:_[a-z0-9]+)+\b")
"""Fields to be filled in, and identifiers such as fp8_token."""
LONG = 10_000


def in_script(script: str, file: str = "note.py") -> list[str]:
    """Sentences about every typed digit of a note, and every long number of the article that is retyped as code."""
    tree = ast.parse(script)
    given = {n.value: n.id for n in published().values() if isinstance(n.value, int) and n.value >= LONG}
    skipped = set(_skipped(tree))
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            if loose := _loose(node.value):
                found.append((node.lineno, f"{loose!r} is typed into a string; compute it, in braces, from the number itself"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value in given and node not in skipped:
            found.append((node.lineno, f"{node.value:,} is the article's: given({given[node.value]!r})"))
        elif isinstance(node, ast.FormattedValue) and (typed := _typed(node.value)):
            found.append((node.lineno, f"{typed} is typed into a string's braces"))
        elif isinstance(node, ast.Call) and _name(node) in SHOWING:
            typed = next((typed for argument in node.args if (typed := _typed(argument))), "") if _name(node) != "label" else ""
            if typed:
                found.append((node.lineno, f"{typed} is typed where it is shown"))
    return [f"{file}:{line}: {sentence}" for line, sentence in sorted(found)]


def _loose(text: str) -> str:
    """What is left of a string's digits when placeholders, names and exemptions are taken out of it."""
    rest = PLACEHOLDER.sub(" ", text)
    for pattern in (names(), exempt()):
        rest = pattern.sub(" ", rest)
    found = re.search(r"\S*\d\S*", rest)
    return found[0] if found else ""


def _typed(node: ast.expr) -> str:
    """The number of two digits or more that an expression is, if it is made of typed numbers only."""
    parts = list(ast.walk(node))
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    made = all(isinstance(part, ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop) for part in parts)
    digits = [value for value in numbers if isinstance(value, int | float) and not isinstance(value, bool)]
    return ast.unparse(node) if made and digits and len(digits) == len(numbers) and len(re.findall(r"\d", ast.unparse(node))) > 1 else ""


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def _skipped(tree: ast.AST) -> Iterator[ast.AST]:
    """Strings that are never shown, or that are checked by being evaluated."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in CITATIONS or (keyword.arg == "how" and _formula(keyword.value)):
                    yield from ast.walk(keyword.value)
            if _name(node) in ("num", "field"):
                for place, argument in enumerate(node.args):
                    if place == 5 or (place == 2 and _formula(argument)):
                        yield from ast.walk(argument)
            if _name(node) == "given" or _name(node) == "givens":
                for argument in node.args:
                    yield from ast.walk(argument)
        elif isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) and target.id in CITATIONS for target in node.targets):
            yield from ast.walk(node.value)
        elif isinstance(node, ast.Subscript):
            yield from ast.walk(node.slice)
        elif isinstance(node, ast.Compare):  # a check by another route may name what it expects
            yield from ast.walk(node)
        elif isinstance(node, ast.FormattedValue) and node.format_spec:
            yield from ast.walk(node.format_spec)


def _formula(node: ast.expr) -> bool:
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("=")):
        return False
    try:
        names_in(node.value[1:])
    except AeliusError:
        return False
    return True


def check(root: Path = ROOT) -> list[str]:
    """All notes."""
    found: list[str] = []
    for path in sorted((root / "notebooks").glob("*.py")):
        found += in_script(path.read_text(encoding="utf-8"), f"notebooks/{path.name}")
    return found
