"""Changes the rules one expression at a time and runs the tests: a change that no test notices is reported.

    python tests/mutate.py [--jobs N] [--only TEXT] MODULE... -- TEST...

A mutant is one changed expression of a module's syntax tree: + for -, * for //, a number one more, < for <=, and for or,
min for max, a condition turned round. Messages, annotations and docstrings are left alone. Each mutant runs the tests in a
process of its own, forked from one that has pytest loaded, and is killed by a failure, an error or a run of over a minute.

tests/equivalent_mutants.txt lists those that cannot be told from the original, with the reason: module, expression as it
was, what it became. The exit code is 1 where another one survives.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.txt"
SECONDS = 60

ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv}
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "lcm": "max"}


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions that may stand in place of one."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        yield ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield ast.Call(ast.Name(NAMES[node.func.id], ast.Load()), node.args, node.keywords)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ceil_div":
        yield ast.BinOp(node.args[0], ast.FloorDiv(), node.args[1])


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Every expression that is a rule's: (parent, field, index); not those of raises, annotations and docstrings."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list") or isinstance(tree, ast.Raise | ast.Import | ast.ImportFrom):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                continue
            if isinstance(node, ast.expr):
                yield tree, field, index
            yield from places(node)


def mutants(source: str) -> Iterator[tuple[int, str, str, str]]:
    """(line, expression as it was, what it became, the module's whole changed source)."""
    tree = ast.parse(source)
    for parent, field, index in list(places(tree)):
        value = getattr(parent, field)
        node = value if index is None else value[index]
        for changed in changes(node):
            put(parent, field, index, ast.copy_location(copy.deepcopy(changed), node))
            text = ast.unparse(ast.fix_missing_locations(tree))
            put(parent, field, index, node)
            yield node.lineno, ast.unparse(node), ast.unparse(changed), text


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


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


def start(name: str, source: str, file: Path, tests: list[str]) -> int:
    """Runs the tests against a mutant in a forked process; returns its id."""
    child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS)
    sys.meta_path.insert(0, Instead(name, source, file))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:nbval", "-o", "addopts=", "--no-header"]
    try:
        code = pytest.main([*options, *tests])
    except BaseException:  # noqa: BLE001 (a mutant may raise anything)
        code = 1
    os._exit(0 if code == 0 else 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="lines that hold this text")
    parser.add_argument("modules", nargs="+")
    before, _, tests = " ".join(sys.argv[1:]).partition(" -- ")
    args = parser.parse_args(before.split())
    sys.path.insert(0, str(ROOT))
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401  (loaded once, before the forks)

    known = [line.split(" | ") for line in EQUIVALENT.read_text().splitlines() if " | " in line] if EQUIVALENT.exists() else []
    listed = {tuple(part.strip() for part in parts[:3]) for parts in known}
    running: dict[int, tuple[str, int, str, str]] = {}
    counts = {"killed": 0, "equivalent": 0, "survived": 0}
    survivors: list[str] = []

    def collect() -> None:
        child, status = os.wait()
        name, line, was, became = running.pop(child)
        if status:
            counts["killed"] += 1
        else:
            counts["survived"] += 1
            survivors.append(f"{name} | {was} | {became} | line {line}")
            print("survived:", survivors[-1], flush=True)

    for name in args.modules:
        file = ROOT / (name.replace(".", "/") + ".py")
        source = file.read_text()
        lines = source.splitlines()
        for line, was, became, text in mutants(source):
            if args.only not in lines[line - 1]:
                continue
            if (name, was, became) in listed:
                counts["equivalent"] += 1
                continue
            while len(running) >= args.jobs:
                collect()
            running[start(name, text, file, tests.split())] = (name, line, was, became)
    while running:
        collect()
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
