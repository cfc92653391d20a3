"""What follows from what a vLLM boot states: blocks, blocks of a request, what a live conversation holds.

First from the log alone; then, where the catalogue has the model, from its settings; nothing that does not print the
log's own figures is taken, and what several readings print is left open.
"""

from __future__ import annotations

import re
from typing import Any

from aelius_math.log_blocks import Candidate, agrees, padded_groups, solve
from aelius_math.log_known import explained, known_model, remedies, worth
from aelius_math.log_vllm import VllmBoot
from aelius_math.model import Model
from aelius_math.units import GIB, LARGEST, AeliusError, ceil_div
from aelius_math.vllm import plan_pool
from aelius_math.vllm_engine import PREFILLS
from aelius_math.vllm_explain import Candidate as Printed

SHOWN_CANDIDATES = 20
BLOCK_SIZES = (8, 16, 32, 64, 128, 256)


def release(version: object) -> tuple[int, int, int] | None:
    """The release that a version text belongs to; None without one."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", str(version or ""))
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def derive(boot: VllmBoot, out: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """num_blocks, blocks_per_request and the rest; None where the log does not settle it, with the candidates."""
    derived: dict[str, Any] = {
        "num_blocks": None, "blocks_per_request": None, "fixed_blocks_per_request": None, "usable_blocks": None,
        "block_size": out["block_size"], "block_size_candidates": _block_sizes(out), "ambiguous": False, "candidates": [],
        "candidates_total": 0, "catalogue_model": None, "basis": None, "settings": None, "flags": [],
        "not_derived": _not_derived(boot, out),
    }  # fmt: skip
    if derived["not_derived"] is None:
        _blocks(boot, out, derived, notes)
    else:
        notes.append(derived["not_derived"])
    _live(out, derived)
    return derived


def _not_derived(boot: VllmBoot, out: dict[str, Any]) -> str | None:
    """Why blocks are not worked out from the pool's line; None where they are."""
    if boot.said.get("context_parallel"):
        return "Context parallel multiplies the logged tokens; blocks are not derived from them."
    if (out["pipeline_parallel_size"] or 1) > 1:
        return (
            f"Pipeline parallel {out['pipeline_parallel_size']}: each stage keeps its own layers; blocks of several stages are not derived."
        )
    return None


def _blocks(boot: VllmBoot, out: dict[str, Any], derived: dict[str, Any], notes: list[str]) -> None:
    figures = (
        out["max_model_len"],
        out["tokens"],
        out["block_size"],
        boot.one("block"),
        boot.one("gpu_blocks"),
    )
    if out["max_model_len"] is None or not all(0 < one < LARGEST for one in figures if isinstance(one, int)):
        return
    found = _candidates(boot, out, notes)
    model = known_model(out)
    if model is not None:
        derived["catalogue_model"] = model.name
        if out["status"] == "refused":
            derived["flags"] = remedies(out, model)
    printed = (
        explained(out, model, _drafts(boot, out), "args.complete" in boot.said) if model is not None and out["tokens"] is not None else []
    )
    alone = {(one.num_blocks, one.blocks_per_request) for one in found}
    agreed = [one for one in printed if not alone or (one.num_blocks, one.blocks_per_request) in alone]
    if model is not None and agreed:
        pairs = [pair for one in agreed for pair in (_old_counts(out, model, one) if _old_rule(out) else [_pair(one)])]
        found = list(dict.fromkeys(pairs))
        if len(found) == 1:
            _settle(derived, found[0])
            _from_model(derived, model, agreed[0], notes)
            if out.get("memory_line_binds") is False:
                notes.append(NOT_BINDING)
            return
    derived["candidates_total"] = len(found)
    if len(found) == 1:
        _settle(derived, found[0])
        if found[0].fixed_blocks_per_request:
            derived["basis"] = "the log alone, the attention layers taken for one group"
    elif found:
        derived["ambiguous"] = True
        derived["candidates"] = [
            {"num_blocks": one.num_blocks, "blocks_per_request": one.blocks_per_request} for one in found[:SHOWN_CANDIDATES]
        ]
        for name in ("num_blocks", "blocks_per_request"):
            values = {getattr(one, name) for one in found}
            derived[name] = next(iter(values)) if len(values) == 1 else None
    elif out["tokens"] is not None and out["max_concurrency"] is not None and OLD_RULE not in notes:
        notes.append("No whole number of blocks prints these tokens with this concurrency by the rules known here.")


