"""Gives every page a description, and headings with numbers an anchor that stays when the number changes.

The description is the page's own first paragraph: nothing is said twice, and no number goes stale.
"""

from __future__ import annotations

import logging
import re
from html import unescape

from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from aelius_math import vllm_versions
from aelius_math.llamacpp_builds import BUILDS

LONGEST = 200
WIDE = ('class="home"', '<table class="ledger"', 'class="rig"')
VERIFIED_MARK = "<!-- verified -->"
HEADING = re.compile(r"^#{2,6} (?=.*\]\(num:)(?!.*\{#)(.+)$", re.MULTILINE)


def on_startup(command: str, dirty: bool) -> None:
    """A build prints only what is wrong. (With --quiet it would not count warnings, and --strict would pass them.)"""
    if command == "build":
        for generator in ("mkdocs", "properdocs"):
            logging.getLogger(generator).setLevel(logging.WARNING)


def on_config(config: MkDocsConfig) -> None:
    """What stands at the foot of every page is what the package itself says of its rules."""
    first, newest = vllm_versions.RELEASES[-1], vllm_versions.RELEASES[0]
    builds = " and ".join(f"of {build.date}" for build in BUILDS.values())
    number, _, date = max((build.newest_seen for build in BUILDS.values()), key=lambda seen: seen[2])
    config.extra["verified"] = (
        f"Checked against the engines' own code: vLLM from {first} to {newest}; llama.cpp, the builds {builds}, what a "
        f"context takes up to {number} of {date}. Any other is inferred or refused."
    )


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A bound number stands in the anchor of its heading by its name, as it does in a note."""

    def anchored(match: re.Match[str]) -> str:
        named = re.sub(r"\[[^\]]*\]\(num:([^)]*)\)", r"\1", match[1])
        return f"{match[0]} {{#{slugify(named, '-')}}}"

    return HEADING.sub(anchored, markdown.replace(VERIFIED_MARK, config.extra["verified"]))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    paragraph = re.search(r"<p>(.*?)</p>", html, re.DOTALL)
    if paragraph and not page.meta.get("description"):
        page.meta["description"] = shorten(" ".join(unescape(re.sub(r"<[^>]+>", "", paragraph[1])).split()))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Pages of columns and tables are wide."""
    wide = any(mark in output for mark in WIDE)
    return output.replace('<div class="md-content"', '<div class="md-content wide"', 1) if wide else output


def shorten(text: str) -> str:
    """Whole sentences, as many as fit; at least one."""
    sentences = re.split(r"(?<=[.?!:]) (?=\S)", text)
    said = sentences[0]
    for sentence in sentences[1:]:
        if len(said) + len(sentence) >= LONGEST:
            break
        said += " " + sentence
    return said
