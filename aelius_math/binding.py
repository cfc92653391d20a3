"""Is what a sentence says true of the number it is bound to? Prose binds as [289,661](num:pool).

A text may say any correct rounding of the number, in any unit that it converts to, with at least two digits and never
more than the source gives; a whole number is exact unless the text says "about". Sizes, percentages and times need their
unit, in the text or right behind it. A word is true under its condition in words.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from aelius_math.formula import evaluate
from aelius_math.ledger import PACKAGE, Number
from aelius_math.units import BYTE_UNITS, AeliusError

LINK = re.compile(r"\[((?:[^\[\]\\]|\\.)*)\]\(num:([^()\s]*)\)")

ABOUT = ("about", "roughly", "around", "some", "nearly", "almost", "close to", "over", "under", "~", "≈")
"""Words before a number that leave its last digits open. "nearly", "almost" and "under" want a smaller number, "over" a larger."""

SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
TIMES = {"ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600), "days": Fraction(86400)}
RATIOS = {"%": Fraction(1, 100), "x": Fraction(1), "": Fraction(1)}
SIZES = {**BYTE_UNITS, "bytes": 1}
TWINS = {"KiB": "kB", "MiB": "MB", "GiB": "GB", "TiB": "TB"}
TWINS |= {ten: two for two, ten in TWINS.items()}
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
class Link:
    """A binding as it stands in a text: what it says, the id, where, and what follows it."""

    text: str
    id: str
    start: int
    end: int
    line: int
    after: str = ""


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


def find_links(markdown: str) -> list[Link]:
    """The bindings of a Markdown text, in order; those inside fenced code, code spans and comments are none.

    >>> [(link.text, link.id, link.after) for link in find_links("All [289,661](num:pool) tokens, `[1](num:x)`.")]
    [('289,661', 'pool', ' tokens, `[1](num:x)`.')]
    """
    hidden = list(_code(markdown))
    found = []
    for match in LINK.finditer(markdown):
        if any(start <= match.start() < end for start, end in hidden):
            continue
        after = markdown[match.end() : match.end() + 40].replace("\n", " ")
        line = markdown.count("\n", 0, match.start()) + 1
        found.append(Link(match[1].strip("`*_"), match[2], match.start(), match.end(), line, after))
    return found


CODE = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)|<!--.*?-->|(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)


def _code(markdown: str) -> Iterator[tuple[int, int]]:
    for match in CODE.finditer(markdown):
        bound = match["ticks"] and markdown[match.end() :].startswith("](num:")
        if not bound:
            yield match.span()


def truth(number: Number, text: str, after: str = "") -> str | None:
    """None if the text is true of the number, else a sentence saying why not; `after` is what follows in its sentence.

    >>> from aelius_math.ledger import published
    >>> pool, peak = published()["pool"], published()["edit_peak"]
    >>> truth(pool, "289,661"), truth(pool, "about 290,000"), truth(peak, "4.1 GiB")
    (None, None, None)
    >>> truth(pool, "289,616")
    "'289,616' is not 289,661 tokens"
    >>> truth(peak, "4.11")
    "'4.11' needs its unit, as in 4.11 GiB"
    """
    text = " ".join(text.replace("\u00a0", " ").replace("\u202f", " ").split())
    if not text:
        return "an empty text says nothing"
    if isinstance(number.value, tuple):
        parts = [replace(number, value=part, digits=None) for part in number.value]
        return None if any(truth(part, text, after) is None for part in parts) else f"{text!r} is none of {number.text}"
    if text in number.say or text == number.value:
        return None
    if isinstance(number.value, str):
        quotes = [number.value, *number.say]
        if text.lower() in (quote.lower() for quote in quotes):
            return None
        return f"{text!r} is not what {number.id!r} says: " + " | ".join(quotes)
    if not any(character.isdigit() for character in text):
        return _word(number, text, after)
    said = take_apart(text)
    if isinstance(said, str):
        return said
    return _numeral(number, text, said, after)


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


def _numeral(number: Number, text: str, said: Said, after: str) -> str | None:
    value = fraction_of(number)
    unit = said.unit or _following(after, number)
    if unit is None:
        unit = ""
    if not unit and needs_unit(number):
        return f"{text!r} needs its unit, as in {number.text}"
    factor = factor_of(unit, number) if unit else Fraction(1)
    if factor is None:
        return f"{text!r}{' ' + unit if not said.unit else ''} is in {unit!r}, the number in {number.unit or 'no unit'!r}: {number.text}"
    if said.unit and bool(said.space) == (said.unit_as_written in ("%", "x", "×")):
        return f"{text!r}: a space stands before a unit, none before % and x"
    scale = Fraction(said.scale)
    if said.scaled == "K":
        if number.k is None:
            return f"{text!r} has a K, and the entry does not say which K it is (k = 1024 or 1000)"
        scale = Fraction(number.k)
    if said.scaled == "K" and (value / factor / scale).denominator > 1 and not said.about and not said.decimals:
        return f"{text!r} is not {number.text}"
    target = value / factor / scale
    if said.sign and said.sign != "+" and value >= 0 or said.sign == "+" and value <= 0:
        return f"{text!r} has the wrong sign: {number.text}"
    wrong = _rounded(number, text, said, target, exact_unit=factor == 1 and scale == 1)
    if wrong is None and said.number != target and (twin := TWINS.get(unit)):
        if _rounded(number, text, said, target * SIZES[unit] / SIZES[twin], exact_unit=False) is None:
            return f"{text!r} would be as true in {twin}; it takes another digit, or the exact unit: {number.text}"
    return wrong


def _rounded(number: Number, text: str, said: Said, target: Fraction, exact_unit: bool) -> str | None:
    """Whether the digits are a correct rounding of `target`, with neither too few nor too many of them."""
    number_said = said.number
    significant = len(said.digits.replace(",", "").replace(".", "").lstrip("0"))
    if said.about and not said.decimals:
        significant = len(said.digits.replace(",", "").strip("0"))
    one_sided = said.about in ("nearly", "almost", "under", "over")
    if number.digits is not None and significant > number.digits and not (said.decimals == 0 and exact_unit):
        return f"{text!r} has more digits than the source gives: {number.text}"
    if said.about in ("nearly", "almost", "under") and number_said <= target:
        return f"{text!r} is not above {number.text}"
    if said.about == "over" and number_said >= target:
        return f"{text!r} is not below {number.text}"
    if number_said == target:
        return None
    whole_count = isinstance(number.value, int) and number.digits is None and exact_unit
    if whole_count and not said.about:
        return f"{text!r} is not {number.text}"
    if significant < 2 and not (said.about and abs(number_said) >= 10):
        return f"{text!r} has one digit of {number.text}; at least two are wanted"
    step = Fraction(1, 10**said.decimals)
    while True:
        if abs(number_said - target) <= (step if one_sided else step / 2):
            return None
        if not said.about or said.decimals:
            break
        step *= 10  # "about 290,000": zeros at the end may stand for digits left out
        if number_said % step or abs(number_said) < 10 * step:
            break
    return f"{text!r} is not {number.text}"


def fraction_of(number: Number) -> Fraction:
    exact = number.exact
    if exact is None:
        raise AeliusError(number.id, number.value, "a number")
    return Fraction(exact)


_WORD_AFTER = re.compile(r"\s*(?:(%|×)|(?:full |whole |more |live )?([A-Za-z]+(?:/s)?))")


def _following(after: str, number: Number) -> str | None:
    """The unit that stands right behind a binding; None if the next word is no unit.

    >>> from aelius_math.ledger import published
    >>> _following(" GiB at the peak", published()["edit_peak"]), _following(" of them", published()["pool"])
    ('GiB', None)
    """
    match = _WORD_AFTER.match(after)
    if match is None:
        return None
    word = match[1] or match[2]
    word = SPELLINGS.get(word, word)
    if word in ("s", "x", "h", "B", "min"):  # too short to be meant, unless it is the number's own
        return word if word == number.unit else None
    if word == number.unit or word in BYTE_UNITS or word in ("bytes", "%") or word in COUNTED:
        return word
    if word + "s" == number.unit:
        return number.unit
    return None


@cache
def words() -> dict[str, str]:
    """The reviewed words and their conditions; none holds a digit."""
    table: dict[str, str] = tomllib.loads((PACKAGE / "words.toml").read_text(encoding="utf-8"))
    for word, condition in table.items():
        if any(character.isdigit() for character in word):
            raise AeliusError("words.toml", word, "words without digits; digits are bound as numbers")
        evaluate(condition, {"x": 1})
    return table


def _word(number: Number, text: str, after: str) -> str | None:
    word = text.lower()
    behind = _following(after, number)
    if behind and own_unit(number) not in RATIOS and factor_of(behind, number) is None:
        return f"{text!r} {behind} is in {behind!r}, the number in {number.unit!r}: {number.text}"
    condition = words().get(word)
    if condition is None and " " in word:  # "sixteen layers"
        first, _, unit = word.rpartition(" ")
        if SPELLINGS.get(unit, unit) in (number.unit, number.unit.rstrip("s")):
            condition, word = words().get(first), first
    if condition is None:
        return f"{text!r} is no word of words.toml, nor one of {number.id!r}: {number.text}"
    x = fraction_of(number) * (Fraction(1, 100) if number.unit == "%" else 1)
    if evaluate(condition, {"x": x}) is True:
        return None
    return f"{text!r} is true where {condition}; {number.id!r} is {number.text}"


def restate(number: Number, old_text: str) -> str | None:
    """The number as the old text would say it: the same unit, sign, decimals and words. None where only a person can.

    >>> from aelius_math.ledger import num
    >>> restate(num(301_002, "pool", unit="tokens"), "about 290,000"), restate(num(5.236, "peak", unit="GiB"), "4.11 GiB")
    ('about 300,000', '5.24 GiB')
    """
    if not isinstance(number.value, int | float):
        return number.value if isinstance(number.value, str) else None
    said = take_apart(" ".join(old_text.split()))
    if isinstance(said, str):
        return None
    factor = factor_of(said.unit, number) if said.unit else Fraction(1)
    scale = Fraction(said.scale if said.scaled != "K" else number.k or 0)
    if factor is None or not scale:
        return None
    target = fraction_of(number) / factor / scale
    for text in _candidates(target, said):
        prefix = said.about + ("" if said.about in ("", "~", "≈") else " ")
        scaled = said.scaled if said.scaled in ("", "K") else " " + said.scaled
        unit = old_unit(old_text)
        candidate = prefix + text + scaled + said.space + unit
        if truth(number, candidate, "" if said.unit or not needs_unit(number) else f" {number.unit}") is None:
            return candidate
    return None


def old_unit(text: str) -> str:
    """The unit as a text spells it: 'about 11 seconds' -> 'seconds'."""
    match = re.search(r"[\d.]K?(?:\s+(?:thousand|million|billion)\b)?\s*(\D*)$", text)
    return match[1].strip() if match else ""


def _candidates(target: Fraction, said: Said) -> Iterator[str]:
    sign = "−" if target < 0 else "+" if said.sign == "+" else ""
    if said.about and not said.decimals:
        significant = len(said.digits.replace(",", "").rstrip("0"))
        for digits in range(max(significant, 2), 12):
            step = 10 ** max(0, len(str(int(abs(target)))) - digits)
            yield sign + f"{int((abs(target) / step + Fraction(1, 2)) // 1) * step:,}"
    for decimals in range(said.decimals, said.decimals + 4):
        shifted = int(abs(target) * 10**decimals + Fraction(1, 2))
        yield sign + f"{shifted // 10**decimals:,}" + (f".{shifted % 10**decimals:0{decimals}d}" if decimals else "")
