"""Reads the built site and lists every digit that a reader meets and nothing answers for.

Independent of the build: it knows HTML, the ledger and the lists of names and exemptions, and shares no parsing with the
hooks or with prose.py. Only what a cell printed, code, mathematics of single digits, footnote marks, the ledger's own
tables and those of sources stand for themselves. A page's title, description and links of navigation repeat text of the site: each has to be found
in a text whose digits were answered for, as has the h1 of a page that another one names.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from aelius_math.binding import truth
from aelius_math.ledger import Number, collect

HERE = Path(__file__).parent
BOUND = "\x00"
MOST_EXEMPT = 0.05
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
INLINE = {"a", "abbr", "b", "bdi", "cite", "code", "del", "em", "i", "ins", "kbd", "label", "mark", "q", "s", "small", "span", "strong",
          "sub", "sup", "time", "u", "var", "wbr"}  # fmt: skip
SPOKEN = ("alt", "aria-label", "aria-description", "title", "placeholder", "label", "summary")


@dataclass
class Line:
    """One stretch of a page as a reader meets it: text, and the bindings in it; `repeats`: it only repeats other text."""

    where: str
    text: str = ""
    plain: str = ""
    bound: list[tuple[str, str, int]] = field(default_factory=list)  # id, text, where it ends in `text`
    repeats: bool = False
    title: bool = False


class Reader(HTMLParser):
    """A page taken apart into lines."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page
        self.stack: list[tuple[str, str]] = []
        self.lines: list[Line] = []
        self.current = Line(page)
        self.link: str | None = None
        self.said = ""
        self.skipped = 0
        self.mathematics: list[str] = []

    def has(self, *classes: str) -> bool:
        return any(set(have.split()) & set(classes) for _, have in self.stack)

    def inside(self, *tags: str) -> bool:
        return any(tag in tags for tag, _ in self.stack)

    @property
    def stands_for_itself(self) -> bool:
        printed = self.has("note-output") and not self.inside("figcaption")
        return printed or self.has("note-code", "highlight", "footnote-ref") or self.inside("pre")

    def flush(self) -> None:
        if self.current.plain.strip() or self.current.bound:
            self.current.title = self.inside("h1")
            self.lines.append(self.current)
        self.current = Line(self.page)

    @property
    def repeating(self) -> bool:
        return self.inside("nav", "title") or (self.inside("header", "footer") and not self.inside("article"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = {key: value or "" for key, value in attrs}
        classes = have.get("class", "")
        if tag not in INLINE:
            self.flush()
        if tag == "meta" and re.match(
            r"description|og:(?!url|image|type)|twitter:(title|description)", have.get("name", have.get("property", ""))
        ):
            self.add(have.get("content", ""), repeats=True)
        if tag not in VOID:
            self.stack.append((tag, classes))
        if tag == "a" and "num" in classes.split():
            found = re.search(r"#([a-z][a-z0-9_]*)$", have.get("href", ""))
            self.link, self.said = (found[1] if found else ""), ""
            return
        if self.inside("script", "style"):
            return
        drawn = dict(pair.split("=", 1) for pair in have.get("data-numbers", "").split("; ") if "=" in pair)
        for name in SPOKEN:
            if name in have:
                self.add(have[name], drawn)
        if tag == "ol" and have.get("start", "1") != "1":
            self.add(f"list from {have['start']}")
        if tag == "li" and "value" in have:
            self.add(f"item {have['value']}")

    def add(self, text: str, drawn: Mapping[str, str] | None = None, repeats: bool = False) -> None:
        """A text that stands in an attribute; `drawn`: the numbers that a plot says its texts are bound to."""
        line = Line(self.page, text, text, repeats=repeats or self.repeating)
        for key, said in (drawn or {}).items():
            while place := re.search(rf"(?<![\w.,]){re.escape(said)}(?!\w|[.,]\d)", line.text):
                line.text = line.text[: place.start()] + BOUND + line.text[place.end() :]
                line.bound.append((key, said, place.start() + 1))
        self.lines.append(line)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self.link is not None:
            self.current.text += BOUND
            self.current.plain += self.said
            self.current.bound.append((self.link, self.said, len(self.current.text)))
            self.link = None
        if tag not in INLINE:
            self.flush()  # while the stack still says where this text stood
        for depth in range(len(self.stack) - 1, -1, -1):
            if self.stack[depth][0] == tag:
                del self.stack[depth:]
                break

    def handle_data(self, data: str) -> None:
        digits = sum(map(str.isdigit, data))
        if self.link is not None:
            self.said += data
        elif self.inside("script", "style"):
            return
        elif self.has("mathematics"):
            if not self.inside("annotation"):
                self.mathematics.append(data)
        elif self.stands_for_itself:
            self.skipped += digits
        elif any(tag == "table" and {"ledger", "sources"} & set(classes.split()) for tag, classes in self.stack):
            self.skipped += digits
            self.current.text += re.sub(r"\d", "#", data)  # a unit behind a bound number counts here too
        elif self.repeating:
            self.lines.append(Line(self.page, data, data, repeats=True))
        else:
            self.current.text += data
            self.current.plain += data

    def close(self) -> None:
        super().close()
        self.flush()


@dataclass
class Report:
    problems: list[str] = field(default_factory=list)
    digits: Counter[str] = field(default_factory=Counter)

    @property
    def exempt_share(self) -> float:
        others = self.digits["bound"] + self.digits["exempt"] + self.digits["loose"]
        return self.digits["exempt"] / others if others else 0.0

    def __str__(self) -> str:
        d = self.digits
        return (
            f"built site: {d['bound']} digits bound, {d['exempt']} exempt ({self.exempt_share:.1%} of those in no name), {d['named']} in "
            f"names, {d['repeated']} repeated in titles and navigation, {d['printed']} printed by cells or code, {d['loose']} loose"
        )


def one_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(r"(?<![\w.,])(?:" + "|".join(patterns) + r")(?!\w|[.,]\d)", re.IGNORECASE)


def lists() -> tuple[re.Pattern[str], re.Pattern[str]]:
    names = tomllib.loads((HERE / "names.toml").read_text(encoding="utf-8"))["names"]
    exempt = tomllib.loads((HERE / "exempt.toml").read_text(encoding="utf-8")).values()
    escaped = (r"\s+".join(re.escape(word) for word in name.split()) for name in sorted(names, key=len, reverse=True))
    return one_of(escaped), one_of(entry["pattern"] for entry in exempt)


def read(page: Path, site: Path) -> Reader:
    reader = Reader(page.relative_to(site).as_posix())
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    return reader


def check(site: Path, ledger: Mapping[str, Number]) -> Report:
    """Everything on the built site that no entry of the ledger, no name and no exemption answers for."""
    report = Report()
    names, exempt = lists()
    pages = [read(path, site) for path in sorted(site.rglob("*.html"))]
    answered = {" ".join(line.plain.split()) for page in pages for line in page.lines if not line.repeats}
    text_of_site = "\n".join(answered)
    titles = {" ".join(line.plain.replace("¶", "").split()) for page in pages for line in page.lines if line.title}
    title = re.compile("|".join(re.escape(title) for title in sorted(titles) if re.search(r"\d", title)) or r"(?!)")
    for page in pages:
        report.digits["printed"] += page.skipped
        for formula in page.mathematics:
            for found in re.findall(r"\d{2,}|\d[.,]\d", formula):
                report.problems.append(f"{page.page}: {found!r} in mathematics")
        for line in page.lines:
            one_line(line, ledger, report, names, exempt, text_of_site, title)
    if report.exempt_share > MOST_EXEMPT:
        report.problems.append(f"{report.exempt_share:.1%} of the digits are exempt; at most {MOST_EXEMPT:.0%} may be")
    return report


def one_line(
    line: Line, ledger: Mapping[str, Number], report: Report, names: re.Pattern[str], exempt: re.Pattern[str], text_of_site: str,
    title: re.Pattern[str],
) -> None:  # fmt: skip
    for key, said, end in line.bound:
        report.digits["bound"] += sum(map(str.isdigit, said))
        after = line.text[end : end + 40].replace(BOUND, "")
        if key not in ledger:
            report.problems.append(f"{line.where}: {said!r} is bound to {key!r}, which the ledger does not have")
        elif wrong := truth(ledger[key], said.strip(), after):
            report.problems.append(f"{line.where}: {key}: {wrong}")
    rest = " ".join(line.text.split())
    if line.repeats:
        parts = [part for part in re.split(r" - |(?<=[.?!:]) ", rest) if re.search(r"\d", part)]
        if all(re.search(rf"(?<![\w.,]){re.escape(part)}(?!\w|[.,]\d)", text_of_site) for part in parts):
            report.digits["repeated"] += sum(map(str.isdigit, rest))
            return
    if not line.title:
        report.digits["repeated"] += sum(map(str.isdigit, "".join(title.findall(rest))))
        rest = title.sub(" ", rest)  # a link by the name of a page, whose h1 answers for it
    for kind, pattern in (("named", names), ("exempt", exempt)):
        report.digits[kind] += sum(map(str.isdigit, "".join(pattern.findall(rest))))
        rest = pattern.sub(" ", rest)
    for found in re.findall(r"\S*\d\S*", rest):
        report.digits["loose"] += sum(map(str.isdigit, found))
        place = max(0, rest.index(found) - 40)
        context = rest[place : place + 100].replace(BOUND, "#")
        report.problems.append(f"{line.where}: {found!r} is bound to no number: …{context}…")


def main() -> None:
    report = check(Path(sys.argv[1] if len(sys.argv) > 1 else "site"), collect())
    print(report)
    if report.problems:
        sys.exit("\n".join(report.problems))


if __name__ == "__main__":
    main()
