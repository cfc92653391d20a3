"""Single functions and methods of a release's file, run without importing the file: the rest of it wants torch."""

from __future__ import annotations
import __future__

import ast
import builtins
from pathlib import Path
from unittest.mock import MagicMock


def functions(file: Path, names: tuple[str, ...], given: dict[str, object]) -> dict[str, object]:
    """Functions of a file by name, over the names that are given; what else they mention is an empty object."""
    tree = ast.parse(file.read_text("utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    space = run(nodes, file, given)
    return {node.name: space[node.name] for node in nodes}


def methods(file: Path, class_name: str, names: tuple[str, ...], base: type, given: dict[str, object]) -> type:
    """A class with those methods of the file's class that it has, and `base` for its base."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            kept = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name in names]
            node.body = kept or [ast.Pass()]
            node.bases, node.keywords, node.decorator_list = [ast.Name("_base", ast.Load())], [], []
            return run([node], file, given | {"_base": base})[class_name]
    raise LookupError(f"{file} has no class {class_name}")


def run(nodes: list[ast.stmt], file: Path, given: dict[str, object]) -> dict[str, object]:
    space = dict(given)
    for name in {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}:
        if name not in space and not hasattr(builtins, name):
            space[name] = MagicMock(name=name)
    module = ast.fix_missing_locations(ast.Module(body=nodes, type_ignores=[]))
    exec(compile(module, str(file), "exec", flags=__future__.annotations.compiler_flag), space)
    return space
