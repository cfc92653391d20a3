"""Reads a built site as a browser would, and lists what is wrong with it: dead links, requests to others, weight.

Independent of the generator: it knows HTML and CSS, and nothing of MkDocs.
"""

from __future__ import annotations

import gzip
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HTML_BUDGET = 60_000
ASSETS_BUDGET = 250_000
REQUESTS_BUDGET = 15

LOADING = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src"),
           ("embed", "src"), ("object", "data"), ("use", "href"), ("image", "href"), ("use", "xlink:href"), ("image", "xlink:href")}  # fmt: skip
LOADING_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "manifest", "preconnect", "dns-prefetch", "prefetch"}
OUTSIDE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
CSS_URL = re.compile(r"""url\(\s*['"]?([^'")]+)['"]?\s*\)|@import\s+['"]([^'"]+)['"]""")


@dataclass
class Page(HTMLParser):
    """What one page links to, loads and offers as anchors."""

    path: Path
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    twice: list[str] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    css: str = ""
    title: str = ""
    description: str = ""
    h1: int = 0
    inside: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = {name: value or "" for name, value in attrs}
        self.inside = tag if tag in ("style", "title") else self.inside
        self.h1 += tag == "h1"
        self.classes |= set(have.get("class", "").split())
        for name in {have[name] for name in ("id", "name") if name in have and (name == "id" or tag == "a")}:
            if name in self.anchors:
                self.twice.append(name)
            self.anchors.add(name)
        if tag in ("a", "area") and "href" in have:
            self.links.append(have["href"])
        if tag == "link" and set(have.get("rel", "").split()) & LOADING_RELATIONS:
            if not have["href"].startswith("data:"):
                (self.styles if have["rel"] == "stylesheet" else self.loads).append(have["href"])
        if tag == "meta" and have.get("name") == "description":
            self.description = have.get("content", "")
        self.loads += [have[name] for name in have if (tag, name) in LOADING]
        self.loads += [part.split()[0] for part in have.get("srcset", "").split(",") if part.strip()]
        self.css += have.get("style", "") + ";"

    handle_startendtag = handle_starttag

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.css += data
        elif self.inside == "title":
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag == self.inside else self.inside


@cache
def page(path: Path) -> Page:
    return Page(path)


def pages(site: Path) -> list[Page]:
    return [page(path) for path in sorted(site.rglob("*.html"))]


def target(site: Path, base: Path, url: str) -> Path | None:
    """The file of the site that a relative address leads to; None if there is none."""
    path = posixpath.normpath(posixpath.join(base.parent.relative_to(site).as_posix(), unquote(urlsplit(url).path)))
    if path.startswith(".."):
        return None
    file = site / path if urlsplit(url).path else base
    file = file / "index.html" if file.is_dir() else file
    return file if file.is_file() else None


def anchor(fragment: str) -> str:
    """The id that an address leads to. Your rig opens a tab by its name: #view=log leads to the tab with the id tab-log."""
    return re.sub(r"^view=", "tab-", unquote(fragment))


def dead_links(site: Path) -> Iterator[str]:
    """Links within the site that lead to no file or no anchor, or that would break under a sub-path."""
    for here in pages(site):
        name = here.path.relative_to(site).as_posix()
        for url in here.links + here.loads + here.styles:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                if parts.scheme not in ("http", "https", "mailto", "data"):
                    yield f"{name}: {url}: no address that a browser knows"
                continue
            if parts.path.startswith("/"):
                yield f"{name}: {url}: an absolute path breaks under a sub-path"
                continue
            file = target(site, here.path, url)
            if file is None:
                yield f"{name}: {url}: no such file"
            elif parts.fragment and file.suffix == ".html" and anchor(parts.fragment) not in page(file).anchors:
                yield f"{name}: {url}: no such anchor"
        yield from (f"{name}: the id {twice!r} stands there twice" for twice in here.twice)


def requests_to_others(site: Path) -> Iterator[str]:
    """Everything that a page, a style or a script of the site would load from another host."""
    for here in pages(site):
        name = here.path.relative_to(site).as_posix()
        outside = [url for url in here.loads + here.styles + css_urls(here.css) if OUTSIDE.match(url)]
        yield from (f"{name}: loads {url}" for url in outside)
    for file in site.rglob("*.css"):
        urls = css_urls(file.read_text(encoding="utf-8"))
        yield from (f"{file.relative_to(site)}: loads {url}" for url in urls if OUTSIDE.match(url))


def css_urls(css: str) -> list[str]:
    return [first or second for first, second in CSS_URL.findall(css) if not (first or second).startswith(("data:", "#"))]


