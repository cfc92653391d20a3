"""Every number of the project: the article's, other facts, and what the notes derive; each known by its id.

A note takes what is given from here and records what it derives, as the last expression of a cell:

    pool, limit = given("pool"), given("request_limit")
    numbers(gap=num(pool / limit, "pool over one full request", "= pool / request_limit", "x"))

`collect` reads the committed notebooks, so that the site, the command line and the tests know the same numbers
without running anything.
"""

from __future__ import annotations

import html
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from aelius_math.entry import Number, fraction, long_text, num, plain
from aelius_math.formula import evaluate
from aelius_math.units import AeliusError

MIME = "application/vnd.aelius.numbers+json"
TABLES = {"article": "given", "facts": "external"}
"""The files of numbers that no note derives, and the kind of an entry that names none."""
ARTICLE = 'the article "What a long conversation actually costs"'
PACKAGE = Path(__file__).resolve().parent


class Ledger(Mapping[str, Number]):
    """All numbers by id, in order: the article's, facts, then each note's."""

    def __init__(self, numbers: list[Number]) -> None:
        self._numbers: dict[str, Number] = {}
        twice = []
        for number in numbers:
            if number.id in self._numbers:
                twice.append(f"{number.id} ({self._numbers[number.id].origin}, {number.origin})")
            self._numbers.setdefault(number.id, number)
        if twice:
            raise AeliusError("ids", "; ".join(twice), "each id recorded once")

    def __getitem__(self, key: str) -> Number:
        return self._numbers[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def values_by_id(self) -> dict[str, object]:
        """What a formula may use: the numbers that are one number."""
        return {key: number.exact for key, number in self._numbers.items() if number.exact is not None}

    def disagreements(self) -> list[str]:
        """Entries whose formula does not come to their value, one sentence each."""
        values = self.values_by_id()
        found = []
        for number in self._numbers.values():
            try:
                agree(number, values)
            except AeliusError as error:
                found.append(str(error) if str(error).startswith(f"{number.id}:") else f"{number.id}: {error}")
        return found


def agree(number: Number, values: Mapping[str, object]) -> None:
    """Raise AeliusError if the formula of a number does not come to its value (to 1 part in 10**9 for a float)."""
    if not number.how.startswith("="):
        return
    result = evaluate(number.how[1:], values)
    value = number.exact
    if value is None:
        raise AeliusError(f"{number.id}: how", number.how, "a number for a value; this one is text")
    same = result == value if isinstance(result, int) and isinstance(value, int) else None
    if same is None:
        same = abs(Fraction(result) - Fraction(value)) <= Fraction(1, 10**9) * abs(Fraction(value))
        same = same and not (isinstance(value, int) and number.digits is None and Fraction(result).denominator != 1)
    if not same:
        shown = result if isinstance(result, int) else float(result)
        raise AeliusError(f"{number.id}: value", number.value, f"what its formula {number.how!r} comes to, {shown:,}")


@cache
def published() -> Ledger:
    """The article's numbers and the other facts, read from the package's own files."""
    return Ledger([number for origin in TABLES for number in read_toml((PACKAGE / f"{origin}.toml").read_text("utf-8"), origin)])


def read_toml(text: str, origin: str) -> list[Number]:
    """The entries of article.toml or facts.toml; a decimal keeps the digits it is written with."""
    kind = TABLES[origin]
    found = []
    for key, table in tomllib.loads(text, parse_float=Decimal).items():
        digits = table.get("digits")
        if isinstance(table["value"], Decimal) and digits is None:
            digits = len(table["value"].as_tuple().digits)
        found.append(
            Number(
                id=key,
                **{"kind": kind, "source": ARTICLE if origin == "article" else "", **table}
                | {
                    "value": plain(table["value"], key),
                    "digits": digits,
                    "say": tuple(table.get("say", ())),
                    "care": tuple(table.get("care", ())),
                    "origin": origin,
                },
            )
        )
    return found


def given(key: str) -> Any:
    """The value of one of the article's numbers, or of another fact: an int, an exact Fraction, a text or a list of them.

    >>> given("pool"), given("edit_peak"), given("wall")
    (289661, Fraction(411, 100), '64K')
    >>> given("poool")
    Traceback (most recent call last):
    aelius_math.units.AeliusError: given: got 'poool', expected an id of article.toml or facts.toml
    """
    if key not in published():
        raise AeliusError("given", key, "an id of article.toml or facts.toml")
    value = published()[key].value
    if isinstance(value, tuple):
        return [fraction(part) if isinstance(part, int | float) else part for part in value]
    return fraction(value) if isinstance(value, int | float) else value


_recorded: dict[str, Number] = {}
"""What this kernel has recorded so far; a note is one kernel."""


@dataclass(frozen=True)
class Recorded:
    """What `numbers` returns: a cell that ends with it stores its numbers in the notebook and shows them as a table."""

    entries: tuple[Number, ...] = field(default=())

    def __getitem__(self, key: str) -> Number:
        return next(number for number in self.entries if number.id == key)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {MIME: [_stored(number) for number in self.entries], "text/html": self.html(), "text/plain": repr(self)}

    def html(self) -> str:
        """A table, one row a number: what it is, the number, how, its id."""
        rows = "".join(
            f'<tr id="num-{n.id}"><td>{html.escape(n.label)}</td><td class="value">{html.escape(long_text(n))}</td>'
            f"<td>{html.escape(n.how or n.source)}</td><td><code>{n.id}</code></td></tr>"
            for n in self.entries
        )
        head = "<tr><th>what</th><th>number</th><th>how</th><th>id</th></tr>"
        return f'<table class="numbers"><thead>{head}</thead><tbody>{rows}</tbody></table>'

    def __repr__(self) -> str:
        return "\n".join(f"{n.id} = {long_text(n)}  {n.how or n.source}".rstrip() for n in self.entries)


@dataclass(frozen=True)
class Shown:
    """What `givens` returns: entries of the ledger as a table, recorded elsewhere."""

    entries: tuple[Number, ...]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}

    def html(self) -> str:
        """A table, one row a number: its symbol, what it is, its value, its kind and where it comes from."""
        rows = "".join(
            f"<tr><td><code>{n.id}</code></td><td>{html.escape(n.label)}</td><td{mark(n)}>{html.escape(long_text(n))}</td>"
            f"<td>{n.kind}</td><td>{html.escape(n.source)}</td></tr>"
            for n in self.entries
        )
        head = "<tr><th>symbol</th><th>what</th><th>value</th><th>kind</th><th>source</th></tr>"
        return f'<table class="numbers"><thead>{head}</thead><tbody>{rows}</tbody></table>'

    def __repr__(self) -> str:
        return "\n".join(f"{n.id} = {long_text(n)}  {n.kind}, {n.source}" for n in self.entries)


