"""Spoils every number of every note and page, one at a time, and reports which faults the checks let through. `make proof`.

Block by block: a cell, a paragraph or a verdict is scanned again with one fault in it. A fault is killed by truth (the
scan of prose.py, the formulas of the ledger) or, failing that, by the locks of reviewed bindings (locks.py). The notes'
code is run too, with each of its whole numbers changed in turn. A survivor changes nothing that anybody reads.
One long file: the faults, the three checks of them and the report are of no use to anything else.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import prose
from aelius_math import binding, figures, ledger
from aelius_math.binding import Link, find_links, truth
from aelius_math.ledger import Ledger, Number, collect
from aelius_math.said import take_apart
from aelius_math.units import AeliusError

ROOT = Path(__file__).parent.parent
STRICT = ("digits", "units", "ids")
LEAST = 0.99
SECONDS = 45
"""After so long no further fault in code is begun."""
TWINS = {
    "KiB": ("kB", "MiB", "GiB"), "MiB": ("MB", "GiB", "KiB"), "GiB": ("GB", "MiB", "TiB"), "kB": ("KiB", "MB"), "MB": ("MiB", "GB"),
    "GB": ("GiB", "MB"), "%": ("x", " points", ""), "x": ("%", " GiB"), "×": ("%",), "s": ("ms", "min"), "seconds": ("minutes", "hours"),
    "tokens": ("blocks", "bytes", "layers"), "blocks": ("tokens", "layers"), "layers": ("blocks", "heads"), "bytes": ("tokens", "KiB"),
    "cards": ("layers", "tokens"), "million": ("thousand", "billion"), "K": ("", "M"),
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One spoiled text: what kind of fault, where, what it was and what it is now."""

    kind: str
    where: str
    before: str
    after: str
    text: str


@dataclass
class Tally:
    tried: Counter[str] = field(default_factory=Counter)
    by_truth: Counter[str] = field(default_factory=Counter)
    by_lock: Counter[str] = field(default_factory=Counter)
    survivors: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: Tally) -> None:
        for mine, more in ((self.tried, other.tried), (self.by_truth, other.by_truth), (self.by_lock, other.by_lock)):
            mine.update(more)
        for kind, alive in other.survivors.items():
            self.survivors[kind] += alive

    def killed(self, kind: str) -> float:
        return (self.by_truth[kind] + self.by_lock[kind]) / self.tried[kind] if self.tried[kind] else 1.0

    def table(self) -> str:
        rows = [f"{'fault in':<14}{'tried':>8}{'truth':>8}{'locks':>8}{'alive':>8}{'killed':>9}"]
        for kind, tried in self.tried.items():
            alive = tried - self.by_truth[kind] - self.by_lock[kind]
            rows.append(f"{kind:<14}{tried:>8}{self.by_truth[kind]:>8}{self.by_lock[kind]:>8}{alive:>8}{self.killed(kind):>9.2%}")
        return "\n".join(rows)


def pieces(block: prose.Block) -> Iterator[prose.Block]:
    """The paragraphs of a block; a block with fenced code or front matter as it is."""
    if "```" in block.text or "~~~" in block.text or "<!--" in block.text or block.text.startswith("---"):
        yield block
        return
    line = block.line
    for part in re.split(r"(\n\n+)", block.text):
        if part.strip():
            yield replace(block, line=line, text=part)
        line += part.count("\n")


def spoiled(block: prose.Block, numbers: Mapping[str, Number]) -> Iterator[Fault]:
    """Every fault that is tried in a block."""

    def fault(kind: str, start: int, end: int, new: str) -> Fault:
        place = f"{block.file}:{block.line + block.text.count(chr(10), 0, start)}"
        return Fault(kind, place, block.text[start:end], new, block.text[:start] + new + block.text[end:])

    for link in find_links(block.text):
        start = block.text.index("[", link.start) + 1
        raw = block.text[start : block.text.index("](num:", start)]
        end = start + len(raw)
        for kind, new in said_wrongly(raw, link, numbers):
            yield fault(kind, start, end, new)
        for kind, new, old in followed_wrongly(block.text[link.end : link.end + 24]):
            yield fault(kind, link.end, link.end + len(old), new)
        ids = block.text.index("](num:", start) + len("](num:")
        for key in other_ids(link, numbers):
            yield fault("ids", ids, ids + len(link.id), key)
        yield fault("bare numbers", link.start, link.end, link.text if has_digit(link.text) else f"{link.text} 12")
    for match in prose.phrases().finditer(block.text):
        for word in prose.WORDS.finditer(match[0]):
            new = "seven" if word[0].lower() != "seven" else "nine"
            yield fault("words", match.start() + word.start(), match.start() + word.end(), new)
    for match in islice(re.finditer(r"(?<=[a-z]) (?=[a-z])", prose.visible(block.text)), 1):
        yield fault("bare numbers", match.start(), match.end(), " 17 ")


