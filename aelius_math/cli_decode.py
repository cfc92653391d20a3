"""The command `decode`: whether and where decoding falls off a cliff as the context grows."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from aelius_math.cli import Result
from aelius_math.cli_log import from_file
from aelius_math.decode import FEWEST, Finding, find_cliff
from aelius_math.decode_timings import Timings, join, read_timings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="timings or log of llama-server or vLLM; - for standard input")


def run(args: argparse.Namespace) -> Result:
    """Read the speeds and say what they show."""
    text = from_file(args.file, join)
    timings = read_timings(text)
    found = find_cliff(timings.samples)
    return Result({**asdict(found), "unit": timings.unit, "notes": timings.notes}, sentences(found, timings))


def sentences(found: Finding, timings: Timings) -> str:
    """The finding for people, the answer first."""
    unit = "" if timings.unit == "tokens" else "%"
    name = "tokens" if timings.unit == "tokens" else "of the pool"
    depths = [sample.context for sample in timings.samples]
    span = f"{found.samples} samples from {min(depths):,.0f}{unit} to {max(depths):,.0f}{unit} {name}"
    if found.verdict == "too few":
        lines = [f"Too few to tell: {span}; at least {FEWEST} at different depths are needed."]
    elif found.verdict == "none":
        assert found.speed_before is not None and found.noise is not None and found.visible is not None
        assert found.speed_after is not None
        change = (
            f"{found.speed_before:.1f} tokens/s throughout"
            if found.speed_before == found.speed_after
            else f"a smooth decline from {found.speed_before:.1f} to {found.speed_after:.1f} tokens/s"
        )
        lines = [
            f"No cliff: {change}, {span}.",
            f"One sample is sure to {found.noise:.1%}; a fall of {found.visible:.0%} halfway would have shown.",
        ]
    else:
        assert found.fall is not None and found.confidence is not None and found.chance is not None
        lines = [
            (
                f"A cliff: decoding falls by {found.fall:.0%} between {found.after:,.0f}{unit} and {found.before:,.0f}{unit} {name}, "
                f"from {found.speed_before:.1f} to {found.speed_after:.1f} tokens/s."
            ),
            (f"Confidence {shown(found.confidence)}, {span}; with 95% it lies between {found.low:,.0f}{unit} and {found.high:,.0f}{unit}."),
        ]
    return "\n".join(lines + [f"Note: {note}." for note in timings.notes])


def shown(share: float) -> str:
    """A share near one, never rounded up to it."""
    return f"{share:.1%}" if share < 0.999 else "above 99.9%"
