"""Your rig: everything that the page of that name draws, from the settings that were typed; and a log, explained.

    work_out(settings)              a dict of texts, numbers, tables, pictures, derivation, code
    explain_log(text, config)       the same for a boot log

Settings are texts by name, as a form has them; what is not known is asked for (`asks`), what is taken for something left
open is said (`taken`), and what is wrong is named (`problems`). Nothing is raised for anything typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aelius_math import rig_code as code
from aelius_math import rig_llamacpp as llama
from aelius_math import rig_vllm as vllm
from aelius_math.ladder import Ladder
from aelius_math.ladder_slices import parse_slices
from aelius_math.llamacpp import memory as llama_memory
from aelius_math.model import Model
from aelius_math.rig_form import LABELS, Form, Missing, Show, cards, model_of, plural
from aelius_math.rig_log import explain_log
from aelius_math.rig_sections import Figure, drawn, figures, markdown, steps, table
from aelius_math.rig_vllm_drawn import account_table, vllm_pictures, vllm_steps
from aelius_math.units import AeliusError
from aelius_math.vllm import DoesNotFit, Pool, plan_pool

__all__ = ["cards", "explain_log", "work_out"]


def work_out(settings: Mapping[str, Any], rest: bool = True) -> dict[str, Any]:
    """All that a rig's settings give: `headline`, `sections`, `pictures`, `numbers`, `code`, `markdown`, and what is
    missing (`asks`), taken (`taken`) and wrong (`problems`).

    `rest` False leaves out what costs more than a plan: the choices. Sizes are bytes unless a name says MiB.

    >>> found = work_out({"model": "qwen3.8-27b", "available": "5.24 GiB", "tensor_parallel_size": "2", "kv_cache_dtype": "fp8",
    ...                   "num_speculative_tokens": "4"})
    >>> found["numbers"]["pool"]["tokens"], found["asks"], found["problems"]
    (289661, [], [])
    """
    out: dict[str, Any] = {
        "schema": 1, "asks": [], "taken": [], "problems": [], "headline": [], "sections": [], "pictures": [], "numbers": {}, "code": {},
        "settings": dict(settings) if isinstance(settings, Mapping) else {}, "title": "Your rig", "markdown": "",
        "offered": [],
    }  # fmt: skip
    try:
        form = Form(settings)
    except AeliusError as error:
        out["problems"].append(said(error))
        return out
    out["taken"] = form.taken
    show = Show(form.k, form.unit)
    try:
        model = model_of(form)
        out["title"] = model.name
        out["numbers"]["model"] = model_numbers(model)
        work = of_llama if form.text("engine") == "llama.cpp" else of_vllm
        work(form, show, model, out, rest)
    except Missing as error:
        out["asks"].append(asked(error))
    except DoesNotFit as error:
        out["problems"].append(said(error, form))
    except AeliusError as error:
        out["asks" if error.value is None else "problems"].append(asked(error) if error.value is None else said(error, form))
    out["markdown"] = markdown(out["title"], out["headline"], out["sections"], out["code"])
    return out


def named(field: str) -> str:
    """What the page calls a field; one of a card's own has the card's number behind it."""
    name, _, number = field.partition(" ")
    if number.isdigit():
        return f"Card {number}, {LABELS[name]}"
    return LABELS.get(field, field)


def said(error: AeliusError, form: Form | None = None) -> dict[str, str]:
    """What is wrong, as it was typed."""
    typed = form.text(error.field) if form else ""
    return {"field": error.field, "text": f"{named(error.field)}: got {(typed or str(error.value))[:80]!r}, expected {error.expected}."}


def asked(error: AeliusError) -> dict[str, str]:
    return {"field": error.field, "text": f"{named(error.field)}: {error.expected}."}


def model_numbers(model: Model) -> dict[str, Any]:
    """The model's own figures, as the command `model` prints them: 16-bit, one card."""
    return {
        "name": model.name, "kv_bytes_per_token": model.kv_bytes_per_token(), "index_bytes_per_token": model.index_bytes_per_token(),
        "window_bytes": model.window_bytes(), "conv_elements": model.conv_elements, "state_elements": model.state_elements,
        "mtp_bytes_per_token": model.mtp_bytes_per_token(), "dtype": model.dtype, "max_position_embeddings": model.max_position_embeddings,
    }  # fmt: skip


