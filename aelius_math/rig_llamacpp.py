"""A rig under llama.cpp: what a context takes, whether it fits, and where the wall is."""

from __future__ import annotations

from typing import Any

from aelius_math.llamacpp import Context, Fit, Memory, fit, memory
from aelius_math.llamacpp_builds import BUILDS, FIT_TARGET_MIB, is_qwen_27b
from aelius_math.llamacpp_context import at
from aelius_math.llamacpp_worth import Worth, flag_worth
from aelius_math.model import Model
from aelius_math.rig_form import Form, Missing, Show
from aelius_math.rig_sections import Figure, Part, Picture, Section, step, table
from aelius_math.units import MIB, AeliusError

GROWS, DECIDES, TWICE = (
    f"09_wall#{anchor}"
    for anchor in (
        "derive-what-a-longer-context-takes",
        "derive-the-fit-pass-as-a-decision",
        "derive-why-it-evicted-with-fit_80k_free-free",
    )
)
"""Where a step is explained."""


def context_of(form: Form) -> Context:
    """The flags; what is left open is the engine's own, and said."""
    build = form.text("build")
    if not build:
        build = "oct"
        form.taken.append(f"Build: the newer of the two whose rules are known, {BUILDS[build].commit} of {BUILDS[build].date}")
    n_ctx = form.tokens("n_ctx") if form.text("n_ctx") != "0" else 0
    if n_ctx is None:
        form.taken.append("Context: not set, so the fit pass starts from all that the model can, and shrinks it")
    slots = form.whole("n_seq_max", None, "not set, so llama-server opens four over one cache")
    draft = form.whole("draft_max", 0, "none") or 0
    given: dict[str, Any] = {}
    for name, fields in (("type_k", ("type_k",)), ("type_v", ("type_v",)), ("type_draft", ("type_k_draft", "type_v_draft"))):
        if form.text(name):
            given |= dict.fromkeys(fields, form.text(name))
    micro = form.whole("n_ubatch", None)
    if micro is not None:
        given["n_ubatch"] = micro
    return Context(n_ctx=n_ctx, n_seq_max=slots, kv_unified=form.choice("kv_unified"), draft_max=draft, build=build, **given)


def memory_of(form: Form) -> dict[str, Any]:
    """The sizes that the fit pass starts from, in MiB."""
    given: dict[str, Any] = {"weights_mib": form.mib("weights_mib")}
    before = form.text("free_is") != "fit"
    given["free_before_mib" if before else "free_mib"] = form.mib("free")
    for name in ("vision_mib", "fit_target_mib", "compute_mib"):
        if form.text(name):
            given[name] = form.mib(name)
    if "fit_target_mib" not in given:
        form.taken.append(f"Margin (--fit-target): {FIT_TARGET_MIB:,} MiB, llama.cpp's default")
    return given


def missing(given: dict[str, Any]) -> list[Missing]:
    """The sizes that only the reader has."""
    found = []
    if given.get("free_mib") is None and given.get("free_before_mib") is None:
        found.append(Missing("free", "the device's free memory: as nvidia-smi shows it, or as the log's fit line does"))
    if given.get("weights_mib") is None:
        found.append(Missing("weights_mib", 'MiB: the line "model buffer size" of the device'))
    return found


def decide(model: Model, context: Context, given: dict[str, Any]) -> Fit:
    return fit(model, context, **{name: value for name, value in given.items() if value is not None})


def worth_of(model: Model, context: Context, given: dict[str, Any], found: Fit) -> list[Worth]:
    if found.wall_tokens is None or given.get("compute_mib") is not None:
        return []
    return flag_worth(model, context, **{name: value for name, value in given.items() if value is not None})


def in_mib(size: int | None) -> float | None:
    """MiB as the command `fit` prints them."""
    return None if size is None else round(size / MIB, 2)


