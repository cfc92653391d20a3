"""A boot log for the page "Your rig": sentences, pictures of the memory, the settings that fit, what binds, what to change."""

from __future__ import annotations

import re
from typing import Any

from aelius_math import catalogue
from aelius_math import rig_vllm as vllm
from aelius_math.log_known import catalogue_name, known_model
from aelius_math.log_sentences import STATUS
from aelius_math.logs import read
from aelius_math.model import Model
from aelius_math.rig_form import LABELS, Show, listed, on_off, pasted, plural
from aelius_math.rig_log_llamacpp import of_llama
from aelius_math.rig_sections import Figure, Part, Picture, Section, drawn, figures, markdown, table
from aelius_math.rig_vllm_drawn import lacking_picture
from aelius_math.units import GIB, MIB, AeliusError
from aelius_math.vllm import plan_pool
from aelius_math.vllm_explain import Candidate, explain

MOST_BOOTS, MOST_CANDIDATES = 5, 12
FIXED = (
    "version", "tensor_parallel_size", "kv_cache_dtype", "enable_prefix_caching", "num_speculative_tokens", "mamba_cache_mode",
    "mamba_ssm_cache_dtype", "max_num_batched_tokens", "gdn_prefill_backend",
)  # fmt: skip
"""What a log states of vLLM's settings, under the names of Engine's fields."""


def explain_log(text: str, config: str | None = None, k: int = 1024, unit: str = "GiB") -> dict[str, Any]:
    """A boot log in sentences, figures and pictures; `config` is the text of the model's config.json, where the catalogue
    does not have it. The last boots of the log, newest first; `settings` opens one of them as a rig.

    >>> log = '''INFO [kv_cache_utils.py:1733] GPU KV cache size: 289,661 tokens
    ... INFO [kv_cache_utils.py:1734] Maximum concurrency for 262,144 tokens per request: 1.10x
    ... INFO [interface.py:606] Setting attention block size to 1616 tokens.'''
    >>> found = explain_log(log)
    >>> found["boots"][0]["headline"][0], found["asks"][0]["field"]
    ('You have a pool of 289,661 tokens, as the engine counts for requests of 262,144.', 'config')
    """
    out: dict[str, Any] = {
        "schema": 1,
        "asks": [],
        "taken": [],
        "problems": [],
        "boots": [],
        "numbers": None,
        "markdown": "",
        "title": "The log",
    }
    show = Show(k, unit)
    try:
        found = read(text)
    except AeliusError as error:
        out["problems"].append({"field": "log", "text": f"This is no boot log that is known: expected {error.expected}."})
        return out
    out["numbers"] = found
    if len(found["boots"]) > MOST_BOOTS:
        out["taken"].append(f"The last {MOST_BOOTS} of {len(found['boots'])} boots are shown.")
    if len(found["boots"]) > 1:
        out["taken"].append("The newest boot comes first.")
    for number, boot in list(enumerate(found["boots"], 1))[: -MOST_BOOTS - 1 : -1]:
        model = model_of(boot, config, out)
        explained = of_vllm(boot, model, show, out) if boot["engine"] == "vllm" else told(boot, *of_llama(boot, model, show))
        if model is not None and explained["settings"] and config:
            explained["settings"] |= {"model": config} if config in catalogue.names() else {"config": config, "model": ""}
        explained["notes"] = boot["notes"]
        if len(found["boots"]) > 1:
            explained["title"] = f"Boot {number} of {len(found['boots'])}: {explained['title']}"
        out["boots"].append({name: value if name in ("settings", "code") else in_unit(value, show) for name, value in explained.items()})
    parts = [markdown(one["title"], one["headline"] + one["notes"], one["sections"], {}) for one in out["boots"]]
    out["markdown"] = "\n".join(parts)
    return out


LOGGED = re.compile(r"(-?\d[\d,]*(?:\.\d+)?) (GiB|MiB)\b")