def model_figures(show: Show, model: Model, dtype: str, drafting: bool) -> list[Figure]:
    """What a conversation costs in bytes, over all cards, before the engine cuts it into blocks."""
    rows = [Figure("Each token", f"{model.kv_bytes_per_token(dtype):,} bytes", f"in all layers whose cache grows, {dtype}")]
    if index := model.index_bytes_per_token(dtype):
        rows.append(Figure("Index keys of a token", f"{index:,} bytes"))
    if drafting and (mtp := model.mtp_bytes_per_token(dtype)):
        rows.append(Figure("MTP adds to a token", f"{mtp:,} bytes"))
    if windows := model.window_bytes(dtype):
        rows.append(Figure("Windows of a conversation", show.exact(windows), "when they are full"))
    return rows


def of_vllm(form: Form, show: Show, model: Model, out: dict[str, Any], rest: bool) -> None:
    """The rig under vLLM."""
    engine = vllm.engine_of(form, model)
    out["offered"] = vllm.offered(model, engine.version)
    if form.text("memory") != "cards" and not form.text("available"):
        out["sections"].append(figures("What the model keeps", model_figures(show, model, model.dtype or "bf16", True)))
    available, account = vllm.memory_of(form, engine)
    if account is not None:
        out["sections"].append(account_table(show, account))
    out["code"] = {"command": code.pool_command(form, engine, available), "python": code.pool_python(form, model, engine, available, None)}
    sizes: int | list[int] = available[0] if len(available) == 1 else available
    try:
        pool = plan_pool(model, engine, sizes)
    except DoesNotFit as refused:
        out["numbers"]["pool"] = {"name": model.name, **refused.numbers, "max_model_len": engine.max_model_len}
        out["headline"] = [
            f"vLLM would refuse to start: one request of {engine.max_model_len:,} tokens does not fit.",
            f"It needs {show.size(refused.needed_bytes)} of cache on a card and has {show.size(int(str(refused.value)))}; "
            f"the longest request that fits is {show.tokens(refused.longest_max_model_len)}.",
        ]
        return
    if engine.enable_prefix_caching is None and any(layer.recurrent for layer in model.layers):
        state = "off" if pool.plan.mode == "none" else f"on, mode {pool.plan.mode}"
        form.taken.append(f"Prefix caching: {state}, the default of vLLM {engine.version} for such a model")
    ladder = ladder_of(form, pool, out)
    if ladder is not None:
        out["code"]["python"] = code.pool_python(form, model, engine, available, ladder)
        out["code"]["command"] += "\n" + code.ladder_command(form, engine, available, ladder)
    vllm_answer(form.k, show, pool, out)
    if ladder is not None:
        out["sections"].append(ladder_table(show, pool, ladder, out))
    if rest:
        add_choices(form.k, show, pool, out)
    out["sections"].append(steps("Step by step", vllm_steps(pool, account)))
    out["pictures"] = [drawn(picture, show) for picture in vllm_pictures(show, pool, account)]


