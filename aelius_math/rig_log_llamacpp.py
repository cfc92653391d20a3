"""A boot log of llama.cpp for the page "Your rig": the device's memory, the flags that print its caches, what to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from aelius_math import rig_llamacpp as llama
from aelius_math.llamacpp import Context
from aelius_math.llamacpp import memory as llama_memory
from aelius_math.llamacpp_builds import FIT_TARGET_MIB
from aelius_math.llamacpp_context import CACHE_TYPES, PAD
from aelius_math.log_known import catalogue_name
from aelius_math.model import Model
from aelius_math.rig_form import Form, Show, on_off
from aelius_math.rig_sections import Figure, Part, Picture, Section, drawn, figures, table
from aelius_math.units import MIB, AeliusError

MOST_DRAFTS, MOST_SLOTS, MOST_CANDIDATES = 8, 8, 12
LOGGED_TO = 0.01
"""MiB: the log prints caches to two digits behind the point."""

Explained = tuple[list[Section], list[dict[str, Any]], dict[str, Any]]


def of_llama(boot: dict[str, Any], model: Model | None, show: Show) -> Explained:
    """Sections, pictures and the settings of a rig."""
    device = {
        name: mib
        for name, mib in (boot["model_mib_by_device"] or {}).items()
        if not name.startswith(("CPU", "Host")) and "Host" not in name
    }
    settings = llama_settings(boot, sum(device.values()))
    sections = [stated(boot, show)]
    if model is not None and boot["kv_mib"]:
        found = list(fitting(boot, model))
        sections.append(settings_table(found))
        if len(found) == 1:
            settings |= said(found[0])
    sections += list(changes(boot, model))
    if model is not None and (worth := agreed_worth(show, boot, model, settings)):
        sections.append(worth)
    settings |= as_projected(boot)
    return sections, [drawn(picture, show) for picture in pictures(boot, device, show)], settings


def pictures(boot: dict[str, Any], device: dict[str, float], show: Show) -> list[Picture]:
    """The device's memory as the log adds it up."""
    parts = [Part(f"weights, {name}", int(mib * MIB), "weights") for name, mib in device.items()]
    named = (("kv_mib", "KV cache", "kv"), ("swa_mib", "sliding-window cache", "kv"), ("recurrent_mib", "recurrent state", "state"),
             ("draft_kv_mib", "drafter's cache", "draft"), ("compute_mib", "compute buffer", "extra"), ("draft_compute_mib", "drafter's compute", "extra"))  # fmt: skip
    parts += [Part(what, int(boot[key] * MIB), kind) for key, what, kind in named if boot.get(key)]
    taken = sum(part.size for part in parts)
    free = int(boot["free_mib"] * MIB) - taken if boot["free_mib"] else 0
    if free > 0:
        keep = f"; the margin asks for {show.size(boot['margin_mib'] * MIB)}:" if boot["margin_mib"] else ""
        parts.append(Part(f"free{keep}", free, "free"))
    rest = f"; {show.size(free)} stay free" if free > 0 else ""
    return [Picture("What the server takes", taken + max(free, 0), parts, show.size(taken) + rest)] if parts else []


def stated(boot: dict[str, Any], show: Show) -> Section:
    """What the log states and what follows at once."""
    derived = boot["derived"]
    most = derived["most_conversations"]
    rows = [
        Figure("Context", show.tokens(boot["n_ctx"])) if boot["n_ctx"] else None,
        Figure("Longest request", show.tokens(derived["longest_request"])) if derived["longest_request"] else None,
        Figure("Each token", f"{derived['kv_bytes_per_token']:,} bytes", "of the KV cache") if derived["kv_bytes_per_token"] else None,
        Figure("Recurrent state", f"{derived['state_mib_per_conversation']:g} MiB", "a conversation")
        if derived["state_mib_per_conversation"]
        else None,
        Figure("What binds", derived["binds"], f"at most {most:,} conversation{'' if most == 1 else 's'} at once")
        if derived["binds"]
        else None,
        Figure("Verdict", boot["verdict"], f"{boot['deficit_mib']:,} MiB are lacking" if boot["deficit_mib"] else "")
        if boot["verdict"]
        else None,
        Figure("Room beside the margin", f"{derived['room_mib']:,} MiB") if derived["room_mib"] is not None else None,
        Figure("At most more tokens", f"{derived['room_tokens_at_most']:,}", "if only the KV cache grew")
        if derived["room_tokens_at_most"]
        else None,
    ]
    return figures("What it says", [row for row in rows if row is not None])


