"""One number of the ledger: its value and unit, what it is, how it came about, and how it is shown."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from aelius_math.units import KIB, AeliusError, show_bytes

KINDS = ("given", "external", "derived", "inferred", "assumed")
VERDICTS = (
    "exact", "rounds to it", "matches its source", "holds under a reading",
    "measured, cannot be derived", "does not hold", "unknown",
)  # fmt: skip
_ID = re.compile(r"[a-z][a-z0-9_]*")

Value = int | float | str | tuple["Value", ...]


@dataclass(frozen=True, kw_only=True)
class Number:
    """One entry of the ledger: a number, what it is, where it comes from and what the article's claim is worth.

    `value` stands in `unit`: 4.11 and GiB, 84.8 and %, 289661 and tokens. It is text where the article has words, and
    several numbers where it names several. `digits`: how many significant digits the source gives; None: exact, or
    computed. `k`: which K a text may use, 1024 or 1000. `say`: texts that are as good as the value.
    """

    id: str = ""
    value: Value
    unit: str = ""
    kind: str = "derived"
    label: str = ""
    how: str = ""
    source: str = ""
    note: str = ""
    verdict: str = ""
    verdict_note: str = ""
    reading: str = ""
    care: tuple[str, ...] = ()
    says: str = ""
    say: tuple[str, ...] = ()
    part_of: str = ""
    digits: int | None = None
    k: int | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        if self.id and not _ID.fullmatch(self.id):
            raise AeliusError("id", self.id, "lower case letters, digits and _, a letter first")
        if self.kind not in KINDS:
            raise AeliusError(f"{self.id or 'num'}: kind", self.kind, "one of " + ", ".join(KINDS))
        if self.verdict and self.verdict not in VERDICTS:
            raise AeliusError(f"{self.id}: verdict", self.verdict, "one of " + ", ".join(VERDICTS))
        if self.k not in (None, 1000, 1024):
            raise AeliusError(f"{self.id}: k", self.k, "1024 or 1000")
        if not self.label:
            raise AeliusError(f"{self.id or 'num'}: label", self.label, "a few words that say what it is")

    @property
    def exact(self) -> int | Fraction | None:
        """The value as arithmetic takes it; None for text and for several numbers."""
        return fraction(self.value) if isinstance(self.value, int | float) else None

    @property
    def text(self) -> str:
        """How the number is said when nothing asks for another rounding."""
        return show(self)


def fraction(value: float) -> int | Fraction:
    """A number exactly as it is written: 84.8 is 848 tenths, not the float beside it."""
    if isinstance(value, int):
        return value
    exact = Fraction(repr(value))
    return exact.numerator if exact.denominator == 1 else exact


def show(number: Number) -> str:
    """A number for people: every digit of an integer, six of anything else (or as many as its source gives).

    >>> show(num(28131328, "one block", unit="bytes")), show(num(289661 / 262144, "gap", unit="x"))
    ('28,131,328 bytes', '1.10497x')
    """
    if isinstance(number.value, str):
        return number.value
    if isinstance(number.value, tuple):
        return ", ".join(show(replace(number, value=part)) for part in number.value)
    value = number.value
    if isinstance(value, int) and not isinstance(value, bool):
        said = f"{value:,}"
    else:
        digits = number.digits or 6
        power = Decimal(repr(value)).adjusted() + 1  # digits before the point, negative for zeros behind it
        said = f"{value:,.{max(0, digits - power)}f}"
        if number.digits is None and "." in said:
            said = said.rstrip("0").rstrip(".")
    unit = number.unit
    if value == 1 and len(unit) > 2 and unit.isalpha() and unit.endswith("s"):
        unit = unit[:-1]
    return said + (unit if unit in ("%", "x", "") else " " + unit)


def long_text(number: Number) -> str:
    """The number, and beside bytes of a KiB or more the same for people."""
    if number.unit == "bytes" and isinstance(number.value, int) and abs(number.value) >= KIB:
        return f"{show(number)} ({'-' * (number.value < 0)}{show_bytes(abs(number.value))})"
    return show(number)


def num(
    value: object,
    label: str,
    how: str = "",
    unit: str = "",
    kind: str = "derived",
    source: str = "",
    say: tuple[str, ...] | list[str] | None = None,
    *,
    k: int | None = None,
    digits: int | None = None,
) -> Number:
    """A number that a note records: its value in `unit`, a label of a few words, and how it came about.

    `how` that begins with "=" is evaluated over the ids known so far, and must agree: "= pool / request_limit".
    `value` is an int, a Fraction, a Decimal or a float (kept to 12 digits), or a text. A percentage is given as
    100 * part / whole. `digits` limits how many a text may say, where an input is measured.

    >>> num(Fraction(289661, 262144), "pool over one full request", unit="x").value
    1.10496902466
    """
    return Number(
        value=plain(value, label), label=label, how=how.strip(), unit=unit, kind=kind, source=source,
        say=tuple(say or ()), k=k, digits=digits,
    )  # fmt: skip


def plain(value: object, field: str = "value") -> Value:
    """The value as the ledger keeps it: an int, a float of at most 12 digits, or a text."""
    if hasattr(value, "item") and not isinstance(value, int | float):  # numpy's scalars
        value = value.item()
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Fraction | Decimal | float):
        if isinstance(value, float) and not math.isfinite(value):
            raise AeliusError(field, value, "a finite number")
        if isinstance(value, Fraction | Decimal) and value == int(value):
            return int(value)
        return float(f"{float(value):.12g}")
    if isinstance(value, list | tuple):
        return tuple(plain(part, field) for part in value)
    raise AeliusError(field, value, "an int, a Fraction, a Decimal, a float or a text")
