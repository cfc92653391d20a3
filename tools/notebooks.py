"""Executes the notes and stores what they print, so that a rerun leaves no difference. `make notebooks` runs it.

A note is a pair: NN_name.py, which people edit, and NN_name.ipynb, which holds the same cells and their outputs.
nbconvert's own runner stamps times and Python's version into every note; this one keeps cells, outputs and tags.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
from jupytext.combine import combine_inputs_with_outputs
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

ROOT = Path(__file__).parent.parent
STAMPS = ROOT / ".cache" / "notebooks"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def scripts() -> list[Path]:
    """The notes, as their scripts, in order."""
    return sorted((ROOT / "notebooks").glob("[0-9]*.py"))


def cells(notebook: NotebookNode) -> list[tuple[str, str, list[str]]]:
    """What the two halves of a pair must agree on: kind, source and tags of each cell."""
    return [(cell.cell_type, cell.source, list(cell.metadata.get("tags", []))) for cell in notebook.cells]


def metadata(notebook: NotebookNode) -> NotebookNode:
    """What a stored notebook says of itself: its kernel, and which code its outputs are of."""
    code = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return nbformat.from_dict({**METADATA, "aelius": {"executed": hashlib.sha256(code.encode()).hexdigest()[:16]}})


def fault(script: Path) -> str:
    """What is out of step in a pair, in one sentence with what mends it; empty if nothing is."""
    stored = script.with_suffix(".ipynb")
    if not stored.exists():
        return f"{stored.name} is missing; mend it by: make notebooks"
    if not in_step(script):
        return f"{script.name} and its notebook do not hold the same cells; mend it by: make notebooks, then git add both"
    notebook = nbformat.read(stored, as_version=4)
    if notebook.metadata.get("aelius") != metadata(notebook).aelius:
        return f"{stored.name} holds outputs of other code than its own; mend it by: make notebooks, then git add both"
    return ""


def in_step(script: Path) -> bool:
    """Whether the stored notebook holds the cells of its script."""
    stored = script.with_suffix(".ipynb")
    return stored.exists() and cells(jupytext.read(script)) == cells(nbformat.read(stored, as_version=4))


def digest(script: Path) -> str:
    """What a note's outputs follow from: its script and the package without its command line."""
    files = [script, *sorted((ROOT / "aelius_math").glob("*"))]
    hashed = hashlib.sha256()
    for file in files:
        if file.is_file() and not file.name.startswith("cli"):
            hashed.update(file.name.encode() + file.read_bytes())
    return hashed.hexdigest()


def is_current(script: Path) -> bool:
    """Whether this machine executed the note as it and the package now are."""
    stamp = STAMPS / script.stem
    return stamp.exists() and stamp.read_text() == digest(script) and not fault(script)


def mark_current(script: Path) -> None:
    """Remembers that the stored notebook belongs to the package as it now is."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / script.stem).write_text(digest(script))


def execute(script: Path) -> str:
    """Executes one note and stores it. Returns what went wrong, or nothing."""
    stored = script.with_suffix(".ipynb")
    notebook = jupytext.read(script)
    if stored.exists():  # keeps the ids of cells that did not change
        notebook = combine_inputs_with_outputs(notebook, nbformat.read(stored, as_version=4))
    notebook.metadata = metadata(notebook)
    os.environ["PYTHONHASHSEED"] = "0"
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", record_timing=False, resources={"metadata": {"path": script.parent}}
    )
    try:
        client.execute(stderr=subprocess.DEVNULL)  # the kernel warns of listeners on every start
    except (CellExecutionError, CellTimeoutError) as error:
        return f"{script.name}: {COLOURS.sub('', str(error)).strip()}"
    for cell in notebook.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        for output in cell.get("outputs", []):
            if output.output_type != "stream":
                output.metadata = nbformat.from_dict({})
    nbformat.validate(notebook)
    text = nbformat.writes(notebook, version=4) + "\n"
    if not stored.exists() or stored.read_text(encoding="utf-8") != text:
        stored.write_text(text, encoding="utf-8")
        print(f"{stored.name}: stored")
    else:
        print(f"{stored.name}: executed, no difference")
    mark_current(script)
    return ""


def refresh(notes: list[Path]) -> list[str]:
    """Executes these notes in order, as a later one may build on an earlier. Returns what went wrong."""
    return [problem for script in notes if (problem := execute(script))]


def check() -> None:
    """What is out of step, in one sentence each with the command that mends it: for a commit. Runs nothing."""
    faults = [problem for script in scripts() if (problem := fault(script))]
    alone = [stored for stored in sorted((ROOT / "notebooks").glob("*.ipynb")) if not stored.with_suffix(".py").exists()]
    faults += [
        f"{stored.name} has no script beside it; mend it by: git checkout notebooks/{stored.stem}.py, or remove it" for stored in alone
    ]
    if faults:
        sys.exit("\n".join(faults))


def main() -> None:
    if "--check" in sys.argv:
        return check()
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    wanted = [script for script in scripts() if not names or any(name in script.stem for name in names)]
    stale = [script for script in wanted if "--force" in sys.argv or not is_current(script)]
    problems = refresh(stale)
    print(f"{len(wanted)} notes, {len(stale)} executed" + (f", {len(problems)} failed" if problems else ""))
    if problems:
        sys.exit("\n\n".join(problems) + "\n\nMend the cell named above, then run: make notebooks")


if __name__ == "__main__":
    main()