def vllm_answer(k: int, show: Show, pool: Pool, out: dict[str, Any]) -> None:
    """Headline, figures and seats of a pool."""
    engine = pool.engine
    cards_ = engine.tensor_parallel_size
    out["numbers"]["pool"] = pool.numbers
    short = pool.blocks(1)
    seats = vllm.seats(pool, k)
    out["numbers"]["seats"] = seats
    out["headline"] = [
        f"{pool.tokens:,} tokens are live at once for everybody; one request may be {engine.max_model_len:,} tokens long.",
        *[
            f"{plural(each['seats'], 'conversation')} of {show.length(each['tokens'])} at once."
            for each in seats
            if each["tokens"] == 32 * k
        ],
    ]
    rows = [
        Figure("Pool", f"{pool.tokens:,} tokens", "as the engine logs it"),
        Figure("Longest request", show.tokens(engine.max_model_len), f"{pool.max_concurrency:.2f} of them fit at a time"),
        Figure("Blocks", f"{pool.num_blocks:,}", f"{pool.usable_blocks:,} usable"),
        Figure("A full request takes", f"{pool.blocks_per_request:,} blocks"),
        Figure("Tokens in a block", f"{pool.block_size:,}"),
        Figure("Bytes of a block", show.exact(pool.block_size_bytes), "on one card" if cards_ > 1 else ""),
        *model_figures(show, pool.model, pool.plan.dtype, bool(engine.num_speculative_tokens)),
        Figure(
            "The shortest conversation", f"{short:,} block" + ("s" if short != 1 else ""),
            f"{show.size(short * pool.block_size_bytes * cards_)}" + (f" over {cards_} cards" if cards_ > 1 else ""),
        ),
    ]  # fmt: skip
    if pool.fixed_blocks_per_request:
        fixed = pool.fixed_blocks_per_request
        rows.append(
            Figure("Of these, recurrent state", f"{fixed:,} blocks", f"the room of {fixed * pool.block_size:,} tokens, however short")
        )
    out["sections"].insert(0, figures("What you have", rows))
    cells = [[show.length(e["tokens"]), f"{e['blocks']:,}", f"{e['seats']:,}", f"{e['seats_by_tokens']:,}"] for e in seats]
    text = "Conversations that live at once, all of one length. The engine hands out blocks; tokens alone promise too many."
    out["sections"].append(table("Seats by length", ["length", "blocks each", "seats", "by tokens alone"], cells, text))
    if pool.notes:
        out["sections"].append({"kind": "list", "title": "To know", "rows": list(pool.notes)})


def ladder_of(form: Form, pool: Pool, out: dict[str, Any]) -> Ladder | None:
    """The ladder asked for, in blocks; None if none is, or if it is wrong: then the rest still stands."""
    try:
        slices = parse_slices(form.text("slices"), form.k, "slices")
        short = form.tokens("short_tokens")
        if not slices and short is None:
            return None
        reserve = form.text("reserve") or 0
        return Ladder(pool=pool, slices=slices, shorts="auto" if short else 0, short_tokens=short, reserve=reserve, budget="blocks")
    except AeliusError as error:
        out["problems"].append(said(error))
        return None


def ladder_table(show: Show, pool: Pool, ladder: Ladder, out: dict[str, Any]) -> dict[str, Any]:
    """The ladder in tokens beside the ladder in blocks, each with as many short slices as it holds."""
    shorts: Any = "auto" if ladder.short_tokens else 0
    given = {"slices": ladder.slices, "shorts": shorts, "short_tokens": ladder.short_tokens, "reserve": ladder.reserve}
    both = {"tokens": Ladder(pool=pool, **given), "blocks": ladder}
    numbers = out["numbers"]["ladder"] = {
        name: {"slices": list(one.slices), "shorts": one.shorts, "left": one.left, "budget_kind": one.budget, "seats": one.seats,
               "total": one.total, "promised": one.promised, "reserve": one.reserved}
        for name, one in both.items()
    }  # fmt: skip
    rows = []
    for tokens in sorted(set(ladder.slices), reverse=True):
        rows.append([show.length(tokens), str(ladder.slices.count(tokens)), str(ladder.slices.count(tokens)), f"{ladder.cost(tokens):,}"])
    if ladder.short_tokens:
        rows.append(
            [
                f"{show.length(ladder.short_tokens)}, short",
                *(f"{one['shorts']:,}" for one in numbers.values()),
                f"{ladder.cost(ladder.short_tokens):,}",
            ]
        )
    rows.append(["seats", *(f"{one['seats']:,}" for one in numbers.values()), ""])
    rows.append(["left", *(plural(one["left"], name.removesuffix("s")) for name, one in numbers.items()), ""])
    over = [name for name, one in numbers.items() if one["left"] < 0]
    text = f"Overdrawn in {' and in '.join(over)}: the seats are those that can be held at once." if over else ""
    return table("The ladder", ["slice", "counted in tokens", "counted in blocks", "blocks each"], rows, text)


