"""Breaks the package in small ways, one at a time, and reports what its tests let through. `make mutants` runs it.

    make mutants                          20 mutants of each module
    make mutants ARGS="vllm_plan 200 7"   of one module, how many, which seed
    make mutants ARGS="vllm_plan all"     every mutant of it

A mutant is a module with one expression changed: + for -, * for //, a number one more, < for <=, and for or, min for max, a
condition turned round. Messages, annotations and docstrings are left alone. Its tests are those in tests/unit/ of its room
(the name up to the first _) and its own doctests; they run in a process forked from one that has pytest loaded. A
failure, an error or a run of over a minute finds the mutant.

tests/equivalent_mutants.txt lists those that cannot be told from the original, with the reason.
"""

from __future__ import annotations

import ast
import copy
import importlib.abc
import importlib.machinery
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.txt"
SECONDS = 60
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "lcm": "max"}
ROOMS = {
    "account": "ladder",
    "demand": "simulat",
    "erlang": "simulat",
    "scene": "simulat",
    "experiments": "simulat",
    "busy": "simulat",
    "formula": "binding",
    "gguf": "models",
    "cache": "vllm",
}
"""Where a module's tests go by another name than its own."""


class Mutant(NamedTuple):
    """One change: where, what it was, what it became, and the module's whole changed source."""

    line: int
    text: str
    was: str
    became: str
    source: str


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of an expression."""
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield ast.Compare(node.left, [SWAPS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPS[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant((not node.value) if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield ast.Call(ast.Name(NAMES[node.func.id], ast.Load()), node.args, node.keywords)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ceil_div":
        yield ast.BinOp(node.args[0], ast.FloorDiv(), node.args[1])


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Every expression of a rule: (parent, field, index); not those of raises, annotations and docstrings."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list") or isinstance(tree, ast.Raise | ast.Import | ast.ImportFrom):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                continue
            if isinstance(node, ast.expr):
                yield tree, field, index
            yield from places(node)


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a source, in the order of its expressions."""
    tree, lines = ast.parse(source), source.splitlines()
    for parent, field, index in list(places(tree)):
        value = getattr(parent, field)
        node = value if index is None else value[index]
        found = [ast.copy_location(copy.deepcopy(changed), node) for changed in changes(node)]
        if isinstance(parent, ast.If | ast.While) and field == "test":
            found.append(ast.copy_location(ast.UnaryOp(ast.Not(), node), node))
        for changed in found:
            put(parent, field, index, changed)
            text = ast.unparse(ast.fix_missing_locations(tree))
            put(parent, field, index, node)
            yield Mutant(node.lineno, lines[node.lineno - 1].strip(), ast.unparse(node), ast.unparse(changed), text)


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from a changed source."""

    def __init__(self, name: str, source: str, file: Path) -> None:
        self.name, self.source, self.file = name, source, file

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=str(self.file))
        spec.has_location = True
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: object) -> None:
        exec(compile(self.source, str(self.file), "exec"), module.__dict__)  # noqa: S102


def tests_of(module: str) -> list[str]:
    """The tests of a module's room, and its own doctests."""
    room = ROOMS.get(module, module.split("_")[0])
    if room in ("config", "catalogue"):
        room = "model"
    found = {path.name for start in (room, module) for path in (ROOT / "tests" / "unit").glob(f"test_{start}*.py")}
    return [f"tests/unit/{name}" for name in sorted(found, key=lambda name: ("properties" in name, name))] + [f"aelius_math/{module}.py"]


def start(module: str, source: str) -> int:
    """Runs a module's tests against a changed source, in a forked process; returns its id."""
    child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS)
    sys.meta_path.insert(0, Instead(f"aelius_math.{module}", source, ROOT / "aelius_math" / f"{module}.py"))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    import pytest

    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:nbval",
        "-o",
        "addopts=",
        "--assert=plain",
        "--doctest-modules",
    ]
    code: int = 1
    try:
        code = pytest.main([*options, *tests_of(module)])
    finally:  # whatever a mutant raises
        os._exit(0 if code == 0 else 1)


def survives(module: str, source: str) -> bool:
    return os.waitpid(start(module, source), 0)[1] == 0


def equivalent() -> set[tuple[str, ...]]:
    """(module, line, expression, what it became) of the mutants that cannot be told apart."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.exists() else []
    return {tuple(part.strip() for part in line.split(" | ")[:4]) for line in lines if " | " in line and line[0] != "#"}


def main() -> int:
    words = sys.argv[1:]
    names = [word for word in words if not word.isdigit() and word != "all"]
    count, seed = ([int(word) for word in words if word.isdigit()] + [20, 1])[:2]
    skipped = ("__", "cli", "figures")
    modules = names or [path.stem for path in sorted((ROOT / "aelius_math").glob("*.py")) if not path.stem.startswith(skipped)]
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    import hypothesis  # noqa: F401  (loaded once, before the forks)
    import pytest  # noqa: F401

    known, survivors = equivalent(), 0
    for module in modules:
        source = (ROOT / "aelius_math" / f"{module}.py").read_text(encoding="utf-8")
        if not survives(module, ast.unparse(ast.parse(source))):
            sys.exit(f"{module}: its tests fail as it is; mend that first")
        drawn = list(mutants(source))
        if "all" not in words and len(drawn) > count:
            drawn = [drawn[index] for index in sorted(random.Random(seed).sample(range(len(drawn)), count))]
        listed = [mutant for mutant in drawn if (module, mutant.text, mutant.was, mutant.became) in known]
        through = [mutant for mutant in drawn if mutant not in listed and survives(module, mutant.source)]
        tried = len(drawn) - len(listed)
        print(f"{module}: {tried - len(through)} of {tried} found" + (f", {len(listed)} equivalent" if listed else ""))
        for mutant in through:
            print(f"    not found, line {mutant.line}: {module} | {mutant.text} | {mutant.was} | {mutant.became}", flush=True)
        survivors += len(through)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