def fitting(boot: dict[str, Any], model: Model) -> Iterator[Context]:
    """The flags under which the model's caches are those of the log, of all that the log leaves open."""
    cells = boot["n_ctx"] or boot["derived"]["n_ctx"]
    if not cells:
        return
    types = [(boot["type_k"], boot["type_v"])] if boot.get("type_k") and boot.get("type_v") else list(product(CACHE_TYPES, repeat=2))
    slots = [boot["n_seq_max"]] if boot.get("n_seq_max") else range(1, MOST_SLOTS + 1)
    unified = [boot["kv_unified"]] if boot.get("kv_unified") is not None else (False, True)
    drafter = drafts_cache(boot)
    drafts = range(1, MOST_DRAFTS + 1) if drafter else (0,)
    for (type_k, type_v), count, one_cache in product(types, slots, unified):
        plain = Context(n_ctx=cells, n_seq_max=count, kv_unified=one_cache, type_k=type_k, type_v=type_v)
        if not agrees(plain, model, boot, "kv"):
            continue
        for number in drafts:
            context = replace(plain, draft_max=number)
            if drafter:
                context = replace(context, type_k_draft=drafter["k_type"] or "f16", type_v_draft=drafter["v_type"] or "f16")
            if agrees(context, model, boot, "kv", "recurrent", "draft_kv"):
                yield context


def agrees(context: Context, model: Model, boot: dict[str, Any], *names: str) -> bool:
    """Whether the caches of these names are as large as the log says; one that it does not print is not asked about."""
    try:
        found = llama_memory(model, context)
    except AeliusError:
        return False
    sizes = {"kv": found.kv_bytes, "recurrent": found.recurrent_bytes, "draft_kv": found.draft_kv_bytes}
    logged = {name: boot[f"{name}_mib"] for name in names if boot.get(f"{name}_mib") is not None}
    return all((size := sizes[name]) is not None and abs(size / MIB - mib) < LOGGED_TO for name, mib in logged.items())


def said(context: Context) -> dict[str, str]:
    """A context as the form has it."""
    return {
        "n_ctx": str(context.n_ctx), "n_seq_max": str(context.n_seq_max), "kv_unified": on_off(context.kv_unified), "type_k": context.type_k,
        "type_v": context.type_v, "draft_max": str(context.draft_max or ""), "type_draft": context.type_k_draft if context.draft_max else "",
    }  # fmt: skip


def settings_table(found: list[Context]) -> Section:
    rows = [
        [str(one.n_seq_max), "one for all" if one.unified else "one a slot", f"{one.type_k}, {one.type_v}", str(one.draft_max or "none")]
        for one in found[:MOST_CANDIDATES]
    ]
    if not found:
        text = "No flags print the log's caches with this model: it is another, or a flag is set that is not known here."
    elif len(found) == 1:
        text = "Of all that were tried, only these flags print the log's caches."
    else:
        text = f"{len(found):,} print the log's caches; the log does not say which."
    return table("Settings that fit", ["slots, -np", "caches", "K and V", "drafted tokens"], rows, text)