def mark(number: Number) -> str:
    """The class of a cell that holds a number; words wrap as words do."""
    return ' class="value"' if number.exact is not None else ""


def givens(*keys: str) -> Shown:
    """A table of numbers that the article or another source gives: what a note starts from.

    >>> givens("pool")
    pool = 289,661 tokens  given, the article "What a long conversation actually costs"
    """
    for key in keys:
        given(key)
    return Shown(tuple(published()[key] for key in keys))


def _stored(number: Number) -> dict[str, object]:
    """A number as a notebook keeps it: the fields that say something."""
    fields = ("id", "value", "unit", "kind", "label", "how", "source", "say", "digits", "k")
    values = {name: getattr(number, name) for name in fields}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v not in ("", None, ())}


def numbers(**entries: Number) -> Recorded:
    """Record numbers under their ids: the last expression of a cell. Formulas are evaluated and must agree.

    >>> numbers(gap=num(given("pool") - given("request_limit"), "the gap", "= pool - request_limit", "tokens"))
    gap = 27,517 tokens  = pool - request_limit
    >>> numbers(gap=num(27_518, "the gap", "= pool - request_limit", "tokens"))
    Traceback (most recent call last):
    aelius_math.units.AeliusError: gap: value: got 27518, expected what its formula '= pool - request_limit' comes to, 27,517
    """
    recorded = [replace(number, id=key) for key, number in entries.items()]
    for number in recorded:
        if number.id in published():
            raise AeliusError("id", number.id, f"a new id; {published()[number.id].origin}.toml has this one")
    known = {number.id: number for number in [*published().values(), *_recorded.values(), *recorded]}
    values: dict[str, object] = {key: n.exact for key, n in known.items() if n.exact is not None}
    for number in recorded:
        elsewhere = False
        try:
            agree(number, values)
        except AeliusError as error:
            if "known ids" not in error.expected:
                raise
            elsewhere = True
        if elsewhere:  # outside of the handler, so that what goes wrong here is said alone
            agree(number, {**_of_other_notes(), **values})
    _recorded.update({number.id: number for number in recorded})
    return Recorded(tuple(recorded))


@cache
def _of_other_notes() -> dict[str, object]:
    """Numbers that the committed notebooks hold, for a formula that builds on another note."""
    return Ledger(_notes(find_root())).values_by_id()


def find_root(start: Path | None = None) -> Path:
    """The repository: the first folder with notebooks/ and aelius_math/, from `start` up, or around the package."""
    for folder in [start, *start.parents] if start else [PACKAGE.parent]:
        if (folder / "notebooks").is_dir() and (folder / "aelius_math").is_dir():
            return folder
    raise AeliusError(
        "ledger", str(start or PACKAGE.parent),
        "a checkout of the repository, with notebooks/ and aelius_math/; the derived numbers live in its notebooks (--root DIR)",
    )  # fmt: skip


def _notes(root: Path) -> list[Number]:
    paths = sorted((root / "notebooks").glob("*.ipynb"))
    return [number for path in paths for number in read_notebook(path.read_text(encoding="utf-8"), path.stem)]


def read_notebook(text: str, note: str) -> list[Number]:
    """What a stored notebook recorded, in the order of its cells."""
    try:
        cells = json.loads(text)["cells"]
    except (ValueError, KeyError, TypeError) as error:
        raise AeliusError("notebook", f"{note}.ipynb", "a notebook in JSON, with cells") from error
    outputs = (output for cell in cells for output in cell.get("outputs", ()))
    return [_read(entry, note) for output in outputs for entry in output.get("data", {}).get(MIME, ())]


def _read(entry: dict[str, Any], note: str) -> Number:
    value = entry["value"]
    return Number(
        **{
            **entry,
            "value": tuple(value) if isinstance(value, list) else value,
            "say": tuple(entry.get("say", ())),
            "note": note,
            "origin": note,
        }
    )


def collect(root: Path | str | None = None) -> Ledger:
    """All numbers: the article's and the facts, then what the committed notebooks under `root` recorded.

    Raises AeliusError for an id recorded twice. Nothing is run.
    """
    folder = find_root(Path(root).resolve() if root else None)
    return Ledger([*published().values(), *_notes(folder)])


__all__ = ["Ledger", "Number", "Recorded", "collect", "given", "givens", "long_text", "num", "numbers", "published"]
