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

from aelius_math.entry import Number
from aelius_math.formula import evaluate
from aelius_math.ledger import PACKAGE
from aelius_math.said import (
    COUNTED,
    RATIOS,
    SIZES,
    SPELLINGS,
    Said,
    factor_of,
    needs_unit,
    old_unit,
    own_unit,
    take_apart,
)  # fmt: skip
from aelius_math.units import BYTE_UNITS, AeliusError

LINK = re.compile(r"\[((?:[^\[\]\\]|\\.)*)\]\(num:([^()\s]*)\)")

TWINS = {"KiB": "kB", "MiB": "MB", "GiB": "GB", "TiB": "TB"}
TWINS |= {ten: two for two, ten in TWINS.items()}


@dataclass(frozen=True)
class Link:
    """A binding as it stands in a text: what it says, the id, where, and what follows it."""

    text: str
    id: str
    start: int
    end: int
    line: int
    after: str = ""


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
    if text in number.say:
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
    wrong = _rounded(number, text, said, target, exact_unit=factor == 1 and scale == 1)
    twin = TWINS.get(unit)
    if wrong or twin is None or said.number == target:
        return wrong
    if _rounded(number, text, said, target * SIZES[unit] / SIZES[twin], exact_unit=False) is None:
        return f"{text!r} would be as true in {twin}; it takes another digit, or the exact unit: {number.text}"
    return None


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