def gzipped(file: Path) -> int:
    return len(gzip.compress(file.read_bytes(), 9, mtime=0))


@dataclass
class Weight:
    """What one page costs to open: bytes after gzip, and requests."""

    html: int
    assets: dict[str, int]

    @property
    def requests(self) -> int:
        return 1 + len(self.assets)

    @property
    def total(self) -> int:
        """Styles, scripts and fonts."""
        return sum(self.assets.values())


def weight(site: Path, here: Page) -> Weight:
    """HTML, and the styles, scripts and fonts that come with it. A font counts if the page uses a class it serves."""
    assets: dict[str, int] = {}
    for url in here.styles + here.loads:
        file = target(site, here.path, url)
        if file is None or file.suffix in (".html", ".png", ".svg", ".ico"):
            continue
        assets[file.relative_to(site).as_posix()] = gzipped(file)
        if file.suffix == ".css":
            for font in fonts(site, file, here):
                assets[font.relative_to(site).as_posix()] = font.stat().st_size
    worker = re.search(r'"search": "([^"]+)"', here.path.read_text(encoding="utf-8"))
    if worker and (file := target(site, here.path, worker[1])):  # Material starts it with the page; its index waits for a search
        assets[file.relative_to(site).as_posix()] = gzipped(file)
    return Weight(gzipped(here.path), assets)


def fonts(site: Path, style: Path, here: Page) -> Iterator[Path]:
    """The font files of a style sheet that a page can need: KaTeX's by its classes, any other always."""
    css = style.read_text(encoding="utf-8")
    for face in re.findall(r"@font-face\s*{[^}]*}", css):
        family = re.search(r"font-family:\s*['\"]?([^;'\"}]+)", face)
        url = re.search(r"url\(['\"]?([^'\")]+)", face)
        if (
            family
            and url
            and not url[1].startswith("data:")
            and (file := target(site, style, url[1]))
            and needed(family[1], face, here.classes)
        ):
            yield file


KATEX = {
    "KaTeX_Math": {"mathnormal", "boldsymbol"}, "KaTeX_AMS": {"amsrm", "mathbb"}, "KaTeX_Caligraphic": {"mathcal"},
    "KaTeX_Fraktur": {"mathfrak", "textfrak"}, "KaTeX_SansSerif": {"mathsf", "textsf"}, "KaTeX_Script": {"mathscr"},
    "KaTeX_Typewriter": {"mathtt", "texttt"},
}  # fmt: skip


def needed(family: str, face: str, classes: set[str]) -> bool:
    """Whether a page with these classes loads this face."""
    bold, italic = "font-weight:700" in face, "font-style:italic" in face
    if bold and family.startswith("KaTeX") and not classes & {"mathbf", "textbf", "boldsymbol"}:
        return False
    if family == "KaTeX_Main" and italic:
        return bool(classes & {"mathit", "textit"})
    return family not in KATEX or bool(classes & KATEX[family])


def too_heavy(site: Path) -> Iterator[str]:
    """Pages over the budget."""
    for here in pages(site):
        name, cost = here.path.relative_to(site).as_posix(), weight(site, here)
        if cost.html > HTML_BUDGET and not name.startswith("ledger/"):
            yield f"{name}: {cost.html:,} bytes of HTML gzipped, at most {HTML_BUDGET:,}"
        if cost.total > ASSETS_BUDGET:
            yield f"{name}: {cost.total:,} bytes of styles, scripts and fonts gzipped, at most {ASSETS_BUDGET:,}"
        if cost.requests > REQUESTS_BUDGET:
            yield f"{name}: {cost.requests} requests, at most {REQUESTS_BUDGET}"


def nameless(site: Path) -> Iterator[str]:
    """Pages without one h1, a title or a description, or that share one."""
    said: dict[str, str] = {}
    for here in pages(site):
        name = here.path.relative_to(site).as_posix()
        if here.h1 != 1:
            yield f"{name}: {here.h1} h1 headings, expected one"
        if name == "404.html":
            continue
        for what in (here.title.strip(), here.description.strip()):
            if not what:
                yield f"{name}: no title or no description"
            elif what in said:
                yield f"{name}: says {what!r}, as {said[what]} does"
            said[what] = name


if __name__ == "__main__":
    import sys

    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    for problem in [*dead_links(folder), *requests_to_others(folder), *too_heavy(folder), *nameless(folder)]:
        print(problem)
    for here in pages(folder):
        cost = weight(folder, here)
        print(f"{here.path.relative_to(folder)}: {cost.html:,} HTML, {cost.total:,} assets in {cost.requests} requests")