def _pair(one: Printed) -> Candidate:
    return Candidate(one.num_blocks, one.blocks_per_request)


def _old_counts(out: dict[str, Any], model: Model, one: Printed) -> list[Candidate]:
    """Up to 0.20.0 several numbers of blocks print the same tokens: as many as there are groups."""
    try:
        pool = plan_pool(model, one.engine, one.available_bytes)
    except AeliusError:
        return [_pair(one)]
    least, groups = min(group.block_size for group in pool.groups), len(pool.groups)
    first = out["tokens"] // least * groups
    memory = out["available_kv_gib"]
    found = []
    for count in range(first, first + groups):
        held = count * pool.block_size_bytes / GIB
        fits = memory is None or held <= memory + 0.005 and held + pool.block_size_bytes / GIB > memory - 0.005
        if fits and agrees(count / one.blocks_per_request, out["max_concurrency"]):
            found.append(Candidate(count, one.blocks_per_request))
    return found or [_pair(one)]


NOT_BINDING = (
    "The printed memory and these blocks do not belong together: the line is not the binding rank's, or a setting that "
    "the log does not show takes memory."
)


def _from_model(derived: dict[str, Any], model: Model, one: Printed, notes: list[str]) -> None:
    """What the catalogue's model adds to blocks that it prints too: what is fixed, the block size, other flags."""
    try:
        pool = plan_pool(model, one.engine, one.available_bytes)
        derived["fixed_blocks_per_request"], derived["block_size"] = (
            pool.fixed_blocks_per_request,
            pool.block_size,
        )
        derived["flags"] = worth(model, one)
    except AeliusError:
        return
    engine = one.engine
    derived["candidates_total"], derived["basis"] = 1, f"the catalogue's {model.name}"
    derived["settings"] = {
        name: getattr(engine, name)
        for name in (
            "version",
            "tensor_parallel_size",
            "kv_cache_dtype",
            "num_speculative_tokens",
            "enable_prefix_caching",
        )
    } | {name: value for name in PREFILLS if (value := getattr(engine, name)) is not None}
    notes.append(f"The model is taken, by its name, for the catalogue's {model.name}, which prints the same figures.")


def _block_sizes(out: dict[str, Any]) -> list[int]:
    """What the attention block size can be: the longest length that fits is a whole number of blocks."""
    longest = out["longest_max_model_len"]
    if out["block_size"] is not None or not isinstance(longest, int) or longest <= 0:
        return []
    return [size for size in range(16, min(longest, 8192) + 1, 16) if longest % size == 0]


def _drafts(boot: VllmBoot, out: dict[str, Any]) -> int | None:
    """Draft tokens; 0 where the log names its settings and no draft among them."""
    if out["speculative_method"] == "none" or ("args" in boot.said and "args.speculative_method" not in boot.said):
        return 0
    drafts: int | None = out["num_speculative_tokens"]
    return drafts


def _settle(derived: dict[str, Any], one: Candidate) -> None:
    derived["num_blocks"], derived["blocks_per_request"] = one.num_blocks, one.blocks_per_request
    derived["fixed_blocks_per_request"] = one.fixed_blocks_per_request
    derived["usable_blocks"] = one.num_blocks - 1