def has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def said_wrongly(raw: str, link: Link, numbers: Mapping[str, Number]) -> Iterator[tuple[str, str]]:
    """A bound text with another digit, point, sign, unit or word."""
    if not has_digit(raw):
        yield from (("words", word) for word in binding.words() if word != raw.lower())
        return
    for place, character in enumerate(raw):
        rest = raw[place + 1 :]
        if character.isdigit():
            yield from (("digits", raw[:place] + str((int(character) + step) % 10) + rest) for step in (1, 5, 9))
            yield "digits", raw[:place] + rest
            yield "digits", raw[:place] + character + raw[place:]
            if rest[:1].isdigit() and rest[0] != character:
                yield "digits", raw[:place] + rest[0] + character + rest[1:]
        if character == ".":
            yield "points", raw[:place] + rest
            yield "points", raw[:place] + rest[:1] + "." + rest[1:]
            yield "points", raw[: place - 1] + "." + raw[place - 1] + rest if place > 1 else "0." + raw[0] + rest
        if character == ",":
            yield "points", raw[:place] + "." + rest
            yield "points", raw[:place] + rest
    bare = raw.lstrip("+-−")
    yield "signs", bare if bare != raw else "−" + raw
    said = take_apart(raw)
    units = () if isinstance(said, str) else (said.unit_as_written, said.scaled)
    for unit in filter(None, units):
        place = raw.rindex(unit)
        for other in TWINS.get(unit, ("tokens", "GiB")):
            spaced = raw[:place].rstrip() if other.startswith(" ") or not other else raw[:place]
            yield "units", spaced + other + raw[place + len(unit) :]


def followed_wrongly(after: str) -> Iterator[tuple[str, str, str]]:
    """The unit behind a bound text, changed."""
    match = re.match(r"(\s*)(%|[A-Za-z]+)", after)
    if match and match[2] in TWINS:
        for other in filter(None, TWINS[match[2]]):
            yield "units", match[1] + other, match[0]


def other_ids(link: Link, numbers: Mapping[str, Number]) -> list[str]:
    """An id that is none, the neighbours of the right one, and every other id that the text is true of."""
    keys = list(numbers)
    place = keys.index(link.id) if link.id in numbers else 0
    near = [key for key in keys[max(0, place - 2) : place + 3] if key != link.id]
    true = [key for key, number in numbers.items() if key != link.id and truth(number, link.text, link.after) is None]
    return list(dict.fromkeys([link.id + "x", *near, *true]))


def try_prose(blocks: list[prose.Block], numbers: Mapping[str, Number], tally: Tally, every: int = 1) -> None:
    """Faults in what people wrote; `every`: only in each so-manieth stretch that binds a number."""
    bound = (piece for whole in blocks for piece in pieces(whole) if every == 1 or find_links(piece.text))
    for block in islice(bound, 0, None, every):
        clean = prose.Report()
        prose.scan(block, numbers, clean)
        assert not clean.problems, clean.problems
        for fault in spoiled(block, numbers):
            if fault.text == block.text:
                continue
            report = prose.Report()
            prose.scan(replace(block, text=fault.text), numbers, report)
            record(
                tally, fault.kind, bool(report.problems), report.pairs != clean.pairs, f"{fault.where}: {fault.before!r} -> {fault.after!r}"
            )


def record(tally: Tally, kind: str, by_truth: bool, by_lock: bool, what: str) -> None:
    tally.tried[kind] += 1
    if by_truth:
        tally.by_truth[kind] += 1
    elif by_lock:
        tally.by_lock[kind] += 1
    else:
        tally.survivors[kind].append(what)