def changes(boot: dict[str, Any], model: Model | None) -> Iterator[Section]:
    """What other flags would save by the log's own figures, and whether that is enough."""
    derived, lacking = boot["derived"], boot["deficit_mib"] if boot["verdict"] == "evict" else None
    rows = []
    per_token = derived["kv_bytes_per_token"]
    if lacking and per_token and boot["n_ctx"]:
        shorter = boot["n_ctx"] - -(-(lacking + 1) * MIB // (per_token * PAD)) * PAD  # the log's MiB are rounded
        if shorter > 0:
            saved = (boot["n_ctx"] - shorter) * per_token / MIB
            rows.append([f"-c {shorter}", f"{saved:,.2f} MiB", "", "enough"])
    for one in derived["flags"]:
        tokens = f"{one['tokens']:+,}" if one["tokens"] is not None else ""
        enough = "" if lacking is None else "enough" if one["saves_mib"] > lacking else "not enough alone"
        rows.append([one["flag"], f"{one['saves_mib']:,.2f} MiB", tokens, enough])
    text = {
        "evict": f"Layers went to the CPU: {lacking:,} MiB are lacking." if lacking else "Layers went to the CPU.",
        "fits": "It fits as it is.",
    }
    first = [text[boot["verdict"]]] if boot["verdict"] in text else []
    if boot["verdict"] == "fits" and derived["room_tokens_at_most"]:
        first.append(f"The context may grow, by at most {derived['room_tokens_at_most']:,} tokens.")
    if model is None and rows:
        first.append("With the model's config.json, pasted above, the flags that print these caches are searched.")
    if rows:
        head = ["changed", "saves", "tokens of cache", *(["to know"] if lacking else [])]
        yield table("What to change", head, [row[: len(head)] for row in rows], " ".join(first))
    elif first:
        yield {"kind": "list", "title": "What to change", "rows": first}


def agreed_worth(show: Show, boot: dict[str, Any], model: Model, settings: dict[str, Any]) -> Section | None:
    """What each flag does to the wall: only where the same sizes lead to the log's own projection."""
    form = Form(settings)
    given = llama.memory_of(form)
    if boot["projected_mib"] is None or llama.missing(given):
        return None
    try:
        context = llama.context_of(form)
        found = llama.decide(model, context, given)
        if found.projected_bytes is None or abs(found.projected_bytes / MIB - boot["projected_mib"]) > 1:
            return None
        worth = llama.worth_of(model, context, given, found)
    except AeliusError:
        return None
    return llama.worth_table(show, worth, found) if worth else None


def llama_settings(boot: dict[str, Any], weights: float) -> dict[str, Any]:
    """The boot as settings of a rig under llama.cpp."""
    recurrent, drafter = boot.get("recurrent") or {}, drafts_cache(boot)
    given = {
        "n_ctx": boot["n_ctx"], "n_seq_max": boot.get("n_seq_max"), "n_ubatch": boot.get("n_ubatch"), "type_k": boot.get("type_k"),
        "type_v": boot.get("type_v"), "free": boot["free_mib"], "weights_mib": round(weights, 2) or None,
        "vision_mib": boot.get("vision_estimate_mib"), "draft_max": recurrent.get("rs_seq") if drafter else None,
        "type_draft": drafter.get("k_type") if drafter else None,
    }  # fmt: skip
    texts = {name: "" if value is None else str(value) for name, value in given.items()}
    return {
        "engine": "llama.cpp", "model": catalogue_name(boot["model"]) or "", "free_is": "fit",
        "kv_unified": on_off(boot.get("kv_unified")), **texts,
    }  # fmt: skip


def as_projected(boot: dict[str, Any]) -> dict[str, str]:
    """Sizes under which a rig comes to the deficit of a log whose layers went to the CPU: what the device holds then is less than
    the weights, so these are what is left of the log's projection, beside its caches and its own compute buffers."""
    known = [boot[name] for name in ("projected_mib", "kv_mib", "compute_mib")]
    if boot["verdict"] != "evict" or None in known:
        return {}
    kept = sum(boot[name] or 0 for name in ("kv_mib", "swa_mib", "recurrent_mib", "compute_mib"))
    found = {
        "weights_mib": f"{boot['projected_mib'] - kept:.2f}",
        "compute_mib": f"{boot['compute_mib'] + (boot['draft_compute_mib'] or 0):.2f}",
    }
    return found | margin_settings(boot)


def margin_settings(boot: dict[str, Any]) -> dict[str, str]:
    """The margin of a log as flags: the July build adds the MTP context to it, and every build the vision on the device."""
    margin, drafter, vision = boot["margin_mib"], boot["draft_estimate_mib"] or 0, boot.get("vision_estimate_mib") or 0
    if not margin:
        return {}
    beside = margin - FIT_TARGET_MIB - vision  # the estimate of the vision counts some MiB of the host too
    july = bool(drafter) and beside >= drafter - 30
    target = margin - drafter if july else margin
    plain = not vision and abs(target - FIT_TARGET_MIB) <= 1
    return ({"build": "jul"} if july else {}) | ({} if plain else {"fit_target_mib": f"{target:.2f}", "vision_mib": ""})


def drafts_cache(boot: dict[str, Any]) -> dict[str, Any] | None:
    """The drafter's own cache, where the log prints one."""
    return next((cache for cache in boot["caches"] or () if cache["role"] == "draft"), None)
