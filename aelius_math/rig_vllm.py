"""A rig under vLLM: memory, pool, seats, and what each choice costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from aelius_math.budget import NOTHING, Budget, Card, Part, budget, default_utilisation
from aelius_math.cache import GatedDeltaNet, KimiDelta
from aelius_math.model import Model
from aelius_math.rig_form import Form, Missing, cards
from aelius_math.units import GIB, AeliusError
from aelius_math.vllm import DoesNotFit, Engine, Pool, plan_pool
from aelius_math.vllm_engine import PREFILLS
from aelius_math.vllm_plan import Plan
from aelius_math.vllm_versions import rules_for

LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""In K: the lengths whose seats are counted."""


class Change(NamedTuple):
    """One setting changed: what, the pool it makes, and what should be known about it."""

    what: str
    tokens: int
    full_requests: float
    seats_32k: int
    note: str
    refused: bool = False


def engine_of(form: Form, model: Model) -> Engine:
    """vLLM's settings; what is left open is the engine's own, and said."""
    given: dict[str, Any] = {}
    version = form.text("version")
    if version:
        given["version"] = version
    else:
        form.taken.append(f"Version: {Engine.__dataclass_fields__['version'].default}, whose rules were checked")
    most = form.tokens("max_model_len")
    if most is None:
        most = model.max_position_embeddings
        if most is None:
            raise Missing("max_model_len", "tokens of the longest request: the config states none")
        form.taken.append(f"Longest request: {most:,} tokens, the model's own limit, as vLLM takes it")
    given["tensor_parallel_size"] = form.whole("tensor_parallel_size", 1, "1, vLLM's default")
    given["num_speculative_tokens"] = form.whole("num_speculative_tokens", 0, "0, vLLM's default: none are drafted")
    if given["num_speculative_tokens"] and not model.mtp_layers:
        expected = "0: the model has no MTP layers. A drafter of its own is planned on the command line, with --draft"
        raise AeliusError("num_speculative_tokens", given["num_speculative_tokens"], expected)
    for name in ("max_num_batched_tokens", "max_num_seqs"):
        given[name] = form.whole(name)
    given["kv_cache_dtype"] = form.text("kv_cache_dtype") or "auto"
    if given["kv_cache_dtype"] == "auto":
        form.taken.append("KV cache dtype: auto, so the checkpoint's or the model's own")
    given["enable_prefix_caching"] = form.choice("enable_prefix_caching")
    for name in PREFILLS:
        given[name] = form.text(name) or None
    return Engine(max_model_len=most, **given)


def offered(model: Model, version: str) -> list[str]:
    """The settings that few rigs have: the prefill kernel, where it decides how many blocks are set aside.

    >>> from aelius_math import catalogue
    >>> [offered(catalogue.load("qwen3.8-27b"), version) for version in ("0.32.0", "0.33.0")]
    [[], ['gdn_prefill_backend']]
    """
    rules = rules_for(version)
    deltas = ((rules.gdn_checkpoint, GatedDeltaNet), (rules.kda_checkpoint, KimiDelta))
    return [
        name
        for name, (decides, kind) in zip(PREFILLS, deltas, strict=True)
        if decides and any(isinstance(layer, kind) for layer in model.layers)
    ]


def memory_of(form: Form, engine: Engine) -> tuple[list[int], Budget | None]:
    """Bytes for the KV cache, card by card; and the account that they come from, where cards were given."""
    if form.text("memory") != "cards":
        sizes = form.sizes("available")
        if not sizes:
            raise Missing("available", 'the size in the engine\'s line "Available KV cache memory", or cards instead')
        if len(sizes) not in (1, engine.tensor_parallel_size):
            raise AeliusError("available", form.text("available"), f"one size, or one for each of {engine.tensor_parallel_size} cards")
        return sizes, None
    given = form.cards()
    if not given:
        raise Missing("cards", "at least one card")
    if engine.tensor_parallel_size > len(given):
        raise AeliusError("tensor_parallel_size", engine.tensor_parallel_size, f"at most {len(given)}, the cards there are")
    count = engine.tensor_parallel_size
    bare = [card_of(form, card, number) for number, card in enumerate(given[:count], 1)]
    weights, extra = each(form, "weights", count), each(form, "extra", count)
    used = [
        replace(card, weights=Part(weights[index], "measured", "typed here"), activation_peak=Part(extra[index], "estimated", "typed here"))
        for index, card in enumerate(bare)
    ]
    share = form.text("gpu_memory_utilization") or str(default_utilisation(engine.version))
    if not form.text("gpu_memory_utilization"):
        form.taken.append(f"Share of the card (gpu_memory_utilization): {share}, the default of vLLM {engine.version}")
    try:
        fraction = float(share)
    except ValueError:
        raise AeliusError("gpu_memory_utilization", share, "a number above 0, at most 1, such as 0.9") from None
    try:
        account = budget(used, gpu_memory_utilization=fraction, version=engine.version)
    except AeliusError as error:
        if error.field != "gpu_memory_utilization" or form.text(error.field):
            raise
        raise AeliusError(error.field, f"{share}, vLLM's default", error.expected) from None
    return list(account.available_bytes), account


