"""Runs of a real llama.cpp on toy files: what its log says of a context, and what the package says of the same one."""

import re

from llamacpp_models import printed

from aelius_math.gguf_config import model_from_gguf
from aelius_math.llamacpp import Context, memory
from aelius_math.units import AeliusError

CONTEXT = re.compile(r"llama_context: (n_ctx|n_ctx_seq) += (\d+)$")
CACHE = re.compile(
    r"llama_kv_cache: size = +([\d.]+) MiB \( *(\d+) cells, +(\d+) layers, +(\d+)/(\d+) seqs\),"
    r" K \((\w+)\): +([\d.]+) MiB, V \((\w+)\): +([\d.]+) MiB"
)
BUFFER = re.compile(r"llama_(?:kv_cache|memory_recurrent): +\w+ (KV|RS) buffer size = +([\d.]+) MiB")
STATE = re.compile(
    r"llama_memory_recurrent: size = +([\d.]+) MiB \( *(\d+) cells, +(\d+) layers, +(\d+) seqs +(\d+) rs_seq\),"
    r" R \(f32\): +([\d.]+) MiB, S \(f32\): +([\d.]+) MiB"
)


def log_of(lines):
    """What a context's log states: sizes in MiB as printed; cells of one stream. A cache of no layers is left out."""
    found = {"kv": []}
    for line in lines:
        if match := CONTEXT.match(line):
            found[match[1]] = int(match[2])
        elif match := CACHE.match(line):
            size, cells, layers, seqs, streams, _, k, _, v = match.groups()
            if layers == "0":
                continue
            found["kv"].append({"size": float(size), "cells": int(cells), "layers": int(layers), "n_seq": int(seqs),
                                "streams": int(streams), "k": float(k), "v": float(v)})  # fmt: skip
        elif match := STATE.match(line):
            size, cells, _, seqs, drafts, conv, state = match.groups()
            found["rs"] = {"size": float(size), "cells": int(cells), "n_seq": int(seqs), "n_rs_seq": int(drafts),
                           "R": float(conv), "S": float(state)}  # fmt: skip
    return found


def buffers_of(lines):
    """MiB of the buffers that a context's log states: of all caches, and of the recurrent state."""
    found = {"kv": 0.0, "rs": 0.0}
    for line in lines:
        if match := BUFFER.match(line):
            found["kv" if match[1] == "KV" else "rs"] += float(match[2])
    return found


def context_of(asked, build):
    """The flags of a run. The MTP head's own context has the draft's types."""
    types = {"type_k": asked["type_k"], "type_v": asked["type_v"]}
    if asked.get("mtp"):
        types = {"type_k_draft": asked["type_k"], "type_v_draft": asked["type_v"]}
    return Context(
        n_ctx=asked["ctx"],
        n_seq_max=asked["slots"],
        kv_unified=asked["kv_unified"],
        n_ubatch=asked["ubatch"],
        draft_max=1 if asked.get("mtp") else asked.get("drafts", 0),
        build=build,
        **types,
    )


def says(arch, keys, asked, build):
    """What the package says of a run, in the form of `log_of`; raises AeliusError where it refuses."""
    full = {"general.architecture": arch, **{f"{arch}.{name}": value for name, value in keys.items()}}
    found = memory(model_from_gguf(full, dtype="bf16"), context_of(asked, build))
    lines = {"full": [], "index": [], "window": []}  # the order in which the engine makes them
    for cache in found.caches:
        if cache.role.startswith("draft ") == bool(asked.get("mtp")):
            lines[cache.role.removeprefix("draft ")].append(cache)
    kv = [
        {
            "size": printed(sum(cache.size_bytes for cache in same)),
            "cells": same[0].cells,
            "layers": sum(cache.layers for cache in same),
            "n_seq": found.slots,
            "streams": same[0].streams,
            "k": printed(sum(cache.k_bytes for cache in same)),
            "v": printed(sum(cache.v_bytes for cache in same)),
        }
        for same in lines.values()
        if same
    ]
    said = {"kv": kv, "n_ctx": found.n_ctx, "n_ctx_seq": found.n_ctx_seq}
    if found.recurrent_rows and not asked.get("mtp"):
        said["rs"] = {
            "size": printed(found.recurrent_bytes),
            "cells": found.slots,
            "n_seq": found.slots,
            "n_rs_seq": found.recurrent_rows // found.slots - 1,
            "R": printed(found.conv_bytes),
            "S": printed(found.state_bytes),
        }
    return said


def difference(arch, keys, row, build):
    """None where the package says what the engine did; else the two, in one line."""
    try:
        said = says(arch, keys, row, build)
    except AeliusError as refused:
        return None if "error" in row else f"refused: {refused}"
    if "error" in row:
        return f"engine refused: {row['error']}"
    return None if said == row["log"] else f"engine {row['log']} package {said}"
