"""Gives every page a description: its own first paragraph, so that nothing is said twice and no number goes stale."""

from __future__ import annotations

import re
from html import unescape

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

LONGEST = 200


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    paragraph = re.search(r"<p>(.*?)</p>", html, re.DOTALL)
    if paragraph and not page.meta.get("description"):
        page.meta["description"] = shorten(" ".join(unescape(re.sub(r"<[^>]+>", "", paragraph[1])).split()))


def shorten(text: str) -> str:
    """Whole sentences, as many as fit; at least one."""
    sentences = re.split(r"(?<=[.?!:]) (?=\S)", text)
    said = sentences[0]
    for sentence in sentences[1:]:
        if len(said) + len(sentence) >= LONGEST:
            break
        said += " " + sentence
    return said
