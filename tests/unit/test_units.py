"""Units by hand: binary and decimal sizes told apart, both readings of K, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aelius_math.units import (
    BYTE_UNITS,
    GB,
    GIB,
    KB,
    KIB,
    LARGEST,
    MB,
    MIB,
    AeliusError,
    ceil_div,
    parse_bytes,
    parse_tokens,
    round_up,
    show_bytes,
    shown,
    whole,
)  # fmt: skip

counts = st.integers(1, 10**9)


def test_binary_units_are_powers_of_two_and_decimal_ones_of_ten() -> None:
    assert (KIB, MIB, GIB) == (2**10, 2**20, 2**30)
    assert (KB, MB, GB) == (10**3, 10**6, 10**9)
    assert (BYTE_UNITS["TiB"], BYTE_UNITS["TB"]) == (2**40, 10**12)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), (0, 0), ("512", 512), (" 1 KiB ", 1024), ("1 kB", 1000), ("1KB", 1000), ("1 MiB", 1_048_576), ("1 MB", 1_000_000),
        ("1.5 GiB", 1_610_612_736), ("1.5 GB", 1_500_000_000), ("24,576 MiB", 25_769_803_776), ("1_024 B", 1024), (7, 7),
        ("1 TiB", 2**40), ("1 TB", 10**12), ("0.0001 KiB", 0),
    ],
)  # fmt: skip
def test_a_size_is_read_in_its_unit_and_rounded_down_to_a_byte(text: object, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "GiB", "-1 GiB", "1 G", "1 gib", "1e9", "1.2.3 GiB", "1 GiB more", None, True, 1.5, [1], "9" * 200, -1]
)
def test_what_is_no_size_is_refused_by_its_field(text: object) -> None:
    with pytest.raises(AeliusError, match="^available: got .*, expected ") as refused:
        parse_bytes(text, "available")
    assert (refused.value.field, refused.value.value) == ("available", text)


@pytest.mark.parametrize("read", [parse_bytes, parse_tokens])
@pytest.mark.parametrize(
    ("text", "said"),
    [("-3", "nothing below 0"), (" -3.5 GiB", "nothing below 0"), ("9,5", "a point before decimals"), ("26,2144", "commas stand between"),
     ("262,14 GiB", "commas stand between"), ("1,0000", "commas stand between")],
)  # fmt: skip
def test_a_sign_and_a_comma_out_of_place_are_said_to_be_the_trouble(read: Callable[[object], int], text: str, said: str) -> None:
    with pytest.raises(AeliusError, match=said):
        read(text)


@pytest.mark.parametrize(
    ("text", "k", "tokens"),
    [
        ("64K", 1024, 65_536), ("64k", 1024, 65_536), ("64K", 1000, 64_000), ("0.5K", 1024, 512), ("1M", 1024, 1_048_576),
        ("1M", 1000, 1_000_000), ("262,144", 1024, 262_144), (262_144, 1000, 262_144),
    ],
)  # fmt: skip
def test_k_of_tokens_is_what_the_caller_says(text: object, k: int, tokens: int) -> None:
    assert parse_tokens(text, k=k) == tokens


@pytest.mark.parametrize("text", ["", "K", "0", 0, "-5", "64KiB", "64G", "0.3K", True, None, "64 thousand"])
def test_what_is_no_number_of_tokens_is_refused(text: object) -> None:
    with pytest.raises(AeliusError, match="^limit: "):
        parse_tokens(text, "limit")


@pytest.mark.parametrize("k", [0, 1, 999, 1023, "1024"])
def test_k_has_two_readings_only(k: object) -> None:
    with pytest.raises(AeliusError, match="1024 or 1000"):
        parse_tokens("64K", k=k)  # type: ignore[arg-type]


def test_a_count_beyond_the_exact_floats_is_refused() -> None:
    assert whole("n", LARGEST) == LARGEST == 2**53
    with pytest.raises(AeliusError, match="at most 9,007,199,254,740,992"):
        whole("n", LARGEST + 1)


@pytest.mark.parametrize(
    ("value", "least", "most"), [(0, 1, LARGEST), (-1, 0, LARGEST), (5, 0, 4), ("3", 1, LARGEST), (3.0, 1, LARGEST), (True, 0, 9)]
)
def test_what_is_no_whole_number_in_bounds_is_refused(value: object, least: int, most: int) -> None:
    with pytest.raises(AeliusError, match="^heads: got .*, expected a whole number"):
        whole("heads", value, least, most)


def test_bounds_are_taken_and_said() -> None:
    assert (whole("n", 1), whole("n", 0, 0), whole("n", 4, 0, 4)) == (1, 0, 4)
    with pytest.raises(AeliusError, match="of at least 1$"):
        whole("n", 0)
    with pytest.raises(AeliusError, match="from 2 to 4$"):
        whole("n", 5, 2, 4)


def test_a_value_is_shown_on_one_line_of_at_most_eighty_characters() -> None:
    assert shown("a\nb") == r"'a\nb'"
    assert shown("x" * 78) == repr("x" * 78) and len(shown("x" * 78)) == 80
    assert shown("x" * 79) == "'" + "x" * 76 + "..."
    assert shown(10**10_000) == "a int too large to show"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (1023, "1,023 B"), (1024, "1.00 KiB"), (10 * 1024, "10.0 KiB"), (100 * 1024, "100 KiB"), (1023 * 1024, "1,023 KiB"),
        (2**20, "1.00 MiB"), (2**30, "1.00 GiB"), (2**40, "1.00 TiB"), (5_626_265_600, "5.24 GiB"),
    ],
)  # fmt: skip
def test_a_size_is_shown_in_the_largest_unit_that_it_fills(size: int, text: str) -> None:
    assert show_bytes(size) == text


@given(counts, counts)
def test_ceil_div_is_the_least_whole_number_not_below_the_quotient(numerator: int, denominator: int) -> None:
    quotient = ceil_div(numerator, denominator)
    assert (quotient - 1) * denominator < numerator <= quotient * denominator


@given(counts, counts)
def test_round_up_is_the_least_multiple_not_below_the_value(value: int, multiple: int) -> None:
    rounded = round_up(value, multiple)
    assert rounded % multiple == 0 and value <= rounded < value + multiple
