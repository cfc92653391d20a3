"""Cases for vLLM's planner: the catalogue's models under drawn settings, and toys drawn at random; the same at every run.

A case is what tests/golden/vllm_planner/ holds, without `planned`: settings by the names of Engine, and layers by
the names of aelius_math.cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from aelius_math import catalogue
from aelius_math.cache import Layers

SEED = 7
GIB = 1 << 30
AVAILABLE = (5_626_265_600, 5 * GIB, 20 * GIB, 60 * GIB, 200 * GIB)
LENGTHS = (1, 100, 4096, 8192, 32768, 131072, 262144, 1_000_000)
USUAL_LENGTHS = (8192, 32768, 131072, 262144)
BATCHES = (1024, 2048, 8192)
PLAIN = ("bf16", "fp16", "fp8")
SCALED = ("int8_per_token_head", "fp8_per_token_head", "int4_per_token_head", "nvfp4")
DRAFTS = (0, 0, 1, 3, 4, 7)
OVERRIDES = (50, 300, 5000)

Case = dict[str, Any]


def of_catalogue(rounds: int = 6) -> Iterator[Case]:
    """Each model of the catalogue under `rounds` drawn settings."""
    for name in catalogue.names():
        random = Random(f"{SEED} {name}")
        model = catalogue.load(name)
        layers = [as_fields(layer) for layer in model.layers]
        mtp = [as_fields(layer) for layer in model.mtp_layers]
        for _ in range(rounds):
            engine = settings(random, layers, mtp, usual=True)
            if model.kv_cache_dtype and random.random() < 0.5:
                engine["kv_cache_dtype"] = model.kv_cache_dtype
            yield {"model": name, "engine": engine, "layers": layers, "mtp_layers": mtp, "available_bytes": random.choice(AVAILABLE)}


def toys(count: int) -> Iterator[Case]:
    """Models of one to three kinds of layers, of any sizes, under any settings."""
    for number in range(count):
        random = Random(f"{SEED} {number}")
        layers = toy(random)
        drafting = [layer for layer in layers if layer["kind"] in ATTENTION]
        mtp = [random.choice(drafting) | {"num_layers": random.choice((1, 1, 3))}] if drafting else []
        engine = settings(random, layers, mtp, usual=False)
        yield {"engine": engine, "layers": layers, "mtp_layers": mtp, "available_bytes": random.choice(AVAILABLE)}


def as_fields(layer: Layers) -> dict[str, Any]:
    """A layer as a case has it."""
    return {"kind": type(layer).__name__} | {name: value for name in layer._fields if (value := getattr(layer, name)) is not None}


def settings(random: Random, layers: list[dict[str, Any]], mtp: list[dict[str, Any]], usual: bool) -> dict[str, Any]:
    """Settings by the names of Engine; a default is left out."""
    kinds = {layer["kind"] for layer in layers}
    rare = 0.05 if usual else 0.3
    formats = (*PLAIN, "fp8_ds_mla") if "MLA" in kinds and len(kinds) == 1 else PLAIN if "MLA" in kinds else PLAIN + SCALED
    engine: dict[str, Any] = {
        "tensor_parallel_size": random.choice((1, 2, 4, 8)),
        "kv_cache_dtype": random.choice(formats),
        "max_model_len": random.choice(USUAL_LENGTHS if usual else LENGTHS),
        "max_num_batched_tokens": random.choice(BATCHES),
    }
    if random.random() < 0.7:
        engine["enable_prefix_caching"] = random.random() < 0.6
    drafts = random.choice(DRAFTS)
    if drafts:
        engine["num_speculative_tokens"] = drafts
        if not usual and random.random() < 0.4:
            engine["draft"] = [attention(random)]
        elif not mtp or random.random() < 0.2:
            engine["speculative_method"] = "ngram"
    if kinds & RECURRENT and random.random() < 0.5:
        engine["mamba_cache_mode"] = random.choice(("none", "align", "align", "all"))
    if "GatedDeltaNet" in kinds and random.random() < 0.4:
        engine["gdn_prefill_backend"] = "flashinfer"
    if "KimiDelta" in kinds and random.random() < 0.4:
        engine["kda_prefill_backend"] = "flashkda"
    if random.random() < rare:
        engine["block_size"] = random.choice((16, 32, 48, 64, 128))
    if random.random() < rare:
        engine["kernel_block_size"] = random.choice((32, 64))
    if random.random() < rare:
        engine["num_gpu_blocks_override"] = random.choice(OVERRIDES)
    if random.random() < (0.2 if len(kinds) > 1 else rare / 3):
        engine["hybrid_kv_cache_manager"] = False
    return engine


ATTENTION = ("FullAttention", "SlidingWindow", "ChunkedAttention", "MLA")
RECURRENT = {"GatedDeltaNet", "KimiDelta", "Mamba1", "Mamba2", "ShortConvolution", "LightningAttention"}


def toy(random: Random) -> list[dict[str, Any]]:
    """One to three kinds of layers; attention before or after the recurrent ones."""
    layers = [attention(random)] if random.random() < 0.9 else []
    if layers and random.random() < 0.4:
        layers.append(attention(random, like=layers[0] if random.random() < 0.7 else None))
    if not layers or random.random() < 0.5:
        layers.insert(random.choice((0, len(layers))), recurrent(random))
    return layers


def attention(random: Random, like: dict[str, Any] | None = None) -> dict[str, Any]:
    """A kind of attention; of the same heads as another, or of its own."""
    kind = random.choice(("FullAttention", "FullAttention", "SlidingWindow", "ChunkedAttention", "MLA"))
    count = {"kind": kind, "num_layers": random.randint(1, 40)}
    if kind == "MLA":
        index = {"index_head_dim": 128} if random.random() < 0.3 else {}
        return count | {"kv_lora_rank": 512, "qk_rope_head_dim": 64} | index
    heads = {"num_kv_heads": random.choice((1, 2, 4, 8, 16)), "head_size": random.choice((64, 128, 256, 512))}
    if like and "head_size" in like:
        heads = {name: like[name] for name in heads}
    if kind == "SlidingWindow":
        return count | heads | {"sliding_window": random.choice((128, 513, 1024, 4096))}
    return count | heads | ({"attention_chunk_size": random.choice((512, 8192))} if kind == "ChunkedAttention" else {})


def recurrent(random: Random) -> dict[str, Any]:
    """A kind of recurrent layer, in sizes that models have."""
    kind = random.choice(sorted(RECURRENT))
    state = random.choice(("fp32", "bf16"))
    count = {"kind": kind, "num_layers": random.randint(4, 50)}
    if kind == "GatedDeltaNet":
        heads = {"num_k_heads": 16, "num_v_heads": random.choice((16, 32, 48)), "head_k_dim": 128, "head_v_dim": 128}
        return count | {"state_dtype": state, "conv_kernel_size": 4} | heads
    if kind == "KimiDelta":
        return count | {"state_dtype": "fp32", "conv_kernel_size": 4, "num_heads": random.choice((16, 32)), "head_dim": 128}
    if kind == "Mamba1":
        return count | {"state_dtype": state, "conv_kernel_size": 4, "intermediate_size": 8192, "state_size": 16}
    if kind == "Mamba2":
        heads = {"num_heads": random.choice((64, 128)), "head_dim": 64, "n_groups": random.choice((1, 8)), "state_size": 128}
        return count | {"state_dtype": state, "conv_kernel_size": 4} | heads | {"chunk_size": random.choice((128, 256))}
    if kind == "ShortConvolution":
        return count | {"conv_kernel_size": 3, "hidden_size": 2048}
    return count | {"state_dtype": state, "conv_kernel_size": 1, "num_heads": 64, "head_dim": 128}
