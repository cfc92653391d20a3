"""What a text may say of a number: by hand, as properties, and the links themselves."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from aelius_math.binding import find_links, restate, truth, words
from aelius_math.ledger import Number, num, published
from aelius_math.said import take_apart

ARTICLE = published()
NUMBERS = {
    "block": num(28131328, "one block", unit="bytes"),
    "gap": num(289661 / 262144, "pool over request", unit="x"),
    "ratio": num(289661 / 262144, "pool over request"),
    "lost": num(48.1832, "share lost", unit="%"),
    "down": num(-12.5, "change", unit="%"),
    "fewer": num(-7300, "fewer tokens", unit="tokens"),
    "page": num(16384, "a token on a card", unit="bytes"),
    "sixtyfour": num(65536, "wall", unit="tokens", k=1024),
    "decimal": num(64000, "wall", unit="tokens", k=1000),
    "points": num(4.25, "points between", unit="pp"),
    "half": num(0.5, "half"),
    "eighth": num(0.125, "an eighth"),
    "hits": num(9328000, "hits", unit="lookups", digits=3),
    "time": num(150, "prefill", unit="s"),
    "speed": num(35.5, "decode", unit="tokens/s"),
    "between": num(65024, "63.5 K", unit="tokens", k=1024),
    "many": num(2_500_000_000, "many", unit="hits"),
    "five": num(12345, "five digits", unit="hits"),
    "rate": num(65536, "a token", unit="bytes/token"),
    **ARTICLE,
}

TRUE = """
pool            289,661
pool            289,661 tokens
pool            about 290,000
pool            about 289,700
pool            ~290,000
pool            nearly 290,000
pool            over 289,000
pool            about 290 thousand
pool            about 0.29 million
request_limit   262,144
request_limit   256K
request_limit   a quarter of a million
edit_peak       4.11 GiB
edit_peak       4.1 GiB
edit_peak       4.41 GB
edit_peak       about 4,210 MiB
image_peak_resident  7.10 GiB
image_peak_resident  7.1 GiB
prefix_hit_rate 84.8%
prefix_hit_rate 85%
prefix_hit_rate 84.8 percent
prefix_lookups  11.0 million
prefix_lookups  11 million
prefix_lookups  11,000,000
hits            9.33 million
hits            9.3 million lookups
block           28,131,328 bytes
block           26.8 MiB
block           26.83 MiB
block           27 MiB
block           28.1 MB
page            16 KiB
page            16.0 KiB
page            16,384 bytes
page            16.4 kB
gap             1.105
gap             1.10x
gap             1.1×
gap             1.105 times
gap             110%
gap             110.5%
gap             barely larger
ratio           1.10
lost            48.2%
lost            48%
lost            48.183%
lost            almost half
lost            less than half
down            −12.5%
down            -12.5%
down            −13%
down            −12%
fewer           −7,300
fewer           -7300
sixtyfour       64K
sixtyfour       65,536
decimal         64K
decimal         64,000
points          4.25 percentage points
points          4.3 points
half            half
half            0.5
eighth          0.125
eighth          0.13
eighth          0.12
time            150 s
time            150 seconds
time            2.50 minutes
many            2.5 billion
between         63.5K
between         about 64K
five            12,345
speed           35.5 tokens/s
speed           36 tokens/s
rate            64 KiB
full_attention_blocks  16
full_attention_blocks  sixteen
full_attention_blocks  Sixteen
full_attention_blocks  sixteen layers
cards           two
cards           2 cards
edit_budgets    2.5 GiB
edit_budgets    3 GiB
ladder          1 × 64K, 3 × 32K, 18 short
ladder_big      64K
pool_drop       almost half
pool_drop       Almost half
read_on         16 August 2026
fp8_saving      halves
image_time_cost 11 s
image_time_cost about 11 seconds
oversubscription 170%
oversubscription about 170%
second_card_gain 3.1x
card_mib        24,576 MiB
card_mib        24 GiB
"""

FALSE = """
pool            289,616
pool            289,66
pool            28,966,1
pool            289661
pool            289.661
pool            -289,661
pool            −289,661
pool            290,000
pool            289,661 blocks
pool            289,661 GiB
pool            289,661%
pool            about 280,000
pool            about 300,000
pool            nearly 289,000
pool            over 290,000
pool            289K
pool            283K
pool            almost half
pool            zweihundert
pool            0289,661
pool            some
request_limit   255K
request_limit   262K
request_limit   half
edit_peak       4.11
edit_peak       4.11 GB
edit_peak       4.11 MiB
edit_peak       4.110 GiB
edit_peak       4 GiB
edit_peak       4.12 GiB
edit_peak       41.1 GiB
edit_peak       411 GiB
edit_peak       4.11GiB
edit_peak       -4.11 GiB
edit_peak       4.413 GB
edit_peak       4,208.6 MiB
edit_peak       4,210 MiB
prefix_hit_rate 84.8
prefix_hit_rate 84.80%
prefix_hit_rate 84%
prefix_hit_rate 84.8 %
prefix_hit_rate 84.8 points
prefix_hit_rate 848%
prefix_lookups  11.00 million
prefix_lookups  11.1 million
prefix_lookups  11.0
hits            9.328 million
hits            9.32 million
block           28,131,328
block           28,131,329 bytes
block           26.9 MiB
block           26.8 MB
block           26.8 GiB
block           3 MiB
page            16 kB
page            16.1 KiB
page            17 KiB
page            16K
gap             1.11
gap             1.106
gap             1
gap             105%
gap             1.10 GiB
gap             twice
lost            48.3%
lost            49%
lost            5%
lost            48.2
lost            half
lost            more than half
down            12.5%
down            +12.5%
fewer           7,300
sixtyfour       65K
sixtyfour       64,000
decimal         65,536
decimal         63K
points          4.25%
points          4.25
half            twice
half            0.6
half            .5
eighth          0.1
eighth          0.14
time            150
time            150 tokens
time            2 minutes
many            2.5 million
between         64K
five            12345
five            12.345
speed           35.5 tokens
speed           35.5
full_attention_blocks  17
full_attention_blocks  fifteen
full_attention_blocks  1.6
full_attention_blocks  about 16 blocks
cards           three
cards           two layers
edit_budgets    3.5 GiB
edit_budgets    3
edit_budgets    2.5 GB
ladder          1 × 64K, 3 × 32K, 19 short
ladder_big      32K
pool_drop       half
read_on         17 August 2026
image_time_cost 11
image_time_cost 12 s
oversubscription 17%
oversubscription 169.7%
second_card_gain 3.12x
second_card_gain 3x
card_mib        24.0 GB
card_mib        24,576 GiB
"""


def cases(table: str) -> list[tuple[str, str]]:
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in table.strip().splitlines()]


@pytest.mark.parametrize(("key", "text"), cases(TRUE))
def test_a_true_text_is_let_through(key: str, text: str) -> None:
    assert truth(NUMBERS[key], text) is None


@pytest.mark.parametrize(("key", "text"), cases(FALSE))
def test_an_untrue_text_is_refused_with_a_reason(key: str, text: str) -> None:
    assert truth(NUMBERS[key], text)


def test_an_empty_text_is_refused() -> None:
    assert truth(NUMBERS["pool"], " ")


@pytest.mark.parametrize(
    ("key", "text", "after", "true"),
    [
        ("pool", "289,661", " tokens for all", True),
        ("pool", "289,661", " blocks for all", False),
        ("pool", "289,661", " GiB", False),
        ("pool", "289,661", ", in all", True),
        ("pool", "289,661", " of them", True),
        ("edit_peak", "4.11", " GiB at the peak", True),
        ("edit_peak", "4.11", " GB at the peak", False),
        ("edit_peak", "4.11", "", False),
        ("block", "28,131,328", " bytes a card", True),
        ("prefix_hit_rate", "84.8", "% of them", True),
        ("full_attention_blocks", "16", " of the layers", True),
        ("hardcoded_shorts", "20", " users", True),
        ("hardcoded_shorts", "20", " layers", False),
        ("cards", "two", " cards", True),
        ("cards", "two", " layers", False),
        ("cards", "two", " of them", True),
        ("gap", "barely larger", " tokens", True),
    ],
)
def test_the_unit_behind_the_text_counts(key: str, text: str, after: str, true: bool) -> None:
    assert (truth(NUMBERS[key], text, after) is None) == true


def rounded(value: Decimal, decimals: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


@settings(deadline=None)
@drawn(st.integers(100, 10**9), st.integers(0, 6), st.integers(0, 6))
def test_every_correct_rounding_is_true_and_a_changed_digit_is_not(mantissa: int, point: int, decimals: int) -> None:
    value = Decimal(mantissa).scaleb(-point)
    number = num(value, "drawn", unit="x")
    said = f"{rounded(value, decimals):,}"
    if len(said.replace(",", "").replace(".", "").lstrip("0")) < 2 or isinstance(number.value, int):
        return
    assert truth(number, said) is None
    for place, digit in enumerate(said):
        if digit.isdigit():
            changed = said[:place] + str((int(digit) + 5) % 10) + said[place + 1 :]
            assert truth(number, changed), changed


@settings(deadline=None)
@drawn(st.integers(10_000, 10**12))
def test_a_whole_number_is_true_only_to_its_last_digit(value: int) -> None:
    number = num(value, "drawn", unit="tokens")
    assert truth(number, f"{value:,}") is None
    assert truth(number, f"{value + 1:,}")
    assert truth(number, f"{value * 10:,}")


@settings(deadline=None)
@drawn(st.integers(1, 10**12), st.sampled_from(["bytes", "GiB", "tokens", "x", "%", "s"]))
def test_a_number_may_always_be_said_as_the_ledger_says_it(value: int, unit: str) -> None:
    number = num(value, "drawn", unit=unit)
    assert truth(number, number.text) is None


@settings(deadline=None)
@drawn(st.integers(1, 10**9), st.integers(1, 10**9), st.sampled_from(["4.11 GiB", "26.8 MiB", "16.4 kB"]))
def test_what_make_numbers_writes_is_true(old: int, new: int, style: str) -> None:
    number = num(new, "drawn", unit="bytes")
    said = restate(number, style)
    assert said is None or truth(number, said) is None


@pytest.mark.parametrize(
    ("value", "unit", "old", "new"),
    [
        (301002, "tokens", "289,661", "301,002"),
        (301002, "tokens", "289,661 tokens", "301,002 tokens"),
        (301002, "tokens", "about 290,000", "about 300,000"),
        (301002, "tokens", "~290,000", "~300,000"),
        (5.236, "GiB", "4.11 GiB", "5.24 GiB"),
        (5.236, "GiB", "4.1 GiB", "5.2 GiB"),
        (0.4321, "GiB", "4.1 GiB", "0.43 GiB"),
        (12.345, "%", "84.8%", "12.3%"),
        (-12.345, "%", "84.8%", "−12.3%"),
        (1.2345, "x", "1.105", "1.234"),
        (12_345_678, "lookups", "11.0 million", "12.3 million"),
        (150, "s", "11 seconds", "150 seconds"),
    ],
)
def test_a_new_value_is_said_as_the_old_one_was(value: float, unit: str, old: str, new: str) -> None:
    said = restate(num(value, "drawn", unit=unit), old)
    assert said == new or (value, said) == (1.2345, "1.235")


def test_a_k_without_a_reading_is_left_to_people() -> None:
    assert restate(num(65536, "wall", unit="tokens"), "84K") is None
    assert restate(num(65536, "wall", unit="tokens", k=1024), "84K") == "64K"


def test_words_are_left_to_people() -> None:
    assert restate(num(3, "three", unit="cards"), "two") is None


def test_no_word_of_the_list_holds_a_digit() -> None:
    assert words() and not any(character.isdigit() for word in words() for character in word)


def test_links_in_code_and_comments_are_none() -> None:
    text = "a [1](num:one) `[2](num:two)`\n```\n[3](num:three)\n```\n<!-- [4](num:four) -->\n[`5`](num:five) **[6](num:six)**\n"
    assert [(link.id, link.text, link.line) for link in find_links(text)] == [("one", "1", 1), ("five", "5", 6), ("six", "6", 6)]


def test_a_text_is_taken_apart() -> None:
    said = take_apart("about −1,234.50 million tokens")
    assert not isinstance(said, str)
    assert (said.about, said.sign, said.digits, said.decimals, said.scale, said.unit) == ("about", "−", "1,234.50", 2, 10**6, "tokens")


def test_numbers_of_the_article_may_be_said_as_they_stand() -> None:
    wrong = {key: truth(number, text) for key, number in ARTICLE.items() for text in [number.text, *number.say]}
    assert isinstance(ARTICLE["edit_budgets"], Number)
    assert {key: reason for key, reason in wrong.items() if reason and key != "edit_budgets"} == {}
