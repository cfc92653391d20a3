"""vLLM's boot log: its lines, from 0.2 to 0.33, and the boots they belong to.

A long module of short parts: one method for each form of line, in one class, as each changes the same boot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from aelius_math.log_lines import Statement
from aelius_math.log_table import Found, Table, integer, number
from aelius_math.log_vllm_lines import FORMS

_KEYS = {
    "model": r"model'?[=:]'([^'\\]{1,300})'",
    "max_model_len": r"max_(?:seq|model)_len'?[=:](\d{1,15})(?=[,})])",
    "tensor_parallel_size": r"tensor_parallel_size'?[=:](\d{1,6})(?=[,})])",
    "pipeline_parallel_size": r"pipeline_parallel_size'?[=:](\d{1,6})(?=[,})])",
    "data_parallel_size": r"data_parallel_size'?[=:](\d{1,6})(?=[,})])",
    "kv_cache_dtype": r"kv_cache_dtype'?[=:]'?([\w.]{1,40})(?=['},)])",
    "enable_prefix_caching": r"enable_prefix_caching'?[=:](True|False)(?=[,})])",
    "max_num_batched_tokens": r"max_num_batched_tokens'?[=:](\d{1,12})(?=[,})])",
    "max_num_seqs": r"max_num_seqs'?[=:](\d{1,9})(?=[,})])",
    "gpu_memory_utilization": r"gpu_memory_utilization'?[=:](\d?\.\d{1,6}|1\.0)(?=[,})])",
    "num_gpu_blocks_override": r"num_gpu_blocks_override'?[=:](\d{1,9})(?=[,})])",
    "user_block_size": r"(?<!_)block_size'?[=:](\d{1,6})(?=[,})])",
    "mamba_cache_mode": r"mamba_cache_mode'?[=:]'?(none|align|all)\b",
    "mamba_ssm_cache_dtype": r"mamba_ssm_cache_dtype'?[=:]'?(\w{1,20})\b",
    "dtype": r"dtype'?[=:]'?(?:torch\.)?(\w{1,20})\b",
}
_READ = {key: re.compile(r"(?<![A-Za-z_])'?" + regex) for key, regex in _KEYS.items()}
_SPEC = re.compile(r"speculative_config'?[=:](None\b|SpeculativeConfig\([^()]{0,600}\)|'?\{[^{}]{0,600}\}|\"?\{[^{}]{0,600}\})")
_SPEC_TOKENS = re.compile(r"num_spec(?:ulative)?_tokens\\?[\"']?[=:](\d{1,4})")
_SPEC_METHOD = re.compile(r"method\\?[\"']?[=:]\\?[\"']?([\w-]{1,40})")


@lru_cache(maxsize=64)
def settings(text: str) -> dict[str, object]:
    """The settings named in an argument line or an engine config line, its white space gone; each as it is written."""
    found: dict[str, object] = {}
    spec = _SPEC.search(text)
    if spec is not None:
        text = text[: spec.start()] + text[spec.end() :]
        if spec[1] == "None":
            found["speculative_method"] = "none"
        else:
            tokens, method = _SPEC_TOKENS.search(spec[1]), _SPEC_METHOD.search(spec[1])
            if tokens is not None:
                found["num_speculative_tokens"] = int(tokens[1])
            if method is not None:
                found["speculative_method"] = method[1]
    for key, regex in _READ.items():
        match = regex.search(text)
        if match is None:
            continue
        value: object = match[1]
        if value in ("True", "False"):
            value = value == "True"
        elif key in ("gpu_memory_utilization",):
            value = float(str(value))
        elif str(value).isdigit() and key not in ("model", "kv_cache_dtype", "dtype"):
            value = int(str(value))
        found[key] = value
    if found.get("kv_cache_dtype") == "None":
        del found["kv_cache_dtype"]
    return found


@dataclass
class Said:
    """What was said of one thing, in order: the value and who said it."""

    value: object
    who: str | None
    line: str


@dataclass
class VllmBoot:
    """One boot, as its lines say it."""

    said: dict[str, list[Said]] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)
    planned: bool = False
    refused: bool = False
    crashed: str | None = None
    started: bool = False

    def say(self, name: str, value: object, found: Found, line: str) -> None:
        """Keep a value; the same from the same source is kept once."""
        who = found.statement.who
        entries = self.said.setdefault(name, [])
        if len(entries) < 64 and not any(entry.value == value and entry.who == who for entry in entries):
            entries.append(Said(value, who, line))

    def values(self, name: str) -> list[object]:
        """The distinct values said, in order."""
        return list(dict.fromkeys(entry.value for entry in self.said.get(name, [])))

    def one(self, *names: str) -> object:
        """The first value said under the first of the names that has one; None without."""
        for name in names:
            if self.said.get(name):
                return self.said[name][0].value
        return None


class VllmReader:
    """Takes statements; gives boots."""

    def __init__(self) -> None:
        self.table = Table(FORMS)
        self.boots: list[VllmBoot] = []
        self.waiting: list[Found] = []

    def take(self, statement: Statement) -> bool:
        """Read one statement; whether it was one of vLLM's."""
        taken = False
        for found in self.table.find(statement):
            taken = True
            if self._waits(found):
                self.waiting.append(found)
                continue
            if self.waiting and found.name in PLANNING:  # they were the first lines of one more boot
                self.boots.append(VllmBoot())
                self._settle()
            elif not self.boots or self._is_new(self.boots[-1], found):
                self._settle()
                self.boots.append(VllmBoot())
            self._say(found)
        return taken

    def finish(self) -> None:
        """The log has ended: lines that waited belong to the last boot."""
        self._settle()

    def _settle(self) -> None:
        waiting, self.waiting = self.waiting, []
        for found in waiting:
            self._say(found)

    def _say(self, found: Found) -> None:
        boot = self.boots[-1]
        if found.statement.who and found.statement.pid is not None:
            boot.processes.setdefault(found.statement.who, found.statement.pid)
        getattr(self, f"_{found.name}", self._plain)(boot, found)

    # which boot a line belongs to

    def _waits(self, found: Found) -> bool:
        """Whether a line that stands before the plan in a boot comes after one: of the next boot, or out of order."""
        boot = self.boots[-1] if self.boots else None
        if boot is None or found.name not in BEFORE or not boot.planned or self._is_other_process(boot, found):
            return False
        return found.name not in boot.said and not _another_rank(boot, found.statement.who, found.name) and len(self.waiting) < 64

    def _is_other_process(self, boot: VllmBoot, found: Found) -> bool:
        who, pid = found.statement.who, found.statement.pid
        known = boot.processes.get(who) if who else None
        return known is not None and pid is not None and known != pid

    def _is_new(self, boot: VllmBoot, found: Found) -> bool:
        who = found.statement.who
        if found.name not in AFTER and self._is_other_process(boot, found):
            return True
        if found.name in ("args", "version"):
            begun = boot.said.get("engine") or boot.planned or boot.refused or boot.started or boot.crashed
            return bool(begun) or (found.name == "args" and "args" in boot.said)
        if found.name == "engine":
            seen = boot.said.get("engine", [])
            width = boot.one("data_parallel_size")
            if boot.planned or boot.refused or boot.crashed:
                return not _another_rank(boot, who, "engine")
            return len(seen) >= (width if isinstance(width, int) else 1) and any(entry.who == who for entry in seen)
        if boot.refused and found.name in ("needed", "too_long"):
            return integer(found.values[0]) not in boot.values("refused_len")
        if boot.refused and found.name in BEFORE | {"tokens", "concurrency", "gpu_blocks"}:
            return True
        if (boot.planned or boot.started) and found.name in BEFORE | {"needed", "too_long"}:
            return found.name in boot.said and not _another_rank(boot, who, found.name)
        if boot.planned and found.name in ("tokens", "gpu_blocks"):
            before, now = boot.values(found.name), integer(found.values[0])
            if not before or now in before or (who and _another_rank(boot, who, found.name)):
                return False
            last = before[-1]
            return not (isinstance(last, int) and abs(now - last) * 5 <= last)
        if found.name == "concurrency":
            lens = boot.values("concurrency_len")
            return bool(lens) and integer(found.values[0]) not in lens
        return False

    # what a line says

    def _plain(self, boot: VllmBoot, found: Found) -> None:
        value = found.values[-1] if found.values else None
        if value is None:
            return
        text = value.replace(",", "")
        boot.say(
            found.name,
            float(text) if "." in text or found.name in FLOATS else int(text[:18]),
            found,
            found.name,
        )

    def _tokens(self, boot: VllmBoot, found: Found) -> None:
        boot.say("tokens", integer(found.values[0]), found, "GPU KV cache size")
        boot.planned = True

    def _gpu_blocks(self, boot: VllmBoot, found: Found) -> None:
        boot.say("gpu_blocks", integer(found.values[0]), found, "# GPU blocks")
        boot.planned = True

    def _concurrency(self, boot: VllmBoot, found: Found) -> None:
        boot.say("concurrency_len", integer(found.values[0]), found, "Maximum concurrency")
        boot.say("concurrency", (integer(found.values[0]), number(found.values[1])), found, "Maximum concurrency")
        boot.planned = True

    def _override(self, boot: VllmBoot, found: Found) -> None:
        boot.say("profiled_blocks", integer(found.values[0]), found, "Overriding num_gpu_blocks")
        boot.say("override", integer(found.values[1]), found, "Overriding num_gpu_blocks")

    def _padding(self, boot: VllmBoot, found: Found) -> None:
        boot.say("padding", (integer(found.values[0]), number(found.values[1])), found, "Add padding layers")

    def _auto_fit(self, boot: VllmBoot, found: Found) -> None:
        boot.say("auto_fit", integer(found.values[1]), found, "Auto-fit max_model_len")

    def _needed(self, boot: VllmBoot, found: Found) -> None:
        boot.say("refused_len", integer(found.values[0]), found, "ValueError")
        boot.say("needed", number(found.values[1]), found, "ValueError")
        boot.say("refused_available", number(found.values[2]), found, "ValueError")
        boot.refused = True

    def _too_long(self, boot: VllmBoot, found: Found) -> None:
        boot.say("refused_len", integer(found.values[0]), found, "ValueError")
        boot.say("refused_tokens", integer(found.values[1]), found, "ValueError")
        boot.refused = True

    def _longest(self, boot: VllmBoot, found: Found) -> None:
        boot.say("longest", integer(found.values[0]), found, "ValueError")
        boot.refused = True

    def _no_memory(self, boot: VllmBoot, found: Found) -> None:
        boot.say("no_memory", True, found, "ValueError")
        boot.refused = True

    _no_startup_memory = _no_memory

    def _reserved(self, boot: VllmBoot, found: Found) -> None:
        boot.say("initial_free", number(found.values[0]), found, "Initial free memory")
        boot.say("reserved", number(found.values[1]), found, "Initial free memory")

    def _older_available(self, boot: VllmBoot, found: Found) -> None:
        boot.say("available", number(found.values[0]), found, "Memory profiling results")

    _old_available = _older_available

    def _mamba_mode(self, boot: VllmBoot, found: Found) -> None:
        boot.say("mamba_cache_mode", found.values[0], found, "Mamba cache mode")

    def _prefill(self, boot: VllmBoot, found: Found) -> None:
        boot.say("gdn_prefill_backend", KERNELS[found.values[0] or ""], found, "GDN prefill kernel")

    def _architecture(self, boot: VllmBoot, found: Found) -> None:
        boot.say("architecture", found.values[0], found, "Resolved architecture")

    def _version(self, boot: VllmBoot, found: Found) -> None:
        boot.say("version", (found.values[0] or "").rstrip("."), found, "version")

    def _args(self, boot: VllmBoot, found: Found) -> None:
        self._settings(boot, found, "args")

    def _engine(self, boot: VllmBoot, found: Found) -> None:
        if found.values[0]:
            boot.say("version", found.values[0], found, "Initializing an LLM engine")
        self._settings(boot, found, "engine")

    def _settings(self, boot: VllmBoot, found: Found, source: str) -> None:
        boot.say(source, True, found, source)
        line = found.statement.squeezed[found.end : found.end + SETTINGS_CAP]
        if source == "args" and (line.count("}") > line.count("{") or line.count(")") > line.count("(")):
            boot.say("args.complete", True, found, source)  # what it does not name is as the release sets it
        read = settings(line)
        for key, value in read.items():
            boot.say(f"{source}.{key}", value, found, source)
            if key == "data_parallel_size":
                boot.say(key, value, found, source)

    def _started(self, boot: VllmBoot, found: Found) -> None:
        boot.started = True

    def _crashed(self, boot: VllmBoot, found: Found) -> None:
        if not boot.started and not boot.refused and boot.crashed is None:
            boot.crashed = CRASHES[found.values[0] or ""]