def in_unit(value: Any, show: Show) -> Any:
    """Texts with their sizes in the unit that the reader chose; a log prints GiB and MiB.

    >>> in_unit(["5.24 GiB are there"], Show(1024, "GB")), in_unit("5.24 GiB are there", Show(1024, "GiB"))
    (['5.63 GB are there'], '5.24 GiB are there')
    """
    if show.unit == "GiB":
        return value
    if isinstance(value, str):
        sizes = {"GiB": GIB, "MiB": MIB}
        return LOGGED.sub(lambda found: show.size(int(float(found[1].replace(",", "")) * sizes[found[2]])), value)
    if isinstance(value, dict):
        return {name: in_unit(one, show) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [in_unit(one, show) for one in value]
    return value


def model_of(boot: dict[str, Any], config: str | None, out: dict[str, Any]) -> Model | None:
    """The boot's model: the config that was given, else the catalogue's, by name; else it is asked for."""
    if config and config.strip():
        try:
            if config in catalogue.names():
                return listed(config, "")
            return pasted(config, boot.get("dtype") or "")
        except AeliusError as error:
            if not out["problems"]:
                out["problems"].append({"field": "config", "text": f"{LABELS['config']}: {error}."})
            return None
    model = known_model(boot)
    if model is not None:
        return model
    if not any(ask["field"] == "config" for ask in out["asks"]):
        why = f"the catalogue does not have {boot['model']}" if boot["model"] else "the log does not name its model"
        out["asks"].append(
            {"field": "config", "text": f"{LABELS['config']}: {why}. Choose it, or give its config.json: the settings follow from it."}
        )
    return None


def of_vllm(boot: dict[str, Any], model: Model | None, show: Show, out: dict[str, Any]) -> dict[str, Any]:
    """A boot of vLLM."""
    derived, sections = boot["derived"], [stated(boot, show)]
    candidates: tuple[Candidate, ...] = ()
    settings = rig_settings(boot, model)
    if derived["not_derived"]:
        sections.append(table("Settings that fit", ["settings"], [], derived["not_derived"]))
    elif model is not None and boot["tokens"] and boot["max_model_len"] and boot["status"] != "refused":
        candidates = settle(boot, model, sections, out)
    pictures: list[Picture] = []
    if boot["status"] == "refused":
        sections += refused_changes(boot)
        pictures += refused_picture(boot)
    if model is not None and len(candidates) == 1:
        (only,) = candidates
        pool = plan_pool(model, only.engine, only.available_bytes)
        settings |= {
            "available": f"{only.available_bytes} B", "num_speculative_tokens": str(only.engine.num_speculative_tokens),
            "kv_cache_dtype": only.engine.kv_cache_dtype, "tensor_parallel_size": str(only.engine.tensor_parallel_size),
            "enable_prefix_caching": on_off(only.engine.enable_prefix_caching),
        }  # fmt: skip
        pictures.append(
            blocks_picture(
                pool.num_blocks, pool.blocks_per_request, pool.fixed_blocks_per_request, pool.block_size_bytes, pool.available_bytes
            )
        )
        length = min(32 * show.k, pool.engine.max_model_len)
        rows = [
            [one.what, "-", "", one.note] if one.refused else [one.what, f"{one.tokens:,}", f"{one.seats_32k:,}", one.note]
            for one in vllm.changes(model, pool.engine, pool.plan, pool.available_bytes, show.k)[1:]
        ]
        now = ["as it is", f"{pool.tokens:,}", f"{pool.usable_blocks // pool.blocks(length):,}", ""]
        sections.append(table("What to change", ["changed", "pool, in tokens", f"seats of {show.length(length)}", "to know"], [now, *rows]))
    elif derived["num_blocks"] and derived["blocks_per_request"] and boot["available_kv_gib"]:
        available = int(boot["available_kv_gib"] * GIB)
        each = available // derived["num_blocks"]
        pictures.append(
            blocks_picture(derived["num_blocks"], derived["blocks_per_request"], derived["fixed_blocks_per_request"] or 0, each, available)
        )
    if boot["model_loading_gib"] and boot["available_kv_gib"]:
        weights, cache = int(boot["model_loading_gib"] * GIB), int(boot["available_kv_gib"] * GIB)
        pictures.insert(
            0,
            Picture("Weights and cache of one card", weights + cache, [Part("weights", weights, "weights"), Part("KV cache", cache, "kv")]),
        )
    return told(boot, sections, [drawn(picture, show) for picture in pictures], settings)


def refused_changes(boot: dict[str, Any]) -> list[Section]:
    """What each flag would let the same memory hold."""
    rows = [[one["flag"], f"{one['longest_max_model_len']:,}", f"{one['gain_tokens']:+,}"] for one in boot["derived"]["flags"]]
    if boot["longest_max_model_len"]:
        rows.insert(0, [f"--max-model-len {boot['longest_max_model_len']}", f"{boot['longest_max_model_len']:,}", ""])
    return [table("What to change", ["changed", "longest request then", "tokens gained"], rows)] if rows else []


def refused_picture(boot: dict[str, Any]) -> list[Picture]:
    """What one full request needs, and how much of it is there."""
    if boot["needed_gib"] is None or boot["available_kv_gib"] is None or not 0 <= boot["available_kv_gib"] < boot["needed_gib"]:
        return []
    return [lacking_picture(int(boot["needed_gib"] * GIB), int(boot["available_kv_gib"] * GIB))]


def told(boot: dict[str, Any], sections: list[Section], pictures: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    name = boot["model"] or "a model that the log does not name"
    version = f" {boot['version']}" if boot["version"] else ""
    moved = ", but not whole on the device" if boot["verdict"] == "evict" else ""
    title = f"{boot['engine']}{version}, {name}: {STATUS[boot['status']].removesuffix('.')}{moved}"
    return {"title": title, "headline": boot["sentences"], "sections": sections, "pictures": pictures, "settings": settings, "code": {}}


def stated(boot: dict[str, Any], show: Show) -> Section:
    """What the log states and what follows at once, in figures."""
    derived = boot["derived"]
    rows = [
        Figure("Pool", f"{boot['tokens']:,} tokens") if boot["tokens"] else None,
        Figure("Longest request", show.tokens(boot["max_model_len"])) if boot["max_model_len"] else None,
        Figure("Memory for the cache", f"{boot['available_kv_gib']:g} GiB", "on the card that binds") if boot["available_kv_gib"] else None,
        Figure("One full request needs", f"{boot['needed_gib']:g} GiB") if boot["needed_gib"] else None,
        Figure("Longest that fits", show.tokens(boot["longest_max_model_len"])) if boot["longest_max_model_len"] else None,
        Figure("Blocks", f"{derived['num_blocks']:,}") if derived["num_blocks"] else None,
        Figure("A full request takes", plural(derived["blocks_per_request"], "block")) if derived["blocks_per_request"] else None,
        Figure("Tokens in a block", f"{derived['block_size']:,}") if derived.get("block_size") else None,
        Figure("What binds", derived["binds"], f"at most {derived['most_conversations']:,} conversations")
        if derived.get("binds")
        else None,
        Figure("What binds", "the memory for the cache", "one full request needs more") if boot["status"] == "refused" else None,
    ]
    return figures("What it says", [row for row in rows if row is not None])


def settle(boot: dict[str, Any], model: Model, sections: list[Section], out: dict[str, Any]) -> tuple[Candidate, ...]:
    """The settings that print this pool."""
    fixed = {name: boot.get(name) for name in FIXED if boot.get(name) is not None}
    words = {"max_concurrency": boot["max_concurrency"], "block_size": boot["block_size"], **fixed}
    other_rank, alone = False, boot["tensor_parallel_size"] == 1
    try:
        found = explain(boot["tokens"], boot["max_model_len"], model, available_kv_gib=boot["available_kv_gib"], **words)
        if not found.candidates and boot["available_kv_gib"] and not alone:  # the memory line may be another rank's
            found = explain(boot["tokens"], boot["max_model_len"], model, **words)
            other_rank = bool(found.candidates)
    except AeliusError as error:
        out["problems"].append({"field": error.field, "text": f"The settings could not be found: {error}."})
        return ()
    rows = [
        [
            ", ".join(f"{key} {value}" for key, value in one.settings.items() if value is not None) or "as the log states",
            f"{one.num_blocks:,}", f"{one.blocks_per_request:,}",
        ]
        for one in found.candidates[:MOST_CANDIDATES]
    ]  # fmt: skip
    if not rows:
        text = f"None of the {found.tried:,} tried prints it: another model, or a setting that is not known here."
    elif len(rows) == 1:
        text = "Of all that were tried, only these print the pool."
    else:
        text = f"{len(found.candidates):,} of {found.tried:,} tried print it; the log does not say which."
    if other_rank:
        text += (
            f" They do not go with the {boot['available_kv_gib']:g} GiB of the memory line: it is another card's, or the model is another."
        )
    stated_ = ", ".join(f"{name} {value}" for name, value in fixed.items())
    sections.append(
        table(
            "Settings that fit",
            ["settings", "blocks", "a full request"],
            rows,
            text + (f" Stated by the log: {stated_}." if stated_ else ""),
        )
    )
    return found.candidates


def blocks_picture(blocks: int, request: int, state: int, each: int, available: int) -> Picture:
    """The cache in blocks: one full request, and what is left for others."""
    request = min(request, blocks - 1)
    state = min(state, request)
    parts = [
        Part(f"a full request's tokens, {request - state:,} blocks", (request - state) * each, "kv"),
        Part(f"its recurrent state, {state:,} blocks", state * each, "state"),
        Part(f"for others, {blocks - 1 - request:,} blocks", (blocks - 1 - request) * each, "others"),
        Part("the null block", each, "draft"),
        Part("less than a block", available - blocks * each, "free"),
    ]
    return Picture("The KV cache of one card", max(available, blocks * each), parts)


def rig_settings(boot: dict[str, Any], model: Model | None) -> dict[str, Any]:
    """The boot as settings of a rig; what the log does not say stays open."""
    name = catalogue_name(boot["model"]) if model is not None else None
    given = {
        "engine": "vllm", "memory": "available", "model": name or "", "available": f"{boot['available_kv_gib']} GiB" if boot["available_kv_gib"] else "",
        "enable_prefix_caching": on_off(boot["enable_prefix_caching"]),
    }  # fmt: skip
    for field in (
        "version", "max_model_len", "tensor_parallel_size", "kv_cache_dtype", "num_speculative_tokens", "max_num_batched_tokens",
        "gdn_prefill_backend",
    ):  # fmt: skip
        given[field] = "" if boot.get(field) is None else str(boot[field])
    return given
