"""What the search reads: words apart, and none of what nobody searches for."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def texts(site: Path) -> dict[str, str]:
    """Each section's text as the search has it, by its address."""
    docs = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    return {doc["location"]: unescape(re.sub(r"<[^>]+>", "", doc["text"])) for doc in docs}


def test_cells_of_a_table_are_words_of_their_own(texts: dict[str, str], site: Path) -> None:
    whole = " ".join(texts.values())
    tables = 0
    for page in sorted(site.rglob("index.html")):
        for head in re.findall(r"<thead>(.*?)</thead>", page.read_text(encoding="utf-8"), re.DOTALL):
            cells = [unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<th[^>]*>(.*?)</th>", head, re.DOTALL)]
            assert "".join(cells) not in whole, (page, cells)
            tables += 1
    assert tables > 50


def test_code_formulas_and_the_labels_of_drawings_are_left_out(texts: dict[str, str]) -> None:
    notes = " ".join(text for location, text in texts.items() if location.startswith("notebooks/"))
    assert "full window" in notes
    for unread in ("from aelius_math import", "numbers(", "= pool // ", "seats_32k_b", "1 of 256K"):
        assert unread not in notes, unread
