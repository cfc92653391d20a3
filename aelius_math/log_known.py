"""What a log's model adds, where the catalogue has it: the settings that print the log, and what other flags would do.

A log names its model by a path or a repository; the catalogue's model is taken by that name, and said to be. All that
follows from it must print the figures of the log, or it is not used.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from aelius_math import catalogue
from aelius_math.model import Model
from aelius_math.units import GIB, AeliusError
from aelius_math.vllm import DoesNotFit, Engine, plan_pool
from aelius_math.vllm_explain import Candidate, Explanation, explain
from aelius_math.vllm_plan import make_plan

CARDS = (1, 2, 4, 8)
SETTINGS = (
    "tensor_parallel_size", "kv_cache_dtype", "num_speculative_tokens", "speculative_method", "enable_prefix_caching",
    "mamba_cache_mode", "max_num_batched_tokens", "mamba_ssm_cache_dtype", "gdn_prefill_backend",
)  # fmt: skip
NAMES = re.compile(r"[^a-z0-9.]+")


def catalogue_name(model: object) -> str | None:
    """The catalogue's name of the model that a log names; None where it has none by that name.

    >>> catalogue_name("nvidia/Qwen3.6-27B-NVFP4"), catalogue_name("~/.cache/huggingface/qwen3.6-27b-autoround-int4")
    ('qwen3.6-27b', 'qwen3.6-27b')
    """
    if not isinstance(model, str):
        return None
    last = NAMES.sub("-", re.split(r"[/\\]", model.strip("/\\").lower())[-1]) + "-"
    fitting = [name for name in catalogue.names() if last.startswith(NAMES.sub("-", name) + "-")]
    return max(fitting, key=len, default=None)


def known_model(out: dict[str, Any]) -> Model | None:
    """The catalogue's model of a boot; None without one, or where the log's architecture is another."""
    name = catalogue_name(out["model"])
    if name is None:
        return None
    classes = catalogue.config(name).get("architectures")
    if isinstance(classes, list) and out.get("architecture") not in (None, *classes):
        return None
    try:
        return _load(name)
    except AeliusError:
        return None


@lru_cache(maxsize=64)
def _load(name: str) -> Model:
    return catalogue.load(name)


def releases(version: object) -> tuple[str, ...]:
    """The releases whose rules a version may follow; a pre-release stands between two."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", str(version or ""))
    if match is None:
        return ("0.28.0",)
    major, minor, patch = int(match[1]), int(match[2]), int(match[3] or 0)
    if not re.search(r"rc|dev|\da\d|\db\d", str(version).partition("+")[0]):
        return (f"{major}.{minor}.{patch}",)
    before = f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}.0"
    return (f"{major}.{minor}.{patch}", before)


def explained(out: dict[str, Any], model: Model, drafts: int | None, named: bool) -> list[Candidate]:
    """The settings that print a boot's figures, of those that its log leaves open; `named`: it names all that were set."""
    given: dict[str, Any] = {name: out[name] for name in SETTINGS if out.get(name) is not None}
    if drafts is not None:
        given["num_speculative_tokens"] = drafts
    if not given.get("num_speculative_tokens"):
        given.pop("speculative_method", None)
    if given.get("mamba_ssm_cache_dtype") == "auto":
        del given["mamba_ssm_cache_dtype"]
    found: dict[tuple[int, int], Candidate] = {}
    for memory in dict.fromkeys((out["available_kv_gib"], None)):
        for version in releases(out["version"]):
            for cards in (given["tensor_parallel_size"],) if "tensor_parallel_size" in given else CARDS:
                settings = {**given, "version": version, "tensor_parallel_size": cards}
                for candidate in _explain(
                    out["tokens"], out["max_model_len"], model, out["max_concurrency"], memory, out["block_size"],
                    tuple(sorted(settings.items())),
                ):  # fmt: skip
                    if not named or as_set(out, candidate):
                        found.setdefault((candidate.num_blocks, candidate.blocks_per_request), candidate)
        if found:
            if memory is None and out["available_kv_gib"] is not None:
                out["memory_line_binds"] = False
            break
    return list(found.values())


def as_set(out: dict[str, Any], candidate: Candidate) -> bool:
    """Whether what the search set is as the release sets it, where the log's arguments do not name it."""
    engine = candidate.engine
    return (
        (out["kv_cache_dtype"] is not None or engine.kv_cache_dtype == "auto")
        and (out["block_size"] is not None or engine.block_size is None)
        and (out["mamba_ssm_cache_dtype"] is not None or engine.mamba_ssm_cache_dtype is None)
    )