def try_conditions(blocks: list[prose.Block], numbers: Mapping[str, Number], tally: Tally, every: int = 1) -> None:
    """Faults in words.toml: a bound moved, a comparison turned round. Its lines are locked, so only truth is of interest."""
    bound = [link for block in blocks for link in find_links(block.text) if not has_digit(link.text)]
    table = binding.words()
    for word, condition in islice(table.items(), 0, None, every):
        for match in re.finditer(r"[\d.]+|<=?|==", condition):
            changed = {"<": ">", "<=": ">=", "==": "!="}.get(match[0]) or f"{float(match[0]) * 1.25 + 0.25:g}"
            spoilt = condition[: match.start()] + changed + condition[match.end() :]
            table[word] = spoilt
            try:
                wrong = any(truth(numbers[link.id], link.text, link.after) for link in bound if link.text.lower().startswith(word))
            finally:
                table[word] = condition
            record(tally, "conditions", wrong, True, f"{word!r}: {condition} -> {spoilt}")


def try_givens(blocks: list[prose.Block], numbers: Ledger, tally: Tally, every: int = 1) -> None:
    """Faults in article.toml and facts.toml: each value changed. Truth: a text that no longer holds, a formula that no longer agrees."""
    links = defaultdict(list)
    for block in blocks:
        for link in find_links(block.text):
            links[link.id].append(link)
    for key, number in islice(list(numbers.items()), 0, None, every):
        if number.origin not in ledger.TABLES:
            continue
        for value in spoilt_values(number.value):
            changed = replace(number, value=value)
            with_fault = Ledger([changed if other.id == key else other for other in numbers.values()])
            wrong = any(truth(changed, link.text, link.after) for link in links[key]) or bool(with_fault.disagreements())
            record(tally, "givens", wrong, changed.text != number.text, f"{key}: {number.value!r} -> {value!r}")


def spoilt_values(value: ledger.Value) -> list[ledger.Value]:
    if isinstance(value, str):
        digits = [value[: m.start()] + str((int(m[0]) + 1) % 10) + value[m.end() :] for m in re.finditer(r"\d", value)]
        return [*digits] or [value + " or so"]
    if isinstance(value, tuple):
        return [(*value[:-1], spoilt_values(value[-1])[0])]
    return [value + 1, value * 10, -value] if isinstance(value, int) else [round(value + 0.1, 6), value * 10, -value]


def try_code(script: Path, tally: Tally, deadline: float) -> None:
    """Faults in a note's code: each whole number typed there, changed. Killed by an assertion, a formula that disagrees, or
    other output than the stored one, which nbval compares: what is recorded and printed, and what is given to a plot.

    The note runs once; at each cell a copy of the process goes on with the fault in it, until something differs."""
    if not hasattr(os, "fork"):
        tally.survivors["code"].append(f"{script.name}: not tried, as this system cannot copy a process (os.fork)")
        return
    cells = code_cells(script.read_text(encoding="utf-8"))
    note = Note()
    right = [note.run(cell) for cell in cells]
    failed = next((out for out in right if isinstance(out, str)), None)
    if failed is not None:
        raise AeliusError(script.name, failed, "a note that runs")
    note = Note()
    for place, cell in enumerate(cells):
        for what, spoilt in spoilt_cells(cell):
            if time.time() > deadline:
                tally.survivors["code, not tried for want of time"].append(f"{script.name}, from cell {place + 1}")
                return
            record(tally, "code", note.differs([spoilt, *cells[place + 1 :]], right[place:]), False, f"{script.name}: {what}")
        note.run(cell)


def code_cells(script: str) -> list[str]:
    cells: list[list[str]] = []
    code = False
    for line in script.splitlines():
        if line.startswith("# %%"):
            code = "[markdown]" not in line
            cells += [[]] if code else []
        elif code:
            cells[-1].append(line)
    return ["\n".join(lines) for lines in cells]


def spoilt_cells(cell: str) -> Iterator[tuple[str, str]]:
    lines = cell.splitlines()
    for node in ast.walk(ast.parse(cell)):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.end_col_offset is not None:
            line = lines[node.lineno - 1].encode()
            spoilt = line[: node.col_offset] + str(node.value + 1).encode() + line[node.end_col_offset :]
            text = "\n".join([*lines[: node.lineno - 1], spoilt.decode(), *lines[node.lineno :]])
            if text != cell:
                yield f"{line.decode().strip()!r}: {node.value} -> {node.value + 1}", text


