"""What a log goes through before it is pasted: colours, prefixes, clocks, line ends, a narrow window."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable

ESC = {"real": "\x1b[", "lost": "[", "caret": "^[["}
CLOCKS = (
    "2026-05-01T19:57:53.564Z ", "2026-05-01 19:57:53,564 ", "[2026-05-01 19:57:53] ", "May  1 19:57:53 ", "19:57:53.123 ",
    "2026-05-01T19:57:53.564123456+02:00 ", "2026/05/01 19:57:53 ", "1777658273.564 ",
)  # fmt: skip
PREFIXES = (
    "vllm-1  | ", "llm_server_1 | ", "[pod/vllm-0/main] ", "May 01 19:57:53 gpu01 docker[1234]: ", "vllm[77]: ",
    "2026-05-01T19:57:53.564+0000 gpu01 vllm[1234]: ", "2026-05-01T19:57:53.5Z stderr F ", "stack_llm.1.x0y@node-1    | ", "<30>",
    "| ", "> ",
)  # fmt: skip


def colours(lines: list[str], rng: random.Random) -> list[str]:
    """The prefix in a colour, as vLLM and llama.cpp print it, or the whole line."""
    start = ESC[rng.choice(sorted(ESC))]
    code = rng.choice(("0;36m", "1;32m", "33m", "38;5;208m"))
    end = start + rng.choice(("0m", "0;0m", "39m"))
    out = []
    for line in lines:
        head, space, rest = line.partition(" ")
        out.append(f"{start}{code}{line}{end}" if rng.random() < 0.5 else f"{start}{code}{head}{end}{space}{rest}")
    return out


def clock(lines: list[str], rng: random.Random) -> list[str]:
    """A timestamp before every line."""
    stamp = rng.choice(CLOCKS)
    return [stamp + line for line in lines]


def prefix(lines: list[str], rng: random.Random) -> list[str]:
    """What compose, kubectl, journald or a quote puts before every line."""
    text = rng.choice(PREFIXES)
    return [text + line for line in lines]


def crlf(lines: list[str], rng: random.Random) -> list[str]:
    """The line ends of another system."""
    return [line + "\r" for line in lines]


def trailing(lines: list[str], rng: random.Random) -> list[str]:
    """Spaces at the ends, as a terminal pads them."""
    return [line + " " * rng.randrange(4) for line in lines]


def narrow(lines: list[str], rng: random.Random) -> list[str]:
    """A window that breaks lines at a column, inside words too."""
    width = rng.randrange(60, 200)
    return [line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)]


def folded(lines: list[str], rng: random.Random) -> list[str]:
    """Lines broken at spaces, as a mail or an editor does."""
    width = rng.randrange(60, 160)
    out: list[str] = []
    for line in lines:
        out += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    return out


def noise(lines: list[str], rng: random.Random) -> list[str]:
    """Lines of other programs, and of the engine at work, between whole lines."""
    extra = (
        "INFO 07-02 22:11:19 [loggers.py:123] Engine 000: Avg prompt throughput: 0.0 tokens/s, Running: 1 reqs, GPU KV cache usage: 0.3%",
        "srv  update_slots: all slots are idle",
        "NCCL INFO Bootstrap: Using eth0:10.0.0.2<0>",
        'INFO:     127.0.0.1:52000 - "GET /health HTTP/1.1" 200 OK',
    )  # fmt: skip
    out: list[str] = []
    for line in lines:
        out += [line] if rng.random() < 0.7 else [rng.choice(extra), line]
    return out


Disguise = Callable[[list[str], random.Random], list[str]]
BEFORE_BREAKING: tuple[Disguise, ...] = (noise, colours, clock, prefix)
BREAKING: tuple[Disguise, ...] = (narrow, folded)
AFTER: tuple[Disguise, ...] = (crlf, trailing)


def disguise(text: str, rng: random.Random, whole: bool = False) -> str:
    """The text in a random disguise; `whole` leaves its lines unbroken and together."""
    lines = text.split("\n")
    for one in BEFORE_BREAKING[whole:]:  # a log that is broken already: nothing between its lines
        if rng.random() < 0.5:
            lines = one(lines, rng)
    if not whole and rng.random() < 0.6:
        lines = rng.choice(BREAKING)(lines, rng)
    for one in AFTER:
        if rng.random() < 0.4:
            lines = one(lines, rng)
    return "\n".join(lines)
