"""What the engines print about their memory: each line's form, as a table, and what it says.

A `Form` is the line's wording with its white space gone; `{int}` and `{num}` stand for what is read. The engines'
own words are quoted; where each comes from is in the comment beside it. `strict` forms must begin a message and
end it, so that a sentence that quotes one is not taken for a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from aelius_math.log_lines import Statement, is_prose

_HOLES = {
    "{int}": r"(\d(?:[\d,]*\d)?)",
    "{num}": r"(-?\d(?:[\d,]*\d)?(?:\.\d+)?)",
    "{version}": r"(\d[\w.+-]*)",
    "{name}": r"([A-Z]\w*)",
    "{word}": r"([\w.:/+-]+?)",
    "{dev}": r"([\w\[\].:-]{1,60}?)",
}
_NUMBER_REST = re.compile(r"[\d,]{1,20}")
_VERSION_REST = re.compile(r"\d{0,3}(?:\.\d{1,3}){0,2}(?:\.?(?:post|rc|dev|t|st|ost|c|v|ev)\d{1,5}){0,2}(?:\+[\w.]{1,30})?")
_POINTS = str.maketrans("", "", ",.-")
_WHOLE_NAME = re.compile(r"(?:LM|Generation|Model|MTP|Classification)$")
_END = frozenset("\"'`|<*\\)}]")


def pattern(form: str) -> str:
    """The regular expression of a form, white space gone.

    >>> pattern("Using max model len {int}").startswith("Usingmaxmodellen")
    True
    """
    parts = re.split(r"(\{\w+\}|«.*?»)", form)
    out = []
    for part in parts:
        if part.startswith("«"):
            out.append(part[1:-1])
        else:
            out.append(_HOLES.get(part) or re.escape("".join(part.split())))
    return "".join(out)


@dataclass(frozen=True)
class Form:
    """A line that is read: a name, its wording, the literal that must be there, and how strictly it stands alone."""

    name: str
    form: str
    strict: bool = True
    end: str = ""
    once: bool = False
    regex: re.Pattern[str] = field(init=False)
    literal: str = field(init=False)
    open: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(pattern(self.form)))
        plain = [part for part in re.split(r"\{\w+\}|«.*?»", self.form) if part]
        object.__setattr__(self, "open", self.form.endswith(("{int}", "{num}", "{name}", "{version}")))
        object.__setattr__(self, "literal", max(("".join(part.split()) for part in plain), key=len, default=""))


class Found(NamedTuple):
    """A form that was found: its name, what it says, who printed it."""

    name: str
    values: tuple[str | None, ...]
    statement: Statement
    at: int
    end: int


class Table:
    """The forms of an engine; what they found in a statement is remembered, for logs repeat themselves."""

    def __init__(self, forms: Iterable[Form]) -> None:
        self.forms = tuple(forms)
        self.known: dict[Statement, tuple[Found, ...]] = {}

    def find(self, statement: Statement) -> tuple[Found, ...]:
        """The forms in a statement, in the order in which they stand there."""
        found = self.known.get(statement)
        if found is None:
            found = tuple(find(self.forms, statement))
            if len(self.known) >= 1024:
                self.known.clear()
            self.known[statement] = found
        return found


def find(forms: Iterable[Form], statement: Statement) -> Iterator[Found]:
    """The forms in a statement, in the order in which they stand there."""
    text = statement.squeezed
    hits = []
    for form in forms:
        if form.literal in text:
            hits += [(match.start(), form, match) for match in form.regex.finditer(text)]
    hits.sort(key=lambda hit: (hit[0], -hit[2].end()))
    edge, seen = 0, set()
    for start, form, match in hits:
        if start < edge or form.once and form.name in seen:
            continue
        seen.add(form.name)
        values, end = match.groups(), match.end()
        if form.open:  # nothing after the last value says where it ends: a line end does, but for one inside it
            begin = match.start(len(values))
            inside = [join for join in statement.joins if begin < join < end]
            end = next((join for join in inside if ends(statement, begin, join, form.form)), end)
            values = (*values[:-1], text[begin:end])
        if any(value and len(value) > 24 and value.translate(_POINTS).isdigit() for value in values):
            continue  # no engine prints such a number
        if form.strict and not _stands_alone(form, statement, start, end, edge):
            continue
        edge = end
        yield Found(form.name, values, statement, start, end)


def ends(statement: Statement, begin: int, join: int, form: str) -> bool:
    """Whether a value ends where its line does, and was not broken there."""
    if form.endswith("{name}"):
        return _WHOLE_NAME.search(statement.squeezed[begin:join]) is not None
    if not statement.goes_on(join):
        return True
    rest = _VERSION_REST if form.endswith("{version}") else _NUMBER_REST
    return rest.fullmatch(statement.piece(join)) is None


def _stands_alone(form: Form, statement: Statement, start: int, end: int, edge: int) -> bool:
    if not (start == edge and statement.header) and is_prose(statement.lead(start, edge)):
        return False
    text = statement.squeezed
    return (
        end >= len(text)
        or end in statement.joins
        or text[end] in _END
        or bool(form.end and (text.startswith(form.end, end) or form.end.startswith(text[end:])))
    )


def number(text: str | None) -> float:
    """A printed number; thousands may have commas."""
    return float((text or "").replace(",", ""))


def integer(text: str | None) -> int:
    """A printed whole number of tokens, blocks or layers; thousands may have commas."""
    return int((text or "0").replace(",", ""))
