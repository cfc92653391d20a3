"""What nbval does not notice about a note."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

import notebooks

SKIPS = {"nbval-skip", "nbval-ignore-output", "raises-exception", "nbval-raises-exception", "skip-execution"}


def faults(script: Path) -> list[str]:
    """What is wrong with a pair, one sentence each."""
    stored = script.with_suffix(".ipynb")
    if not stored.exists():
        return [f"{stored.name} is missing: make notebooks"]
    found = []
    if not notebooks.in_step(script):
        found.append(f"{stored.name} does not hold the cells of {script.name}: make notebooks")
    count = 0
    for cell in nbformat.read(stored, as_version=4).cells:
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
