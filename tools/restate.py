"""After a number changed: runs the notes that depend on it and says every bound number anew. `make numbers`.

Prints what moved since the last commit, old and new; each text that was rewritten; each new or changed binding for the
locks; and last what only a person can mend: words whose condition no longer holds, digits bound to nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import locks
import prose
import typed_digits
from aelius_math.binding import find_links, restate, truth
from aelius_math.ledger import TABLES, Ledger, Number, collect, read_notebook, read_toml

ROOT = Path(__file__).parent.parent


def texts() -> list[Path]:
    """Every file in which numbers are bound: the notes' scripts, the pages, the README and the article's verdicts."""
    notes = sorted((ROOT / "notebooks").glob("[0-9]*.py"))
    return [*notes, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "aelius_math" / "article.toml"]


def rewrite(text: str, ledger: Mapping[str, Number]) -> tuple[str, list[str]]:
    """The text with its stale numbers said anew, and what changed, each with its sentence. What cannot be said anew stays."""
    changed: list[tuple[int, str]] = []
    for link in reversed(find_links(text)):
        number = ledger.get(link.id)
        if number is None or truth(number, link.text, link.after) is None:
            continue
        said = restate(number, link.text)
        if said and truth(number, said, link.after) is None:
            bound = text[link.start : link.end]
            text = text[: link.start] + bound.replace(link.text, said, 1) + text[link.end :]
            changed.append((link.start, f"line {link.line}: [{link.text}](num:{link.id}) -> {said}"))
    return text, [f"{what}\n      {sentence(text, at)}" for at, what in changed[::-1]]


def sentence(text: str, at: int) -> str:
    """The sentence around a place, without links and comment marks, for a person to read whole."""
    start = max(text.rfind(mark, 0, at) + len(mark) for mark in ("\n\n", "\n#\n", "]\n"))
    ends = [end for mark in ("\n\n", "\n#\n") if (end := text.find(mark, at)) >= 0]
    paragraph, place = text[start : min(ends, default=len(text))], at - start
    cuts = [0, *(match.end() for match in re.finditer(r"[.?!:](?= |\n)", paragraph)), len(paragraph)]
    begin, end = next((one, other) for one, other in pairwise(cuts) if place < other)
    said = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph[begin:end])
    return " ".join(re.sub(r"^# ?", "", said, flags=re.MULTILINE).split())


def committed() -> dict[str, Number]:
    """The numbers of the last commit; empty where git or a commit is missing."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True, encoding="utf-8").stdout

    try:
        found = [number for name in TABLES for number in read_toml(git("show", f"HEAD:./aelius_math/{name}.toml"), name)]
        for path in git("ls-tree", "--name-only", "HEAD", "notebooks/").split():
            if path.endswith(".ipynb"):
                found += read_notebook(git("show", f"HEAD:./{path}"), Path(path).stem)
    except (OSError, subprocess.CalledProcessError, ValueError, TypeError):
        return {}
    return {number.id: number for number in found}


def moved(before: Mapping[str, Number], after: Mapping[str, Number]) -> list[str]:
    """Every number whose value is another one, and those that came or went; a new note's are only counted."""
    known = {number.origin for number in before.values()}
    added = Counter(number.origin for number in after.values() if number.origin not in known and number.id not in before)
    found = [f"{count} numbers of {note}, which the last commit does not have" for note, count in added.items()]
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if old is None and new and new.origin in added:
            continue
        if old is None or new is None or (old.value, old.unit) != (new.value, new.unit):
            texts = [old.text if old else "new", new.text if new else "gone"]
            if old and new and texts[0] == texts[1]:  # it moved behind the digits that are shown
                texts = [f"{number.value} {number.unit}".strip() for number in (old, new)]
            found.append(f"{key}: {texts[0]} -> {texts[1]}")
    return found