SETTINGS_CAP = 1 << 14
"""Characters of an argument or configuration line that are searched for settings."""

CRASHES = {
    "Enginecoreinitializationfailed": "the engine core failed to start",
    "EngineCorefailedtostart": "the engine core failed to start",
    "WorkerProcfailedtostart": "a worker failed to start",
    "CUDAoutofmemory": "CUDA ran out of memory",
}
KERNELS = {
    "Triton/FLA": "triton",
    "FlashInfer": "flashinfer",
    "CuteDSL": "cutedsl",
    "AITERFlyDSL": "aiter_flydsl",
    "SYCL": "sycl",
}
"""What the engine calls its kernels in the log, and in its flag."""
BEFORE = frozenset(("available", "reserved", "architecture", "using_len", "block", "padding", "batched", "mamba_mode", "prefill"))
"""Lines that a boot prints before it has planned its pool."""
AFTER = frozenset(("started", "crashed", "in_use_bytes", "longest", "no_memory"))
"""Lines that say how a boot ended."""
PLANNING = frozenset(("args", "version", "engine", "tokens", "concurrency", "gpu_blocks", "needed", "too_long"))
FLOATS = frozenset(("available", "model_loading", "graph_estimate"))


def _another_rank(boot: VllmBoot, who: str | None, name: str) -> bool:
    """Whether a late line can be one more rank's of the same boot: a worker that has not yet said it."""
    if not who:
        return False
    spoke = {entry.who for entry in boot.said.get(name, [])}
    ranked = any(mark in who for mark in ("_TP", "_PP", "_DP", "rank=", "Worker"))
    return ranked and who not in spoke and None not in spoke


def evidence(boots: Iterable[VllmBoot]) -> bool:
    """Whether the lines are enough to call the text a boot log of vLLM's."""
    names = {
        "tokens",
        "concurrency",
        "gpu_blocks",
        "needed",
        "available",
        "reserved",
        "block",
        "engine",
        "args",
        "too_long",
    }
    names |= {"refused_len", "longest", "padding", "no_memory", "in_use_bytes"}
    return any(names & set(boot.said) for boot in boots)
