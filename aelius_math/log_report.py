"""What a boot states and what follows: one dict a boot, under the names that the command's JSON uses."""

from __future__ import annotations

import re
from typing import Any

from aelius_math.log_blocks import Candidate, agrees, padded_groups, prints, solve
from aelius_math.log_llamacpp import Context, LlamaBoot, is_host
from aelius_math.log_vllm import VllmBoot
from aelius_math.units import ceil_div

SHOWN_CANDIDATES = 20
BLOCK_SIZES = (8, 16, 32, 64, 128, 256)

STATED = (
    "tokens", "max_model_len", "max_concurrency", "available_kv_gib", "block_size", "model", "version", "status",
    "needed_gib", "longest_max_model_len", "tensor_parallel_size", "kv_cache_dtype", "num_speculative_tokens",
    "enable_prefix_caching",
)  # fmt: skip
STATED_LLAMA = (
    "kv_mib",
    "recurrent_mib",
    "compute_mib",
    "n_ctx",
    "cells",
    "projected_mib",
    "free_mib",
    "verdict",
)


def vllm_boot(boot: VllmBoot) -> dict[str, Any]:
    """A vLLM boot: what it states (None where it does not say), `derived`, `notes`."""
    notes: list[str] = []
    out: dict[str, Any] = {"engine": "vllm", **dict.fromkeys(STATED + STATED_LLAMA)}
    tokens, concurrency, length = _pool_line(boot, notes)
    out["tokens"], out["max_concurrency"] = tokens, concurrency
    out["max_model_len"] = _length(boot, length, notes)
    out["available_kv_gib"] = _available(boot, notes)
    out["block_size"] = _agreed(boot, "block", "attention block size", notes) or boot.one(
        "engine.user_block_size", "args.user_block_size"
    )
    out["version"] = boot.one("version")
    out["needed_gib"], out["longest_max_model_len"] = (
        boot.one("needed"),
        boot.one("longest", "refused_tokens"),
    )
    for name in (
        "model",
        "tensor_parallel_size",
        "kv_cache_dtype",
        "num_speculative_tokens",
        "enable_prefix_caching",
    ):
        out[name] = _setting(boot, name, notes)
    out["status"] = _status(boot, notes)
    for name in (
        "speculative_method", "pipeline_parallel_size", "data_parallel_size", "max_num_batched_tokens", "max_num_seqs",
        "gpu_memory_utilization", "mamba_ssm_cache_dtype", "dtype",
    ):  # fmt: skip
        out[name] = _setting(boot, name, [])
    if out["max_num_batched_tokens"] is None:
        out["max_num_batched_tokens"] = boot.one("batched")
    out["mamba_cache_mode"] = boot.one("mamba_cache_mode", "engine.mamba_cache_mode", "args.mamba_cache_mode")
    architectures = boot.values("architecture")
    out["architecture"] = architectures[0] if architectures else None
    out["draft_architecture"] = architectures[1] if len(architectures) > 1 else None
    out["kv_reserved_gib"] = boot.one("reserved")
    out["model_loading_gib"] = boot.one("model_loading")
    if boot.one("reserved") is not None:
        notes.append(
            "The KV cache was reserved by hand (kv_cache_memory_bytes): no memory was profiled, and no memory line is printed."
        )
    if boot.one("override") is not None:
        notes.append(
            f"num_gpu_blocks_override set the pool to {boot.one('override'):,} blocks; the memory gives {boot.one('profiled_blocks'):,}."
        )
    if boot.said.get("context_parallel"):
        notes.append("Context parallel multiplies the logged tokens; blocks are not derived from them.")
    out["derived"] = _derive(boot, out, notes)
    _live(out)
    wanted = (
        "max_model_len",
        "tokens",
        "available_kv_gib",
        "model",
        "version",
        "tensor_parallel_size",
        "kv_cache_dtype",
        "enable_prefix_caching",
    )
    skip = (
        {"tokens"}
        if out["status"] == "refused"
        else {"available_kv_gib"}
        if out["kv_reserved_gib"] is not None
        else set()
    )
    out["missing"] = [name for name in wanted if out[name] is None and name not in skip]
    out["notes"] = notes
    return out


def _live(out: dict[str, Any]) -> None:
    """What a live conversation holds at least, and how many can live at once."""
    derived = out["derived"]
    derived["fixed_tokens"] = derived["most_conversations"] = derived["binds"] = derived[
        "longest_request"
    ] = None
    if out["status"] == "started":
        derived["longest_request"] = out["max_model_len"]
    fixed, block_size = derived["fixed_blocks_per_request"], derived["block_size"]
    if fixed is None or derived["usable_blocks"] is None:
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


