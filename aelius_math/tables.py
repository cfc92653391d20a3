"""A table as the last value of a note's cell: what a list of computed numbers looks like on the site and in Jupyter."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from aelius_math.units import AeliusError


class Table:
    """Rows under a head; whole numbers get their commas, and columns of numbers stand flush right.

    >>> print(Table(("length", "blocks"), [(65536, 59), (262144, 181)]))
     length | blocks
     65,536 |     59
    262,144 |    181
    """

    def __init__(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.head = list(head)
        self.rows = [list(row) for row in rows]
        for row in self.rows:
            if len(row) != len(self.head):
                raise AeliusError("row", row, f"{len(self.head)} cells, one for each of {self.head}")
        columns = range(len(self.head))
        self.right = [bool(self.rows) and all(isinstance(row[c], int | float) for row in self.rows) for c in columns]

    def __repr__(self) -> str:
        lines = [self.head, *([_text(cell) for cell in row] for row in self.rows)]
        widths = [max(len(line[c]) for line in lines) for c in range(len(self.head))]
        cells = zip(widths, self.right, strict=True)
        form = " | ".join(f"{{:{'>' if right else '<'}{width}}}" for width, right in cells)
        return "\n".join(form.format(*line).rstrip() for line in lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def html(self) -> str:
        """The table as HTML; class "value" marks the columns of numbers."""
        mark = [' class="value"' if right else "" for right in self.right]
        head = "".join(f"<th{m}>{html.escape(cell)}</th>" for cell, m in zip(self.head, mark, strict=True))
        body = "".join(
            "<tr>" + "".join(f"<td{m}>{html.escape(_text(cell))}</td>" for cell, m in zip(row, mark, strict=True)) + "</tr>"
            for row in self.rows
        )
        return f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _text(cell: object) -> str:
    if isinstance(cell, bool) or cell is None:
        return {True: "on", False: "off", None: ""}[cell]
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
