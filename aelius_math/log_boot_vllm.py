"""A boot of vLLM's as one dict: what it states, under the names of the command's JSON, and what follows."""

from __future__ import annotations

from typing import Any

from aelius_math.log_derive import derive
from aelius_math.log_names import STATED, STATED_LLAMA
from aelius_math.log_vllm import VllmBoot
from aelius_math.units import AeliusError
from aelius_math.vllm_versions import at, parse

WANTED = (
    "max_model_len", "tokens", "available_kv_gib", "model", "version", "tensor_parallel_size", "kv_cache_dtype",
    "enable_prefix_caching", "max_num_seqs",
)  # fmt: skip
"""What one would know of a boot: what of it the log does not say is named."""


def vllm_boot(boot: VllmBoot) -> dict[str, Any]:
    """A vLLM boot: what it states (None where it does not say), `derived`, `notes`."""
    notes: list[str] = []
    out: dict[str, Any] = {"engine": "vllm", **dict.fromkeys(STATED + STATED_LLAMA)}
    tokens, concurrency, length = _pool_line(boot, notes)
    out["tokens"], out["max_concurrency"] = tokens, concurrency
    out["max_model_len"] = _length(boot, length, notes)
    out["available_kv_gib"], out["null_block_left_out"] = _available(boot, notes)
    out["block_size"] = _agreed(boot, "block", "attention block size", notes) or boot.one("engine.user_block_size", "args.user_block_size")
    out["version"] = boot.one("version")
    out["needed_gib"], out["longest_max_model_len"] = (
        boot.one("needed"),
        boot.one("longest", "refused_tokens"),
    )
    for name in (
        "model",
        "tensor_parallel_size",
        "kv_cache_dtype",
        "num_speculative_tokens",
        "enable_prefix_caching",
    ):
        out[name] = _setting(boot, name, notes)
    out["status"] = _status(boot, notes)
    for name in (
        "speculative_method", "pipeline_parallel_size", "data_parallel_size", "max_num_batched_tokens", "max_num_seqs",
        "gpu_memory_utilization", "mamba_ssm_cache_dtype", "dtype",
    ):  # fmt: skip
        out[name] = _setting(boot, name, [])
    if out["max_num_batched_tokens"] is None:
        out["max_num_batched_tokens"] = boot.one("batched")
    out["mamba_cache_mode"] = boot.one("mamba_cache_mode", "engine.mamba_cache_mode", "args.mamba_cache_mode")
    out["gdn_prefill_backend"] = boot.one("gdn_prefill_backend")
    architectures = boot.values("architecture")
    out["architecture"] = architectures[0] if architectures else None
    out["draft_architecture"] = architectures[1] if len(architectures) > 1 else None
    out["kv_reserved_gib"] = boot.one("reserved")
    out["model_loading_gib"] = boot.one("model_loading")
    if boot.one("reserved") is not None:
        notes.append("The KV cache was reserved by hand (kv_cache_memory_bytes): no memory was profiled, and no memory line is printed.")
    if boot.one("override") is not None:
        notes.append(
            f"num_gpu_blocks_override set the pool to {boot.one('override'):,} blocks; the memory gives {boot.one('profiled_blocks'):,}."
        )
    out["derived"] = derive(boot, out, notes)
    out.pop("memory_line_binds", None)
    out.pop("null_block_left_out")
    skip = {"tokens"} if out["status"] == "refused" else set()
    if out["kv_reserved_gib"] is not None:
        skip.add("available_kv_gib")
    out["missing"] = [name for name in WANTED if out[name] is None and name not in skip]
    out["notes"] = notes
    return out


def _pool_line(boot: VllmBoot, notes: list[str]) -> tuple[int | None, float | None, int | None]:
    """Tokens, concurrency and its length: the smallest where ranks differ."""
    tokens = [value for value in boot.values("tokens") if isinstance(value, int)]
    pairs = [value for value in boot.values("concurrency") if isinstance(value, tuple)]
    if len(tokens) > 1:
        said = ", ".join(f"{value:,}" for value in tokens)
        notes.append(f"The lines disagree on the KV cache size: {said} tokens. Every rank prints its own; the smallest binds.")
    pair = min(pairs, key=lambda value: value[1]) if pairs else (None, None)
    if not tokens:
        tokens = [value for value in boot.values("refused_tokens") if isinstance(value, int)]
    return (min(tokens) if tokens else None), pair[1], pair[0]


