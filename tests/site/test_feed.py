"""The feed of changes and the heads of pages."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from hooks import feed

CHANGES = "# Changes\n\n## 0.2.0\n\n### Corrected\n\n- `pool` was 1 & is\n  2.\n- Another.\n\n## 0.1.0\n\n### Added\n\n- All <of> it.\n\n### Corrected\n\n- None yet.\n"


def test_the_feed_has_an_item_for_every_point_of_the_changes_and_none_for_none() -> None:
    tree = ElementTree.fromstring(feed.feed(CHANGES, "https://a.example/x/", "A", "B"))
    items = [(item.findtext("category"), item.findtext("title")) for item in tree.iter("item")]
    assert items == [("0.2.0, Corrected", "pool was 1 & is 2."), ("0.2.0, Corrected", "Another."), ("0.1.0, Added", "All <of> it.")]
    assert len({item.findtext("guid") for item in tree.iter("item")}) == 3


def test_the_changes_of_this_project_make_a_feed() -> None:
    assert list(feed.entries(feed.CHANGES.read_text(encoding="utf-8")))


def test_every_page_says_for_others_what_it_is(site: Path) -> None:
    for page in site.rglob("index.html"):
        head = page.read_text(encoding="utf-8").partition("</head>")[0]
        said = {
            name: re.search(rf'<meta property="og:{name}" content="([^"]+)">', head)
            for name in ("title", "description", "type", "site_name")
        }
        assert all(said.values()), page
        assert f'<meta name="description" content="{said["description"][1]}">' in head, page


def test_every_page_says_at_its_foot_against_which_engines_the_rules_were_checked(site: Path) -> None:
    for page in site.rglob("index.html"):
        assert re.search(r'<p class="verified">.*vLLM.*llama\.cpp', page.read_text(encoding="utf-8"), re.DOTALL), page
