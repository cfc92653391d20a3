"""What nbval does not notice about a note."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jupytext
import nbformat
import pytest

import notebooks

SKIPS = {"nbval-skip", "nbval-ignore-output", "raises-exception", "nbval-raises-exception", "skip-execution"}


def faults(script: Path) -> list[str]:
    """What is wrong with a pair, one sentence each."""
    found = [fault] if (fault := notebooks.fault(script)) else []
    if not script.with_suffix(".ipynb").exists():
        return found
    count = 0
    for cell in nbformat.read(script.with_suffix(".ipynb"), as_version=4).cells:
        if SKIPS & set(cell.metadata.get("tags", ())):
            found.append(f"cell {cell.id} is tagged to be skipped")
        if cell.cell_type != "code":
            continue
        count += 1
        if cell.execution_count != count:
            found.append(f"code cell {count} was run as number {cell.execution_count}: make notebooks FORCE=1")
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"code cell {count} writes an error or to stderr")
            for kind in output.get("data", {}):
                if kind.startswith("image/"):
                    found.append(f"code cell {count} stores {kind}: a plot is inline SVG, by aelius_math.figures")
    return found


@pytest.mark.parametrize("script", notebooks.scripts(), ids=lambda script: script.stem)
def test_a_note_is_in_step_and_was_run_in_order_without_errors_or_pictures(script: Path) -> None:
    assert faults(script) == []


def test_every_notebook_has_its_script() -> None:
    stored = {path.stem for path in (notebooks.ROOT / "notebooks").glob("*.ipynb")}
    assert stored == {script.stem for script in notebooks.scripts()}


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A note of one heading and two cells, as `make notebooks` would store it."""
    script = tmp_path / "01_a.py"
    script.write_text("# %% [markdown]\n# # Why?\n\n# %%\nx = 1\n\n# %%\nx + 1\n", encoding="utf-8")
    notebook = jupytext.read(script)
    for count, cell in enumerate(notebook.cells[1:], start=1):
        cell.execution_count = count
    notebook.metadata = notebooks.metadata(notebook)
    nbformat.write(notebook, script.with_suffix(".ipynb"))
    assert faults(script) == []
    return script


def edited(script: Path, change: Callable[[list[nbformat.NotebookNode]], object]) -> list[str]:
    """The faults of a pair after a change of the cells that are stored."""
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    change(notebook.cells)
    nbformat.write(notebook, script.with_suffix(".ipynb"))
    return faults(script)


def show(kind: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_output("display_data", data={kind: ""})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda cells: cells[1].update(source="x = 2"), "do not hold the same cells"),
        (lambda cells: cells[0].update(source="# Why not?"), "do not hold the same cells"),
        (lambda cells: cells[1].metadata.update(tags=["fold"]), "do not hold the same cells"),
        (lambda cells: cells.pop(), "do not hold the same cells"),
        (lambda cells: cells[2].update(execution_count=None), "was run as number None"),
        (lambda cells: cells[2].update(execution_count=7), "was run as number 7"),
        (lambda cells: cells[2].outputs.append(show("image/png")), "stores image/png"),
        (lambda cells: cells[2].outputs.append(nbformat.v4.new_output("stream", name="stderr", text="!")), "to stderr"),
        (lambda cells: cells[2].outputs.append(nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])), "an error"),
        (lambda cells: cells[2].metadata.update(tags=["nbval-skip"]), "tagged to be skipped"),
    ],
)
def test_a_planted_fault_of_a_pair_is_found(pair: Path, change: Callable[[list], object], expected: str) -> None:
    assert any(expected in fault for fault in edited(pair, change))


def test_a_pair_without_its_notebook_is_found(pair: Path) -> None:
    pair.with_suffix(".ipynb").unlink()
    assert faults(pair) == ["01_a.ipynb is missing; mend it by: make notebooks"]


def test_code_that_both_halves_hold_but_nobody_ran_is_found(pair: Path) -> None:
    pair.write_text(pair.read_text(encoding="utf-8").replace("x = 1", "x = 2"), encoding="utf-8")
    faults = edited(pair, lambda cells: cells[1].update(source="x = 2"))
    assert faults == ["01_a.ipynb holds outputs of other code than its own; mend it by: make notebooks, then git add both"]
