"""A pasted log as statements: colours, prefixes, clocks and hard wraps taken away, one message at a time.

A terminal, docker, compose, journald, kubectl and the engine itself each put something before a message, and a
narrow window breaks it in two. Here that is undone, in one pass over the text and without holding it:

    blocks(source)            the text in blocks of whole lines, colours gone
    statements(blocks, keys)  messages: a line that begins one, and the lines that carry it on

A statement is matched with all its white space gone (`Statement.squeezed`), so a break anywhere in it, inside a
word or a number too, does not matter. `Statement.joins` says where the breaks were. Of a long log, only blocks
with one of the keys in them are looked at line by line. One long module: the steps of that single pass.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from aelius_math.units import AeliusError

LINE_CAP = 1 << 15
"""Characters of one physical line that are read together; a longer line comes in pieces of this size."""

PIECES_CAP = 64
BLOCK = 1 << 18
"""Characters of a block."""

ALL_OF = 1 << 20
"""Characters at the start of a log that are looked at line by line whatever they hold."""

REMEMBERED = 1 << 14

# A colour as the terminal sent it, as `cat -v` shows it, as loggers escape it, with its escape byte lost, or broken
# by the end of a line.
COLOUR = re.compile(
    r"(?:\x1b|\^\[|\\033|\\x1[bB]|\\u001[bB]|\\e|#033|\u241b|\ufffd)(?:\[[0-9;?]{0,24}[A-Za-z]|\][^\x07\n]{0,80}\x07)"
    r"|\[\d{1,3}(?:;\d{1,3}){0,5}m|(?:\x1b|\^\[|\\033)\[?[0-9;]{0,20}(?=[ \t]*\n|$)"
)
ESCAPES = ("\x1b", "^[", "\\033", "\\x1", "\\u001", "\\e[", "#033", "\u241b", "\ufffd[")
BROKEN_COLOUR = re.compile(
    r"(?:(?:\x1b|\^\[|\\033)\[?[0-9;]{0,20}(?:[ \t]{0,8}\n){1,2}\[?|\[[0-9;]{0,20}(?:[ \t]{0,8}\n){1,2}|\^(?:[ \t]{0,8}\n){1,2}\[\[)"
    r"[0-9;]{0,20}m(?![a-z])"
)
LOST = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,5}m")
CONTROLS = str.maketrans("", "", "\x1b\x00\x07\x08\ufeff\u200b")

STARTS = re.compile(
    r"pid=\d|INFO|WARN|ERROR|DEBUG|CRITICAL|\d [IWED] |time=\d"
    r"|\b(?:llama|llm|ggml|common)_[a-z_]{2,40}:|\b(?:load_tensors|sched_reserve|print_info|load_model|clip_model_loader)\b"
    r"|\bsrv +\w|\bslot +\w|\bmain: |\bbuild: |system_info: |device_info:"
)
BARE = re.compile(
    r"\s*(?:(?:GPU|CPU) KV cache size: |Maximum concurrency for |Available KV cache memory: |# GPU blocks: |Setting attention block"
    r"|Initial free memory |non-default args: |Initializing an? (?:V1 )?LLM engine|ValueError: |RuntimeError: |Traceback \()"
)

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?: ?[AP]M)?(?:\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
PREFIX = re.compile(
    r"\s*(?:"
    r"(?P<worker>\((?P<who>[A-Za-z][\w.-]{0,60})(?P<rank>(?:[ ,]+rank=\d+)?)[ ,]+pid=(?P<pid>\d{1,9})[^)\n]{0,60}\))"
    r"|(?P<level>(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL|TRACE|NOTICE)\b[:\s]?)"
    rf"|\d{{4}}[-/]\d{{2}}[-/]\d{{2}}(?:[T ]{_CLOCK})?(?=\W|$)"
    rf"|\d{{2}}-\d{{2}} {_CLOCK}|{_CLOCK}\]?(?=\W|$)|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b,?"
    rf"|(?:\d{{1,2}}[ /-])?{_MONTH}[ /-]{{1,2}}\d{{1,2}}\b(?:,? \d{{4}})?"
    r"|\d{10}(?:\.\d{1,9})?(?=\s)|\d{1,9}(?:\.\d{2,6}){1,3} (?P<letter>[IWEDT]) "
    r"|std(?:out|err) [FP] |<\d{1,3}>"
    r"|[\w./-]{1,80}\.py:\d{1,6}\]?|\[[^\]\n]{1,100}\]:?"
    r"|[A-Za-z][\w.@/:-]{0,80}\[\d{1,9}\]:"
    r"|[A-Za-z0-9][\w.@/:-]{0,80} {0,60}[|\u2502](?=\s|$)"
    r"|[A-Za-z0-9][\w.-]{0,60} [A-Za-z][\w.@/-]{0,60}\[\d{1,9}\]:"
    r"|[|\u2502>*\u2022](?=\s)|-(?=\s)|`{1,3}"
    r")"
)
_KNOWN_WORD = re.compile(
    r"(?:info|warn(?:ing)?|error|debug|vllm|docker|llama|engine|worker|std(?:out|err)|server|log|level|msg"
    r"|\w*error:?|" + _MONTH.lower() + r"|mon|tue|wed|thu|fri|sat|sun)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]*[a-z][A-Za-z']*[:,.;!?]?")


class Statement(NamedTuple):
    """One message: its pieces (one a physical line), squeezed together; who printed it, where the log says."""

    squeezed: str
    joins: tuple[int, ...]
    pieces: tuple[str, ...]
    who: str | None
    pid: int | None
    header: bool
    broken: tuple[bool, ...] = ()

    def goes_on(self, join: int) -> bool:
        """Whether the line before a join was full, so that a word or number may go on after it."""
        return self.broken[self.joins.index(join)]

    def piece(self, join: int) -> str:
        """The piece that begins at a join."""
        return self.pieces[self.joins.index(join)]

    def lead(self, start: int, after: int) -> str:
        """The text before offset `start` of its own piece, spaces kept: from offset `after` on, 200 signs at most."""
        index = bisect_right(self.joins, start) - 1
        first = self.joins[index]
        begin = max(after, first, start - 200)
        if begin >= start:
            return ""
        places, piece = _places(self.pieces[index]), self.pieces[index]
        return piece[places[begin - first] : places[start - first] if start - first < len(places) else len(piece)]


@lru_cache(maxsize=8)
def _places(piece: str) -> list[int]:
    """Where the signs of a piece are that are not white space."""
    return [at for at, sign in enumerate(piece) if not sign.isspace()]


def is_prose(lead: str) -> bool:
    """Whether the words before a statement make it part of a sentence, not of a log line.

    >>> is_prose("vllm-1 ERROR core.py] "), is_prose("My log says that the ")
    (False, True)
    """
    words = [word for word in lead.split() if _WORD.fullmatch(word)]
    return sum(1 for word in words if not _KNOWN_WORD.fullmatch(word.rstrip(":,.;!?"))) >= 2


def blocks(source: str | bytes | Iterable[str] | Iterable[bytes]) -> Iterator[str]:
    """A text, or an iterable of lines (with or without their ends), in blocks of whole lines, colours gone."""
    if isinstance(source, str | bytes):
        whole = source
        yield from cut(whole[at : at + BLOCK] for at in range(0, len(whole), BLOCK))
        return
    try:
        given = iter(source)
    except TypeError:
        raise AeliusError("log", source, "text, or an iterable of its lines") from None
    yield from cut(_gathered(given))


def _gathered(given: Iterator[object]) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for item in given:
        if isinstance(item, bytes):
            item = item.decode("utf-8", "replace")
        if not isinstance(item, str):
            raise AeliusError("log", item, "lines of text")
        held.append(item if item.endswith("\n") else item + "\n")
        size += len(item)
        if size >= BLOCK:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)


def cut(parts: Iterable[str | bytes]) -> Iterator[str]:
    """A text that comes in pieces, broken anywhere, in blocks of whole lines; a longer line is broken."""
    rest = ""
    for part in parts:
        if isinstance(part, bytes):
            part = part.decode("utf-8", "replace")
        text = rest + part
        whole, newline, rest = text.rpartition("\n")
        if not newline and len(rest) >= BLOCK:
            whole, rest = rest, ""
        if whole:
            yield _plain(whole)
    yield _plain(rest)


def _plain(text: str) -> str:
    """A block without colours, controls and carriage returns."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if any(escape in text for escape in ESCAPES) or LOST.search(text):
        text = COLOUR.sub("", BROKEN_COLOUR.sub("\n", text))
    return text.translate(CONTROLS) if "\x00" in text or "\x1b" in text or "\ufeff" in text else text


