"""`aelius-math ledger`: every number of the project, the article's first."""

from __future__ import annotations

import argparse

from aelius_math.cli import Result
from aelius_math.ledger import Number, collect, long_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", metavar="DIR", help="a checkout of the repository (default: the one this package runs from)")


def run(args: argparse.Namespace) -> Result:
    numbers = list(collect(args.root).values())
    return Result({"numbers": [row(number) for number in numbers]}, "\n".join(line(number) for number in numbers))


def row(number: Number) -> dict[str, object]:
    """An entry as JSON shows it; `note` is where it is derived, or treated if it is the article's."""
    return {
        "id": number.id,
        "text": number.text,
        "label": number.label,
        "value": list(number.value) if isinstance(number.value, tuple) else number.value,
        "unit": number.unit,
        "kind": number.kind,
        "verdict": number.verdict or None,
        "verdict_note": number.verdict_note or None,
        "reading": number.reading or None,
        "how": number.how,
        "source": number.source,
        "note": number.note or None,
        "article": number.origin == "article",
    }


def line(number: Number) -> str:
    reason = number.verdict or number.how or number.source
    return f"{number.id:<22} {long_text(number):<38} {number.kind:<9} {number.label}" + (f"  [{reason}]" if reason else "")
