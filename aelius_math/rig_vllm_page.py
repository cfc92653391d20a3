"""A rig under vLLM as the page has it: the headline, the figures, the tables, and what a refusal leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aelius_math import rig_code as code
from aelius_math import rig_vllm as vllm
from aelius_math.budget import Budget
from aelius_math.ladder import Ladder
from aelius_math.ladder_slices import parse_slices
from aelius_math.model import Model
from aelius_math.rig_form import Form, Show, plural, said
from aelius_math.rig_sections import Figure, Section, drawn, figures, steps, table
from aelius_math.rig_vllm_drawn import account_table, card_pictures, lacking_picture, pool_picture, vllm_steps
from aelius_math.units import AeliusError
from aelius_math.vllm import DoesNotFit, Engine, Pool, fill, plan_pool, smallest
from aelius_math.vllm_plan import Plan, make_plan


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
        out["pictures"] += [drawn(picture, show) for picture in card_pictures(account)]
    out["code"] = {"command": code.pool_command(form, engine, available), "python": code.pool_python(form, model, engine, available, None)}
    plan = make_plan(model, engine)
    if engine.enable_prefix_caching is None and any(layer.recurrent for layer in model.layers):
        state = "off" if plan.mode == "none" else f"on, mode {plan.mode}"
        form.taken.append(f"Prefix caching: {state}, the default of vLLM {engine.version} for such a model")
    try:
        pool = fill(model, engine, plan, smallest(available[0] if len(available) == 1 else available, engine.tensor_parallel_size))
    except DoesNotFit as refused:
        refusal(form, show, model, engine, plan, refused, account, out)
    else:
        ladder = ladder_of(form, show, pool, out)
        if ladder is not None:
            out["code"]["python"] = code.pool_python(form, model, engine, available, ladder)
            out["code"]["command"] += "\n" + code.ladder_command(form, engine, available, ladder)
        answer(form.k, show, pool, out)
        if ladder is not None:
            out["sections"].append(ladder_table(show, pool, ladder, out))
        out["sections"].append(steps("Step by step", vllm_steps(pool, account)))
        out["pictures"] += [drawn(picture, show) for picture in pool_picture(pool)]
    if idle := len(form.cards()) - engine.tensor_parallel_size if account else 0:
        stand = "1 stands" if idle == 1 else f"{idle} stand"
        idles = f"of the {len(form.cards())} cards, {stand} idle."
        out["headline"].append(f"Tensor parallel is {engine.tensor_parallel_size}: {idles}")
        out["short"] = f"{out['short'].removesuffix('.')}; {idles}"
    if rest:
        choices = choices_table(form.k, show, model, engine, plan, min(available), out)
        last = len(out["sections"]) - (bool(out["sections"]) and out["sections"][-1]["kind"] == "steps")
        out["sections"].insert(last, choices)


def in_short(pool: Pool, show: Show, k: int) -> str:
    """The answer in one line."""
    length = min(32 * k, pool.engine.max_model_len)
    return f"{plural(pool.usable_blocks // pool.blocks(length), 'conversation')} of {show.length(length)} at once."


def answer(k: int, show: Show, pool: Pool, out: dict[str, Any]) -> None:
    """Headline, figures and seats of a pool."""
    engine = pool.engine
    out["numbers"]["pool"] = pool.numbers
    seats = out["numbers"]["seats"] = vllm.seats(pool, k)
    out["short"] = in_short(pool, show, k)
    longest = f"one request may be {engine.max_model_len:,} tokens long."
    out["headline"] = [f"{pool.tokens:,} tokens are live at once for everybody; {longest}", out["short"]]
    if len(pool.groups) > 1 and not pool.plan.rules.tokens_from_concurrency:
        what = "which are those of one group's blocks: more fit than that"
        out["headline"][0] = f"vLLM {engine.version} logs {pool.tokens:,} tokens, {what}; {longest}"
    rows = [
        Figure("Pool", f"{pool.tokens:,} tokens", "as the engine logs it"),
        Figure("Longest request", show.tokens(engine.max_model_len), f"{pool.max_concurrency:.2f} of them fit at a time"),
        Figure("Blocks", f"{pool.num_blocks:,}", f"{pool.usable_blocks:,} usable"),
        Figure("A full request takes", plural(pool.blocks_per_request, "block")),
        *block_figures(show, pool.model, engine, pool.plan),
    ]
    if pool.fixed_blocks_per_request:
        fixed = pool.fixed_blocks_per_request
        rows.append(
            Figure("Of these, recurrent state", f"{fixed:,} blocks", f"the room of {fixed * pool.block_size:,} tokens, however short")
        )
    out["sections"].insert(0, figures("What you have", rows))
    out["sections"].append(seats_table(show, seats, "Seats by length"))
    if pool.notes:
        out["sections"].append({"kind": "list", "title": "To know", "rows": list(pool.notes)})


def block_figures(show: Show, model: Model, engine: Engine, plan: Plan) -> list[Figure]:
    """What a block and a conversation cost, however large the pool."""
    cards, short = engine.tensor_parallel_size, plan.blocks(1)
    return [
        Figure("Tokens in a block", f"{plan.block_size:,}"),
        Figure("Bytes of a block", show.exact(plan.block_size_bytes), "on one card" if cards > 1 else ""),
        *model_figures(show, model, plan.dtype, bool(engine.num_speculative_tokens)),
        Figure(
            "The shortest conversation", plural(short, "block"),
            f"{show.size(short * plan.block_size_bytes * cards)}" + (f" over {cards} cards" if cards > 1 else ""),
        ),
    ]  # fmt: skip


def seats_table(show: Show, seats: list[dict[str, int]], title: str) -> Section:
    cells = [[show.length(e["tokens"]), f"{e['blocks']:,}", f"{e['seats']:,}", f"{e['seats_by_tokens']:,}"] for e in seats]
    text = "Conversations that live at once, all of one length. The engine hands out blocks; tokens alone promise too many."
    return table(title, ["length", "blocks each", "seats", "by tokens alone"], cells, text)


def refusal(
    form: Form, show: Show, model: Model, engine: Engine, plan: Plan, refused: DoesNotFit, account: Budget | None, out: dict[str, Any]
) -> None:
    """What is left to say where vLLM would not start: what is lacking, what a block costs, and the same with the longest that fits."""
    there, most = int(str(refused.value)), refused.longest_max_model_len
    out["numbers"]["pool"] = {"name": model.name, **refused.numbers, "max_model_len": engine.max_model_len}
    fits = f"the longest request that fits is {show.tokens(most)}" if most else "not even one token fits"
    out["short"] = f"Refused: {fits}."
    out["headline"] = [
        f"vLLM would refuse to start: one request of {engine.max_model_len:,} tokens does not fit.",
        f"It needs {show.size(refused.needed_bytes)} of cache on a card and has {show.size(there)}; {fits}.",
    ]
    rows = [
        Figure("Needed", show.exact(refused.needed_bytes), "on one card, for one full request"),
        Figure("There is", show.exact(there)),
        Figure("Longest that fits", show.tokens(most) if most else "nothing"),
        Figure("A full request takes", plural(refused.blocks_per_request, "block"), f"the memory holds {refused.num_blocks:,}"),
        *block_figures(show, model, engine, plan),
    ]
    out["sections"].insert(0, figures("What is lacking", rows))
    out["pictures"] += [drawn(lacking_picture(refused.needed_bytes, there), show)]
    if not most:
        return
    try:
        pool = plan_pool(model, replace(engine, max_model_len=most), there)
    except AeliusError:  # a setting beside the length does not go with it
        return
    seats = vllm.seats(pool, form.k)
    out["sections"].append(seats_table(show, seats, f"Seats by length, if max_model_len were {most:,}"))
    out["sections"].append(steps(f"Step by step, if max_model_len were {most:,}", vllm_steps(pool, account)))


def ladder_of(form: Form, show: Show, pool: Pool, out: dict[str, Any]) -> Ladder | None:
    """The ladder asked for, in blocks; None if none is, or if it is wrong: then the rest still stands."""
    try:
        slices = parse_slices(form.text("slices"), form.k, "slices")
        short = form.tokens("short_tokens")
        if not slices and short is None:
            return None
        longest = pool.engine.max_model_len
        for name, sizes in (("slices", slices), ("short_tokens", (short or 0,))):
            if any(size > longest for size in sizes):
                raise AeliusError(name, form.text(name), f"none longer than the longest request, {show.tokens(longest)}")
        reserve = form.text("reserve") or 0
        return Ladder(pool=pool, slices=slices, shorts="auto" if short else 0, short_tokens=short, reserve=reserve, budget="blocks")
    except AeliusError as error:
        out["problems"].append(said(error, form))
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


def choices_table(k: int, show: Show, model: Model, engine: Engine, plan: Plan, available: int, out: dict[str, Any]) -> Section:
    """What each setting changed would make of the same memory."""
    now, *found = vllm.changes(model, engine, plan, available, k)
    out["numbers"]["choices"] = [one._asdict() for one in found]
    rows = []
    for one in (now, *found):
        if one.refused:
            rows.append([one.what, "-", "", "", "", one.note])
        else:
            gained = "" if one is now or now.refused else f"{one.tokens - now.tokens:+,}"
            rows.append([one.what, f"{one.tokens:,}", gained, f"{one.full_requests:.2f}", f"{one.seats_32k:,}", one.note])
    length = show.length(min(32 * k, engine.max_model_len))
    return table("What each choice costs", ["changed", "pool, in tokens", "gained", "full requests", f"seats of {length}", "to know"], rows)