def _pool_line(boot: VllmBoot, notes: list[str]) -> tuple[int | None, float | None, int | None]:
    """Tokens, concurrency and its length: the smallest where ranks differ."""
    tokens = [value for value in boot.values("tokens") if isinstance(value, int)]
    pairs = [value for value in boot.values("concurrency") if isinstance(value, tuple)]
    if len(tokens) > 1:
        said = ", ".join(f"{value:,}" for value in tokens)
        notes.append(
            f"The lines disagree on the KV cache size: {said} tokens. Every rank prints its own; the smallest binds."
        )
    pair = min(pairs, key=lambda value: value[1]) if pairs else (None, None)
    if not tokens:
        tokens = [value for value in boot.values("refused_tokens") if isinstance(value, int)]
    return (min(tokens) if tokens else None), pair[1], pair[0]


def _length(boot: VllmBoot, length: int | None, notes: list[str]) -> int | None:
    said = {
        "the concurrency line": length,
        "the error": boot.one("refused_len"),
        "the engine's configuration": boot.one("engine.max_model_len"),
        "the arguments": boot.one("args.max_model_len"),
        "the line 'Using max model len'": boot.one("using_len"),
    }
    known = {where: value for where, value in said.items() if isinstance(value, int)}
    if not known:
        return None
    value = next(iter(known.values()))
    others = [f"{where} says {other:,}" for where, other in known.items() if other != value]
    if others:
        where = next(iter(known))
        notes.append(
            f"max_model_len: {where} says {value:,}, {', '.join(others)}. The first is what the pool was planned for."
        )
    return value


def _available(boot: VllmBoot, notes: list[str]) -> float | None:
    refused = [value for value in boot.values("refused_available") if isinstance(value, float)]
    entries = [entry for entry in boot.said.get("available", []) if isinstance(entry.value, float)]
    values = sorted({entry.value for entry in entries if isinstance(entry.value, float)})
    if len(values) > 1:
        said = ", ".join(f"{entry.who or 'a rank'} {entry.value} GiB" for entry in entries)
        notes.append(
            f"The ranks have different memory for the KV cache: {said}. The smallest binds all of them."
        )
    if refused:
        if values and abs(values[0] - refused[0]) > 0.011:
            notes.append(
                f"The memory line says {values[0]} GiB, the error {refused[0]} GiB: the line is not the binding rank's."
            )
        return min(refused)
    world = boot.one("engine.tensor_parallel_size", "args.tensor_parallel_size")
    if values and len(entries) == 1 and isinstance(world, int) and world > 1:
        notes.append(
            f"One memory line for {world} ranks: the smallest rank's memory binds, and this line may be another's."
        )
    return values[0] if values else None


def _agreed(boot: VllmBoot, name: str, what: str, notes: list[str]) -> Any:
    values = boot.values(name)
    if len(values) > 1:
        notes.append(
            f"The lines disagree on the {what}: {', '.join(f'{value:,}' for value in values)}. The last one holds."
        )
    return values[-1] if values else None


def _setting(boot: VllmBoot, name: str, notes: list[str]) -> Any:
    engine, args = boot.one(f"engine.{name}"), boot.one(f"args.{name}")
    if engine is None:
        return args
    if args is not None and args != engine and not (name == "kv_cache_dtype" and args == "auto"):
        notes.append(
            f"{name}: the arguments say {args}, the engine's configuration {engine}. The engine's holds."
        )
    return engine


def _status(boot: VllmBoot, notes: list[str]) -> str:
    if boot.refused:
        if boot.one("no_memory"):
            notes.append("Refused: no memory was left for the KV cache.")
        return "refused"
    if boot.started:
        return "started"
    if boot.crashed:
        notes.append(f"The boot broke off: {boot.crashed}.")
        return "unknown"
    return "started" if boot.planned else "unknown"


