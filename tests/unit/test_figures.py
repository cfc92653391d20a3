"""What a plot promises: the same bytes each time, text that stays text, colours of the page, bound numbers, alt text."""

import re
import subprocess
import sys

import pytest

from aelius_math import figures
from aelius_math.units import AeliusError

ALT = "One bar as long as the pool, {pool} tokens."


def draw(name="two-numbers", label="{pool} live\nfor everybody", **words):
    with figures.plot(height=200) as (fig, ax):
        ax.plot([0, 65536, 131072], [0, 1 << 30, 2 << 30], color=figures.colour(1), marker="o")
        figures.token_axis(ax.xaxis)
        figures.byte_axis(ax.yaxis)
        figures.axes(ax, "length [tokens]", "memory of one conversation")
        figures.label(ax, 65536, 1 << 30, label, pool=289661)
    words = {"alt": ALT, "caption": "The pool of {pool} tokens holds {ratio:.3f} requests.", **words}
    return figures.show(fig, name=name, **words, pool=289661, ratio=289661 / 262144)


@pytest.fixture(scope="module")
def shown():
    return draw()


def test_a_plot_has_the_same_bytes_when_drawn_again(shown):
    assert draw().html == shown.html


def test_text_stays_text_and_ticks_are_computed(shown):
    texts = re.findall(r"<text[^>]*>([^<]*)<", shown.svg)
    assert ["0", "32K", "64K", "96K", "128K"] == [text for text in texts if re.fullmatch(r"\d+K?", text)][:5]
    assert "512 MiB" in texts and "2 GiB" in texts and "for everybody" in texts


def test_every_colour_is_the_pages(shown):
    colours = re.findall(r"(?:fill|stroke)[:=]\s*\"?([^;\"]+)", shown.svg)
    assert {c for c in colours if not c.startswith("var(--plot-")} <= {"none", "currentColor"}
    assert "#f1000" not in shown.svg


def test_ids_carry_the_name_of_the_plot(shown):
    ids = re.findall(r' id="([^"]+)"', shown.svg)
    assert ids and all(i.startswith("two-numbers-") for i in ids)
    links = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', shown.svg)
    assert {a or b for a, b in links} == set(ids)


def test_a_label_and_a_caption_link_their_numbers_and_the_alt_text_lists_its_own(shown):
    assert '><a xlink:href="num:pool">289,661</a> live</text>' in shown.svg
    assert 'tokens holds <a href="num:ratio">1.105</a> requests.</figcaption>' in shown.html
    assert 'role="img" aria-label="One bar as long as the pool, 289,661 tokens." data-numbers="pool=289,661"' in shown.svg


def test_the_plain_text_is_the_alt_text(shown):
    assert shown._repr_mimebundle_() == {"text/html": shown.html, "text/plain": shown.alt}
    assert shown.alt == "One bar as long as the pool, 289,661 tokens."


@pytest.mark.parametrize(
    "words, field",
    [
        ({"label": "289,661 live"}, "label"),
        ({"alt": "A bar of 289,661 tokens."}, "alt"),
        ({"caption": "It holds 1.105 requests."}, "caption"),
        ({"alt": ""}, "alt"),
        ({"caption": "{seats} seats in the pool"}, "caption"),
        ({"name": "Two numbers"}, "name"),
    ],
)
def test_a_typed_digit_a_missing_sentence_and_an_unknown_number_are_refused(words, field):
    with pytest.raises(AeliusError, match=f"^{field}: got"):
        draw(**words)


def test_a_digit_inside_a_name_is_no_number():
    assert "fp8 and q8_0" in draw(label="fp8 and q8_0").svg


def test_a_seventh_series_is_refused():
    with pytest.raises(AeliusError, match="series: got 7, expected a whole number from 1 to 6"):
        figures.colour(7)


def test_importing_the_module_does_not_import_matplotlib():
    code = "import sys, aelius_math.figures; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def stepped(columns=("length", "seats"), start=1, cells=("64K", 8)):
    with figures.plot(height=200) as (fig, ax):
        ax.plot([0, 100], [0, 1])
        ax.set_xlim(0, 100)
    slider = figures.Slider(ax=ax, columns=columns, stops=[(0, ("32K", 16)), (50, cells), (100, ("128K", 4000))], start=start)
    return figures.show(fig, name="stepped", alt="A line that rises.", caption="It rises all the way.", slider=slider).html


def test_the_stops_of_a_slider_are_a_table_with_the_place_of_each_on_the_drawing():
    html = stepped()
    places = [float(place) for place in re.findall(r'<tr data-x="([\d.]+)"', html)]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.002) and 0 < places[0] < places[2] <= 1
    assert "<tr data-x" in html and re.search(r"data-start><td>64K</td><td>8</td>", html) and "<td>4,000</td>" in html
    assert html.count("data-start") == 1 and html.endswith("</details>\n</figure>")


def test_a_plot_without_a_slider_has_no_table(shown):
    assert "<table" not in shown.html and "<details" not in shown.html


@pytest.mark.parametrize(
    "words, field",
    [
        ({"columns": ("length", "of 38 seats")}, "columns"),
        ({"columns": ("length",)}, "stops"),
        ({"cells": ("64K", 8, 9)}, "stops"),
        ({"start": 3}, "start"),
    ],
)
def test_a_slider_with_a_typed_digit_a_cell_too_many_or_no_such_stop_is_refused(words, field):
    with pytest.raises(AeliusError, match=f"^{field}: got"):
        stepped(**words)
