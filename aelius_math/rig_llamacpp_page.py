"""A rig under llama.cpp as the page has it: the verdict, the figures, the wall, and what each flag is worth."""

from __future__ import annotations

from typing import Any

from aelius_math import rig_code as code
from aelius_math import rig_llamacpp as llama
from aelius_math import rig_vllm as vllm
from aelius_math.ladder import Ladder
from aelius_math.ladder_slices import parse_slices
from aelius_math.llamacpp import Fit
from aelius_math.llamacpp import memory as llama_memory
from aelius_math.model import Model
from aelius_math.rig_form import Form, Show, asked, plural, said
from aelius_math.rig_sections import drawn, figures, steps, table
from aelius_math.units import AeliusError


def of_llama(form: Form, show: Show, model: Model, out: dict[str, Any], rest: bool) -> None:
    """The rig under llama.cpp. Where the fit pass shrinks the context, the answer is about what it shrinks it to."""
    context = llama.context_of(form)
    given = llama.memory_of(form)
    asked_for = llama_memory(model, context)
    llama.check(asked_for, context)
    missing = llama.missing(given)
    out["asks"] += [asked(error) for error in missing]
    found = None if missing else llama.decide(model, context, given)
    out["numbers"]["fit"] = llama.numbers(model, asked_for, found)
    shrunk = found is not None and context.n_ctx is None and found.n_ctx < asked_for.n_ctx
    now = llama.reduced(model, context, given, asked_for, found.n_ctx) if found is not None and shrunk else found
    memory = now.memory if now is not None else asked_for
    title = "What you have, once the context is reduced" if shrunk else "What you have"
    out["sections"].append(figures(title, llama.figures(show, memory, now)))
    seats = llama.seats(memory, found, vllm.lengths(memory.n_ctx, form.k))
    out["numbers"]["seats"] = seats
    wall = found.wall_tokens if found else None
    head = ["length", "at once in this context", *(["at once at the wall"] if wall else [])]
    cells = [[show.length(e["tokens"] or 0), f"{e['seats']:,}", *([f"{e['seats_at_wall']:,}"] if wall else [])] for e in seats]
    text = "Conversations that live at once, all of one length: each needs a slot, and room in the cache."
    out["sections"].append(table("Seats by length", head, cells, text))
    ladder_of_context(form, show, memory.n_ctx, out)
    cache = f"The cache of {show.tokens(memory.n_ctx)} takes {show.size(memory.kv_bytes + memory.swa_bytes)}."
    out["headline"], out["short"] = [cache], cache
    if found is None or now is None:
        return
    stands = [] if wall is None else [f"The wall stands at {show.tokens(wall)}: the longest context that stays on the device."]
    out["headline"] = [verdict(show, found), *stands, cache]
    out["short"] = VERDICTS[found.verdict] + ("" if wall is None else f": the wall stands at {show.tokens(wall)}") + "."
    out["code"] = {"command": code.fit_command(form, context, given), "python": code.fit_python(form, model, context, given)}
    if rest and (worth := llama.worth_of(model, context, given, found)):
        out["numbers"]["worth"] = [
            {"flag": one.flag, "wall_tokens": one.wall_tokens, "gain_tokens": one.gain_tokens, "saved_mib": llama.in_mib(one.saved_bytes)}
            for one in worth
        ]
        out["sections"].append(llama.worth_table(show, worth, found))
    out["sections"].append(steps("Step by step", llama.steps(show, asked_for, found)))
    out["pictures"] = [drawn(llama.picture(show, now, form.mib("vision_mib") or 0), show)]
    if found.compute_bytes is None:
        out["asks"].append({"field": "compute_mib", "text": f"Compute buffers: {llama.unmeasured(model, memory)}"})


VERDICTS = {
    "fits": "It fits", "evict": "It does not fit whole", "context reduced": "It fits with a shorter context",
    "unknown": "Whether it fits hangs on the compute buffers",
}  # fmt: skip


def verdict(show: Show, found: Fit) -> str:
    """The fit pass's verdict in a sentence, with its own word for it."""
    if found.verdict == "fits":
        return "It fits: no changes needed."
    if found.verdict == "context reduced":
        return f"It fits, once the fit pass has reduced the context to {show.tokens(found.n_ctx)}: -c was not set."
    if found.verdict == "evict":
        lacking = f"{show.size(found.deficit_bytes)} are lacking, and " if found.deficit_bytes else ""
        return f"It does not fit whole ({found.verdict}): {lacking}{found.action}."
    if found.moved_bytes == 0:  # the context would be reduced
        return f"Whether it fits is not known: at most {show.tokens(found.n_ctx)} do, before the compute buffers' unknown part."
    return f"Whether it fits is not known: it {found.action}."


def ladder_of_context(form: Form, show: Show, n_ctx: int, out: dict[str, Any]) -> None:
    """The ladder over a llama.cpp context, which hands out cells and so tokens."""
    try:
        slices = parse_slices(form.text("slices"), form.k, "slices")
        short = form.tokens("short_tokens")
        if not slices and short is None:
            return
        ladder = Ladder(pool=n_ctx, slices=slices, shorts="auto" if short else 0, short_tokens=short, reserve=form.text("reserve") or 0)
    except AeliusError as error:
        out["problems"].append(said(error, form))
        return
    out["numbers"]["ladder"] = {"tokens": {"shorts": ladder.shorts, "left": ladder.left, "seats": ladder.seats, "total": ladder.total}}
    rows = [[show.length(tokens), f"{ladder.places.count(tokens):,}"] for tokens in sorted(set(ladder.places), reverse=True)]
    rows += [["seats", f"{ladder.seats:,}"], ["left", plural(ladder.left, "token")]]
    out["sections"].append(table("The ladder", ["slice", "number"], rows, "One context shared by all slots; each seat needs a slot."))
