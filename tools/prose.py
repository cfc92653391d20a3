"""Reads what people wrote, notes and pages, and finds every number in it that is loose, unknown or untrue.

A digit in prose is bound to the ledger, or part of a listed name (fp8, RTX 3090: names.toml), or exempt for a stated
reason (exempt.toml). Number words are held to the same. The build calls `check` and stops on what it returns.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from aelius_math.binding import CODE, LINK, truth
from aelius_math.ledger import Number

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent
MOST_EXEMPT = 0.05
"""The share of digits, names apart, that may be exempt."""

HAS_DIGIT = re.compile(r"\d")
WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|half|halves|halved|twice|double[sd]?|quarters?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Block:
    """A stretch of Markdown: a cell of a note, a page, or a verdict of the article's numbers; `line` is its first."""

    file: str
    line: int
    text: str


@dataclass
class Report:
    """What a scan found: problems, one sentence each, and how many digits were bound, named and exempt."""

    problems: list[str] = field(default_factory=list)
    digits: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    pairs: dict[str, list[str]] = field(default_factory=dict)
    """For each file, in order: the id, the text bound to it, and the word behind."""

    @property
    def exempt_share(self) -> float:
        """Exempt digits among all that are no part of a name."""
        others = self.digits.total() - self.digits["named"]
        return self.digits["exempt"] / others if others else 0.0

    def summary(self) -> str:
        d = self.digits
        return (
            f"{d['bound']} digits bound, {d['exempt']} exempt ({self.exempt_share:.1%} of those in no name), "
            f"{d['named']} in names, {d['loose']} loose; {self.used.total()} bindings of {len(self.used)} numbers"
        )


def blocks(root: Path = ROOT) -> list[Block]:
    """All that people wrote for readers, in the order of the files."""
    found: list[Block] = []
    for path in sorted((root / "notebooks").glob("*.py")):
        found.extend(cells(path.read_text(encoding="utf-8"), f"notebooks/{path.name}"))
    for path in [*sorted((root / "docs").rglob("*.md")), *root.glob("README.md")]:
        found.append(Block(path.relative_to(root).as_posix(), 1, path.read_text(encoding="utf-8")))
    found.extend(verdicts((root / "aelius_math" / "article.toml").read_text(encoding="utf-8"), "aelius_math/article.toml"))
    return found


def cells(script: str, file: str) -> list[Block]:
    """The Markdown cells of a note's py:percent script."""
    found: list[Block] = []
    line = 0
    lines: list[str] | None = None
    for number, text in enumerate([*script.splitlines(), "# %%"], start=1):
        if text.startswith("# %%"):
            if lines is not None:
                found.append(Block(file, line, "\n".join(lines).strip("\n")))
            lines = [] if "[markdown]" in text.split("# %%", 1)[1] else None
            line = number + 1
        elif lines is not None:
            lines.append(text.removeprefix("#").removeprefix(" "))
    return found


def verdicts(toml: str, file: str) -> list[Block]:
    """What article.toml says to readers in sentences; other fields are the ledger's own table."""
    rows = toml.splitlines()
    found: list[Block] = []
    for key, table in tomllib.loads(toml).items():
        line = next((n for n, row in enumerate(rows, start=1) if row.startswith(f"[{key}]")), 1)
        texts = [*(table.get(field, "") for field in ("says", "verdict_note", "reading")), *table.get("care", ())]
        found.extend(Block(f"{file} [{key}]", line, text) for text in texts if text)
    return found


def check(ledger: Mapping[str, Number], root: Path = ROOT, sources: list[Block] | None = None) -> Report:
    """Everything wrong with the numbers of the prose, all at once."""
    report = Report()
    for block in blocks(root) if sources is None else sources:
        scan(block, ledger, report)
    if report.exempt_share > MOST_EXEMPT:
        report.problems.append(f"{report.exempt_share:.1%} of the digits are exempt; at most {MOST_EXEMPT:.0%} may be: bind some")
    return report


