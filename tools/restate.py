"""Rewrites the stale numbers of the prose from the ledger, and lists every word whose condition no longer holds. `make numbers`."""

from __future__ import annotations

import sys
from pathlib import Path

from aelius_math.binding import find_links, restate, truth
from aelius_math.ledger import Ledger, collect

ROOT = Path(__file__).parent.parent


def texts() -> list[Path]:
    """Every file in which numbers are bound: the notes' scripts, the pages and the README."""
    return [*sorted((ROOT / "notebooks").glob("[0-9]*.py")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


def rewrite(text: str, ledger: Ledger) -> tuple[str, list[str], list[str]]:
    """The text with its stale numbers said anew; what changed; and what only a person can mend."""
    changed, left = [], []
    for link in reversed(find_links(text)):
        where = f"line {link.line}: [{link.text}](num:{link.id})"
        if link.id not in ledger:
            left.append(f"{where}: the ledger has no number of that id")
            continue
        wrong = truth(ledger[link.id], link.text, link.after)
        if wrong is None:
            continue
        said = restate(ledger[link.id], link.text)
        if said is None or truth(ledger[link.id], said, link.after):
            left.append(f"{where}: {wrong}")
            continue
        bound = text[link.start : link.end]
        text = text[: link.start] + bound.replace(link.text, said, 1) + text[link.end :]
        changed.append(f"{where} -> {said}")
    return text, changed[::-1], left[::-1]


def main() -> None:
    ledger = collect(ROOT)
    everything: list[str] = []
    changes = 0
    for path in texts():
        before = path.read_text(encoding="utf-8")
        after, changed, left = rewrite(before, ledger)
        if after != before:
            path.write_text(after, encoding="utf-8")
        name = path.relative_to(ROOT)
        changes += len(changed)
        everything += [f"{name}: {sentence}" for sentence in left]
        for sentence in changed:
            print(f"{name}: {sentence}")
    print(f"{changes} numbers rewritten" + ("; make notebooks stores them in the notes" if changes else ""))
    if everything:
        sys.exit("\n".join(["These only a person can mend:", *everything]))


if __name__ == "__main__":
    main()
