"""Decode speeds and the depth they were measured at, out of what the engines write.

    llama-server's answers    JSON with `timings`: predicted_per_second at cache_n + prompt_n + predicted_n / 2 tokens;
                              several of one answer (timings_per_token) are told apart by their differences
    llama-server's log        "eval time = ... ms / ... tokens (... tokens per second)", with the depth from
                              "stop processing: n_tokens = ..." or "new prompt, ... n_tokens = ..."; while an answer is
                              written, "n_decoded = ..., tg_3s = ... t/s"
    llama-bench -o jsonl      avg_ts at n_depth
    vLLM's log                "Avg generation throughput: ... tokens/s" of the intervals in which one request ran and no prompt
                              was read; the depth is the share of the KV cache in use, in tokens if the log states the pool
    one's own measurements    JSON lines with context and tokens_per_second

Formats read in llama.cpp's tools/server/server-context.cpp and vLLM's vllm/v1/metrics/loggers.py, and in public logs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from aelius_math.decode import Sample
from aelius_math.log_lines import COLOUR
from aelius_math.units import AeliusError

WINDOW = 64
"""Tokens over which an answer's running totals are differenced, at least."""

NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
TASK = re.compile(r"\bid +(\d+) \| task (-?\d+) \|")
EVAL = re.compile(rf"(prompt |generation )?\beval time *= *{NUMBER} ms */ *(\d+) (?:tokens|runs) *\([^)]*?{NUMBER} tokens per second")
PROMPT = re.compile(r"new prompt,.*?\b(?:task\.n_tokens|n_prompt_tokens) = (\d+)")
STOP = re.compile(r"stop processing: (?:n_tokens|n_past) = (\d+)")
RUNNING = re.compile(rf"n_decoded = *(\d+), tg = *{NUMBER} t/s, tg_3s = *{NUMBER} t/s")
VLLM = re.compile(
    rf"Avg prompt throughput: {NUMBER} tokens/s, Avg generation throughput: {NUMBER} tokens/s, Running: (\d+) reqs?"
    rf".*?GPU KV cache usage: {NUMBER}%"
)
POOL = re.compile(r"GPU KV cache size: ([0-9,]+) tokens")


@dataclass(kw_only=True)
class Timings:
    """Samples, the unit of their depth ("tokens" or "% of the pool"), and what a reader should know of them."""

    samples: list[Sample] = field(default_factory=list)
    unit: str = "tokens"
    notes: list[str] = field(default_factory=list)


def read_timings(text: str) -> Timings:
    """The decode speeds in a text of any of these forms. Raises AeliusError if there is none.

    >>> read_timings('{"timings": {"cache_n": 236, "prompt_n": 1, "predicted_n": 36, "predicted_per_second": 52.9}}').samples
    [Sample(context=255.0, speed=52.9)]
    """
    text = COLOUR.sub("", text)
    found = _Reader()
    for value in _documents(text):
        found.document(value)
    if not found.json:
        for line in text.splitlines():
            found.line(line)
    return found.result()


