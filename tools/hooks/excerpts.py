"""What a page takes from the notes, so that nothing is said or drawn twice.

    <!-- plot: NAME -->   a plot by the name that its note gave it, with its caption, from the committed notebook
    <!-- questions -->    every note of the navigation: its question, and its first paragraph, which is the answer

The numbers in both are checked like any other (bound_numbers.py).
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
PLOT_MARK = re.compile(r"<!-- plot: ([a-z0-9-]+) -->")
QUESTIONS_MARK = "<!-- questions -->"
PLOT = re.compile(r'<figure class="plot" id="plot-([a-z0-9-]+)">.*?</figure>', re.DOTALL)
BINDING = re.compile(r"\[([^\]]*)\]\(num:[a-z0-9_]+\)")


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def plots() -> dict[str, str]:
    """Every plot of the notes by its name."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        for cell in cells(path):
            for output in cell.get("outputs", ()):
                html = "".join(output.get("data", {}).get("text/html", ""))
                found.update({match[1]: match[0] for match in PLOT.finditer(html)})
    return found


def questions(files: Files) -> str:
    """The notes in their order: the heading links to the note; a link in a paragraph is left to the note itself."""
    parts = ['<nav class="questions" aria-label="The notes" markdown>']
    for file in sorted((file for file in files if file.src_uri.endswith(".ipynb")), key=lambda file: file.src_uri):
        heading, answer = "".join(cells(ROOT / file.src_uri)[0]["source"]).strip().split("\n\n")[:2]
        question = BINDING.sub(r"\1", heading.removeprefix("# "))
        answer = re.sub(r"\[([^\]]*)\]\((?!num:)[^)]*\)", r"\1", answer)
        parts += [f"### [{question}]({file.src_uri})", answer]
    return "\n\n".join([*parts, "</nav>"])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if PLOT_MARK.search(markdown):
        known = plots()

        def put(match: re.Match[str]) -> str:
            if match[1] not in known:
                names = ", ".join(sorted(known)) or "none"
                raise PluginError(f"{page.file.src_uri}: no note has a plot named {match[1]!r}; there are: {names}")
            return f'<div class="note-output drawn">{known[match[1]]}</div>'  # as on the note: what a cell has shown

        markdown = PLOT_MARK.sub(put, markdown)
    return markdown.replace(QUESTIONS_MARK, questions(files)) if QUESTIONS_MARK in markdown else markdown