def numbers(model: Model, memory: Memory, found: Fit | None) -> dict[str, Any]:
    """The numbers, under the names that the command `fit` prints."""
    first = {
        "name": model.name, "n_ctx": memory.n_ctx, "n_ctx_seq": memory.n_ctx_seq, "cells": memory.cells, "streams": memory.streams,
        "slots": memory.slots, "kv_mib": memory.kv_bytes / MIB, "swa_mib": memory.swa_bytes / MIB,
        "recurrent_mib": memory.recurrent_bytes / MIB,
        "draft_kv_mib": None if memory.draft_kv_bytes is None else memory.draft_kv_bytes / MIB,
    }  # fmt: skip
    if found is None:
        return first
    return {
        **first, "compute_mib": in_mib(found.compute_bytes), "projected_mib": in_mib(found.projected_bytes),
        "known_mib": in_mib(found.known_bytes), "free_mib": in_mib(found.free_bytes), "margin_mib": in_mib(found.margin_bytes),
        "leave_mib": in_mib(found.leave_bytes), "verdict": found.verdict, "action": found.action,
        "deficit_mib": in_mib(found.deficit_bytes), "layers_kept": found.layers_kept, "wall_tokens": found.wall_tokens,
    }  # fmt: skip


def figures(show: Show, memory: Memory, found: Fit | None) -> list[Figure]:
    rows = [Figure("Context", show.tokens(memory.n_ctx))]
    if memory.slots > 1:
        rows.append(
            Figure(
                "Longest request",
                show.tokens(memory.n_ctx_seq),
                f"{memory.slots} slots, " + ("one cache for all of them" if memory.streams == 1 else "each with a cache of its own"),
            )
        )
    rows.append(Figure("KV cache", show.exact(memory.kv_bytes)))
    if memory.n_ctx and memory.kv_bytes:
        rows.append(Figure("Each token", f"{memory.kv_bytes / memory.n_ctx:,.6g} bytes", "of the cache that grows"))
    if memory.swa_bytes:
        rows.append(Figure("Sliding-window cache", show.exact(memory.swa_bytes)))
    if memory.recurrent_bytes:
        each = memory.recurrent_bytes // memory.slots
        rows.append(Figure("Recurrent state", show.exact(memory.recurrent_bytes), f"{show.size(each)} a slot, however short"))
    if memory.draft_kv_bytes:
        rows.append(Figure("MTP cache", show.exact(memory.draft_kv_bytes)))
    if found is None:
        return rows
    rows.append(Figure("Compute buffers", "not known" if found.compute_bytes is None else show.exact(found.compute_bytes)))
    if found.projected_bytes is not None:
        rows.append(Figure("Projected", show.exact(found.projected_bytes), f"of {show.size(found.free_bytes)} free"))
    rows.append(Figure("Verdict", found.verdict, found.action))
    if found.deficit_bytes:
        rows.append(Figure("Lacking", show.exact(found.deficit_bytes)))
    if found.wall_tokens is not None:
        rows.append(Figure("The wall", show.tokens(found.wall_tokens), "the longest context that stays on the device"))
    return rows


def unmeasured(model: Model, memory: Memory) -> str:
    """What to type where the compute buffers are not known, and why they are not."""
    lines = 'both "compute buffer size" lines of a log with this context, in MiB'
    if is_qwen_27b(model) and memory.streams > 2:
        return f"{lines}; measured for one or two caches, and here are {memory.streams}, one a slot. One cache for all slots is measured."
    return f"{lines}; measured for the Qwen 27B models only, at -ub 256 and 512."


def picture(show: Show, found: Fit, vision_mib: float) -> Picture:
    """The device as the fit pass sees it: what the server takes, what is to stay free, and what is left or lacking."""
    memory, vision = found.memory, int(vision_mib * MIB)
    cache = memory.kv_bytes + memory.swa_bytes
    rest = found.known_bytes - found.weights_bytes - cache - memory.recurrent_bytes
    known = "" if found.compute_bytes is not None else ", as far as known"
    parts = [
        Part("weights", found.weights_bytes, "weights"),
        Part("KV cache", cache, "kv"),
        Part("recurrent state", memory.recurrent_bytes, "state"),
    ]
    parts += [
        Part(f"compute buffers{known}", rest, "extra"),
        Part("MTP", found.draft_in_margin_bytes, "draft"),
        Part("vision", vision, "tenant"),
    ]
    parts.append(Part("margin, to stay free", found.margin_bytes - found.draft_in_margin_bytes - vision, "margin"))
    wanted = sum(part.size for part in parts)
    free, twice = found.free_bytes, found.counted_twice_bytes
    over = f"; {show.size(wanted - free)} are lacking" if wanted > free else ""
    less = f", {show.size(free + twice)} less the state that it counts twice" if twice else ""
    if wanted < free:
        parts.append(Part("free", free - wanted, "free"))
    return Picture(
        "The device", max(free, wanted), parts, f"{show.size(free)} free as the fit pass reads it{less}{over}", free if over else None
    )