def _documents(text: str) -> Iterator[object]:
    """Each JSON value: the whole text, or the lines that are one (of a stream of events, behind "data: ")."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        yield from whole if isinstance(whole, list) else [whole]
        return
    for line in text.splitlines():
        line = line.strip().removeprefix("data:").lstrip()
        if line.startswith("{") and line.endswith("}"):
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue


def _number(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value) and value >= 0:
        return float(value)
    return None


class _Reader:
    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.json = False
        self.no_cache = 0
        self.several = 0
        self.shares: list[Sample] = []  # depth as a share of the pool
        self.pool: int | None = None
        self.task = "-1"
        self.prompts: dict[str, int] = {}
        self.evaluated = 0
        self.open: dict[str, list[tuple[int, float]]] = {}  # task -> tokens and speed of answers whose depth comes later
        self.inside: set[str] = set()  # tasks with speeds from while they ran
        self.unplaced = 0
        self.last: tuple[float, float, float, float] | None = None  # prompt, its ms, tokens and ms of a running answer
        self.slots: set[str] = set()

    def document(self, value: object) -> None:
        if not isinstance(value, dict):
            return
        timings = value.get("timings")
        if isinstance(timings, dict):
            self.json = True
            self._timings(value, timings)
            return
        for depth, speed in (("context", "tokens_per_second"), ("n_depth", "avg_ts")):
            where, how_fast = _number(value.get(depth)), _number(value.get(speed))
            if where is not None and how_fast is not None and value.get("n_gen", 1) != 0:
                self.json = True
                if how_fast > 0:
                    self.samples.append(Sample(where, how_fast))
                return

    def _timings(self, answer: dict[str, Any], timings: dict[str, Any]) -> None:
        speed, written = _number(timings.get("predicted_per_second")), _number(timings.get("predicted_n"))
        read, cached = _number(timings.get("prompt_n")), _number(timings.get("cache_n"))
        if not speed or not written or written < 2:
            return
        usage = answer.get("usage")
        stated = _number(answer.get("tokens_evaluated"))
        if stated is None and isinstance(usage, dict):
            stated = _number(usage.get("prompt_tokens"))
        if read is not None and cached is not None:
            prompt = read + cached
        elif stated is not None:
            prompt = stated
        elif read is not None:
            prompt = read
            self.no_cache += 1
        else:
            self.unplaced += 1
            return
        spent, prefill = _number(timings.get("predicted_ms")), _number(timings.get("prompt_ms"))
        if spent is not None and prefill is not None:
            last = self.last
            same = last is not None and last[:2] == (prompt, prefill) and written > last[2] and spent > last[3]
            if last is not None and same:
                if written - last[2] >= WINDOW:
                    middle = prompt + (written + last[2]) / 2
                    self.samples.append(Sample(middle, 1000 * (written - last[2]) / (spent - last[3])))
                    self.last = (prompt, prefill, written, spent)
                return
            self.last = (prompt, prefill, written, spent)
            if written < WINDOW and answer.get("object") == "chat.completion.chunk":
                return  # the first of a running answer's totals
        self.samples.append(Sample(prompt + written / 2, speed))

    def line(self, line: str) -> None:
        if match := VLLM.search(line):
            prompt, speed, running, usage = float(match[1]), float(match[2]), int(match[3]), float(match[4])
            if running > 1:
                self.several += 1
            elif running == 1 and prompt == 0 and speed > 0:
                self.shares.append(Sample(usage, speed))
            return
        if match := POOL.search(line):
            self.pool = int(match[1].replace(",", ""))
        if (match := TASK.search(line)) and match[2] != "-1":
            self.task = match[2]
            self.slots.add(match[1])
        if match := PROMPT.search(line):
            self.prompts[self.task] = int(match[1])
        elif match := STOP.search(line):
            for written, speed in self.open.pop(self.task, []):
                self.samples.append(Sample(int(match[1]) - written / 2, speed))
            self.prompts.pop(self.task, None)
            self.inside.discard(self.task)
        elif match := RUNNING.search(line):
            if self.task in self.prompts and float(match[3]) > 0:
                self.inside.add(self.task)
                self.samples.append(Sample(self.prompts[self.task] + int(match[1]), float(match[3])))
        elif match := EVAL.search(line):
            if match[1] == "prompt ":
                self.evaluated = int(match[3])
                self._settle()
            elif int(match[3]) > 1 and float(match[4]) > 0 and self.task not in self.inside:
                self.open.setdefault(self.task, []).append((int(match[3]), float(match[4])))

    def _settle(self) -> None:
        """Answers whose end was not logged are placed by what was read for them."""
        for task, answers in self.open.items():
            for written, speed in answers:
                prompt = self.prompts.pop(task, None)
                if prompt is None:
                    self.unplaced += 1
                else:
                    self.samples.append(Sample(prompt + written / 2, speed))
        self.open.clear()

    def result(self) -> Timings:
        alone = len(self.open) == 1 and not self.samples and sum(map(len, self.open.values())) == 1
        if alone and self.task not in self.prompts and self.evaluated:
            self.prompts[self.task] = self.evaluated  # one run of a command line: nothing was cached
        self._settle()
        found = Timings(samples=self.samples)
        if self.shares and not self.samples:
            found.samples = self.shares
            found.unit = "% of the pool"
            if self.pool is not None:
                found.unit = "tokens"
                found.samples = [Sample(share * self.pool / 100, speed) for share, speed in self.shares]
                found.notes.append("depth is the share of the KV cache in use, times the pool: to 0.1% of the pool")
        notes = (
            (self.no_cache, "timings without cache_n: the depth leaves out what was found in the cache"),
            (self.several, "intervals left out, because several requests shared them"),
            (self.unplaced, "speeds left out, because the log does not say at what depth"),
        )
        found.notes += [f"{count} {what}" for count, what in notes if count]
        if len(self.slots) > 1 and self.samples:
            found.notes.append(f"{len(self.slots)} slots answered; answers written side by side are slower for that alone")
        if not found.samples:
            raise AeliusError(
                "FILE",
                "; ".join(found.notes) or "a text without decode speeds",
                "timings of llama-server (JSON or log), llama-bench's JSON, vLLM's log, or lines of "
                '{"context": 4096, "tokens_per_second": 41.5}',
            )
        return found


def join(texts: Iterable[str]) -> str:
    """A text from its pieces; raises AeliusError above 256 MB."""
    pieces, size = [], 0
    for piece in texts:
        size += len(piece)
        if size > 256_000_000:
            raise AeliusError("FILE", size, "at most 256 MB")
        pieces.append(piece)
    return "".join(pieces)
