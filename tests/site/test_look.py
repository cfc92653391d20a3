"""What the pages promise a reader, whatever the browser: the answer first, plots that can be read in any way, a light page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import notebooks
from aelius_math import service

PLOT = re.compile(r'<figure class="plot" id="plot-([^"]+)">(.*?)</figure>', re.DOTALL)


def html(site: Path, name: str) -> str:
    return (site / name / "index.html").read_text(encoding="utf-8")


def test_the_home_page_gives_the_two_numbers_before_anything_else(site: Path) -> None:
    article = html(site, "").partition("<article")[2]
    before = article[: article.index("<figure")]
    bound = re.findall(r'<a class="num"[^>]*>([^<]+)</a>', before)
    assert bound.index("262,144") < bound.index("289,661") < 4


def test_the_home_page_shows_how_many_conversations_fit_as_the_engine_counts(site: Path) -> None:
    drawing = html(site, "").partition('id="plot-two-numbers"')[2].partition("</svg>")[0]
    pool = service.pool()
    shown = re.findall(r">(\d+) of (\d+)K<", drawing)
    assert len(shown) == 6
    for count, length in shown:
        assert int(count) == pool.usable_blocks // pool.blocks(1024 * int(length)), length


def test_the_home_page_says_what_the_article_is_before_its_first_number_and_leads_to_the_rig_before_its_first_plot(site: Path) -> None:
    article = html(site, "").partition("<article")[2]
    assert "What a long conversation actually costs" in article[: article.index("262,144")]
    assert 'href="ledger/#the-article"' in article[: article.index("262,144")]
    links = re.findall(r'<a[^>]* href="([^"]+)"', article[: article.index("<figure")])
    assert {"rig/", "rig/#view=log"} <= set(links)


def test_the_page_on_boot_logs_leads_at_once_to_the_box_that_takes_one(site: Path) -> None:
    assert 'href="../rig/#view=log"' in html(site, "logs").partition("</h1>")[2].partition("</p>")[0]


def test_the_home_page_asks_the_question_of_every_note_and_leads_to_it(site: Path) -> None:
    links = re.findall(r'<h3[^>]*><a href="([^"]+)">', html(site, ""))
    assert links == [f"notebooks/{script.stem}/" for script in notebooks.scripts()]


def test_every_plot_is_one_image_with_a_text_a_caption_and_the_colours_of_the_page(site: Path) -> None:
    names = []
    for page in sorted(site.rglob("index.html")):
        for name, plot in PLOT.findall(page.read_text(encoding="utf-8")):
            names.append(name)
            drawing = re.search(r"<svg.*</svg>", plot, re.DOTALL)
            assert drawing and re.match(r'<svg(?=[^>]* role="img")(?=[^>]* aria-label="[^"]{20,}")', drawing[0]), name
            assert re.search(r"<figcaption>.{10,}</figcaption>", plot, re.DOTALL), name
            assert "<a " not in drawing[0], f"{name}: a link inside an image is no link to a reader"
            colours = set(re.findall(r"(?:fill|stroke)(?:: |=\")([^;\"]+)", drawing[0]))
            assert {c for c in colours if not c.startswith(("var(--plot-", "url(#"))} <= {"none", "currentColor"}, name
    assert names


@pytest.mark.parametrize("font", ["source-serif-4-latin-400-normal", "source-sans-3-latin-wght-normal"])
def test_the_fonts_of_the_first_screen_are_fetched_at_once_and_carry_their_licence(site: Path, font: str) -> None:
    assert re.search(rf'<link rel="preload" href="[^"]*{font}\.woff2" as="font"', html(site, ""))
    assert "SIL Open Font License" in (site / "assets" / "fonts" / "OFL.txt").read_text(encoding="utf-8")