def _length(boot: VllmBoot, length: int | None, notes: list[str]) -> int | None:
    said = {
        "the concurrency line": length,
        "the error": boot.one("refused_len"),
        "the engine's configuration": boot.one("engine.max_model_len"),
        "the arguments": boot.one("args.max_model_len"),
        "the line 'Using max model len'": boot.one("using_len"),
    }
    known = {where: value for where, value in said.items() if isinstance(value, int)}
    if not known:
        return None
    value = next(iter(known.values()))
    others = [f"{where} says {other:,}" for where, other in known.items() if other != value]
    if others:
        where = next(iter(known))
        notes.append(f"max_model_len: {where} says {value:,}, {', '.join(others)}. The first is what the pool was planned for.")
    return value


def _available(boot: VllmBoot, notes: list[str]) -> tuple[float | None, bool]:
    """The memory of the cache; and whether the null block is to be added to it."""
    refused = [value for value in boot.values("refused_available") if isinstance(value, float)]
    entries = [entry for entry in boot.said.get("available", []) if isinstance(entry.value, float)]
    values = sorted({entry.value for entry in entries if isinstance(entry.value, float)})
    if len(values) > 1:
        said = ", ".join(f"{entry.who or 'a rank'} {entry.value} GiB" for entry in entries)
        notes.append(f"The ranks have different memory for the KV cache: {said}. The smallest binds all of them.")
    if refused and leaves_null_block_out(boot.one("version")):
        return _beside_null_block(refused, values, notes)
    if refused:
        if values and abs(values[0] - refused[0]) > 0.011:
            notes.append(f"The memory line says {values[0]} GiB, the error {refused[0]} GiB: the line is not the binding rank's.")
        return min(refused), False
    world = boot.one("engine.tensor_parallel_size", "args.tensor_parallel_size")
    if values and len(entries) == 1 and isinstance(world, int) and world > 1:
        notes.append(f"One memory line for {world} ranks: the smallest rank's memory binds, and this line may be another's.")
    return (values[0] if values else None), False


def leaves_null_block_out(version: object) -> bool:
    """Whether the memory in a release's error is without the null block: from 0.29 the check sets it aside.

    >>> leaves_null_block_out("0.28.0"), leaves_null_block_out("0.29.0"), leaves_null_block_out(None)
    (False, True, False)
    """
    try:
        return at(parse(version)[0]).checks_null_block
    except AeliusError:
        return False


def _beside_null_block(refused: list[float], values: list[float], notes: list[str]) -> tuple[float, bool]:
    """The memory of a refused boot: the line's, which holds the null block; else the error's, which does not."""
    left = min(refused)
    if values and values[0] > left - 0.011:
        notes.append(f"The error's {left} GiB leave out the null block; the memory line's {values[0]} GiB hold it.")
        return values[0], False
    notes.append(f"The error's {left} GiB leave out the null block: the cache has one block more.")
    return left, True


def _agreed(boot: VllmBoot, name: str, what: str, notes: list[str]) -> Any:
    values = boot.values(name)
    if len(values) > 1:
        notes.append(f"The lines disagree on the {what}: {', '.join(f'{value:,}' for value in values)}. The last one holds.")
    return values[-1] if values else None


def _setting(boot: VllmBoot, name: str, notes: list[str]) -> Any:
    engine, args = boot.one(f"engine.{name}"), boot.one(f"args.{name}")
    if engine is None:
        return args
    if args is not None and args != engine and not (name == "kv_cache_dtype" and args == "auto"):
        notes.append(f"{name}: the arguments say {args}, the engine's configuration {engine}. The engine's holds.")
    return engine


def _status(boot: VllmBoot, notes: list[str]) -> str:
    if boot.refused:
        if boot.one("no_memory"):
            notes.append("Refused: no memory was left for the KV cache.")
        return "refused"
    if boot.started:
        return "started"
    if boot.crashed:
        notes.append(f"The boot broke off: {boot.crashed}.")
        return "unknown"
    return "started" if boot.planned else "unknown"
