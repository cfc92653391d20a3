"""From a GGUF file's keys to a Model, as llama.cpp reads them (src/llama-hparams.cpp and src/models/).

| key, after the architecture's name | what it says |
|---|---|
| `block_count` | layers, those of multi-token prediction included |
| `nextn_predict_layers` | how many of them, at the end, are for multi-token prediction |
| `attention.head_count` | heads, a number or one for each layer |
| `attention.head_count_kv` | KV heads, likewise; absent: as many as heads |
| `attention.key_length`, `attention.value_length` | width of K and V; absent: `embedding_length` over heads |
| `attention.key_length_swa`, `attention.value_length_swa` | the same of sliding layers |
| `attention.sliding_window` | tokens of the window |
| `attention.sliding_window_pattern` | of so many layers the last is full; or a truth for each (true slides) |
| `attention.shared_kv_layers` | how many layers, at the end, use another's cache |
| `attention.kv_lora_rank`, `rope.dimension_count` | the two parts of an MLA vector |
| `attention.key_length_mla` | MLA is on; without it the file is an old one, whose K and V are kept in full |
| `attention.indexer.key_length` | width of index keys |
| `full_attention_interval` | every such layer is full |
| `attention.recurrent_layers` | instead of it, a truth for each layer |
| `ssm.conv_kernel`, `ssm.inner_size`, `ssm.state_size` | kernel, inner width and state of recurrent layers |
| `ssm.group_count`, `ssm.time_step_rank` | their groups (or K heads) and heads |
| `kda.head_dim`, `shortconv.l_cache`, `wkv.head_size` | KDA, short convolutions, RWKV |
| `feed_forward_length` | Nemotron-H, a layer without KV heads: 0 makes it recurrent, more an MLP |
| `context_length` | tokens |

llama.cpp keeps both parts of a recurrent state in fp32. Without a key that its code needs a file is refused,
and so is an architecture that is not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aelius_math.cache import (
    MLA,
    ChunkedAttention,
    FullAttention,
    GatedDeltaNet,
    KimiDelta,
    Layers,
    Mamba1,
    Mamba2,
    SlidingWindow,
)
from aelius_math.cache_kinds import RWKV, ShortConvolution
from aelius_math.config_fields import Fields, merge
from aelius_math.model import Model
from aelius_math.units import LARGEST, AeliusError, whole

PLAIN = frozenset({
    "llama", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe", "gemma",
    "phi2", "phi3", "phimoe", "starcoder", "starcoder2", "command-r", "chatglm", "glm4", "glm4moe",
    "granite", "granitemoe", "falcon", "gpt2", "gptneox", "mpt", "bloom", "stablelm", "baichuan",
    "internlm2", "orion", "xverse", "minicpm", "dbrx", "arctic", "olmo", "olmoe", "nemotron", "exaone",
    "deci", "openelm", "smollm3", "arcee", "apertus", "ernie4_5", "ernie4_5-moe", "hunyuan-dense",
    "hunyuan-moe", "minimax-m2", "seed_oss", "dots1", "bailingmoe", "bailingmoe2", "bitnet", "jais",
    "deepseek", "mistral3", "grok",
})  # fmt: skip
"""Architectures whose layers are all full in llama.cpp, whatever window the model was trained with."""

WINDOWED: dict[str, int | None] = {
    "gemma2": 2, "gemma3": 6, "gemma3n": 5, "gemma4": None, "cohere2": 4, "gpt-oss": 2, "exaone4": 4,
    "exaone-moe": 4, "olmo2": 4, "afmoe": 4, "llama4": 4, "mimo2": None, "step35": None, "laguna": None,
}  # fmt: skip
"""Architectures with windows: of each so many layers the last is full, where the file does not say; None: it must.
src/models/ of ggml-org/llama.cpp: set_swa_pattern(n) lets layer il slide where il % n < n - 1."""

LLAMA_MAX_LAYERS = 512  # src/llama-hparams.h
LLAMA4_CHUNK = 8192  # a constant in llama.cpp, not a key

MIXED = frozenset({
    "qwen3next", "qwen35", "qwen35moe", "mamba", "mamba2", "jamba", "falcon-h1", "granitehybrid",
    "nemotron_h", "nemotron_h_moe", "lfm2", "lfm2moe", "kimi-linear", "rwkv6", "rwkv7",
})  # fmt: skip
LATENT = frozenset(("deepseek2", "deepseek32", "kimi-linear"))
DELTA = frozenset(("qwen3next", "qwen35", "qwen35moe"))


class Keys(Fields):
    """The keys of one architecture, without its name before them."""

    def each(self, name: str, n: int, default: int | None = None) -> list[int]:
        """One number for each layer, from a list or one for all."""
        value = self.raw(name)
        if isinstance(value, list):
            if len(value) < n:
                raise AeliusError(self.path + name, f"{len(value)} entries", f"{n}, one a layer")
            numbers = (int(one) if isinstance(one, bool) else one for one in value[:n])
            return [whole(f"{self.path}{name}[{index}]", one, 0) for index, one in enumerate(numbers)]
        return [self.count(name, default=default, least=0)] * n


def model_from_gguf(keys: Mapping[str, object], *, dtype: str | None = None) -> Model:
    """The model that a GGUF file's keys describe. Raises AeliusError with the key's name and value."""
    everything = Fields(keys)
    arch = everything.text("general.architecture")
    if arch not in PLAIN | LATENT | MIXED and arch not in WINDOWED:
        raise everything.wrong("general.architecture", "an architecture that this version reads")
    f = Keys(
        {key.removeprefix(arch + "."): value for key, value in keys.items() if key.startswith(arch + ".")},
        arch + ".",
    )
    n_all = f.count("block_count", most=LLAMA_MAX_LAYERS)
    nextn = f.count("nextn_predict_layers", default=0, least=0, most=n_all - 1)
    n = n_all - nextn
    per_layer = [layer(f, arch, index, n_all, index >= n) for index in range(n_all)]
    shared = f.count("attention.shared_kv_layers", default=0, least=0, most=n - 1)
    name = keys.get("general.name")
    return Model(
        name=name if isinstance(name, str) and name else arch,
        layers=merge(spec for specs in per_layer[: n - shared] for spec in specs),
        mtp_layers=merge(spec for specs in per_layer[n:] for spec in specs),
        dtype=dtype,
        max_position_embeddings=f.context(),
        architecture=arch,
    )


def layer(f: Keys, arch: str, index: int, n: int, extra: bool) -> Sequence[Layers]:
    """What one layer keeps: nothing, one thing, or attention and a state side by side. `extra`: it is for
    MTP."""
    if arch == "falcon-h1":
        return [attention(f, arch, index, n), recurrent(f, arch)]
    if not extra and is_recurrent(f, arch, index, n):
        return [recurrent(f, arch)]
    kv_heads = f.each("attention.head_count_kv", n, f.each("attention.head_count", n)[index])[index]
    if kv_heads == 0:
        return []
    return [attention(f, arch, index, n)]


def is_recurrent(f: Keys, arch: str, index: int, n: int) -> bool:
    if arch in ("mamba", "mamba2", "rwkv6", "rwkv7"):
        return True
    if arch in DELTA:
        if f.has("attention.recurrent_layers"):
            return bool(f.each("attention.recurrent_layers", n)[index])
        return (index + 1) % f.count("full_attention_interval", default=4) != 0
    if arch not in MIXED or f.each("attention.head_count_kv", n)[index]:
        return False
    return not (arch.startswith("nemotron") and f.each("feed_forward_length", n)[index])


def recurrent(f: Keys, arch: str) -> Layers:
    """A recurrent layer; both parts of its state are fp32."""
    kept: dict[str, Any] = {"num_layers": 1, "state_dtype": "fp32", "conv_dtype": "fp32"}
    if arch in ("lfm2", "lfm2moe"):
        return ShortConvolution(**kept, hidden_size=f.count("embedding_length"), conv_kernel_size=f.count("shortconv.l_cache"))
    if arch.startswith("rwkv"):
        hidden, size = f.count("embedding_length"), f.count("wkv.head_size")
        if hidden % size:
            raise f.wrong("wkv.head_size", f"a divisor of embedding_length, {hidden}")
        return RWKV(**kept, hidden_size=hidden, num_heads=hidden // size, head_size=size)
    kernel = f.count("ssm.conv_kernel")
    if arch == "kimi-linear":
        heads, width = f.count("attention.head_count"), f.count("kda.head_dim")
        return KimiDelta(**kept, num_heads=heads, head_dim=width, conv_kernel_size=kernel)
    inner, state = f.count("ssm.inner_size"), f.count("ssm.state_size")
    if arch in ("mamba", "jamba"):
        return Mamba1(**kept, intermediate_size=inner, state_size=state, conv_kernel_size=kernel)
    heads, groups = f.count("ssm.time_step_rank"), f.count("ssm.group_count")
    if inner % heads:
        raise f.wrong("ssm.time_step_rank", f"a divisor of ssm.inner_size, {inner}")
    if arch in DELTA:
        return GatedDeltaNet(**kept, num_k_heads=groups, num_v_heads=heads,
                             head_k_dim=state, head_v_dim=inner // heads,
                             conv_kernel_size=kernel)  # fmt: skip
    return Mamba2(
        **kept,
        num_heads=heads,
        head_dim=inner // heads,
        n_groups=groups,
        state_size=state,
        conv_kernel_size=kernel,
    )


def attention(f: Keys, arch: str, index: int, n: int) -> Layers:
    """A layer that attends, with the heads and width that its number has."""
    if arch in LATENT and f.has("attention.key_length_mla"):
        return MLA(
            num_layers=1, kv_lora_rank=f.count("attention.kv_lora_rank"),
            qk_rope_head_dim=f.count("rope.dimension_count"),
            index_head_dim=f.optional("attention.indexer.key_length"),
        )  # fmt: skip
    heads = f.each("attention.head_count", n)[index]
    kv_heads = f.each("attention.head_count_kv", n, heads)[index]
    slides = arch in WINDOWED and sliding(f, arch, index, n)
    widths = []
    for part in ("key", "value"):
        own = f"attention.{part}_length_swa" if slides and f.has(f"attention.{part}_length_swa") else f"attention.{part}_length"
        if not f.has(own) and (heads == 0 or f.count("embedding_length") % heads):
            raise f.wrong(own, "a whole number of at least 1")
        widths.append(f.optional(own) or f.count("embedding_length") // heads)
    plain = {"num_layers": 1, "num_kv_heads": kv_heads, "head_size": widths[0]}
    value = None if widths[1] == widths[0] else widths[1]
    if not slides:
        return FullAttention(**plain, head_size_v=value)
    if arch == "llama4":
        return ChunkedAttention(**plain, head_size_v=value, attention_chunk_size=LLAMA4_CHUNK)
    return SlidingWindow(**plain, head_size_v=value, sliding_window=f.count("attention.sliding_window", most=LARGEST))


def sliding(f: Keys, arch: str, index: int, n: int) -> bool:
    """Whether a layer slides: by the file's pattern, else by the architecture's. 0 makes all slide."""
    pattern, period = f.raw("attention.sliding_window_pattern"), WINDOWED[arch]
    if arch in ("olmo2", "exaone4") and not f.has("attention.sliding_window"):
        return False
    if isinstance(pattern, list):
        return bool(f.each("attention.sliding_window_pattern", n)[index])
    step = f.count("attention.sliding_window_pattern", default=period, least=0)
    return step == 0 or index % step < step - 1
