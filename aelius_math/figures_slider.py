"""A slider under a plot: the values that it stops at stand in a table, which is all there is without scripts.

The page's script (docs/javascripts/site.js) makes the control from the table; it holds no number of its own.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aelius_math.units import AeliusError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = int | str


@dataclass(frozen=True, kw_only=True)
class Slider:
    """What a reader can move along a plot's x: `columns` name the cells of a stop, the first of them is what is moved.

    `stops` are pairs: an x of the plot's data, and the cells, which the note has computed. `start`: the stop at first.
    """

    ax: Axes
    columns: Sequence[str]
    stops: Sequence[tuple[float, Sequence[Cell]]]
    start: int = 0

    def __post_init__(self) -> None:
        for column in self.columns:
            if re.search(r"(?<!\w)\d", column):
                raise AeliusError("columns", column, "no typed digit")
        for x, cells in self.stops:
            if len(cells) != len(self.columns):
                raise AeliusError("stops", (x, *cells), f"{len(self.columns)} cells beside x, one for each column")
        if not 0 <= self.start < len(self.stops):
            raise AeliusError("start", self.start, f"the index of one of {len(self.stops)} stops")

    def table(self) -> str:
        """The stops as HTML, each with its place as a share of the drawing's width; to be asked for when it is drawn."""
        figure = self.ax.figure.get_figure(root=True)
        assert figure is not None
        box = self.ax.get_position()
        bottom = self.ax.get_ylim()[0]
        rows = ""
        for number, (x, cells) in enumerate(self.stops):
            place = figure.transFigure.inverted().transform(self.ax.transData.transform((x, bottom)))[0]
            start = " data-start" if number == self.start else ""
            shown = "".join(f"<td>{html.escape(f'{cell:,}' if isinstance(cell, int) else cell)}</td>" for cell in cells)
            rows += f'<tr data-x="{place:.3f}"{start}>{shown}</tr>\n'
        head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in self.columns)
        return (
            f'<details class="stops" data-top="{1 - box.y1:.3f}" data-bottom="{box.y0:.3f}">\n<summary>The values</summary>\n'
            f'<div class="scrolls">\n<table class="numbers">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n</details>\n'
        )