def add_choices(k: int, show: Show, pool: Pool, out: dict[str, Any]) -> None:
    """What each setting changed would make of the pool."""
    length = show.length(min(32 * k, pool.engine.max_model_len))
    now = pool.usable_blocks // pool.blocks(min(32 * k, pool.engine.max_model_len))
    rows = [["as it is", f"{pool.tokens:,}", "", f"{pool.max_concurrency:.2f}", f"{now:,}", ""]]
    found = vllm.changes(pool, k)
    for one in found:
        if one.refused:
            rows.append([one.what, "-", "", "", "", one.note])
        else:
            rows.append(
                [one.what, f"{one.tokens:,}", f"{one.tokens - pool.tokens:+,}", f"{one.full_requests:.2f}", f"{one.seats_32k:,}", one.note]
            )
    out["numbers"]["choices"] = [one._asdict() for one in found]
    head = ["changed", "pool, in tokens", "tokens gained", "full requests", f"seats of {length}", "to know"]
    out["sections"].append(table("What each choice costs", head, rows))


def of_llama(form: Form, show: Show, model: Model, out: dict[str, Any], rest: bool) -> None:
    """The rig under llama.cpp."""
    context = llama.context_of(form)
    given = llama.memory_of(form)
    found_memory = llama_memory(model, context)
    llama.check(found_memory, context)
    missing = llama.missing(given)
    out["asks"] += [asked(error) for error in missing]
    found = None if missing else llama.decide(model, context, given)
    out["numbers"]["fit"] = llama.numbers(model, found_memory, found)
    out["sections"].append(figures("What you have", llama.figures(show, found_memory, found)))
    lengths = vllm.lengths(found_memory.n_ctx, form.k)
    seats = llama.seats(found_memory, found, lengths)
    out["numbers"]["seats"] = seats
    wall = found.wall_tokens if found else None
    head = ["length", "at once in this context", *(["of them, by cache, at the wall"] if wall else [])]
    cells = [[show.length(e["tokens"] or 0), f"{e['seats']:,}", *([f"{e['cache_for_at_wall']:,}"] if wall else [])] for e in seats]
    out["sections"].append(table("Seats by length", head, cells))
    ladder_of_context(form, show, found_memory.n_ctx, out)
    out["headline"] = [f"The cache of {show.tokens(found_memory.n_ctx)} takes {show.size(found_memory.kv_bytes + found_memory.swa_bytes)}."]
    if found is None:
        return
    out["headline"].insert(0, f"{found.verdict}: {found.action}.")
    if wall is not None:
        out["headline"].append(f"The wall stands at {show.tokens(wall)}.")
    out["code"] = {"command": code.fit_command(form, context, given), "python": code.fit_python(form, model, context, given)}
    if rest and (worth := llama.worth_of(model, context, given, found)):
        out["numbers"]["worth"] = [{"flag": one.flag, "wall_tokens": one.wall_tokens, "gain_tokens": one.gain_tokens} for one in worth]
        out["sections"].append(llama.worth_table(worth))
    out["sections"].append(steps("Step by step", llama.steps(show, found_memory, found)))
    out["pictures"] = [drawn(llama.picture(show, found), show)]
    if found.compute_bytes is None:
        out["asks"].append(
            {
                "field": "compute_mib",
                "text": 'Compute buffers: MiB, both "compute buffer size" lines; measured for the Qwen 27B models only.',
            }
        )


def ladder_of_context(form: Form, show: Show, n_ctx: int, out: dict[str, Any]) -> None:
    """The ladder over a llama.cpp context, which hands out cells and so tokens."""
    try:
        slices = parse_slices(form.text("slices"), form.k, "slices")
        short = form.tokens("short_tokens")
        if not slices and short is None:
            return
        ladder = Ladder(pool=n_ctx, slices=slices, shorts="auto" if short else 0, short_tokens=short, reserve=form.text("reserve") or 0)
    except AeliusError as error:
        out["problems"].append(said(error))
        return
    out["numbers"]["ladder"] = {"tokens": {"shorts": ladder.shorts, "left": ladder.left, "seats": ladder.seats, "total": ladder.total}}
    rows = [[show.length(tokens), f"{ladder.places.count(tokens):,}"] for tokens in sorted(set(ladder.places), reverse=True)]
    rows += [["seats", f"{ladder.seats:,}"], ["left", plural(ladder.left, "token")]]
    out["sections"].append(table("The ladder", ["slice", "number"], rows, "One context shared by all slots; each seat needs a slot."))
