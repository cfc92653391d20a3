"""What `make oracle-vllm` says: differences grouped by what differs, and which of the planner's files changed between two releases."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Difference = tuple[Case, dict[str, Any]]
"""A case with the engine's answer, and ours."""

SHOWN = 6
LAYERS = "vllm/model_executor/layers"
READ = (
    "vllm/v1/core/kv_cache_utils.py",
    "vllm/v1/core/kv_cache_planning.py",
    "vllm/v1/core/kv_cache_config_builder.py",
    "vllm/v1/kv_cache_interface.py",
    "vllm/v1/kv_cache_spec_registry.py",
    "vllm/v1/kv_cache_layout.py",
    "vllm/v1/worker/utils.py",
    "vllm/v1/attention/backend.py",
    "vllm/v1/attention/backends/triton_attn.py",
    "vllm/v1/attention/backends/flashinfer.py",
    "vllm/v1/attention/backends/gdn_attn.py",
    "vllm/v1/attention/backends/mla/*.py",
    "vllm/config/cache.py",
    "vllm/config/model.py",
    "vllm/config/vllm.py",
    "vllm/engine/arg_utils.py",
    "vllm/platforms/interface.py",
    "vllm/model_executor/models/config.py",
    "vllm/model_executor/models/deepseek_v2.py",
    "vllm/models/kimi_k3/nvidia/kda.py",
    f"{LAYERS}/attention/*.py",
    f"{LAYERS}/mamba/*.py",
    f"{LAYERS}/mamba/gdn/*.py",
)
"""Where the planner's rules stand: what runs, and what a rule of the package cites."""


def changed(old: Path, new: Path) -> list[tuple[str, str]]:
    """The files of READ that are not the same in two releases, and how much of each."""
    names = {file.relative_to(root).as_posix() for root in (old, new) for pattern in READ for file in root.glob(pattern)}
    found = []
    for name in sorted(names):
        before, after = (lines(root / name) for root in (old, new))
        if before != after:
            parts = [line[:1] for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:3] not in ("---", "+++")]
            size = "new" if not before else "gone" if not after else f"+{parts.count('+')} -{parts.count('-')} lines"
            found.append((name, size))
    return found


def lines(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines() if file.exists() else []


def kinds(case: Case) -> str:
    """The kinds of layer that a case plans, a drafter's too."""
    engine = case["engine"]
    drafts = engine.get("draft", [])
    if not drafts and engine.get("num_speculative_tokens") and engine.get("speculative_method") in (None, "mtp"):
        drafts = case["mtp_layers"]
    named = " + ".join(layer["kind"] for layer in case["layers"])
    return named + (", drafted by " + " + ".join(layer["kind"] for layer in drafts) if drafts else "")


def differing(case: Case, ours: dict[str, Any]) -> list[str]:
    theirs = case["planned"]
    return [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]


def grouped(differ: Iterable[Difference]) -> list[tuple[str, list[Difference]]]:
    """Differences with the same fields, the same kinds of layer and the same format, the largest group first."""
    groups: dict[str, list[Difference]] = {}
    for case, ours in differ:
        what = f"{', '.join(differing(case, ours))} | {kinds(case)} | {case['engine'].get('kv_cache_dtype', 'auto')}"
        groups.setdefault(what, []).append((case, ours))
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def whole(case: Case, ours: dict[str, Any]) -> str:
    """One difference: the case's flags, its layers, and both answers where they differ."""
    theirs = case["planned"]
    flags = " ".join(f"{name}={value}" for name, value in case["engine"].items() if name not in ("version", "draft"))
    what = case.get("model") or kinds(case)
    laid = [f"{name}: {layer}" for name in ("layers", "mtp_layers") for layer in case[name]]
    laid += [f"draft: {layer}" for layer in case["engine"].get("draft", [])]
    answers = "; ".join(f"{name}: vLLM {theirs.get(name)}, here {ours.get(name)}" for name in differing(case, ours))
    return "\n    ".join([f"  {what}, {case['available_bytes']} bytes", flags, *laid, answers])


def told(differ: list[Difference], file: Path, name: str) -> list[str]:
    """The screen's lines: a group each with its first difference, cut short. All of them stand whole in `file`."""
    groups = grouped(differ)
    texts = [f"{what}: {len(of)}\n" + "\n".join(whole(*one) for one in of) for what, of in groups]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n\n".join(texts) + "\n", "utf-8")
    said = []
    for what, of in groups[:SHOWN]:
        flags, *_, answers = whole(*of[0]).splitlines()[1:]
        said += [f"  {len(of)}: {what}"[:300], f"    first: {flags.strip()}"[:300], f"    {answers.strip()}"[:300]]
    if len(groups) > SHOWN:
        said.append(f"  and {len(groups) - SHOWN} more such groups")
    return [*said, f"  All {len(differ)}, with their layers: {name}"]