def release(version: object) -> tuple[int, int, int] | None:
    """The release that a version text belongs to; None without one."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", str(version or ""))
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def _derive(boot: VllmBoot, out: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    derived: dict[str, Any] = {
        "num_blocks": None, "blocks_per_request": None, "fixed_blocks_per_request": None, "usable_blocks": None,
        "block_size": None, "ambiguous": False, "candidates": [], "candidates_total": 0,
    }  # fmt: skip
    tokens, length, concurrency = out["tokens"], out["max_model_len"], out["max_concurrency"]
    _longest_step(out, derived)
    if length is None or boot.said.get("context_parallel") or (out["pipeline_parallel_size"] or 1) > 1:
        return derived
    found = _candidates(boot, out, notes)
    derived["candidates_total"] = len(found)
    if len(found) == 1:
        _settle(derived, found[0])
    elif found:
        derived["ambiguous"] = True
        derived["candidates"] = [
            {"num_blocks": one.num_blocks, "blocks_per_request": one.blocks_per_request}
            for one in found[:SHOWN_CANDIDATES]
        ]
        common = {one.num_blocks for one in found}, {one.blocks_per_request for one in found}
        for name, values in zip(("num_blocks", "blocks_per_request"), common, strict=True):
            derived[name] = next(iter(values)) if len(values) == 1 else None
    elif tokens is not None and concurrency is not None:
        notes.append(
            "No whole number of blocks prints these tokens with this concurrency by the rules known here."
        )
    return derived


def _settle(derived: dict[str, Any], one: Candidate) -> None:
    derived["num_blocks"], derived["blocks_per_request"] = one.num_blocks, one.blocks_per_request
    derived["fixed_blocks_per_request"] = one.fixed_blocks_per_request
    derived["usable_blocks"] = one.num_blocks - 1


def _longest_step(out: dict[str, Any], derived: dict[str, Any]) -> None:
    """The attention block size, or what it can be: the longest length that fits is a whole number of blocks."""
    derived["block_size"], derived["block_size_candidates"] = out["block_size"], []
    longest = out["longest_max_model_len"]
    if out["block_size"] is None and isinstance(longest, int) and longest > 0:
        derived["block_size_candidates"] = [
            size for size in range(16, min(longest, 8192) + 1, 16) if longest % size == 0
        ]


def _candidates(boot: VllmBoot, out: dict[str, Any], notes: list[str]) -> list[Candidate]:
    tokens, length, concurrency = out["tokens"], out["max_model_len"], out["max_concurrency"]
    stated = boot.one("override", "gpu_blocks")
    blocks = stated if isinstance(stated, int) else None
    method = out["speculative_method"]
    if boot.one("block") is None:
        if blocks is not None and tokens is None:
            return _counted(blocks, length, concurrency, out["block_size"])
        if tokens is None or (method not in (None, "none", "mtp") and "mtp" not in str(method)):
            return [] if tokens is None else solve(tokens, length, concurrency, num_blocks=blocks)
        if _old_rule(out) and agrees(tokens / length, concurrency):
            sizes = (
                [out["block_size"]]
                if out["block_size"]
                else [size for size in BLOCK_SIZES[1:5] if tokens % size == 0]
            )
            return [
                Candidate(tokens // size, ceil_div(length, size), 0) for size in sizes if tokens % size == 0
            ]
        if _old_rule(out):
            notes.append(OLD_RULE)
            return []
        return solve(tokens, length, concurrency, num_blocks=blocks)
    if method not in (None, "none") and "mtp" not in str(method):
        return (
            solve(tokens, length, concurrency, num_blocks=blocks)
            if tokens is not None and not _old_rule(out)
            else []
        )
    drafts = 0 if method == "none" else out["num_speculative_tokens"]
    if drafts is None and "args" in boot.said and "args.speculative_method" not in boot.said:
        drafts = 0
    mode = out["mamba_cache_mode"]
    states = (
        {True: 2, False: 1}.get(out["enable_prefix_caching"])
        if mode is None
        else {"align": 2, "none": 1}.get(mode)
    )
    if mode == "all":
        return solve(tokens, length, concurrency, num_blocks=blocks) if tokens is not None else []
    groups = padded_groups([value for value in boot.values("padding") if isinstance(value, tuple)])
    if (
        tokens is not None
        and concurrency is not None
        and not agrees(int(tokens) / length, concurrency)
        and _may_be_old(out)
    ):
        notes.append(OLD_RULE)
        return old_pairs(tokens, length, concurrency, boot.one("block"), drafts, states, groups)
    block_size = boot.one("block")
    return solve(
        tokens, length, concurrency,
        block_size=block_size if isinstance(block_size, int) else None, num_blocks=blocks, drafts=drafts,
        states_per_group=states, groups=groups,
    )  # fmt: skip


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
    sizes = (
        [size]
        if size
        else [one for one in BLOCK_SIZES if concurrency is None or agrees(blocks * one / length, concurrency)]
    )
    if concurrency is None and not size:
        return []
    return [Candidate(blocks, ceil_div(length, one), 0) for one in sizes]


def old_pairs(
    tokens: int,
    length: int,
    concurrency: float,
    block_size: object,
    drafts: int | None,
    states: int | None,
    groups: set[int] | None,
) -> list[Candidate]:
    """The pairs that print these figures up to 0.20.0: tokens are num_blocks // groups x block size."""
    if not isinstance(block_size, int) or tokens % block_size:
        return []
    growing, each = ceil_div(length, block_size), tokens // block_size
    found = []
    for count in sorted(groups or range(1, 17)):
        for one in (1, 2) if states is None else (states,):
            for k in range(33) if drafts is None else (drafts,):
                fixed = count * (one + k)
                for blocks in range(each * (count + 1), (each + 1) * (count + 1)):
                    if agrees(blocks / (growing + fixed), concurrency):
                        found.append(Candidate(blocks, growing + fixed, fixed))
    return list(dict.fromkeys(found))