def scan(block: Block, ledger: Mapping[str, Number], report: Report) -> None:
    """One block: its bindings are tested, and what is left in it is searched for digits and number words."""
    text = block.text

    def where(position: int) -> str:
        return f"{block.file}:{block.line + text.count(chr(10), 0, position)}"

    def bound(match: re.Match[str]) -> str:
        said, key = re.sub(r"[`*_]+", "", match[1]), match[2]
        number = ledger.get(key)
        after = text[match.end() : match.end() + 40].replace("\n", " ")
        wrong = f"the ledger has no {key!r}" if number is None else truth(number, said, after)
        if wrong:
            report.problems.append(f"{where(match.start())}: {match[0]}: {wrong}")
        report.digits["bound"] += digits(said)
        report.used[key] += 1
        noun = re.match(r"\s*([A-Za-z%/-]+)", after)
        report.pairs.setdefault(block.file.split(" ")[0], []).append(f"{key} = {said}" + (f" / {noun[1]}" if noun else ""))
        return blank(match)

    rest = visible(text, bound)
    for match in MATHEMATICS.finditer(rest):
        for number in re.finditer(r"\d{2,}|\d[.,]\d", match[0]):
            report.digits["loose"] += digits(number[0])
            report.problems.append(
                f"{where(match.start() + number.start())}: {number[0]!r} in mathematics: use a symbol there, and the number beside it"
            )
    rest = MATHEMATICS.sub(blank, rest)
    for kind, pattern in (("named", names()), ("exempt", exempt())):
        if not HAS_DIGIT.search(rest):
            break
        for match in pattern.finditer(rest):
            report.digits[kind] += digits(match[0])
        rest = pattern.sub(blank, rest)
    for match in re.finditer(r"\S*\d\S*", rest):
        report.digits["loose"] += digits(match[0])
        report.problems.append(f"{where(match.start())}: {match[0]!r} is bound to no number: {sentence(text, match.start())}")
    if WORDS.search(rest):
        rest = phrases().sub(blank, rest)
    for match in WORDS.finditer(rest):
        report.problems.append(
            f"{where(match.start())}: {match[0]!r} counts something: bind it, or list the phrase in tools/names.toml: "
            + sentence(text, match.start())
        )


def digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


def blank(match: re.Match[str]) -> str:
    """As many spaces, so that places in the text stay where they were."""
    return re.sub(r"[^\n]", " ", match[0])


def sentence(text: str, position: int) -> str:
    """A few words around a place, for whoever has to find it."""
    return "…" + " ".join(text[max(0, position - 40) : position + 40].split()) + "…"


MATHEMATICS = re.compile(r"\$\$.+?\$\$|(?<![\\\w$])\$(?=\S)[^$\n]*?\S\$(?![\w$])", re.DOTALL)
SHOWN_ATTRIBUTE = re.compile(r"""\b(?:alt|title|aria-label|placeholder|content|start)\s*=\s*("[^"]*"|'[^']*')""")
TAG = re.compile(r"</?[A-Za-z][^<>]*>")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def visible(text: str, bound: object = blank) -> str:
    """The text with everything blanked that a reader does not see, and each binding given to `bound`."""
    text = FRONT_MATTER.sub(lambda match: keep(match, r"^(?:title|description):(.*)$"), text)
    text = CODE.sub(lambda match: match[0] if match["ticks"] else blank(match), text)
    text = LINK.sub(bound, text)  # type: ignore[call-overload]
    text = re.sub(r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?P<title>\s+\"[^\"]*\")?\)", lambda m: keep(m, r'"([^"]*)"'), text)
    text = re.sub(r"^\s*\[[^\]]+\]:\s+\S+", blank, text, flags=re.MULTILINE)
    text = re.sub(r"\[\^[^\]]+\]:?", blank, text)
    text = TAG.sub(lambda match: keep(match, SHOWN_ATTRIBUTE.pattern), text)
    text = re.sub(r"\{[:#.][^{}\n]*\}|&#?\w+;", blank, text)
    return re.sub(r"^(\s*)\d+\.(?=\s)", blank, text, flags=re.MULTILINE)


def keep(match: re.Match[str], pattern: str) -> str:
    """The match blanked, but for what the groups of the pattern hold."""
    whole, shown = blank(match), match[0]
    for part in re.finditer(pattern, shown, re.MULTILINE):
        start, end = part.span(1)
        whole = whole[:start] + shown[start:end] + whole[end:]
    return whole


@cache
def names() -> re.Pattern[str]:
    """Listed names, longest first, where they stand as words of their own."""
    return listed(tomllib.loads((HERE / "names.toml").read_text(encoding="utf-8"))["names"])


@cache
def phrases() -> re.Pattern[str]:
    """Listed phrases whose number words count nothing that the ledger knows."""
    return listed(tomllib.loads((HERE / "names.toml").read_text(encoding="utf-8"))["phrases"])


def listed(entries: list[str]) -> re.Pattern[str]:
    alternatives = "|".join(r"\s+".join(map(re.escape, entry.split())) for entry in sorted(entries, key=len, reverse=True))
    return re.compile(rf"(?<![\w.,])(?:{alternatives})(?![\w]|[.,]\d)", re.IGNORECASE)


@cache
def exempt() -> re.Pattern[str]:
    """Patterns of dates and versions, each with its reason in exempt.toml."""
    table = tomllib.loads((HERE / "exempt.toml").read_text(encoding="utf-8"))
    assert all(entry["reason"] for entry in table.values())
    return re.compile(r"(?<![\w.,])(?:" + "|".join(entry["pattern"] for entry in table.values()) + r")(?![\w]|[.,]\d)")
