"""The rooms of the package are stacked, and its core is the standard library."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "aelius_math"

ROOMS = ["units", "dtypes", "cache", "model", "vllm llamacpp", "ladder", "simulation", "logs", "ledger", "rig", "cli"]
"""Lowest first; rooms on one line do not know each other. A module belongs to the room whose name it begins with."""

MEMBERS = {
    "records": "units",
    "config": "model", "catalogue": "model", "gguf": "model", "account": "ladder", "log": "logs", "budget": "ladder",
    "demand": "simulation", "erlang": "simulation", "scene": "simulation", "experiments": "simulation",
    "decode": "logs", "busy": "ledger", "service": "ledger",
    "formula": "ledger", "entry": "ledger", "said": "ledger", "binding": "ledger", "tables": "ledger",
}  # fmt: skip
"""Modules, by the beginning of their names, that live in a room of another name."""

WITH_PLOTS = ("figures",)
"""The room beside the stack that notes use, and that may import numpy and matplotlib."""


def home(module: str) -> str:
    """The room of a module, by the beginning of its name: cli_model is of cli. Empty for those that stand in none."""
    name = next((home for start, home in MEMBERS.items() if module == start or module.startswith(start + "_")), module)
    rooms = [one for names in ROOMS for one in names.split()]
    return next((one for one in rooms if name == one or name.startswith(one + "_")), "")


def room(module: str) -> int | None:
    """How high a module stands; None for those beside the stack."""
    return next((height for height, names in enumerate(ROOMS) if home(module) in names.split()), None)


def imports(source: str) -> Iterator[str]:
    """Every module that a source imports, wherever in it; `from aelius_math import x` as aelius_math.x."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "." * node.level + (node.module or "")
            elif node.module == "aelius_math":
                yield from (f"aelius_math.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def faults(module: str, source: str) -> list[str]:
    """What a module imports that it may not."""
    height = room(module)
    beside = module.startswith(WITH_PLOTS)
    if height is None and not beside and not module.startswith("__"):
        return [f"{module} stands in no room: name it after one, or add it to ROOMS"]
    found = []
    for name in imports(source):
        top, _, rest = name.partition(".")
        if top != "aelius_math":
            if top not in sys.stdlib_module_names and not (beside and top in ("numpy", "matplotlib")):
                found.append(f"{module} imports {name}: the core is the standard library")
            continue
        other = rest.split(".")[0]
        above = room(other)
        if height is None or not other or other == "__version__":
            continue
        if above is None or above > height:
            found.append(f"{module} imports {other}, which stands above it")
        elif above == height and home(other) != home(module):
            found.append(f"{module} imports {other}: neighbours do not know each other")
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_a_room_imports_only_the_standard_library_and_rooms_below_it(path: Path) -> None:
    assert faults(path.stem, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("units", "from aelius_math.dtypes import element"),
        ("cache", "def late():\n    from aelius_math import vllm"),
        ("vllm_pages", "import aelius_math.llamacpp"),
        ("model", "import numpy"),
        ("model", "from . import vllm"),
        ("vllm", "from aelius_math.figures import plot"),
        ("units", "import_module('aelius_math.cli')"),
        ("figures", "import torch"),
        ("shed", "import json"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert faults(module, source)
