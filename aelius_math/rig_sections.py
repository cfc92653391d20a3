"""What the page draws: sections of figures, tables and steps, and pictures of memory; the same as Markdown."""

from __future__ import annotations

from typing import Any, NamedTuple

Section = dict[str, Any]

NOTES = {
    "01_two_numbers": "Which two numbers get confused?", "02_why_it_fits": "Why does a window this size fit at all?",
    "03_fp8_and_second_card": "What do fp8 and the second card each save?", "04_why_289661": "Why exactly this pool?",
    "05_image_model": "What did the image model cost?", "06_ladder": "How is the pool handed out?", "09_wall": "Where is the wall?",
}  # fmt: skip
"""Notes that a step leads to, and what each is about."""


class Figure(NamedTuple):
    """One number of the answer: what it is, as a text, and what to know beside it."""

    label: str
    text: str
    note: str = ""


class Part(NamedTuple):
    """A stretch of memory; `kind` gives it its colour."""

    what: str
    size: int
    kind: str


class Picture(NamedTuple):
    """One bar, whose parts add up to the total. `said`: what its caption says, if not the total; `limit`: bytes up to a mark in it."""

    title: str
    total: int
    parts: list[Part]
    said: str = ""
    limit: int | None = None


def figures(title: str, rows: list[Figure]) -> Section:
    return {"kind": "figures", "title": title, "rows": [list(row) for row in rows]}


def table(title: str, head: list[str], rows: list[list[str]], text: str = "") -> Section:
    return {"kind": "table", "title": title, "head": head, "rows": rows, "text": text}


def step(symbol: str, name: str, formula: str, numbers: str, value: str, source: str, note: str) -> dict[str, str]:
    """One line of a derivation, and where it is explained: a note, and behind # the anchor of the section."""
    stem, _, anchor = note.partition("#")
    return {
        "symbol": symbol, "name": name, "formula": formula, "numbers": numbers, "value": value, "source": source, "note": stem, "anchor": anchor,
        "asks": NOTES[stem],
    }  # fmt: skip


def steps(title: str, rows: list[dict[str, str]]) -> Section:
    return {"kind": "steps", "title": title, "rows": rows}


def drawn(picture: Picture, show: Any) -> dict[str, Any]:
    """A picture as the page takes it: every length in bytes, every text written."""
    parts = [
        {"what": part.what, "bytes": part.size, "text": show.size(part.size), "share": part.size / picture.total, "kind": part.kind}
        for part in picture.parts
        if part.size > 0
    ]
    listed = ", ".join(f"{part['what']} {part['text']}" for part in parts)
    total = picture.said or show.size(picture.total)
    return {
        "title": picture.title,
        "bytes": picture.total,
        "total": total,
        "limit": None if picture.limit is None else picture.limit / picture.total,
        "parts": parts,
        "alt": f"{picture.title}: {total}. {listed}.",
    }


def cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def row(cells: list[str]) -> str:
    return "| " + " | ".join(map(cell, cells)) + " |"


def markdown(title: str, sentences: list[str], sections: list[Section], code: dict[str, str]) -> str:
    """The whole answer as Markdown."""
    lines = [f"# {title}", "", *sentences, ""]
    for section in sections:
        lines += [f"## {section['title']}", ""]
        if section.get("text"):
            lines += [section["text"], ""]
        if section["kind"] == "figures":
            lines += [f"* {label}: **{text}**" + (f" ({note})" if note else "") for label, text, note in section["rows"]]
        elif section["kind"] == "table":
            lines += [row(section["head"]), row(["---"] * len(section["head"])), *(row(cells) for cells in section["rows"])]
        elif section["kind"] == "steps":
            lines += [
                f"* `{each['symbol']}` {each['name']}: {each['formula']} = {each['numbers']} = **{each['value']}** ({each['source']})".replace(
                    " =  = ", " = "
                )
                for each in section["rows"]
            ]
        elif section["kind"] == "list":
            lines += [f"* {text}" for text in section["rows"]]
        lines.append("")
    for name, language in (("command", "sh"), ("python", "python")):
        if code.get(name):
            lines += [f"```{language}", code[name].rstrip(), "```", ""]
    return "\n".join(lines)
