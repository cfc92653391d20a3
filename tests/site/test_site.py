"""The built site: nothing leads nowhere, nothing is asked of another host, nothing is heavy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nbformat
import pytest

import notebooks
import site_check
from aelius_math.binding import find_links
from aelius_math.ledger import collect


def test_every_link_and_anchor_leads_somewhere_and_none_breaks_under_a_sub_path(site: Path) -> None:
    assert list(site_check.dead_links(site)) == []


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    assert list(site_check.requests_to_others(site)) == []


def test_every_page_is_within_its_weight_and_its_requests(site: Path) -> None:
    assert list(site_check.too_heavy(site)) == []


def test_every_page_has_one_h1_a_title_and_a_description_of_its_own(site: Path) -> None:
    assert list(site_check.nameless(site)) == []


def test_each_note_offers_its_notebook_and_its_script(site: Path) -> None:
    for note in sorted((site / "notebooks").iterdir()):
        links = site_check.page(note / "index.html").links
        assert f"{note.name}.ipynb" in links and f"{note.name}.py" in links, note.name
        assert (note / f"{note.name}.py").read_text(encoding="utf-8").startswith("# %% [markdown]")


@pytest.mark.parametrize("script", notebooks.scripts(), ids=lambda script: script.stem)
def test_every_bound_number_of_a_note_is_bound_on_its_page(site: Path, script: Path) -> None:
    bound = 0
    for cell in nbformat.read(script.with_suffix(".ipynb"), as_version=4).cells:
        if cell.cell_type == "markdown":
            bound += len(find_links(cell.source))
        for output in cell.get("outputs", ()):
            bound += output.get("data", {}).get("text/html", "").count('href="num:')
    page = (site / "notebooks" / script.stem / "index.html").read_text(encoding="utf-8")
    assert bound and page.count('class="num"') == bound


def test_mathematics_costs_nothing_on_a_page_without_any(site: Path) -> None:
    for page in site_check.pages(site):
        has, loads = "katex" in page.classes, any("katex" in url for url in page.styles)
        assert has == loads, page.path


def test_the_ledger_page_has_a_row_for_every_number(site: Path) -> None:
    assert set(collect()) <= site_check.page(site / "ledger" / "index.html").anchors


def test_the_page_for_a_missing_address_brings_all_it_needs(site: Path) -> None:
    page = site_check.page(site / "404.html")
    assert page.loads == [] and page.styles == []


@pytest.mark.parametrize(
    ("fault", "check", "expected"),
    [
        ('<a href="nowhere/">x</a>', site_check.dead_links, "no such file"),
        ('<a href="#nowhere">x</a>', site_check.dead_links, "no such anchor"),
        ('<a href="#view=nothing">x</a>', site_check.dead_links, "no such anchor"),
        ('<a href="/ledger/">x</a>', site_check.dead_links, "absolute path"),
        ('<a href="num:pool">x</a>', site_check.dead_links, "no address"),
        ('<i id="twin"></i><i id="twin"></i>', site_check.dead_links, "twice"),
        ('<script src="//cdn.example/x.js"></script>', site_check.requests_to_others, "loads //cdn.example"),
        ('<link rel="preconnect" href="https://fonts.example">', site_check.requests_to_others, "fonts.example"),
        ("<style>@import 'https://fonts.example/a.css'</style>", site_check.requests_to_others, "a.css"),
        ('<i style="background:url(https://pixel.example/a.gif)"></i>', site_check.requests_to_others, "a.gif"),
        ("<h1>again</h1>", site_check.nameless, "2 h1"),
        ('<script src="heavy.js"></script>', site_check.too_heavy, "bytes of styles"),
        ("".join(f'<script src="{n}.js"></script>' for n in range(20)), site_check.too_heavy, "requests"),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, fault: str, check, expected: str) -> None:
    page = "<title>T</title><meta name=description content=D><body><h1>H</h1>%s</body>"
    (tmp_path / "index.html").write_text(page % "", encoding="utf-8")
    assert list(check(tmp_path)) == []
    (tmp_path / "heavy.js").write_bytes(os.urandom(site_check.ASSETS_BUDGET))
    for number in range(20):
        (tmp_path / f"{number}.js").touch()
    (tmp_path / "index.html").write_text(page % fault, encoding="utf-8")
    site_check.page.cache_clear()
    assert any(expected in problem for problem in check(tmp_path))
    site_check.page.cache_clear()
    shutil.rmtree(tmp_path)
