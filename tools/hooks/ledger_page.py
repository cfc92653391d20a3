"""Writes the ledger's tables into docs/ledger.md and the article's care into docs/errata.md, each at its mark: nothing kept by hand."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink
from mkdocs.utils import get_relative_url

from aelius_math.ledger import Number, collect, long_text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import places

NoteLink = Callable[..., str]
ARTICLE = ("number", "what it is", "verdict", "treated in")
FACTS = ("number", "what it is", "source")
DERIVED = ("number", "what it is", "how")
MARK = "<!-- the ledger's tables -->"
CARE_MARK = "<!-- what needs care -->"
FILTER = """<form class="ledger-filter" role="search" aria-label="The ledger">
<label class="by-word">Find a number <input type="search" name="q" autocomplete="off"></label>
{selects}<output role="status"></output></form>
<noscript><style>{rules}</style></noscript>
<script src="{script}" defer></script>"""


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if MARK not in html and CARE_MARK not in html:
        return html
    places.standing.cache_clear()  # the live preview builds again
    numbers = list(collect(ROOT).values())

    def note_link(stem: str, text: str = "", anchor: str = "") -> str:
        """A link to the note of that name, with its question; the name alone if there is no such note."""
        target = files.get_file_from_path(f"notebooks/{stem}.ipynb")
        if not target:
            return escape(stem)
        return f'<a href="{target.url_relative_to(page.file)}{anchor}">{escape(text or titles().get(stem, stem))}</a>'

    if CARE_MARK in html:
        careful = [number for number in numbers if number.care]
        for number in careful:
            next(iter(page.toc)).children.append(AnchorLink(sentence(number.label), f"care-{number.id}", 2))
        return html.replace(CARE_MARK, "".join(care(number, note_link) for number in careful))
    sections = list(tables(numbers, note_link))
    for anchor, title, _ in sections:
        next(iter(page.toc)).children.append(AnchorLink(re.sub("<[^>]+>", "", title), anchor, 2))
    if page.present_anchor_ids is not None:  # so that pages may link to a section
        page.present_anchor_ids |= {anchor for anchor, *_ in sections}
    filter_ = filter_form(numbers, get_relative_url("assets/ledger.js", page.url))
    return html.replace(MARK, filter_ + "".join(part(*section) for section in sections))


def note_of(number: Number) -> str:
    return number.note or (number.origin if number.origin not in ("article", "facts") else "")


def verdict_of(number: Number) -> str:
    return (number.verdict or "not treated yet") if number.origin == "article" else ""


def slug(word: str) -> str:
    return word.replace(",", "").replace(" ", "-")


def filter_form(numbers: list[Number], script: str) -> str:
    """A choice by note, kind and verdict; without scripts, styles carry it out. The script adds words, a count and an address."""
    questions = titles()
    choices = {
        "note": {note: questions.get(note, note) for note in dict.fromkeys(sorted(filter(None, map(note_of, numbers))))},
        "kind": {slug(number.kind): number.kind for number in numbers},
        "verdict": {slug(verdict): verdict for verdict in map(verdict_of, numbers) if verdict},
    }
    selects, rules = "", ""
    for name, words in choices.items():
        options = "".join(f'<option value="{value}">{escape(word)}</option>' for value, word in words.items())
        selects += (
            f'<label>{name.capitalize()} <select name="{name}" autocomplete="off"><option value="">any</option>{options}</select></label>\n'
        )
        for value in words:
            chosen = f'.md-content:has(.ledger-filter [name={name}] [value="{value}"]:checked)'
            rules += f'{chosen} table.ledger tr[id]:not([data-{name}="{value}"]){{display:none}}'
    return FILTER.format(selects=selects, rules=rules, script=script)


def titles() -> dict[str, str]:
    """Each note's question, from the first heading of its script."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.py")):
        heading = re.search(r"^# # (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if heading:
            found[path.stem] = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
    return found


def tables(numbers: list[Number], note_link: NoteLink) -> Iterator[tuple[str, str, str]]:
    """The article's numbers with their verdicts, then other facts, then what each note derives: anchor, title, table."""
    article = [article_row(number, note_link) for number in numbers if number.origin == "article"]
    yield "the-article", "What the article says, and what it is worth", table(ARTICLE, article)
    facts = [fact_row(number) for number in numbers if number.origin == "facts"]
    yield "the-facts", "Other facts that the notes take as given", table(FACTS, facts)
    for note in dict.fromkeys(number.origin for number in numbers if number.origin not in ("article", "facts")):
        rows = [derived_row(number, note_link) for number in numbers if number.origin == note]
        yield "note-" + note.replace("_", "-"), note_link(note), table(DERIVED, rows)


def part(anchor: str, title: str, table: str) -> str:
    """A table under its heading. A browser may leave the table until it comes near the screen, and knows about how long it is."""
    return f'<h2 id="{anchor}">{title}</h2><div class="ledger-part" style="--rows: {table.count("<tr id=")}">{table}</div>'


def table(columns: tuple[str, ...], rows: list[str]) -> str:
    head = "".join(f"<th>{column}</th>" for column in columns)
    return f'<table class="ledger"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def row(number: Number, *cells: str) -> str:
    name = f'<a class="ledger-id" href="#{number.id}"><code>{number.id}</code></a>'
    said = f'<td class="ledger-number"><b>{escape(long_text(number))}</b> {name}</td>'
    about = {"note": note_of(number), "kind": slug(number.kind), "verdict": slug(verdict_of(number))}
    data = "".join(f' data-{name}="{value}"' for name, value in about.items() if value)
    return f'<tr id="{number.id}"{data}>{said}{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def article_row(number: Number, note_link: NoteLink) -> str:
    what = f"{escape(sentence(number.label))} <small>{bound(sentence(number.says))} ({number.kind})</small>"
    word = verdict_of(number)
    verdict = f'<span class="verdict" data-verdict="{slug(word)}">{word}</span>'
    for more in (number.reading, number.verdict_note):
        verdict += f" <small>{bound(more)}</small>" if more else ""
    return row(number, what, verdict, note_link(number.note, anchor=places.place(number)) if number.note else "")


def bound(text: str) -> str:
    """A text of article.toml as HTML; its numbers become links as in any prose, which bound_numbers.py checks."""
    return re.sub(r"\[([^]]*)\]\(num:(\w+)\)", r'<a href="num:\2">\1</a>', escape(text, quote=False))


def care(number: Number, note_link: NoteLink) -> str:
    """One entry of the errata: what the article says, the verdict, and its arithmetic in a few lines."""
    reading = f", {bound(number.reading)}" if number.reading else ""
    lines = "".join(f"<li>{bound(line)}</li>" for line in number.care)
    return (
        f'<h2 id="care-{number.id}">{escape(sentence(number.label))}</h2>'
        f"<p>{bound(sentence(number.says))}.</p>"
        f'<p><span class="verdict" data-verdict="{slug(number.verdict)}">{number.verdict}</span>{reading}. '
        f"{bound(number.verdict_note)}</p><ol>{lines}</ol><p>Derived in: {note_link(number.note, anchor=places.place(number))}</p>"
    )


def fact_row(number: Number) -> str:
    return row(number, f"{escape(sentence(number.label))} <small>({number.kind})</small>", escape(number.source))


def derived_row(number: Number, note_link: NoteLink) -> str:
    how = f"<code>{escape(number.how)}</code>" if number.how.startswith("=") else escape(number.how)
    more = f" <small>{escape(number.source)}</small>" if number.source else ""
    cell = note_link(number.note, "in this cell", f"#num-{number.id}")
    return row(number, f"{escape(sentence(number.label))} <small>({number.kind} {cell})</small>", how + more)


def sentence(text: str) -> str:
    """The text with a capital; a name such as vLLM keeps its own."""
    return text[:1].upper() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