def _unpacked(line: str) -> Iterable[str]:
    """The messages in a line that is itself JSON, or that holds line ends as `\\n`."""
    if line.startswith("{") and line.endswith("}"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            for key in ("log", "message", "MESSAGE", "msg", "line", "text", "textPayload"):
                if isinstance(record.get(key), str):
                    return COLOUR.sub("", record[key]).splitlines()
    return line.split("\\n")


def strip(line: str) -> tuple[str, str | None, int | None, bool]:
    """A line's message; the worker and process that printed it; and whether a logger's header stood before it.

    >>> strip("vllm-1  | (Worker_TP1 pid=89) INFO 05-01 17:57:53 [gpu_worker.py:433] Available KV cache memory: 5.24 GiB")
    ('Available KV cache memory: 5.24 GiB', 'Worker_TP1', 89, True)
    """
    who: str | None = None
    pid: int | None = None
    header = False
    at = 0
    for _ in range(24):
        match = PREFIX.match(line, at)
        if match is None:
            break
        if match["worker"]:
            who, pid, header = match["who"] + match["rank"].strip(" ,"), int(match["pid"]), True
        elif match["level"] or match["letter"]:
            header = True
        at = match.end()
    return line[at:].strip(), who, pid, header


_EMBEDDED = re.compile(r"(?<=\S)(?=\([A-Z]\w+ (?:rank=\d+ )?pid=\d+\) )|(?<=\S)(?=(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d )")


CLOSED_HEADER = re.compile(r"\([A-Z]\w* (?:rank=\d+ )?pid=\d+\)\s*$")
LEVEL = re.compile(r"\s*(?:INFO|WARNING|ERROR|DEBUG) \d")
OPEN_HEADER = re.compile(r"\((?:[A-Z][A-Za-z_]*\d*(?: (?:rank=\d+ )?p?i?d?=?\d*)?)?\s*$")


def _goes_on(before: str, line: str) -> bool:
    """Whether the header at the end of one line goes on in the next."""
    if "(" not in before[-60:]:
        return False
    if OPEN_HEADER.search(before, max(0, len(before) - 60)):
        return True
    return LEVEL.match(line) is not None and CLOSED_HEADER.search(before, max(0, len(before) - 60)) is not None


class Keys:
    """What makes a block or a line worth reading: literals, as written and with their white space gone."""

    def __init__(self, literals: Iterable[str], parts: Iterable[str]) -> None:
        self.tight = tuple(dict.fromkeys("".join(literal.split()) for literal in literals))
        self.parts = tuple(parts)
        self.width = 0
        self.seen: dict[str, int] = {}
        self.read: dict[tuple[str, ...], list[Statement]] = {}

    def in_tight(self, squeezed: str) -> bool:
        """Whether a text, its white space gone, holds one."""
        return any(map(squeezed.__contains__, self.tight))

    def in_block(self, block: str) -> bool:
        """Whether a block may hold one: it has a part that one of the keys has."""
        squeezed = block.replace(" ", "").replace("\n", "").replace("\t", "")
        return any(map(squeezed.__contains__, self.parts))

    def kind(self, line: str) -> int:
        """Of a line: 1 a header begins a message, 2 it begins one without, 4 it holds a key; remembered, for logs repeat."""
        known = self.seen.get(line)
        if known is None:
            known = 1 if STARTS.search(line, 0, 200) else 2 if BARE.match(line) else 0
            known += 4 * self.in_tight("".join(line.split()))
            if len(line) < 1024:
                if len(self.seen) >= REMEMBERED:
                    self.seen.clear()
                self.seen[line] = known
        return known


def statements(text: Iterable[str], keys: Keys) -> Iterator[Statement]:
    """The statements worth reading: those with a key in them, broken or whole.

    Every line is looked at once; a statement holds at most PIECES_CAP of them.
    """
    pieces: list[str] = []
    hot = False
    read = 0
    for block in text:
        if read >= ALL_OF and not keys.in_block(block):
            yield from _finish(pieces, keys, hot)
            pieces = block.rsplit("\n", 2)[-2:]
            hot = False
            continue
        physical = block.split("\n")
        keys.width = keys.width or max(len(line.rstrip()) for line in physical)
        read += len(block)
        for raw in physical:
            for line in _pieces(raw):
                kind = keys.kind(line)
                if kind & 1 and pieces and _goes_on(pieces[-1], line):
                    start = pieces.pop().rstrip()
                    line = start + " " * (start[-1:] == ")" or line.lstrip()[:4] == "pid=") + line.lstrip()
                    yield from _finish(pieces, keys, hot)
                    pieces, hot = [line], True
                elif kind & 1 or kind & 2 and not (pieces and strip(pieces[-1])[0] == ""):
                    yield from _finish(pieces, keys, hot)
                    pieces, hot = [line], kind > 3
                elif line and not line.isspace():
                    pieces.append(line)
                    hot = hot or kind > 3
                    if len(pieces) >= PIECES_CAP or len(line) >= LINE_CAP:
                        yield from _finish(pieces, keys, hot)
                        pieces, hot = pieces[-2:] if len(line) < LINE_CAP else [], False
    yield from _finish(pieces, keys, hot)


def _pieces(raw: str) -> Iterable[str]:
    """A physical line, unpacked where it is JSON or holds line ends as text, in pieces of at most LINE_CAP."""
    if len(raw) > LINE_CAP:
        return [line for at in range(0, len(raw), LINE_CAP) for line in raw[at : at + LINE_CAP].split("\\n")]
    return _unpacked(raw) if "\\n" in raw or raw[:1] == "{" else (raw,)


def _finish(pieces: list[str], keys: Keys, hot: bool) -> list[Statement]:
    """The statements of a message: none without a key, one, or more where two processes wrote into one line."""
    if not pieces or not hot and len(pieces) == 1:
        return []
    known = keys.read.get(tuple(pieces))
    if known is not None:
        return known
    found: list[Statement] = []
    joined = pieces[0] + "".join([strip(piece)[0] for piece in pieces[1:]])
    if hot or keys.in_tight("".join("".join(pieces).split())) or keys.in_tight("".join(joined.split())):
        parts = _EMBEDDED.split(pieces[0]) if len(pieces[0]) > 60 else [pieces[0]]
        found = [_statement([part], 0) for part in parts[:-1]]
        found.append(_statement([parts[-1], *pieces[1:]], keys.width))
    if sum(map(len, pieces)) < LINE_CAP:
        if len(keys.read) >= REMEMBERED // 16:
            keys.read.clear()
        keys.read[tuple(pieces)] = found
    return found


def _statement(pieces: list[str], width: int) -> Statement:
    full = [False] + [len(piece.rstrip()) >= width - 24 for piece in pieces[:-1]]  # a colour that was in it is gone
    if len(pieces) > 1 and len(pieces[0]) < 1024:  # a header that was broken
        both = pieces[0] + pieces[1]
        if len(both) - len(strip(both)[0]) > len(pieces[0]):
            pieces, full = [both, *pieces[2:]], [False, *full[2:]]
    message, who, pid, header = strip(pieces[0])
    messages = [message, *[strip(piece)[0] for piece in pieces[1:]]]
    squeezed, joins, length = [], [], 0
    for text in messages:
        joins.append(length)
        tight = "".join(text.split())
        squeezed.append(tight)
        length += len(tight)
    return Statement("".join(squeezed), tuple(joins), tuple(messages), who, pid, header, tuple(full))