def llama_boot(boot: LlamaBoot) -> dict[str, Any]:
    """A llama.cpp boot: what it states (None where it does not say), `derived`, `notes`."""
    notes: list[str] = []
    out: dict[str, Any] = {"engine": "llama.cpp", **dict.fromkeys(STATED + STATED_LLAMA)}
    contexts = [context for context in boot.contexts if context.used or context.sizes]
    dry = False
    if not any(context.used for context in contexts) and boot.probes:
        contexts, dry = boot.probes, True
        notes.append("Only the fit pass's dry run is in the log: nothing says that the model was loaded.")
    target = contexts[0] if contexts else Context()
    out["version"] = boot.said.get("build")
    out["model"] = boot.said.get("loaded_path") or boot.said.get("path") or boot.said.get("name")
    _caches(contexts, out, notes)
    out["recurrent_mib"] = target.state["total_mib"] if target.state else None
    if target.state is None and target.rs_buffers and target.compute:
        out["recurrent_mib"] = round(sum(target.rs_buffers.values()), 2)
    out["recurrent"] = dict(target.state) if target.state else None
    device = {name: mib for name, mib in target.compute.items() if not is_host(name)} or target.compute
    out["compute_mib"] = round(sum(device.values()), 2) if device else None
    out["compute_mib_by_device"] = dict(target.compute)
    others = [
        sum(mib for name, mib in context.compute.items() if not is_host(name)) for context in contexts[1:]
    ]
    out["draft_compute_mib"] = round(sum(others), 2) if any(others) else None
    _sizes(boot, target, out)
    fit = boot.fit
    out["projected_mib"], out["free_mib"], out["margin_mib"] = (
        fit.get("projected"),
        fit.get("free"),
        fit.get("margin"),
    )
    out["leave_mib"], out["deficit_mib"] = fit.get("leave"), fit.get("deficit")
    out["verdict"] = _verdict(boot)
    out["fit_reason"] = fit.get("reason")
    out["layers_on_device"] = list(boot.said["offloaded"]) if "offloaded" in boot.said else None  # type: ignore[call-overload]
    out["model_mib_by_device"] = dict(boot.model_buffers)
    out["vision_estimate_mib"] = boot.said.get("vision_estimate")
    out["draft_estimate_mib"] = boot.said.get("draft_estimate")
    out["status"] = (
        "refused"
        if boot.failed
        else "started"
        if boot.started or (not dry and any(c.used for c in contexts))
        else "unknown"
    )
    if boot.failed:
        notes.append(f"The boot failed: {boot.failed}.")
    notes += [f"Two lines disagree on {clash}." for clash in boot.clashes]
    out["derived"] = _derive_llama(boot, out, notes)
    out["missing"] = [
        name
        for name in ("model", "kv_mib", "compute_mib", "n_ctx", "cells", "projected_mib", "free_mib")
        if out[name] is None
    ]
    out["notes"] = notes
    return out


