"""The ledger's page: the article's numbers first, an anchor each, and a way back to the cell that derives a number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aelius_math.ledger import collect, published


@pytest.fixture(scope="module")
def rows(site: Path) -> dict[str, str]:
    html = (site / "ledger" / "index.html").read_text(encoding="utf-8")
    return dict(re.findall(r'<tr id="(\w+)"[^>]*>(.*?)</tr>', html, re.DOTALL))


def test_the_numbers_of_the_article_come_first_and_every_number_has_its_row(rows: dict[str, str]) -> None:
    article = [key for key, number in published().items() if number.origin == "article"]
    assert list(rows)[: len(article)] == article
    assert list(rows) == list(collect())


def test_a_derived_number_leads_back_to_its_cell(rows: dict[str, str], site: Path) -> None:
    for key, number in collect().items():
        if number.note and key not in published():
            assert f'href="../notebooks/{number.note}/#num-{key}"' in rows[key], key
            assert f'id="num-{key}"' in (site / "notebooks" / number.note / "index.html").read_text(encoding="utf-8"), key


def test_a_number_of_the_article_leads_back_to_its_place_in_the_note_from_its_row_and_from_the_errata(
    rows: dict[str, str], site: Path
) -> None:
    errata = (site / "errata" / "index.html").read_text(encoding="utf-8")
    care = dict(re.findall(r'<h2 id="care-(\w+)">.*?Derived in: <a href="([^"]*)"', errata, re.DOTALL))
    treated = {key: number for key, number in published().items() if number.origin == "article" and number.note}
    assert care and len(treated) > 50
    for key, number in treated.items():
        (link,) = re.findall(rf'href="(\.\./notebooks/{number.note}/[^"]*)"', rows[key].rpartition("<td")[2])
        page, _, anchor = link.removeprefix("../").partition("#")
        assert anchor.startswith("num-"), key
        assert f'id="{anchor}"' in (site / page / "index.html").read_text(encoding="utf-8"), key
        assert care.get(key, link) == link


def test_each_row_says_the_number_its_kind_and_where_it_comes_from(rows: dict[str, str]) -> None:
    for key, number in collect().items():
        text = re.sub(r"<[^>]+>|&\w+;|&#x27;", "", rows[key])
        assert number.text.replace("&", "").replace("<", "").replace(">", "").replace("'", "")[:20] in text, key
        assert number.kind in text, key


def test_a_verdict_binds_its_numbers(rows: dict[str, str]) -> None:
    for key, number in published().items():
        for bound in re.findall(r"\]\(num:(\w+)\)", number.verdict_note + number.reading):
            assert f'href="#{bound}"' in rows[key] or f"#{bound}" in rows[key], (key, bound)
        assert "](num:" not in rows[key]
