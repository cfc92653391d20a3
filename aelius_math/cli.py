"""The command line: `aelius-math COMMAND ...`. One module a command, imported only when it is called.

A command's module is `aelius_math.cli_COMMAND` and holds two functions:

    add_arguments(parser)       its flags
    run(args) -> Result         what it found

Exit code 0: done. 1: does not fit (the result still stands on standard output). 2: bad input (one line on
standard error, nothing on standard output). A traceback never reaches a user.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from typing import NamedTuple, NoReturn

from aelius_math.units import AeliusError

COMMANDS = {
    "model": "what a model keeps for a conversation, in bytes",
    "ladder": "how a pool is handed out to many conversations",
    "pool": "how many tokens vLLM's KV cache holds on your cards",
    "explain": "which settings of vLLM print a logged pool",
    "fit": "what llama.cpp takes for a context, whether it fits, and where the wall is",
    "decode": "whether decoding falls off a cliff as the context grows, and where",
    "log": "what a boot log of vLLM or llama.cpp says of its memory",
    "ledger": "every number of the notes: value, unit, how it came about, and the article's verdict",
}


class Result(NamedTuple):
    """What a command found: the JSON shape, the same in plain text, and whether it fits."""

    payload: dict[str, object]
    text: str
    exit_code: int = 0


class Parser(argparse.ArgumentParser):
    """argparse, with one line on standard error for a mistake."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (--help lists the flags)\n")


def parser_for(command: str | None) -> Parser:
    """The parser; only the command that is called has its flags loaded."""
    parser = Parser(prog="aelius-math", description="What a long conversation costs in memory.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == command:
            import_module(f"aelius_math.cli_{name}").add_arguments(sub)
            sub.add_argument("--json", action="store_true", help="print one JSON object (schema 1)")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    command = next((word for word in words if word in COMMANDS), None)
    args = parser_for(command).parse_args(words)
    try:
        result: Result = import_module(f"aelius_math.cli_{args.command}").run(args)
    except AeliusError as error:
        print(f"aelius-math {args.command}: {error}", file=sys.stderr)
        return 2
    try:
        print(json.dumps({"schema": 1, **result.payload}, indent=2, ensure_ascii=False) if args.json else result.text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough: `aelius-math ledger | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains as it leaves
    return result.exit_code
