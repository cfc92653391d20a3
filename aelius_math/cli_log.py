"""`aelius-math log FILE`: a boot log of vLLM's or llama.cpp's, explained."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import IO, TypeVar

from aelius_math.cli import Result
from aelius_math.log_sentences import text
from aelius_math.logs import read_stream
from aelius_math.units import AeliusError

PIECE = 1 << 18
T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a boot log, whole or in part; - for standard input")


def run(args: argparse.Namespace) -> Result:
    """Read the log in pieces and explain it."""
    found = from_file(args.file, read_stream)
    return Result(found, text(found))


def from_file(file: str, read: Callable[[Iterator[str]], T]) -> T:
    """What `read` makes of a file's text, or of standard input's for "-"; a file that cannot be read is refused by name."""
    if file == "-":
        return read(pieces(sys.stdin.buffer))
    try:
        with open(file, "rb") as stream:
            return read(pieces(stream))
    except (OSError, ValueError) as error:
        if isinstance(error, AeliusError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise AeliusError("FILE", file, f"a file that can be read ({reason})") from None


def pieces(stream: IO[bytes]) -> Iterator[str]:
    """The stream's text, piece by piece; UTF-8, or UTF-16 where it says so, as PowerShell writes it."""
    from codecs import getincrementaldecoder

    first = stream.read(PIECE)
    wide = first[:2] in (b"\xff\xfe", b"\xfe\xff")
    decoder = getincrementaldecoder("utf-16" if wide else "utf-8")("replace")
    while first:
        yield decoder.decode(first)
        first = stream.read(PIECE)
    yield decoder.decode(b"", True)
