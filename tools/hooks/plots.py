"""Puts a note's plot into a page: `<!-- plot: NAME -->`, the name that the note gave it, is all that the page says.

The plot comes from the committed notebook, with its caption, so the page shows what the note proves and nothing is drawn
twice. Its numbers are checked like any other (bound_numbers.py).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"<!-- plot: ([a-z0-9-]+) -->")
PLOT = re.compile(r'<figure class="plot" id="plot-([a-z0-9-]+)">.*?</figure>', re.DOTALL)


def plots() -> dict[str, str]:
    """Every plot of the notes by its name."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", ()):
                html = "".join(output.get("data", {}).get("text/html", ""))
                found.update({match[1]: match[0] for match in PLOT.finditer(html)})
    return found


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if not MARK.search(markdown):
        return markdown
    known = plots()

    def put(match: re.Match[str]) -> str:
        if match[1] not in known:
            names = ", ".join(sorted(known)) or "none"
            raise PluginError(f"{page.file.src_uri}: no note has a plot named {match[1]!r}; there are: {names}")
        return known[match[1]]

    return MARK.sub(put, markdown)
