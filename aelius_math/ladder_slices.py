"""The slices of a ladder, from a text."""

from __future__ import annotations

from aelius_math.units import AeliusError, parse_tokens


def parse_slices(text: str, k: int, field: str = "--slices") -> tuple[int, ...]:
    """Tokens of each slice that a text such as "64K,3x32K" names; "none" names none.

    >>> parse_slices("64K,3x32K", 1000)
    (64000, 32000, 32000, 32000)
    """
    if text.strip() in ("", "none"):
        return ()
    slices: list[int] = []
    for part in text.split(","):
        number, _, size = part.strip().rpartition("x")
        if number and not (number.isascii() and number.isdigit() and 0 < int(number) <= 10_000):
            raise AeliusError(field, part, "a size such as 64K, or a number of them such as 3x32K")
        slices += [parse_tokens(size, field, k)] * int(number or 1)
    return tuple(slices)
