"""What the search reads of a page: words that a reader sees, one by one.

The search plugin takes a page's text as it stands, so cells of a table would run together. Left out is what nobody searches for:
the code of a cell, formulas and ids of numbers, and the labels of a drawing, which its caption says in words. Each name in them
is a rare word to the search, and would outweigh the plain one: a page with block_bytes and old_blocks, where block was meant.
"""

from __future__ import annotations

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

CELL = re.compile(r"(?<=</t[dhr]>)(?=<)")
UNREAD = re.compile(
    r'<(svg(?=[ >])|(?:div|details)(?= class="note-code")|(?:td|code)(?=>= )|td(?=><code>\w+</code></td>)|a(?= class="ledger-id"))'
)


@event_priority(-100)  # when the page is whole
def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return UNREAD.sub(r"<\1 data-search-exclude", CELL.sub(" ", html))