def _candidates(boot: VllmBoot, out: dict[str, Any], notes: list[str]) -> list[Candidate]:
    """The pairs that print the figures, by the log alone."""
    tokens, length, concurrency = out["tokens"], out["max_model_len"], out["max_concurrency"]
    stated, block = boot.one("override", "gpu_blocks"), boot.one("block")
    blocks = stated if isinstance(stated, int) else None
    hybrid = _hybrid(boot, out) if isinstance(block, int) else None
    if tokens is None:
        if hybrid is not None:
            return solve(None, length, concurrency, num_blocks=blocks, **hybrid)
        return [] if blocks is None else _counted(blocks, length, concurrency, out["block_size"])
    if concurrency is not None and not agrees(tokens / length, concurrency):
        if not _may_be_old(out):
            return []
        notes.append(OLD_RULE)
        return [] if hybrid is None else old_pairs(tokens, length, concurrency, **hybrid)
    if block is None and blocks is not None and tokens % blocks == 0:
        return _counted(blocks, length, concurrency, tokens // blocks)
    if _old_rule(out):
        return [] if block is not None or concurrency is None else _one_kind(boot, out)
    return solve(tokens, length, concurrency, num_blocks=blocks, **(hybrid or {}))


def _hybrid(boot: VllmBoot, out: dict[str, Any]) -> dict[str, Any] | None:
    """What the log says of a hybrid's groups; None where a drafter or mode "all" makes other groups than these."""
    method, mode = out["speculative_method"], out["mamba_cache_mode"]
    if mode == "all" or (method not in (None, "none") and "mtp" not in str(method)):
        return None
    states = {"align": 2, "none": 1}.get(mode) if mode else {True: 2, False: 1}.get(out["enable_prefix_caching"])
    padding = [value for value in boot.values("padding") if isinstance(value, tuple)]
    return {
        "block_size": boot.one("block"), "drafts": _drafts(boot, out), "states_per_group": states,
        "groups": padded_groups(padding),
    }  # fmt: skip


def _one_kind(boot: VllmBoot, out: dict[str, Any]) -> list[Candidate]:
    """Up to 0.20.0, a token count that goes with the concurrency is of a model of one kind of attention."""
    tokens, length = out["tokens"], out["max_model_len"]
    usual = (16, 64) if "args.complete" in boot.said else (16, 32, 64, 128)
    sizes = [out["block_size"]] if out["block_size"] else usual
    return [Candidate(tokens // size, ceil_div(length, size), 0) for size in sizes if tokens % size == 0]


OLD_RULE = (
    "The tokens are not the concurrency times max_model_len: up to 0.20.0 the line counts the blocks of one group, "
    "so its tokens and those of a later version do not compare."
)


def _old_rule(out: dict[str, Any]) -> bool:
    known = release(out["version"])
    return known is not None and known < (0, 20, 1)


def _may_be_old(out: dict[str, Any]) -> bool:
    known = release(out["version"])
    return known is None or known <= (0, 20, 1)


def _counted(blocks: int, length: int, concurrency: float | None, size: int | None) -> list[Candidate]:
    """The old engine logs the blocks themselves; its concurrency is blocks x block size / length."""
    sizes = [size] if size else [one for one in BLOCK_SIZES if concurrency is None or agrees(blocks * one / length, concurrency)]
    if concurrency is None and not size:
        return []
    return [Candidate(blocks, ceil_div(length, one), 0) for one in sizes]


def old_pairs(
    tokens: int,
    length: int,
    concurrency: float,
    *,
    block_size: int,
    drafts: int | None,
    states_per_group: int | None,
    groups: set[int] | None,
) -> list[Candidate]:
    """The pairs that print these figures up to 0.20.0: tokens are num_blocks // groups x block size."""
    if tokens % block_size:
        return []
    growing, each = ceil_div(length, block_size), tokens // block_size
    found = []
    for count in sorted(groups or range(1, 17)):
        for one in (1, 2) if states_per_group is None else (states_per_group,):
            for k in range(33) if drafts is None else (drafts,):
                fixed = count * (one + k)
                for blocks in range(each * (count + 1), (each + 1) * (count + 1)):
                    if agrees(blocks / (growing + fixed), concurrency):
                        found.append(Candidate(blocks, growing + fixed, fixed))
    return list(dict.fromkeys(found))


def _live(out: dict[str, Any], derived: dict[str, Any]) -> None:
    """What a live conversation holds at least, and how many can live at once."""
    derived["fixed_tokens"] = derived["most_conversations"] = derived["binds"] = derived["longest_request"] = None
    if out["status"] == "started":
        derived["longest_request"] = out["max_model_len"]
    fixed, block_size = derived["fixed_blocks_per_request"], derived["block_size"]
    if fixed is None or derived["usable_blocks"] is None or out["status"] == "refused":
        return
    if block_size is not None:
        derived["fixed_tokens"] = fixed * block_size
    derived["most_conversations"], derived["binds"] = (
        derived["usable_blocks"] // (fixed + 1),
        "the blocks of the pool",
    )
    seats = out["max_num_seqs"]
    if seats is not None and seats < derived["most_conversations"]:
        derived["most_conversations"], derived["binds"] = seats, "max_num_seqs"
