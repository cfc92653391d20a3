"""What `make note` lays."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from test_pairs import faults

import note
import notebooks
import prose
import typed_digits
from aelius_math.ledger import published, read_notebook


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new note beside one other, in a project of their own."""
    (tmp_path / "notebooks").mkdir()
    for file in ("notebooks/01_two_numbers.py", "mkdocs.yml"):
        shutil.copy(notebooks.ROOT / file, tmp_path / file)
    for module in (note, notebooks):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "STAMPS", tmp_path / ".cache")
    monkeypatch.setattr(notebooks, "digest", lambda script: "")
    script = note.lay("where_it_ends")
    note.enter(script)
    return script


def test_a_new_note_is_a_pair_in_step_with_outputs_and_the_next_number(laid: Path) -> None:
    assert laid.name == "02_where_it_ends.py" and faults(laid) == []
    cells = nbformat.read(laid.with_suffix(".ipynb"), as_version=4).cells
    assert any("27,517" in output["data"]["text/plain"] for cell in cells for output in cell.get("outputs", ()))


def test_a_new_note_has_a_question_and_the_headings(laid: Path) -> None:
    headings = [line[2:] for line in laid.read_text(encoding="utf-8").splitlines() if line.startswith(("# # ", "# ## "))]
    assert headings == ["# Where it ends?", "## Given", "## Derive", "## Check", "## What if"]


def test_a_new_note_stands_last_in_the_navigation(laid: Path) -> None:
    lines = (laid.parent.parent / "mkdocs.yml").read_text(encoding="utf-8").splitlines()
    place = lines.index("      - notebooks/02_where_it_ends.ipynb")
    assert lines[place - 1].endswith(".ipynb") and not lines[place + 1].endswith(".ipynb")


def test_a_new_notes_prose_is_bound_and_types_no_digit(laid: Path) -> None:
    recorded = {number.id: number for number in read_notebook(laid.with_suffix(".ipynb").read_text(encoding="utf-8"), laid.stem)}
    found = prose.check({**published(), **recorded}, sources=prose.cells(laid.read_text(encoding="utf-8"), laid.name))
    assert found.problems == [] and typed_digits.check(laid.parent.parent) == []


@pytest.mark.parametrize("name", ["", "Upper", "two words", "../up", "01_x"])
def test_a_name_that_makes_no_file_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["note.py", name])
    with pytest.raises(SystemExit, match="expected words in lower case"):
        note.main()


def test_a_pair_out_of_step_is_said_in_one_sentence_with_the_command(laid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (laid.parent / "01_two_numbers.py").unlink()
    notebooks.check()
    laid.write_text(laid.read_text(encoding="utf-8").replace("== pool", ">= pool"), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"^02_where_it_ends.py and its notebook .*; mend it by: make notebooks, then git add both$"):
        notebooks.check()
