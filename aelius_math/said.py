"""What a text of digits says: about, a sign, the digits, a scale and a unit; and which units convert into which."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from aelius_math.entry import Number
from aelius_math.units import BYTE_UNITS

ABOUT = ("about", "roughly", "around", "some", "nearly", "almost", "close to", "over", "under", "~", "≈")
"""Words before a number that leave its last digits open. "nearly", "almost" and "under" want a smaller number, "over" a larger."""

SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
TIMES = {"ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600), "days": Fraction(86400)}
RATIOS = {"%": Fraction(1, 100), "x": Fraction(1), "": Fraction(1)}
SIZES = {**BYTE_UNITS, "bytes": 1}
HOLDERS = {"people", "users", "sessions", "conversations", "requests", "seats", "slots", "slices"}
"""Who or what holds a part of the pool: one noun may stand for another."""

SPELLINGS = {
    "byte": "bytes", "B": "bytes", "KB": "kB",
    "second": "s", "seconds": "s", "milliseconds": "ms", "minutes": "min", "minute": "min", "hour": "h", "hours": "h", "day": "days",
    "×": "x", "times": "x", "percent": "%", "per cent": "%",
    "percentage points": "pp", "percentage point": "pp", "points": "pp", "tokens per second": "tokens/s", "tokens a second": "tokens/s",
    "person": "people", "token": "tokens",
}  # fmt: skip

COUNTED = (
    "tokens", "blocks", "layers", "heads", "cards", "people", "users", "sessions", "slots", "cells", "groups", "states", "requests",
    "conversations", "lookups", "hits", "misses", "pages", "slices", "columns", "seats", "logs", "settings", "drafts", "elements",
    "values", "bits", "words", "rows", "rigs", "turns", "seeds", "models", "configs", "cases", "hours", "tokens/s", "pp", "notes", "numbers",
)  # fmt: skip
"""Units of counting that a text may name; a note may use others, as long as text and number agree."""

_DIGITS = r"\d{1,3}(?:,\d{3})+|\d+"
_NUMBER = re.compile(rf"(?P<sign>[+\-−–]?)(?P<whole>{_DIGITS})(?P<point>\.\d+)?(?P<k>K(?![A-Za-z]))?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Said:
    """A text taken apart: 'about 4.11 GiB' is about, no sign, the digits 4.11, no scale, GiB."""

    about: str
    sign: str
    digits: str
    decimals: int
    scale: int | Fraction
    scaled: str
    unit: str
    unit_as_written: str
    space: str

    @property
    def number(self) -> Fraction:
        value = Fraction(self.digits.replace(",", ""))
        return -value if self.sign in ("-", "−") else value


def take_apart(text: str) -> Said | str:
    """A text of digits in its parts, or a sentence saying what is wrong with it."""
    about, rest = "", text
    for word in ABOUT:
        if rest.lower().startswith(word + " ") or (word in "~≈" and rest.startswith(word)):
            about, rest = word, rest[len(word) :].lstrip()
            break
    match = _NUMBER.fullmatch(rest)
    if match is None:
        return f"{text!r} is no number with a unit"
    if match["sign"] == "–":
        return f"{text!r} begins with an en dash; a negative number takes a minus sign, a range is two bindings"
    whole = match["whole"]
    if len(whole) > 1 and whole[0] == "0":
        return f"{text!r} begins with a zero"
    if "," not in whole and len(whole) > 4:
        return f"{text!r} lacks its commas, as in {int(whole):,}"
    scale, scaled, unit = 1, "", match["rest"]
    if match["k"]:
        scaled = "K"
    for word, factor in SCALES.items():
        if re.match(rf"\s{word}\b", unit):
            scale, scaled, unit = factor, word, unit.lstrip()[len(word) :]
    space = unit[: len(unit) - len(unit.lstrip())]
    unit = unit.strip()
    decimals = len(match["point"]) - 1 if match["point"] else 0
    return Said(
        about=about, sign=match["sign"], digits=whole + (match["point"] or ""), decimals=decimals, scale=scale, scaled=scaled,
        unit=SPELLINGS.get(unit, unit), unit_as_written=unit, space=space,
    )  # fmt: skip


def own_unit(number: Number) -> str:
    """The number's unit in its one spelling; of bytes/token, bytes."""
    unit = SPELLINGS.get(number.unit, number.unit)
    size, per, _ = unit.partition("/")
    return size if per and (size in BYTE_UNITS or size == "bytes") else unit


def factor_of(unit: str, number: Number) -> Fraction | None:
    """How many of the number's own units one of `unit` is; None if it is not the same kind of thing.

    >>> from aelius_math.ledger import published
    >>> factor_of("MiB", published()["edit_peak"])
    Fraction(1, 1024)
    """
    own = own_unit(number)
    if unit in (own, number.unit) or {unit, own} <= HOLDERS:
        return Fraction(1)
    for group in (SIZES, TIMES, RATIOS):
        if unit in group and own in group:
            return Fraction(group[unit]) / Fraction(group[own])
    if unit and own == unit + "s":  # 1 token, a 200-page chat
        return Fraction(1)
    return None


def needs_unit(number: Number) -> bool:
    """Sizes, times, shares and rates do not stand bare; a count may, where the sentence says of what."""
    own = own_unit(number)
    return own in SIZES or own in TIMES or own in ("%", "pp") or "/" in own


def old_unit(text: str) -> str:
    """The unit as a text spells it: 'about 11 seconds' -> 'seconds'."""
    match = re.search(r"[\d.]K?(?:\s+(?:thousand|million|billion)\b)?\s*(\D*)$", text)
    return match[1].strip() if match else ""
