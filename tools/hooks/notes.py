"""Puts the notes of notebooks/ on the site, as HTML of the kind that pages have.

mkdocs-jupyter looks only inside docs/, and what it renders carries 575 kB of JupyterLab's styles and scripts that ask
other hosts for more. Here the notes are added to its files, and its cells become plain elements:

    prose as it is      div.note-output      div.note-code, or details.note-code for a cell tagged "fold"

A cell tagged "hide" shows only what it prints. Each note offers its notebook and its script.
"""

from __future__ import annotations

import logging
import posixpath
import re
import shutil
import sys
from pathlib import Path

from bs4 import BeautifulSoup, NavigableString, Tag
from markdown.extensions.toc import slugify, unique
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

log = logging.getLogger("mkdocs.hooks.notes")
serving = False

ROOT = Path(__file__).parents[2]
DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
MATHEMATICS = re.compile(r"\$\$(?P<block>.+?)\$\$|(?<![\\\w$])\$(?P<inline>\S|\S[^$]*?\S)\$(?![\w$])", re.DOTALL)


def on_startup(command: str, dirty: bool) -> None:
    global serving
    serving = command == "serve"


def on_pre_build(config: MkDocsConfig) -> None:
    """In the live preview, a note whose script or package changed is executed first."""
    if serving:
        sys.path.insert(0, str(ROOT / "tools"))
        import notebooks

        for script in notebooks.scripts():
            if not (notebooks.STAMPS / script.stem).exists() and not notebooks.fault(script):
                notebooks.mark_current(script)
        stale = [note for note in notebooks.scripts() if not notebooks.is_current(note)]
        for problem in notebooks.refresh(stale):  # the preview goes on with what is stored
            log.error(problem)