@lru_cache(maxsize=256)
def _explain(
    tokens: int, length: int, model: Model, concurrency: float | None, memory: float | None, block_size: int | None,
    settings: tuple[tuple[str, Any], ...],
) -> tuple[Candidate, ...]:  # fmt: skip
    try:
        found: Explanation = explain(
            tokens, length, model, max_concurrency=concurrency, available_kv_gib=memory, block_size=block_size,
            **dict(settings),
        )  # fmt: skip
    except AeliusError:
        return ()
    return found.candidates


def worth(model: Model, base: Candidate) -> list[dict[str, Any]]:
    """What other flags would make of the same bytes, the greatest change first: pool in tokens, and the difference."""
    engine, memory = base.engine, base.available_bytes
    now = plan_pool(model, engine, memory)
    found: list[tuple[int, dict[str, Any]]] = []
    for flag, other in changes(engine, bool(now.fixed_blocks_per_request)):
        one: dict[str, Any] = {
            "flag": flag,
            "tokens": None,
            "gain_tokens": None,
            "longest_max_model_len": None,
        }
        try:
            one["tokens"] = plan_pool(model, other, memory).tokens
            one["gain_tokens"] = one["tokens"] - now.tokens
        except DoesNotFit as error:
            one["longest_max_model_len"] = error.longest_max_model_len
        except AeliusError:
            continue
        found.append((-engine.max_model_len if one["gain_tokens"] is None else one["gain_tokens"], one))
    found.sort(key=lambda pair: -pair[0])
    gains = [pair for pair in found if pair[0] > 0]
    return [one for _, one in (gains if len(gains) > 1 else found)[:3]]


def changes(engine: Engine, recurrent: bool) -> list[tuple[str, Engine]]:
    """Flags that could be changed from here, and the settings they make."""
    found = []
    if engine.num_speculative_tokens:
        off = replace(engine, num_speculative_tokens=0, speculative_method=None, draft=None)
        found.append(("no --speculative-config", off))
        fewer = engine.num_speculative_tokens - 1
        if fewer:
            found.append((f"num_speculative_tokens {fewer}", replace(engine, num_speculative_tokens=fewer)))
    if recurrent and engine.mamba_cache_mode != "all":
        from aelius_math.vllm_versions import rules_for

        on = engine.enable_prefix_caching
        on = rules_for(engine.version).hybrid_prefix_caching if on is None else on
        flag = "--no-enable-prefix-caching" if on else "--enable-prefix-caching"
        found.append((flag, replace(engine, enable_prefix_caching=not on, mamba_cache_mode=None)))
    dtype = "fp8" if engine.kv_cache_dtype in ("auto", "bfloat16", "float16", "bf16", "fp16") else "auto"
    found.append((f"--kv-cache-dtype {dtype}", replace(engine, kv_cache_dtype=dtype)))
    return found


def remedies(out: dict[str, Any], model: Model) -> list[dict[str, Any]]:
    """For a refused boot: what each flag would let the same memory hold, in tokens of the longest request."""
    if out["available_kv_gib"] is None or out["max_model_len"] is None or out["available_kv_gib"] <= 0:
        return []
    given: dict[str, Any] = {name: out[name] for name in SETTINGS if out.get(name) is not None}
    if out["tensor_parallel_size"] is None or out["kv_cache_dtype"] is None:
        return []
    if not given.get("num_speculative_tokens"):
        given.pop("speculative_method", None)
    memory = int(out["available_kv_gib"] * GIB)
    try:
        engine = Engine(version=releases(out["version"])[0], max_model_len=out["max_model_len"], **given)
        if out["null_block_left_out"]:
            memory += make_plan(model, engine).block_size_bytes
        plan_pool(model, engine, memory)
        return []
    except DoesNotFit as error:
        if out["longest_max_model_len"] is None or abs(error.longest_max_model_len - out["longest_max_model_len"]) > 8192:
            return []
        least = error.longest_max_model_len
    except AeliusError:
        return []
    found: list[tuple[int, dict[str, Any]]] = []
    for flag, other in changes(engine, any(layer.recurrent for layer in model.layers)):
        try:
            plan_pool(model, other, memory)
            longest = engine.max_model_len
        except DoesNotFit as error:
            longest = error.longest_max_model_len
        except AeliusError:
            continue
        one = {"flag": flag, "tokens": None, "gain_tokens": longest - least, "longest_max_model_len": longest}
        if longest > least:
            found.append((longest, one))
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])[:3]]