def store_prose(script: Path) -> None:
    """Puts a note's rewritten prose into its notebook; nothing is run, as no code changed."""
    import jupytext
    import nbformat

    import notebooks

    stored = script.with_suffix(".ipynb")
    written, kept = jupytext.read(script), nbformat.read(stored, as_version=4)
    kinds = [cell.cell_type for cell in written.cells]
    if kinds != [cell.cell_type for cell in kept.cells]:
        return  # cells were added or removed: make notebooks
    current = notebooks.is_current(script)
    for new, old in zip(written.cells, kept.cells, strict=True):
        if old.cell_type == "markdown":
            old.source = new.source
    stored.write_text(nbformat.writes(kept, version=4) + "\n", encoding="utf-8")
    if current and notebooks.in_step(script):
        notebooks.mark_current(script)


def run_stale() -> dict[str, str]:
    """Executes the notes whose script or package changed. Returns what went wrong, by note."""
    import notebooks

    stale = [script for script in notebooks.scripts() if not notebooks.is_current(script)]
    return {script.stem: problem for script in stale if (problem := notebooks.execute(script))}


def failed(problems: Mapping[str, str], ledger: Ledger) -> list[str]:
    """The notes that failed, those first that wait for no other; one that uses numbers of another failed note says so."""
    waits = {}
    for stem in problems:
        text = (ROOT / "notebooks" / f"{stem}.py").read_text(encoding="utf-8")
        used = {name for formula in re.findall(r'"= ([^"]*)"', text) for name in re.findall(r"[a-z]\w*", formula)}
        used |= {link.id for link in find_links(text)}
        waits[stem] = sorted({ledger[name].origin for name in used if name in ledger and ledger[name].origin in problems} - {stem})
    if all(waits.values()):  # each uses numbers of another: all are shown
        waits = dict.fromkeys(problems, [])
    lines = [f"{problem}\n(its numbers are those of the last run)" for stem, problem in problems.items() if not waits[stem]]
    for stem, problem in problems.items():
        if waits[stem]:
            last = problem.strip().splitlines()[-1]
            lines.append(f"{stem}.py waits for {', '.join(waits[stem])}: mend that first, then run make numbers again\n  (it said: {last})")
    return lines


def show(title: str, lines: list[str]) -> None:
    if lines:
        print(f"\n{title}\n  " + "\n  ".join(lines))


def check() -> None:
    """What does not hold as the files stand, for a commit. Runs no note and writes nothing."""
    ledger: Ledger = collect(ROOT)
    report = prose.check(ledger, ROOT)
    unlocked = locks.differences(locks.wanted(ledger, report), locks.stored())
    left = [*report.problems, *ledger.disagreements(), *typed_digits.check(ROOT), *unlocked]
    if left:
        sys.exit("\n".join([*left, "Some numbers are not bound, true and locked; mend it by: make numbers"]))


def main() -> None:
    if "--check" in sys.argv:
        return check()
    problems = run_stale()
    ledger: Ledger = collect(ROOT)
    before = committed()
    show("Numbers that moved since the last commit:", moved(before, ledger) if before else [])
    changes = []
    for path in texts():
        old = path.read_text(encoding="utf-8")
        new, changed = rewrite(old, ledger)
        if new != old:
            path.write_text(new, encoding="utf-8")
        if path.suffix == ".py" and path.with_suffix(".ipynb").exists() and changed:
            store_prose(path)
        changes += [f"{path.relative_to(ROOT)}: {sentence}" for sentence in changed]
    show("Texts rewritten:", changes)
    report = prose.check(ledger, ROOT)
    wanted = locks.wanted(ledger, report)
    show("Bindings locked anew (read each: is this the number that the sentence means?):", locks.differences(wanted, locks.stored()))
    locks.write(wanted)
    print(f"\n{report.summary()}\n{len(changes)} texts rewritten")
    stale = [line for line in ledger.disagreements() if ledger[line.partition(":")[0]].origin not in problems]
    left = [*failed(problems, ledger), *report.problems, *stale, *typed_digits.check(ROOT)]
    if problems:
        print(f"{len(problems)} notes failed: what moved and what was rewritten is not the whole yet")
    if left:
        sys.exit("\n".join(["\nThese only a person can mend:", *left]))


if __name__ == "__main__":
    main()
