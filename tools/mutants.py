"""Breaks the package in small ways, one at a time, and reports what its tests let through. `make mutants` runs it.

    make mutants                          20 mutants of each module
    make mutants ARGS="vllm_plan 200 7"   of one module, how many, which seed

A mutant is a module with one operator, comparison, number or condition changed, in a copy of the tree. Its tests are
those in tests/unit/ of its room (the name up to the first _) and its own doctests.
"""

from __future__ import annotations

import ast
import copy
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
ROOMS = {"account": "ladder", "demand": "simulat", "erlang": "simulat", "scene": "simulat", "experiments": "simulat", "busy": "simulat", "formula": "binding", "gguf": "models"}
"""Where a module's tests go by another name than its own."""


def changes(tree: ast.AST) -> Iterator[tuple[ast.AST, str, object, str]]:
    """Every small change: the node, its field, the new value, and a word for it."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
            other = SWAPS[type(node.op)]
            yield node, "op", other(), f"line {line}: {type(node.op).__name__} -> {other.__name__}"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            other = SWAPS[type(node.ops[0])]
            yield node, "ops", [other(), *node.ops[1:]], f"line {line}: {type(node.ops[0]).__name__} -> {other.__name__}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            new = (not node.value) if isinstance(node.value, bool) else node.value + 1
            yield node, "value", new, f"line {line}: {node.value} -> {new}"
        elif isinstance(node, ast.IfExp | ast.If):
            yield node, "test", ast.UnaryOp(ast.Not(), node.test), f"line {line}: condition turned round"


def mutants(source: str, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """A word for the change and the changed source, for `count` changes drawn by this seed."""
    total = sum(1 for _ in changes(ast.parse(source)))
    for index in sorted(random.Random(seed).sample(range(total), min(count, total))):
        tree = ast.parse(source)
        node, field, value, word = list(changes(tree))[index]
        setattr(node, field, copy.deepcopy(value))
        yield word, ast.unparse(ast.fix_missing_locations(tree))


def tests_of(module: str) -> list[str]:
    """The tests of a module's room, and its own doctests."""
    room = ROOMS.get(module, module.split("_")[0])
    if room in ("config", "catalogue"):
        room = "model"
    found = {path.name for start in (room, module) for path in (ROOT / "tests" / "unit").glob(f"test_{start}*.py")}
    return [f"tests/unit/{name}" for name in sorted(found)] + [f"aelius_math/{module}.py"]


def survives(tree: Path, module: str) -> bool:
    """Whether all tests pass in this copy of the tree."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "--doctest-modules"]
    try:
        run = subprocess.run(
            [*command, *tests_of(module)], cwd=tree, capture_output=True, timeout=120, check=False, env={"PYTHONPATH": str(tree), "PATH": ""}
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def main() -> None:
    words = sys.argv[1:]
    names = [word for word in words if not word.isdigit()]
    count, seed = ([int(word) for word in words if word.isdigit()] + [20, 1][len(words) - len(names) :])[:2]
    skipped = ("__", "cli", "figures")
    modules = names or [path.stem for path in sorted((ROOT / "aelius_math").glob("*.py")) if not path.stem.startswith(skipped)]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns(".venv", ".git", "node_modules", "site", ".cache", "__pycache__")
        shutil.copytree(ROOT, tree, ignore=ignored)
        for module in modules:
            path = tree / "aelius_math" / f"{module}.py"
            source = path.read_text(encoding="utf-8")
            if not survives(tree, module):
                sys.exit(f"{module}: its tests fail as it is; mend that first")
            tried, survivors = 0, []
            for word, changed in mutants(source, count, seed):
                path.write_text(changed, encoding="utf-8")
                tried += 1
                if survives(tree, module):
                    survivors.append(word)
            path.write_text(source, encoding="utf-8")
            print(f"{module}: {tried - len(survivors)} of {tried} found")
            for word in survivors:
                print(f"    not found: {word}")


if __name__ == "__main__":
    main()
