"""Plots for the notes: one inline SVG that serves both colour schemes, bound numbers, alt text and a caption.

The one room of the package that may import matplotlib, and it does so only when a plot is drawn. A note writes

    with figures.plot(height=240) as (fig, ax):
        ax.plot(lengths, sizes, color=figures.colour(1))
        figures.token_axis(ax.xaxis)
        figures.label(ax, x, y, "{pool} live for everybody", pool=pool)
    figures.show(fig, name="two-numbers", alt="One bar of {pool} tokens ...", caption="...", pool=pool)

No digit is typed into a plot: `{pool}` is a number of the ledger (the keyword is its id), `{}` a computed one.
One unit of a plot is one CSS pixel at full width. Text is laid out in DejaVu Sans, which comes with matplotlib, so
that a rerun gives the same bytes everywhere; the page then sets it in its own, narrower font.
"""

from __future__ import annotations

import html
import re
import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from aelius_math.figures_slider import Slider
from aelius_math.figures_svg import INK, PAPER, SERIES, parts, write
from aelius_math.units import AeliusError, show_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

SMALL, NORMAL, LEADING = 12, 13, 1.3
_WIDTH = 560
_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text
    "font.family": "DejaVu Sans",
    "font.size": NORMAL,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelpad": 7,
    "axes.labelsize": SMALL,
    "axes.titlesize": SMALL,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.left": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 1,
    "axes.xmargin": 0.02,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.14,
    "grid.linewidth": 1,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 6,
    "lines.linewidth": 2.25,
    "lines.solid_capstyle": "butt",
    "hatch.color": INK,
    "hatch.linewidth": 1,
    "figure.constrained_layout.use": True,
}


def colour(series: int) -> str:
    """The colour of a series, 1 to 6, in whichever scheme the page is shown; give it to matplotlib as any other.

    >>> colour(1)
    '#f10001'
    """
    if f"#f1000{series}" not in SERIES:
        raise AeliusError("series", series, "a whole number from 1 to 6")
    return f"#f1000{series}"