class Drawn:
    """Stands for matplotlib's objects: whatever is done with it is written down, nothing is drawn."""

    def __init__(self, log: list[str], parts: int = 1) -> None:
        self.log, self.parts = log, parts

    def __getattr__(self, name: str) -> Drawn:
        self.log.append(name)
        return self

    def __call__(self, *args: object, **kwargs: object) -> Drawn:
        self.log.append(f"{args} {kwargs}")
        return self

    def __getitem__(self, key: object) -> Drawn:
        return self

    def __iter__(self) -> Iterator[Drawn]:
        return iter([self] * self.parts)

    def __repr__(self) -> str:
        return "drawn"

    def _repr_mimebundle_(self) -> str:
        return "drawn"


class Note:
    """A note that runs without a kernel, cell by cell, and draws nothing."""

    LONGEST = 10  # seconds that a spoiled note may take

    def __init__(self) -> None:
        ledger._recorded.clear()
        self.names: dict[str, object] = {"__name__": "__note__"}

    def run(self, cell: str) -> object:
        """What a cell prints, shows and draws; of a cell that fails, a text that says how."""
        drawn: list[str] = []
        stub = Drawn(drawn)
        shown = io.StringIO()
        last = ""

        @contextlib.contextmanager
        def plot(*args: object, **subplots: Any) -> Iterator[tuple[Drawn, Drawn]]:
            drawn.append(f"{args} {subplots}")
            yield stub, Drawn(drawn, subplots.get("nrows", 1) * subplots.get("ncols", 1))

        undrawn = dict.fromkeys(("show", "label", "axes", "token_axis", "byte_axis"), stub)
        try:
            with contextlib.redirect_stdout(shown), mock.patch.multiple(figures, plot=plot, **undrawn):
                tree = ast.parse(cell)
                end = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
                exec(compile(tree, "cell", "exec"), self.names)  # noqa: S102  (the project's own notes)
                if isinstance(end, ast.Expr):
                    value = eval(compile(ast.Expression(end.value), "cell", "eval"), self.names)
                    last = str(value._repr_mimebundle_()) if hasattr(value, "_repr_mimebundle_") else repr(value)
        except Exception as error:  # noqa: BLE001  (a spoiled note may fail in any way)
            return f"{type(error).__name__}: {error}"
        return shown.getvalue(), last, drawn

    def differs(self, cells: list[str], right: list[object]) -> bool:
        """Whether a copy of this process that goes on with these cells comes to anything else."""
        sys.stdout.flush()
        child = os.fork()
        if not child:
            signal.alarm(self.LONGEST)
            os._exit(any(self.run(cell) != out for cell, out in zip(cells, right, strict=True)))
        return os.waitpid(child, 0)[1] != 0


def job(part: int | Path, parts: int, deadline: float) -> Tally:
    """What one process does: its part of the prose, or the code of one note."""
    tally = Tally()
    if isinstance(part, Path):
        try_code(part, tally, deadline)
        return tally
    numbers, blocks = collect(ROOT), prose.blocks(ROOT)
    try_prose([piece for block in blocks for piece in pieces(block)][part::parts], numbers, tally)
    if part == 0:
        try_conditions(blocks, numbers, tally)
        try_givens(blocks, numbers, tally)
    return tally


def main() -> None:
    started = time.time()
    numbers = collect(ROOT)
    report = prose.check(numbers, ROOT)
    if report.problems:
        sys.exit("the prose has to be right before it can be spoiled:\n" + "\n".join(report.problems))
    tally = Tally()
    parts = os.cpu_count() or 1
    with ProcessPoolExecutor(parts) as pool:
        work = [*range(parts), *sorted((ROOT / "notebooks").glob("[0-9]*.py"))]
        try:
            for done in [pool.submit(job, part, parts, started + SECONDS) for part in work]:
                tally.add(done.result())
        except AeliusError as error:
            sys.exit(str(error))
    print(tally.table())
    for kind, alive in tally.survivors.items():
        print(f"\n{kind}:" + "".join(f"\n  {what}" for what in alive))
    print(f"\n{tally.tried.total():,} faults in {time.time() - started:.0f} s")
    weak = [kind for kind in STRICT if tally.killed(kind) < LEAST]
    if weak:
        sys.exit(f"killed less than {LEAST:.0%} of the faults in: " + ", ".join(weak))


if __name__ == "__main__":
    main()
