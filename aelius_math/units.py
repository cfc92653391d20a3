"""Sizes, counts and their units; and the one exception that a caller's mistake raises.

A size is an int of bytes until it is printed. KiB, MiB and GiB are powers of two; kB, MB and GB powers of ten.
A bare K of tokens has two readings, 1,024 and 1,000: the caller says which.
"""

from __future__ import annotations

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
KB = 10**3
MB = 10**6
GB = 10**9

BYTE_UNITS = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1 << 40, "kB": KB, "KB": KB, "MB": MB, "GB": GB, "TB": 10**12}

LARGEST = 1 << 53
"""No count or size above this is taken: beyond it a float no longer holds every integer."""


class AeliusError(ValueError):
    """A caller's mistake: which field, what was given, what was expected instead.

    >>> raise AeliusError("num_kv_heads", 0, "a whole number of at least 1")
    Traceback (most recent call last):
    aelius_math.units.AeliusError: num_kv_heads: got 0, expected a whole number of at least 1
    """

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(f"{field}: got {shown(value)}, expected {expected}")


def shown(value: object) -> str:
    """A value as an error message shows it: its repr, on one line, cut at 80 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int of too many digits, a structure that holds itself
        text = f"a {type(value).__name__} too large to show"
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


def whole(field: str, value: object, least: int = 1, most: int = LARGEST) -> int:
    """The value, if it is a whole number from `least` to `most`; raises AeliusError with the field's name if not.

    >>> whole("tensor_parallel_size", 2)
    2
    >>> whole("sliding_window", -1)
    Traceback (most recent call last):
    aelius_math.units.AeliusError: sliding_window: got -1, expected a whole number of at least 1
    """
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    expected = f"a whole number of at least {least:,}" if most == LARGEST else f"a whole number from {least:,} to {most:,}"
    if isinstance(value, int) and not isinstance(value, bool) and value > LARGEST:
        expected = f"a whole number of at most {LARGEST:,}"
    raise AeliusError(field, value, expected)


_SIZE = re.compile(r"\s*((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def unreadable(text: object, expected: str) -> str:
    """What is expected instead of a text that is no size: said of the sign or the comma, where one is the trouble."""
    if isinstance(text, str) and re.match(r"\s*-\s*[0-9.]", text):
        return "nothing below 0"
    if isinstance(text, str) and re.match(r"\s*[0-9]+,[0-9]", text):
        return "a point before decimals, as in 9.5; commas stand between thousands, as in 262,144"
    return expected


def parse_bytes(text: object, field: str = "size") -> int:
    """Bytes [int] that a text such as "5.24GiB" or "512 MB" names; a bare number is bytes. Rounds down to a byte.

    >>> parse_bytes("5.24GiB")
    5626407157
    >>> parse_bytes("5.24 GB")
    5240000000
    >>> parse_bytes("5.24G")
    Traceback (most recent call last):
    aelius_math.units.AeliusError: size: got '5.24G', expected a number and a unit: B, KiB, MiB, GiB, TiB, kB, KB, MB, GB, TB
    """
    expected = "a number and a unit: " + ", ".join(BYTE_UNITS)
    if isinstance(text, int) and not isinstance(text, bool):
        return whole(field, text, 0)
    match = _SIZE.fullmatch(text) if isinstance(text, str) and len(text) < 100 else None
    if match is None or (match[2] or "B") not in BYTE_UNITS:
        raise AeliusError(field, text, unreadable(text, expected))
    from fractions import (
        Fraction,  # exact; loaded where a text is read, as it costs a command's start some ms
    )

    if not match[2] and "." in match[1]:
        raise AeliusError(field, text, "a unit behind it, such as 5.24GiB; a number without one is bytes")
    size = Fraction(match[1].replace(",", "").replace("_", "")) * BYTE_UNITS[match[2] or "B"]
    return whole(field, int(size), 0)


def parse_tokens(text: object, field: str = "tokens", k: int = 1024) -> int:
    """Tokens [int] that a text such as "64K" or "262,144" names; K is `k` tokens, 1,024 or 1,000.

    >>> parse_tokens("64K"), parse_tokens("64K", k=1000), parse_tokens("262,144")
    (65536, 64000, 262144)
    """
    if k not in (1000, 1024):
        raise AeliusError("k", k, "1024 or 1000")
    if isinstance(text, int) and not isinstance(text, bool):
        return whole(field, text)
    match = _SIZE.fullmatch(text) if isinstance(text, str) and len(text) < 100 else None
    if match is None or match[2] not in ("", "K", "k", "M"):
        raise AeliusError(field, text, unreadable(text, 'a number of tokens such as 262144, "262,144" or "64K"'))
    from fractions import Fraction

    size = Fraction(match[1].replace(",", "").replace("_", "")) * {"": 1, "k": k, "K": k, "M": k * k}[match[2]]
    if size.denominator != 1:
        raise AeliusError(field, text, "a whole number of tokens")
    return whole(field, int(size))


def ceil_div(numerator: int, denominator: int) -> int:
    """The least whole number that is not below numerator / denominator.

    >>> ceil_div(262144, 1616)
    163
    """
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """The least multiple that is not below value.

    >>> round_up(84000, 256)
    84224
    """
    return ceil_div(value, multiple) * multiple


def show_bytes(size: int) -> str:
    """A size for people, in the largest binary unit that it fills, to three significant digits or more.

    >>> show_bytes(28131328), show_bytes(5626265600), show_bytes(512)
    ('26.8 MiB', '5.24 GiB', '512 B')
    """
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        count = size / BYTE_UNITS[unit]
        if count >= 1:
            digits = 2 if count < 10 else 1 if count < 100 else 0
            return f"{count:,.{digits}f} {unit}"
    return f"{size:,} B"
