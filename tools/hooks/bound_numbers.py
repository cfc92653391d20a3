"""Binds the numbers in prose to the ledger as the site is built: one that is unknown or untrue stops the build.

[289,661](num:pool) becomes a link to the number's row of the ledger page, with what it is as its title. All that is wrong
is listed at once. The rules of what a text may say are the package's, in aelius_math.binding.
"""

from __future__ import annotations

import logging
import re
import sys
from html import escape, unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from aelius_math.binding import truth, words
from aelius_math.ledger import Ledger, Number, collect, long_text, published
from aelius_math.units import AeliusError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import prose
import typed_digits

LINK = re.compile(r'<a (?:xlink:)?href="num:(?P<id>[^"]*)"(?P<anchor> id="num-\w+")?[^>]*>(?P<text>.*?)</a>', re.DOTALL)
DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
ALT = re.compile(r'(?<= data-numbers=")[^"]*')

log = logging.getLogger("mkdocs.hooks.bound_numbers")
ledger: Ledger
problems: list[str]
serving = False


def on_startup(command: str, dirty: bool) -> None:
    global serving
    serving = command == "serve"


def on_pre_build(config: MkDocsConfig) -> None:
    """What people wrote is read first: a loose digit, or a formula that does not agree, stops the build as well."""
    global ledger, problems
    for cached in (published, words):  # the live preview builds again with other data
        cached.cache_clear()
    try:
        ledger, problems = collect(ROOT), []
    except AeliusError as error:
        raise PluginError(f"the ledger: {error}") from None
    stop(prose.check(ledger, ROOT).problems + ledger.disagreements() + typed_digits.check(ROOT))


def title(number: Number) -> str:
    """What the tooltip says, a line each: the number, what it is, how it came about or where it stands."""
    origin = number.how or number.source
    return f"{long_text(number)}\n{number.label}\n" + (f"{origin} ({number.kind})" if origin else number.kind)


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def check(key: str, text: str, after: str, page: Page) -> Number | None:
    """The number of that id, if there is one; what is wrong with the text goes on the list."""
    number = ledger.get(key)
    wrong = "the ledger has no number of that id" if number is None else truth(number, text, after)
    if wrong:
        problems.append(f"{page.file.src_uri}: [{text}](num:{key}): {wrong}")
    return number


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    target = files.get_file_from_path("ledger.md")
    rows = target.url_relative_to(page.file) if target else ""

    def checked(match: re.Match[str]) -> Number | None:
        return check(match["id"], plain(match["text"]), plain(match.string[match.end() : match.end() + 200])[:40], page)

    def in_prose(match: re.Match[str]) -> str:
        number = checked(match)
        about = f' title="{escape(title(number))}"' if number else ""
        return f'<a class="num" href="{rows}#{match["id"]}"{match["anchor"] or ""}{about}>{match["text"]}</a>'

    def in_drawing(match: re.Match[str]) -> str:
        checked(match)
        return f'<tspan class="num">{match["text"]}</tspan>'  # a drawing is one image to a reader: no links inside

    def drawing(match: re.Match[str]) -> str:
        for bound in ALT.findall(match[0]):
            for pair in filter(None, bound.split("; ")):
                key, _, text = unescape(pair).partition("=")
                check(key, text, "", page)
        return LINK.sub(in_drawing, match[0])

    return LINK.sub(in_prose, DRAWING.sub(drawing, html))


def on_env(env: object, config: MkDocsConfig, files: Files) -> None:
    """Every page has its content by now, and none is written yet."""
    stop(problems)


def stop(found: list[str]) -> None:
    if found:
        shown = "\n  ".join(found)
        message = f"{len(found)} numbers do not hold:\n  {shown}\nMend the text, or run: make numbers"
        if not serving:
            raise PluginError(message)
        log.error(message)  # the preview goes on