def _caches(contexts: list[Context], out: dict[str, Any], notes: list[str]) -> None:
    listed = []
    for index, context in enumerate(contexts):
        for cache in context.caches:
            role = ("target" if index == 0 else "draft") + (", sliding" if cache.sliding else "")
            listed.append(
                {"role": role, **{key: value for key, value in vars(cache).items() if key != "sliding"}}
            )
    out["caches"] = listed
    target = contexts[0] if contexts else Context()
    main = next((cache for cache in target.caches if not cache.sliding), None)
    if main is not None:
        out["kv_mib"], out["cells"] = main.total_mib, main.cells
        out["type_k"], out["type_v"] = main.k_type, main.v_type
        buffers = round(sum(target.kv_buffers.values()), 2)
        total = sum(cache.total_mib for cache in target.caches)
        if (
            buffers
            and abs(buffers - total) > 0.011 * (len(target.kv_buffers) + 1)
            and abs(buffers - main.total_mib) > 0.011
        ):
            notes.append(
                f"The buffers of the KV cache add up to {buffers} MiB, its size line says {total} MiB."
            )
    elif "self_size" in target.sizes:
        size = target.sizes["self_size"]
        out["kv_mib"], out["type_k"], _, out["type_v"], _ = size  # type: ignore[misc]
    elif target.kv_buffers and (target.compute or target.state or target.rs_buffers):  # else there may be more of them
        out["kv_mib"] = round(sum(target.kv_buffers.values()), 2)
    out["swa_mib"] = next((cache.total_mib for cache in target.caches if cache.sliding), None)
    drafts = [cache.total_mib for context in contexts[1:] for cache in context.caches]
    drafts = drafts or [sum(context.kv_buffers.values()) for context in contexts[1:] if context.kv_buffers]
    out["draft_kv_mib"] = round(sum(drafts), 2) if drafts else None


def _sizes(boot: LlamaBoot, target: Context, out: dict[str, Any]) -> None:
    sizes = target.sizes
    main = next((cache for cache in target.caches if not cache.sliding), None)
    out["n_ctx_seq"], out["n_seq_max"] = sizes.get("n_ctx_seq"), sizes.get("n_seq_max")
    out["kv_unified"], out["n_ubatch"], out["flash_attn"] = (
        sizes.get("kv_unified"),
        sizes.get("n_ubatch"),
        sizes.get("flash_attn"),
    )
    out["n_ctx_train"] = boot.said.get("n_ctx_train") or sizes.get("n_ctx_train")
    out["n_slots"] = boot.said.get("n_slots") or boot.said.get("n_parallel")
    if out["n_ctx_seq"] is None:
        out["n_ctx_seq"] = boot.said.get("n_ctx_slot")
    out["n_ctx"] = sizes.get("n_ctx")
    if out["n_ctx"] is None and out["n_ctx_seq"] is not None:
        if out["kv_unified"] is True:
            out["n_ctx"] = out["n_ctx_seq"]
        elif main is not None and main.streams and main.cells == out["n_ctx_seq"]:
            out["n_ctx"] = main.cells * main.streams
    if out["n_seq_max"] is None and main is not None:
        out["n_seq_max"] = main.seqs


def _verdict(boot: LlamaBoot) -> str | None:
    fit = boot.fit
    if fit.get("verdict"):
        return str(fit["verdict"])
    if "deficit" in fit:
        return "evict"
    return None


def _derive_llama(boot: LlamaBoot, out: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    derived: dict[str, Any] = {"num_blocks": None, "blocks_per_request": None}
    main = next((cache for cache in out["caches"] if cache["role"] == "target"), None)
    streams = main["streams"] if main else None
    derived["n_ctx"] = out["n_ctx"]
    if main is not None and streams and derived["n_ctx"] is None:
        derived["n_ctx"] = main["cells"] * streams
    total_cells = main["cells"] * (streams or 1) if main else out["n_ctx"]
    kv_bytes = round((out["kv_mib"] or 0) * 1048576)
    derived["kv_bytes_per_token"] = (
        kv_bytes // total_cells if total_cells and kv_bytes % total_cells == 0 else None
    )
    state = out["recurrent"]
    derived["state_mib_per_conversation"] = (
        round(state["total_mib"] / state["seqs"], 4) if state and state["seqs"] else None
    )
    derived["room_mib"] = (
        out["leave_mib"] - out["margin_mib"]
        if out["leave_mib"] is not None and out["margin_mib"] is not None
        else None
    )
    if derived["room_mib"] is None and out["deficit_mib"] is not None:
        derived["room_mib"] = -out["deficit_mib"]
    per_token = derived["kv_bytes_per_token"]
    room = derived["room_mib"]
    derived["room_tokens_at_most"] = (
        room * 1048576 // per_token if room is not None and room >= 0 and per_token else None
    )
    derived["longest_request"] = out["n_ctx_seq"] or (main["cells"] if main else None)
    derived["most_conversations"] = out["n_slots"] or out["n_seq_max"]
    derived["binds"] = "slots" if derived["most_conversations"] else None
    return derived


def consistent(out: dict[str, Any]) -> bool:
    """Whether derived blocks print the figures that the log states (used by tests)."""
    derived = out["derived"]
    if derived["num_blocks"] is None or derived["blocks_per_request"] is None or out["tokens"] is None:
        return True
    return prints(derived["num_blocks"], derived["blocks_per_request"], out["max_model_len"]) == out["tokens"]
