"""Draws what a page looks like where somebody shares its address: its question, and one number that answers it.

cards/NAME.png, 1200 x 630, from the page's own h1 and a number of the ledger; nothing is typed for it. The fonts lie in the
repository, so the same page makes the same bytes. A page names its card in its head (overrides/main.html) when SITE_URL
is set: the address of a card has to be whole.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from html import unescape
from io import BytesIO
from pathlib import Path

import PIL
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from PIL import Image, ImageDraw, ImageFont

from aelius_math.ledger import Ledger, Number, collect
from aelius_math.units import show_bytes

ROOT = Path(__file__).parents[2]
FONTS = ROOT / "docs" / "assets" / "fonts"
KEPT = ROOT / ".cache" / "cards"
WIDTH, HEIGHT, EDGE = 1200, 630, 84
PAPER, INK, SOFT, FAINT, BLUE = "#fdfcf9", "#22262b", "#5a6068", "#b9d1da", "#176e93"
LOGO = ((1, 13.5, 22, FAINT), (1, 13.5, 19.9, BLUE), (1, 4.5, 9.4, BLUE), (11.5, 4.5, 4.2, BLUE), (16.8, 4.5, 2.2, BLUE))
"""The site's mark, as in overrides/partials/logo.html: x, y, width and colour of bars of one height."""
SHOWN = {
    "index.md": "pool",
    "notebooks/02_why_it_fits.ipynb": "kv_window",
    "notebooks/03_fp8_and_second_card.ipynb": "card_token",
    "notebooks/06_ladder.ipynb": "ladder_shorts",
    "notebooks/10_load_test.ipynb": "paging_past",
}
"""The number of a page's card, where it is not the first one of the page's first paragraph."""
ELSEWHERE = "pool"
"""The number of a page whose first paragraph has none."""
RULE = 436
BOUND = re.compile(r'<a class="num" href="[^"]*#(?P<id>\w+)"[^>]*>(?P<text>[^<]*\d[^<]*)</a>')
COLOURS = 32

serving = False


def on_startup(command: str, dirty: bool) -> None:
    global serving
    serving = command == "serve"


@event_priority(-100)  # after the numbers are bound
def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Draws the card of the page into the site, unless it is only a preview."""
    page.meta["card"] = name = f"cards/{Path(page.file.dest_uri).parent.name or 'home'}.png"
    if serving:
        return
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    question = plain(re.sub(r'<a class="headerlink".*?</a>', "", heading[1])) if heading else page.title
    key, text = number(page.file.src_uri, html)
    if key not in numbers():
        raise PluginError(f"tools/hooks/cards.py: the card of {page.file.src_uri} shows {key!r}, which the ledger does not have")
    entry = numbers()[key]
    text = with_unit(text, entry)
    page.meta["card_alt"] = f"{question} {text}: {entry.label}"
    path = Path(config.site_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(card(question, page.meta.get("description", ""), text, entry.label))


def on_pre_build(config: MkDocsConfig) -> None:
    numbers.cache_clear()


@cache
def numbers() -> Ledger:
    return collect(ROOT)


def number(source: str, html: str) -> tuple[str, str]:
    """The id of the number that the card shows, and its text where the page's own is taken."""
    if source in SHOWN:
        return SHOWN[source], ""
    paragraph = re.search(r"<p>(.*?)</p>", html, re.DOTALL)
    for match in BOUND.finditer(paragraph[1] if paragraph else ""):
        if sum(map(str.isdigit, match["text"])) > 1:
            return match["id"], plain(match["text"])
    return ELSEWHERE, ""


def with_unit(text: str, entry: Number) -> str:
    """The page's text of a number, or the ledger's; with its unit, if a text does not say it."""
    if not text and entry.unit == "bytes" and isinstance(entry.value, int):
        return show_bytes(entry.value).replace(".0 ", " ")
    text = text or entry.text
    return f"{text} {entry.unit}" if entry.unit in ("tokens", "blocks") and entry.unit not in text else text


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def card(question: str, answer: str, text: str, label: str) -> bytes:
    """The card as a PNG; kept, by all that it is made of, for the next build."""
    made_of = "\0".join((question, answer, text, label, PIL.__version__, Path(__file__).read_text(encoding="utf-8")))
    kept = KEPT / f"{sha256(made_of.encode()).hexdigest()[:32]}.png"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(draw(question, answer, text, label))
    return kept.read_bytes()


def draw(question: str, answer: str, text: str, label: str) -> bytes:
    """The mark, the question as large as fits, how its answer begins, and at the foot the number with what it is."""
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(image)
    for x, y, width, colour in LOGO:
        pen.rectangle((EDGE + 2 * (x - 1), 64 + 2 * (y - 4.5), EDGE + 2 * (x - 1 + width), 64 + 2 * (y + 1.5)), fill=colour)
    pen.text((EDGE + 60, 90), "Aelius", fill=INK, font=font(600, 36), anchor="ls")
    size, lines = fitted(question, (76, 68, 60, 52, 46), 2)
    top = 118
    for line in lines:
        top += round(size * 1.16)
        pen.text((EDGE, top), line, fill=INK, font=font(600, size), anchor="ls")
    for number, line in enumerate(beginning(answer, (RULE - top - 50) // 42), 1):
        pen.text((EDGE, top + 16 + 42 * number), line, fill=SOFT, font=font(400, 32), anchor="ls")
    pen.rectangle((EDGE, RULE, WIDTH - EDGE, RULE + 3), fill=BLUE)
    size, _ = fitted(text, (80, 64, 48), 1)
    pen.text((EDGE, 538), text, fill=BLUE, font=font(600, size), anchor="ls")
    after = EDGE + pen.textlength(text, font(600, size)) + 28
    size, beside = fitted(label, (32, 28, 24, 20), 2, 400, WIDTH - EDGE - after)
    for number, line in enumerate(beside):
        pen.text((after, 538 - 42 * (len(beside) - 1 - number)), line, fill=SOFT, font=font(400, size), anchor="ls")
    stream = BytesIO()
    image.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def beginning(answer: str, most: int) -> list[str]:
    """As many whole sentences as that many lines hold; none if the first does not fit."""
    found: list[str] = []
    said = ""
    for sentence in re.split(r"(?<=[.?!]) (?=\S)", answer):
        said = f"{said} {sentence}".strip()
        lines = wrapped(said, font(400, 32), WIDTH - 2 * EDGE)
        if len(lines) > most or said.endswith(":"):
            break
        found = lines
    return found


@cache
def font(weight: int, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONTS / f"source-serif-4-latin-{weight}-normal.ttf", size)


def fitted(text: str, sizes: tuple[int, ...], most: int, weight: int = 600, room: float = WIDTH - 2 * EDGE) -> tuple[int, list[str]]:
    """The largest size at which the text takes no more lines than that, and the lines."""
    for size in sizes:
        lines = wrapped(text, font(weight, size), room)
        if len(lines) <= most:
            break
    return size, lines


def wrapped(text: str, of: ImageFont.FreeTypeFont, room: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if of.getlength(longer) > room and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