@contextmanager
def plot(width: int = _WIDTH, height: int = 280, **subplots: Any) -> Iterator[tuple[Figure, Any]]:
    """A figure of width x height CSS pixels and its axes; `subplots` goes to matplotlib (nrows=2, sharex=True)."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width / 72, height / 72))
        yield figure, figure.subplots(**subplots)


def tokens(count: float, k: int = 1024) -> str:
    """A count of tokens as a tick shows it: 64K where it is a whole number of K, else the integer.

    >>> tokens(65536), tokens(0), tokens(289661), tokens(64000, k=1000)
    ('64K', '0', '289,661', '64K')
    """
    whole = round(count)
    return f"{whole // k:,}K" if whole and whole % k == 0 else f"{whole:,}"


def token_axis(axis: Axis, ticks: Sequence[float] | int = 5, k: int = 1024, unit: str = "") -> None:
    """Ticks in K of tokens: at the lengths given, or about so many at a round step.

    On a logarithmic axis give the lengths.
    """
    _ticks(axis, ticks, k, lambda value: tokens(value, k) + unit)


def byte_axis(axis: Axis, ticks: Sequence[float] | int = 4, unit: int = 1 << 30) -> None:
    """Ticks in bytes, KiB, MiB or GiB: at the sizes given, or about so many at round steps of `unit` bytes."""
    _ticks(axis, ticks, unit, size)


def size(value: float) -> str:
    """Bytes as a tick shows them, without noughts that say nothing.

    >>> size(16 * 1024), size(0), size(1536)
    ('16 KiB', '0', '1.5 KiB')
    """
    text = show_bytes(round(value))
    number, unit = text.split(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}" if value else "0"


def _ticks(axis: Axis, ticks: Sequence[float] | int, unit: int, text: Callable[[float], str]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if isinstance(ticks, int):
        low, high = sorted(axis.get_view_interval())
        rough = (high - low) / max(ticks, 1) / unit
        step = min((unit * 2.0**power for power in range(-10, 24)), key=lambda size: abs(size / unit - rough))
        first = -(-low // step)
        ticks = [step * n for n in range(int(first), int(high // step) + 1)]
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def axes(ax: Axes, x: str = "", y: str = "", grid: str = "y") -> None:
    """Names the axes, units in square brackets: x below, y along the top where it can be read without turning the head.

    `grid`: the lines to keep, "x", "y", "both" or "".
    """
    ax.set_xlabel(_worded("axes", x, (), {})[0])
    ax.set_title(_worded("axes", y, (), {})[0])
    ax.grid(False)
    if grid:
        ax.grid(True, axis=grid)  # type: ignore[arg-type]


def label(
    ax: Axes,
    x: float,
    y: float,
    template: str,
    *computed: object,
    dx: float = 0,
    dy: float = 0,
    colour: str = INK,
    size: float = NORMAL,
    bold: bool = False,
    ha: str = "left",
    va: str = "center",
    **numbers: object,
) -> None:
    """Text beside a point of the plot (data coordinates, dx and dy in pixels): a direct label in place of a legend.

    va: "top", "center" or "bottom" of the lines stands at the point.

    `{pool}` in the template stands for the number with that id, given as a keyword (a Number, an int or a text);
    `{}` for a computed value that is in no ledger. A digit typed into the template is refused.
    """
    plain, markup = _worded("label", template, computed, numbers)
    lines = list(zip(plain.split("\n"), markup.split("\n"), strict=True))
    rest = LEADING * (len(lines) - 1)
    above = {"top": -0.75, "center": rest / 2 - 0.36, "bottom": rest + 0.25}[va]
    for number, (words, bound) in enumerate(lines):
        text = ax.annotate(
            words, (x, y), (dx, dy + size * (above - LEADING * number)), textcoords="offset points", va="baseline",
            ha=ha, color=colour, fontsize=size, fontweight="bold" if bold else "normal", annotation_clip=False,
        )  # fmt: skip
        text.set_in_layout(False)
        if bound != words:
            text.set_url("say:" + quote(bound))


_TYPED = re.compile(r"(?<![\w.])\d(?!\d*-bit)")
"""A digit that begins a word and so is a number: fp8, q8_0 and 16-bit are names."""


def _worded(field: str, template: str, computed: Sequence[object], numbers: dict[str, object]) -> tuple[str, str]:
    """The template filled in twice: as plain text, and with every bound number as [text](num:id)."""
    plain, markup, rest = "", "", list(computed)
    for literal, name, spec, _ in string.Formatter().parse(template):
        if _TYPED.search(literal):
            expected = "no typed digit: {id} with the number as a keyword, or {} and a computed value"
            raise AeliusError(field, template, expected)
        plain, markup = plain + literal, markup + literal
        if name is None:
            continue
        if name == "" and rest:
            text = _text(rest.pop(0), spec)
            plain, markup = plain + text, markup + text
        elif name in numbers:
            text = _text(numbers[name], spec)
            plain, markup = plain + text, markup + f"[{text}](num:{name})"
        else:
            raise AeliusError(field, template, f"a value for {{{name}}}")
    return plain, markup


def _text(value: object, spec: str | None) -> str:
    if spec:
        number = getattr(value, "value", value)
        return format(float(number) if isinstance(number, Fraction) else number, spec)
    if isinstance(value, int):
        return f"{value:,}"
    return str(getattr(value, "text", value))


class Shown:
    """A finished plot: `svg`, `alt`, `caption` (HTML), and the `html` that a note stores as its output."""

    def __init__(self, name: str, svg: str, alt: str, caption: str, wide: bool, stops: str = "") -> None:
        self.name, self.svg, self.alt, self.caption = name, svg, alt, caption
        body = ' class="plot-body"'
        if wide:  # a region that scrolls must be reachable by keyboard
            body = ' class="plot-body wide" tabindex="0" role="region" aria-label="Plot, scrolls sideways"'
        self.html = (
            f'<figure class="plot" id="plot-{name}">\n<div{body}>\n{svg}\n</div>\n<figcaption>{caption}</figcaption>\n{stops}</figure>'
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.alt}


def show(fig: Figure, *, name: str, alt: str, caption: str, wide: bool = False, slider: Slider | None = None, **numbers: object) -> Shown:
    """The plot as the last value of a cell: an HTML figure with inline SVG; its plain text is the alt text.

    name: lower-case words joined by hyphens, once in the whole site (the page finds the plot by it).
    alt: what the plot shows, for who does not see it. caption: the sentence that it proves.
    wide: on a phone it keeps its size and scrolls; only where it cannot be read when it shrinks.
    slider: values that a reader can step through, as a table below the plot and, with scripts, on it.
    numbers: those of the ledger that alt and caption name in braces, by id.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise AeliusError("name", name, "lower-case words joined by hyphens")
    for field, text in (("alt", alt), ("caption", caption)):
        if len(text.split()) < 4:
            raise AeliusError(field, text, "a sentence")
    _, alt_markup = _worded("alt", alt, (), numbers)
    _, caption_markup = _worded("caption", caption, (), numbers)
    alt_parts = parts(alt_markup)
    plain = "".join(text for text, _ in alt_parts)
    bound = "; ".join(dict.fromkeys(f"{number}={text}" for text, number in alt_parts if number))
    rich = "".join(
        f'<a href="num:{number}">{html.escape(text)}</a>' if number else html.escape(text, quote=False)
        for text, number in parts(caption_markup)
    )
    svg = write(fig, _STYLE, name, plain, bound)
    return Shown(name, svg, plain, rich, wide, slider.table() if slider else "")


__all__ = ["INK", "PAPER", "Shown", "Slider", "axes", "byte_axis", "colour", "label", "plot", "show", "size", "token_axis", "tokens"]