def each(form: Form, name: str, count: int) -> list[int]:
    """A size for each card: one for all, or one each."""
    sizes = form.sizes(name)
    if not sizes:
        where = {
            "weights": 'vLLM\'s line "Model loading took ... GiB"',
            "extra": "what vLLM takes beside weights and cache: activations, CUDA, graphs",
        }
        raise Missing(name, f"a size, on one card: {where[name]}")
    if len(sizes) not in (1, count):
        raise AeliusError(name, form.text(name), f"one size, or one for each of {count} cards")
    return sizes * count if len(sizes) == 1 else sizes


def card_of(form: Form, given: dict[str, str], number: int) -> Card:
    """One card and who else lives on it; the model comes to it later."""
    name, typed = given.get("card", ""), form.bytes_of(given.get("visible", ""), f"visible {number}")
    if typed is not None:
        visible = Part(typed, "measured", "typed here")
    elif name in cards():
        visible = Part(form.bytes_of(cards()[name].visible, "visible") or 0, "measured", cards()[name].source)
    elif name:
        raise AeliusError("cards", name, "a card of the list: " + ", ".join(cards()))
    else:
        raise Missing(f"visible {number}", "a card of the list, or its size")
    tenant = form.bytes_of(given.get("tenant", ""), f"tenant {number}")
    return Card(
        name=f"card {number}", visible=visible, weights=NOTHING, non_torch=NOTHING, activation_peak=NOTHING, cuda_graphs=NOTHING,
        tenant=NOTHING if tenant is None else Part(tenant, "measured", "typed here"),
    )  # fmt: skip


def lengths(most: int, k: int) -> list[int]:
    """The lengths of the table of seats: powers of two in K below the limit, and the limit."""
    return [*[number * k for number in LENGTHS if number * k < most], most]


def seats(pool: Pool, k: int) -> list[dict[str, int]]:
    """Conversations that all live at once, by their length: in blocks as the engine counts, and by tokens alone."""
    return [
        {"tokens": tokens, "blocks": blocks, "seats": pool.usable_blocks // blocks, "seats_by_tokens": pool.tokens // tokens}
        for tokens in lengths(pool.engine.max_model_len, k)
        for blocks in (pool.blocks(tokens),)
    ]


def changes(model: Model, engine: Engine, plan: Plan, available: int, k: int) -> list[Change]:
    """The pool as it is, then with one setting changed, all else as it is."""
    now = changed(model, "as it is", engine, available, "", k)
    return [now, *(changed(model, what, other, size, note, k) for what, other, size, note in variants(model, engine, plan, available))]


def variants(model: Model, engine: Engine, plan: Plan, available: int) -> Iterator[tuple[str, Engine, int, str]]:
    recurrent = any(layer.recurrent for layer in model.layers)
    if engine.num_speculative_tokens:
        yield "no draft tokens", replace(engine, num_speculative_tokens=0, speculative_method=None), available, "slower decoding"
    if model.mtp_layers:
        more = engine.num_speculative_tokens + 1
        yield f"MTP with {plural_drafts(more)}", replace(engine, num_speculative_tokens=more), available, ""
    if recurrent and any(not layer.recurrent for layer in model.layers):
        on = plan.mode == "none"
        note = "shared beginnings are computed once" if on else "every conversation is computed from its start"
        yield f"prefix caching {'on' if on else 'off'}", replace(engine, enable_prefix_caching=on, mamba_cache_mode=None), available, note
    if plan.mode == "align":
        for name in offered(model, engine.version):
            own = "flashkda" if name.startswith("kda") else "flashinfer"
            other = "triton" if getattr(engine, name) == own else own
            given: dict[str, Any] = {name: other}
            yield f"{other} prefill", replace(engine, **given), available, f"{name}; which one a card takes is in the notes"
    if plan.dtype in ("bf16", "fp16", "fp32"):
        yield "fp8 cache", replace(engine, kv_cache_dtype="fp8"), available, "recurrent state keeps its own dtype" if recurrent else ""
    else:
        dtype = model.dtype or "bfloat16"
        yield "16-bit cache", replace(engine, kv_cache_dtype={"bf16": "bfloat16", "fp16": "float16"}.get(dtype, "bfloat16")), available, ""
    cards = engine.tensor_parallel_size
    same = "each card with the same memory for the cache; its weights are spread too, so this is the least"
    yield f"{2 * cards} cards", replace(engine, tensor_parallel_size=2 * cards), available, same
    if cards % 2 == 0:
        yield (
            f"{plural_cards(cards // 2)}",
            replace(engine, tensor_parallel_size=cards // 2),
            available,
            ("with the same memory for the cache, which a card that carries more weights may not have"),
        )
    yield "one GiB more on each card", engine, available + GIB, ""


def plural_drafts(count: int) -> str:
    return f"{count} draft token" + ("s" if count > 1 else "")


def plural_cards(count: int) -> str:
    return f"{count} card" + ("s" if count > 1 else "")


def changed(model: Model, what: str, engine: Engine, available: int, note: str, k: int) -> Change:
    try:
        pool = plan_pool(model, engine, available)
    except DoesNotFit as refused:
        most = refused.longest_max_model_len
        return Change(what, 0, 0.0, 0, f"refused: at most {most:,} tokens in one request", True)
    except AeliusError as error:
        return Change(what, 0, 0.0, 0, f"not possible: {error}", True)
    length = min(32 * k, engine.max_model_len)
    return Change(what, pool.tokens, pool.max_concurrency, pool.usable_blocks // pool.blocks(length), note)