def reduced(model: Model, context: Context, given: dict[str, Any], asked_for: Memory, n_ctx: int) -> Fit:
    """The same device with the context that the fit pass shrank it to; typed compute buffers shrink by what grows with it."""
    context = at(context, n_ctx)
    if given.get("compute_mib") is not None:
        growing = memory(model, context).compute_growing_bytes - asked_for.compute_growing_bytes
        given = {**given, "compute_mib": given["compute_mib"] + growing / MIB}
    return decide(model, context, given)


def steps(show: Show, memory: Memory, found: Fit) -> list[dict[str, str]]:
    """From the flags to the wall."""
    cache = memory.kv_bytes + memory.swa_bytes
    taken = [show.size(size) for size in (found.weights_bytes, cache, memory.recurrent_bytes)]
    taken += [] if found.compute_bytes is None else [show.size(found.compute_bytes)]
    less, drafts = " - state" if found.counted_twice_bytes else "", " + MTP" if found.draft_in_margin_bytes else ""
    cells, used, fit_pass = f"{memory.cells:,} cells", "weights + caches + state + compute", "common/fit.cpp, common_params_fit_impl"
    rows = [
        ("n_ctx", "tokens of the context", "-c, padded up to cells", f"{memory.streams} x {cells}", memory.n_ctx, "src/llama-context.cpp", GROWS),
        ("KV", "the caches", "cells * bytes of each layer's K and V", cells, show.exact(cache), "src/llama-kv-cache.cpp", GROWS),
        ("RS", "recurrent state", "rows * bytes of a state", f"{memory.recurrent_rows} rows", show.exact(memory.recurrent_bytes), "src/llama-memory-recurrent.cpp", GROWS),
        ("used", "projected", used, " + ".join(taken), show.exact(found.projected_bytes or 0), fit_pass, DECIDES),
        ("free", "free as the pass reads it", f"free before{less}", "", show.exact(found.free_bytes), fit_pass, TWICE),
        ("margin", "kept free", f"--fit-target + vision{drafts}", "", show.exact(found.margin_bytes), fit_pass, DECIDES),
        ("wall", "longest context with used + margin <= free", "search", "", found.wall_tokens, fit_pass, DECIDES),
    ]  # fmt: skip
    left_out = {"RS": not memory.recurrent_bytes, "used": found.projected_bytes is None, "wall": found.wall_tokens is None}
    return [
        step(symbol, name, formula, numbers, value if isinstance(value, str) else f"{value:,} tokens", source, note)
        for symbol, name, formula, numbers, value, source, note in rows
        if not left_out.get(symbol)
    ]


def worth_table(show: Show, worth: list[Worth], found: Fit) -> Section:
    rows = [[each.flag, f"{each.wall_tokens:,}", f"{each.gain_tokens:+,}", show.size(each.saved_bytes)] for each in worth]
    twice = "What saves recurrent state saves it twice: the fit pass counts it twice." if found.counted_twice_bytes else ""
    return table("What each flag is worth", ["flag", "the wall then", "tokens gained", "bytes saved here"], rows, twice)


def seats(memory: Memory, found: Fit | None, lengths: list[int]) -> list[dict[str, int | None]]:
    """Conversations of each length that the context holds at once, with its slots, and that it would at the wall."""
    wall = found.wall_tokens if found else None

    def at_once(context: int, each: int) -> int:
        if memory.streams > 1:
            return memory.slots if each <= context // memory.streams else 0
        return min(memory.slots, context // each)

    return [
        {
            "tokens": tokens,
            "seats": at_once(memory.n_ctx, max(1, tokens)),
            "seats_at_wall": None if wall is None else at_once(wall, max(1, tokens)),
        }
        for tokens in lengths
    ]


def check(found: Memory, context: Context) -> None:
    if found.draft_kv_bytes is None:
        raise AeliusError("draft_max", context.draft_max, "none: the model has no MTP layers")
