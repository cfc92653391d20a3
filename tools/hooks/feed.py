"""A feed of what changed, feed.xml, from CHANGELOG.md: written when SITE_URL says where the site stands, as a feed needs that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from xml.sax.saxutils import escape

from mkdocs.config.defaults import MkDocsConfig

CHANGES = Path(__file__).parents[2] / "CHANGELOG.md"


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Every point of the list: the headings that it stands under, and what it says."""
    version = section = ""
    for block in re.split(r"\n(?=#|- )|\n\n+", text):
        if block.startswith("## "):
            version = block[3:].strip()
        elif block.startswith("### "):
            section = block[4:].strip()
        elif block.startswith("- ") and version and not block.startswith("- None"):
            yield f"{version}, {section}" if section else version, " ".join(block[2:].replace("`", "").split())


def feed(text: str, address: str, title: str, description: str) -> str:
    items = "".join(
        f"<item><title>{escape(said)}</title><category>{escape(where)}</category><link>{escape(address)}</link>"
        f'<guid isPermaLink="false">{sha256(said.encode()).hexdigest()[:32]}</guid></item>\n'
        for where, said in entries(text)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel>'
        f"<title>{escape(title)}: changes</title><link>{escape(address)}</link><description>{escape(description)}</description>\n"
        f"{items}</channel></rss>\n"
    )


def on_post_build(config: MkDocsConfig) -> None:
    if config.site_url:
        changes = CHANGES.read_text(encoding="utf-8")
        written = feed(changes, config.site_url, config.site_name, config.site_description or "")
        Path(config.site_dir, "feed.xml").write_text(written, encoding="utf-8")
