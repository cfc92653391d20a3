"""The reviewed bindings: which text is bound to which number, in the order of each note and page, one file each.

A text can be true of a number that is not the one meant. What a person has read once is locked in tests/locks/; a change
shows there as a line of its own, and the tests fail until `make numbers` has written it. What is typed in tables (the
article's numbers, the conditions of words) is locked beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aelius_math.binding import words
from aelius_math.ledger import TABLES, Number
from prose import ROOT, Report

FOLDER = ROOT / "tests" / "locks"


def wanted(ledger: Mapping[str, Number], report: Report) -> dict[str, list[str]]:
    """What the locks have to say: a file's name and its lines."""
    locks = {file.replace("/", ".") + ".txt": pairs for file, pairs in report.pairs.items()}
    typed = [number for number in ledger.values() if number.origin in TABLES]
    locks["givens.txt"] = [given(number) for number in typed]
    locks["words.txt"] = [f"{word}: {condition}" for word, condition in words().items()]
    return locks


def given(number: Number) -> str:
    return f"{number.id} = {number.text}" + "".join(f" | {text}" for text in number.say)


def stored(folder: Path = FOLDER) -> dict[str, list[str]]:
    return {path.name: path.read_text(encoding="utf-8").splitlines() for path in sorted(folder.glob("*.txt"))}


def differences(wanted: Mapping[str, list[str]], stored: Mapping[str, list[str]]) -> list[str]:
    """The lines that are new (+) or gone (-), file by file; a line in another place is both."""
    from difflib import ndiff

    found = []
    for name in sorted({*wanted, *stored}):
        lines = ndiff(stored.get(name, []), wanted.get(name, []))
        found += [f"{name}: {line}" for line in lines if line[0] in "+-"]
    return found


def write(wanted: Mapping[str, list[str]], folder: Path = FOLDER) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.txt"):
        if path.name not in wanted:
            path.unlink()
    for name, lines in wanted.items():
        text = "\n".join(lines) + "\n"
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")
