"""Where a number stands in a note: the anchor that the ledger and the errata lead back to.

Each number of a note has one anchor on its page, num-ID: the row of a table that records or shows it, else where the prose
first binds it, the question last. tools/hooks/notes.py lays them.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from aelius_math.ledger import Number

ROOT = Path(__file__).parents[1]
ROW = re.compile(r'<tr id="num-(\w+)">|<tr><td><code>(\w+)</code></td>')
BOUND = re.compile(r"\]\(num:(\w+)\)")


@cache
def standing(stem: str) -> frozenset[str]:
    """The numbers of a note that have an anchor there."""
    found: set[str] = set()
    for cell in json.loads((ROOT / "notebooks" / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            found.update(recorded or shown for recorded, shown in ROW.findall("".join(output.get("data", {}).get("text/html", ""))))
        if cell["cell_type"] == "markdown":
            found.update(BOUND.findall("".join(cell["source"])))
    return frozenset(found)


def place(number: Number) -> str:
    """The anchor of one of the article's numbers in the note that treats it: its own, or that of what its verdict rests on."""
    said = " ".join((number.verdict_note, number.reading, *number.care, number.says))
    candidates = (number.id, *BOUND.findall(said), number.part_of)
    return next((f"#num-{one}" for one in candidates if one in standing(number.note)), "")
