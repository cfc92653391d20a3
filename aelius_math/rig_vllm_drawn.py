"""A rig under vLLM, drawn: the derivation step by step, the cards line by line, the cards and the pool as pictures."""

from __future__ import annotations

from typing import Any

from aelius_math.budget import Budget
from aelius_math.rig_form import Show
from aelius_math.rig_sections import Part, Picture, step, table
from aelius_math.vllm import Pool

STEP_NOTES = {
    "h": "03_fp8_and_second_card#derive-when-splitting-stops-paying", "t": "02_why_it_fits#derive-what-grows",
    "S": "02_why_it_fits#derive-what-stays", "c": "01_two_numbers#derive", "T": "04_why_289661#derive-the-pair",
}  # fmt: skip
"""Where a step of vLLM's derivation is explained, if not where the note on the pool goes through the engine's arithmetic."""
ENGINE_STEPS = "04_why_289661#derive-the-engines-own-arithmetic"
CARD_STEPS = "05_image_model#the-card-line-by-line"


def vllm_steps(pool: Pool, account: Budget | None) -> list[dict[str, str]]:
    """The derivation: the cards' account where there is one, then the engine's arithmetic."""
    rows = []
    if account is not None:
        source = "vllm/v1/worker/gpu_worker.py, determine_available_memory"
        least = min(account.available_bytes)
        parts = [
            str(line.size_bytes) for line in account.lines if line.card == account.fullest and line.size_bytes < 0 and line.what != "tenant"
        ]
        asked_ = account.requested_bytes[account.available_bytes.index(least)]
        rows.append(step("A", "memory for the cache on the fullest card", "asked for - weights - the rest", f"{asked_} {' '.join(parts)}".replace(" -", " - "),
                         f"{least:,} bytes", source, CARD_STEPS))  # fmt: skip
    for one in pool.steps:
        value = f"{one.value:,.3f}" if isinstance(one.value, float) else f"{one.value:,}"
        rows.append(
            step(
                one.symbol,
                one.name,
                one.formula,
                one.numbers,
                f"{value} {one.unit.removesuffix('s') if value == '1' else one.unit}",
                one.source,
                STEP_NOTES.get(one.symbol, ENGINE_STEPS),
            )
        )
    return rows


def account_table(show: Show, account: Budget) -> dict[str, Any]:
    """Each card's memory, line by line."""
    names = {"visible": "what CUDA sees", "tenant": "others", "activation peak": "activations, CUDA, graphs"}
    rows = [
        [f"{line.card}, {names.get(line.what, line.what)}", show.size(line.size_bytes), f"{line.size_bytes:,}", line.source]
        for line in account.lines
        if line.what not in ("non-torch", "CUDA graphs") and (line.size_bytes or line.what != "tenant")
    ]
    return table(
        "The cards, line by line",
        ["card and line", "size", "bytes", "to know"],
        rows,
        f"The engine gives every card as much as {account.fullest} has.",
    )


def card_pictures(account: Budget) -> list[Picture]:
    """Each card, from what is on it to what the engine cannot reach."""
    found = []
    kinds = {"weights": "weights", "activation peak": "extra", "tenant": "tenant"}
    names = {"activation peak": "activations, CUDA, graphs", "tenant": "others"}
    for number, card in enumerate(dict.fromkeys(line.card for line in account.lines)):
        lines = {line.what: line.size_bytes for line in account.lines if line.card == card}
        parts = [Part(names.get(what, what), -lines.get(what, 0), kind) for what, kind in kinds.items()]
        parts.append(Part("KV cache", min(account.available_bytes), "kv"))
        parts.append(Part("out of the engine's reach", account.stranded_bytes[number], "free"))
        found.append(Picture(card, lines["visible"], parts))
    return found


def pool_picture(pool: Pool) -> list[Picture]:
    """The pool in blocks; none where the engine is told how many there are, and so the bytes are not the memory's."""
    each, request = pool.block_size_bytes, min(pool.blocks_per_request, pool.usable_blocks)
    state = min(pool.fixed_blocks_per_request, request)
    parts = [
        Part(f"a full request's tokens, {request - state:,} blocks", (request - state) * each, "kv"),
        Part(f"its recurrent state, {state:,} blocks", state * each, "state"),
        Part(f"for others, {pool.usable_blocks - request:,} blocks", (pool.usable_blocks - request) * each, "others"),
        Part("the null block", each, "draft"),
        Part("less than a block", pool.available_bytes - pool.num_blocks * each, "free"),
    ]
    whole = pool.engine.num_gpu_blocks_override is None
    return [Picture("The KV cache of one card", pool.available_bytes, parts)] if whole else []


def lacking_picture(needed: int, there: int) -> Picture:
    """What one full request needs, and how much of it is there."""
    return Picture("One full request, on one card", needed, [Part("there is", there, "kv"), Part("lacking", needed - there, "lacking")])