@event_priority(100)  # before mkdocs-jupyter looks for notebooks
def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        source = path.relative_to(ROOT).as_posix()
        files.append(File(source, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


LINES = "<pre><span class=lines><code></code></span></pre>"
"""Where code and what it prints stand. The theme would measure every code that is a child of its pre, one at a time, as the
page opens; this one it leaves alone."""


def is_note(page: Page) -> bool:
    return page.file.src_uri.endswith(".ipynb")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if not is_note(page):
        return html
    drawings: list[str] = []

    def set_aside(match: re.Match[str]) -> str:
        drawings.append(match[0])
        return f"<i id=drawing-{len(drawings) - 1}></i>"

    html = html[html.index('<div class="jp-Notebook"') :]  # before it, and at its end, stand styles and scripts
    html = re.sub(r"<(style|script)\b.*?</\1>", "", DRAWING.sub(set_aside, html), flags=re.DOTALL)
    soup = BeautifulSoup(html, "html.parser")
    body = BeautifulSoup("", "html.parser")
    for cell in soup.select(".jp-Notebook > .jp-Cell"):
        for element in prose(cell) or code(cell):
            body.append(element)
    mark_outputs(body)
    lay_places(body)
    set_mathematics(body)
    set_links(body, page, files)
    set_headings(body, page)
    offer_files(body, page)
    return re.sub(r'<i id="drawing-(\d+)"></i>', lambda match: drawings[int(match[1])], str(body))


def prose(cell: Tag) -> list[Tag]:
    """What stands in a Markdown cell."""
    text = cell.select_one(".jp-RenderedMarkdown") if "jp-MarkdownCell" in cell["class"] else None
    return list(text.contents) if text else []


def code(cell: Tag) -> list[Tag]:
    """A code cell's source and its outputs."""
    parts = []
    source = cell.select_one("[class^=highlight] pre")
    if source and "celltag_hide" not in cell["class"]:
        folded = "celltag_fold" in cell["class"]
        box = "<details class=note-code><summary>Code</summary></details>" if folded else "<div class=note-code></div>"
        parts.append(element(box))
        parts[0].append(element(f"<div class='language-python highlight'>{LINES}</div>"))
        inner = parts[0].code
        inner.extend([child for child in list(source.contents) if child.name != "span" or child.get_text()])
    for output in cell.select(".jp-OutputArea-output"):
        box = element("<div class=note-output></div>")
        plain = output.pre if "jp-RenderedText" in output["class"] else None
        if plain:
            box.append(element(LINES))
            box.code.extend(list(plain.contents))
        else:
            box.extend(list(output.contents))
        parts.append(box)
    return parts


def mark_outputs(body: BeautifulSoup) -> None:
    """Classes for what an output holds, by which the styles know it: a drawing, or a table of numbers that are recorded or given there."""
    for output in body.select(".note-output:has(figure)"):
        output["class"].append("drawn")
    for table in body.select("table.numbers:has(tr[id])"):
        table["class"].append("recorded")
    for table in body.select("table.numbers"):
        if [head.get_text() for head in table.select("th")] == ["symbol", "what", "value", "kind", "source"]:
            table["class"].append("given")


def lay_places(body: BeautifulSoup) -> None:
    """An anchor for each number that stands here, which the ledger leads back to (tools/places.py)."""
    laid = {row["id"] for row in body.select("tr[id]")}
    shown = body.select("table.numbers tr:not([id]) > td:first-child > code:only-child")
    places = [(f"num-{symbol.get_text()}", symbol.find_parent("tr")) for symbol in shown if symbol.get_text().isidentifier()]
    places += [
        (f"num-{link['href'].removeprefix('num:')}", link)
        for link in body.select('a[href^="num:"]:not(h1 a)') + body.select('h1 a[href^="num:"]')
    ]
    for anchor, place in places:
        if anchor not in laid:
            laid.add(anchor)
            place["id"] = anchor


def element(html: str) -> Tag:
    return BeautifulSoup(html, "html.parser").contents[0]


def set_mathematics(body: BeautifulSoup) -> None:
    r"""$...$ and $$...$$ of the prose become what pages have: .arithmatex around \(...\) and \[...\]."""
    for text in body.find_all(string=MATHEMATICS):
        if text.find_parent(["pre", "code", "script"]) or text.find_parent(class_="note-output"):
            continue
        parts: list[Tag | str] = []
        end = 0
        for match in MATHEMATICS.finditer(text):
            block = match["block"] is not None
            box = element("<div class=arithmatex></div>" if block else "<span class=arithmatex></span>")
            box.string = rf"\[{match['block']}\]" if block else rf"\({match['inline']}\)"
            parts += [text[end : match.start()], box]
            end = match.end()
        for part in [*parts, text[end:]]:
            text.insert_before(NavigableString(part) if isinstance(part, str) else part)
        text.extract()
    for box in body.select("p > div.arithmatex:only-child"):
        if not box.parent.get_text().replace(box.get_text(), "").strip():
            box.parent.unwrap()


def set_links(body: BeautifulSoup, page: Page, files: Files) -> None:
    """Links to pages and to other notes, which mkdocs resolves in pages only."""
    for link in body.select("a[href]"):
        path, hash_, anchor = link["href"].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            continue
        target = files.get_file_from_path(posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), path)))
        if target is None:
            raise PluginError(f"{page.file.src_uri}: the link {link['href']!r} leads to no page and no note")
        link["href"] = target.url_relative_to(page.file) + hash_ + anchor


def set_headings(body: BeautifulSoup, page: Page) -> None:
    """Anchors and the table of contents. A bound number stands in an anchor by its name: it may change, the anchor not."""
    used: set[str] = set()
    tokens: list[dict] = []
    for heading in body.find_all(["h1", "h2", "h3"]):
        for mark in heading.select(".anchor-link"):
            mark.decompose()
        title = heading.get_text().strip()
        named = BeautifulSoup(str(heading), "html.parser")
        for link in named.select('a[href^="num:"]'):
            link.replace_with(link["href"].removeprefix("num:"))
        heading["id"] = unique(slugify(named.get_text(), "-"), used)
        level = int(heading.name[1])
        token = {"level": level, "id": heading["id"], "name": title, "children": []}
        siblings = tokens
        while siblings and siblings[-1]["level"] < level:
            siblings = siblings[-1]["children"]
        siblings.append(token)
        if level == 1:
            page.title = title
        heading.append(element(f'<a class="headerlink" href="#{heading["id"]}" title="Link to this section">¶</a>'))
    page.toc = get_toc(tokens)


def offer_files(body: BeautifulSoup, page: Page) -> None:
    name = Path(page.file.src_uri).stem
    body.append(
        element(
            f'<p class="note-files">This note as a <a href="{name}.ipynb" download>notebook</a>'
            f' or a <a href="{name}.py" download>Python script</a>.</p>'
        )
    )


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The notebook and the script, beside the page."""
    if is_note(page):
        folder = Path(page.file.abs_dest_path).parent
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in (".ipynb", ".py"):
            shutil.copyfile(Path(page.file.abs_src_path).with_suffix(suffix), folder / (page.file.name + suffix))
    return output
