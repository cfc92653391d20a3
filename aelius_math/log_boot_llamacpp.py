"""A boot of llama.cpp's as one dict: what it states, under the names of the command's JSON, and what follows."""

from __future__ import annotations

from typing import Any

from aelius_math.log_llamacpp import Context, LlamaBoot, is_host
from aelius_math.log_names import STATED, STATED_LLAMA
from aelius_math.units import MIB


def llama_boot(boot: LlamaBoot) -> dict[str, Any]:
    """A llama.cpp boot: what it states (None where it does not say), `derived`, `notes`."""
    notes: list[str] = []
    out: dict[str, Any] = {
        "engine": "llama.cpp",
        **dict.fromkeys(STATED + STATED_LLAMA),
        "type_k": None,
        "type_v": None,
    }
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
    others = [sum(mib for name, mib in context.compute.items() if not is_host(name)) for context in contexts[1:]]
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
    out["status"] = "refused" if boot.failed else "started" if boot.started or (not dry and any(c.used for c in contexts)) else "unknown"
    if boot.failed:
        notes.append(f"The boot failed: {boot.failed}.")
    notes += [f"Two lines disagree on {clash}." for clash in boot.clashes]
    out["derived"] = _derive_llama(boot, out, notes)
    out["missing"] = [
        name for name in ("model", "kv_mib", "compute_mib", "n_ctx", "cells", "projected_mib", "free_mib") if out[name] is None
    ]
    out["notes"] = notes
    return out


def _caches(contexts: list[Context], out: dict[str, Any], notes: list[str]) -> None:
    listed = []
    for index, context in enumerate(contexts):
        for cache in context.caches:
            kind = ", sliding" if cache.sliding else ", index" if cache.index else ""
            own = {key: value for key, value in vars(cache).items() if key not in ("sliding", "index")}
            listed.append({"role": ("target" if index == 0 else "draft") + kind, **own})
    out["caches"] = listed
    target = contexts[0] if contexts else Context()
    main = next((cache for cache in target.caches if not cache.sliding), None)
    if main is not None:
        grows = (cache.total_mib for cache in target.caches if cache is main or cache.index)
        out["kv_mib"], out["cells"] = round(sum(grows), 2), main.cells
        out["type_k"], out["type_v"] = main.k_type, main.v_type
        buffers = round(sum(target.kv_buffers.values()), 2)
        total = sum(cache.total_mib for cache in target.caches)
        if buffers and abs(buffers - total) > 0.011 * (len(target.kv_buffers) + 1) and abs(buffers - main.total_mib) > 0.011:
            notes.append(f"The buffers of the KV cache add up to {buffers} MiB, its size line says {total} MiB.")
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
    kv_bytes = round((out["kv_mib"] or 0) * MIB)
    exact = total_cells and kv_bytes and kv_bytes % total_cells == 0
    derived["kv_bytes_per_token"] = kv_bytes // total_cells if exact else None
    state = out["recurrent"]
    each = round(state["total_mib"] / state["seqs"], 4) if state and state["seqs"] else None
    derived["state_mib_per_conversation"] = each
    derived["longest_request"] = out["n_ctx_seq"] or (main["cells"] if main else None)
    derived["most_conversations"] = out["n_slots"] or out["n_seq_max"]
    derived["binds"] = "the slots" if derived["most_conversations"] else None
    _room(out, derived, notes)
    derived["flags"] = _flags(out, derived)
    return derived


def _room(out: dict[str, Any], derived: dict[str, Any], notes: list[str]) -> None:
    """How far the fit pass was from its margin; what it counted twice."""
    room = None
    if out["leave_mib"] is not None and out["margin_mib"] is not None:
        room = out["leave_mib"] - out["margin_mib"]
    elif out["deficit_mib"] is not None:
        room = -out["deficit_mib"]
    derived["room_mib"], per_token = room, derived["kv_bytes_per_token"]
    derived["room_tokens_at_most"] = room * MIB // per_token if room is not None and room >= 0 and per_token else None
    twice = out["recurrent_mib"] if out["projected_mib"] is not None else None
    derived["counted_twice_mib"] = twice or None
    if twice and out["deficit_mib"] is not None and out["deficit_mib"] < twice:
        notes.append(
            f"The fit pass counts recurrent state twice: its dry run has already taken {twice:,.2f} MiB from the free memory. "
            f"Without that the deficit of {out['deficit_mib']:,} MiB is none."
        )


HALVES = {"f16": ("q8_0", 15 / 32), "bf16": ("q8_0", 15 / 32), "q8_0": ("q4_0", 16 / 34)}
"""A cache type, the next smaller one, and the share of the cache that it saves: rows of 64, 34 and 18 bytes per 32 values."""


def _flags(out: dict[str, Any], derived: dict[str, Any]) -> list[dict[str, Any]]:
    """What other flags would save, in MiB of this log's own figures, and the tokens of cache that these are."""
    found = []
    state = out["recurrent"]
    if state and state["rs_seq"]:
        copies = state["rs_seq"]
        found.append((f"--spec-draft-n-max {copies - 1}", state["total_mib"] / (1 + copies)))
    if state and state["seqs"] > 1:
        found.append((f"-np {state['seqs'] - 1}", state["total_mib"] / state["seqs"]))
    types = {out.get("type_k"), out.get("type_v")}
    if len(types) == 1 and out["kv_mib"]:
        smaller = HALVES.get(str(out["type_k"]))
        if smaller is not None:
            found.append((f"-ctk {smaller[0]} -ctv {smaller[0]}", out["kv_mib"] * smaller[1]))
    per_token = derived["kv_bytes_per_token"]
    return [
        {
            "flag": flag,
            "saves_mib": round(saves, 2),
            "tokens": int(saves * MIB) // per_token if per_token else None,
        }
        for flag, saves in sorted(found, key=lambda one: -one[1])[:3]
    ]
