"""Readers for multi-head latent attention (MLA): one compressed vector a token, sparse variants, and V4's.

transformers 5.24.0 and vLLM keep the compressed vector (models/deepseek_v3/modeling_deepseek_v3.py); older
transformers and llama.cpp kept K and V of all heads. Class facts cite transformers 5.24.0,
models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aelius_math.cache import MLA, Layers
from aelius_math.config_attention import Heads, Reader, attention, kinds_field
from aelius_math.config_fields import MOST_LAYERS, Fields, Maker, Parts, nothing, stack
from aelius_math.units import LARGEST, AeliusError

Indexed = Callable[[Fields, int], Sequence[bool]]
"""Which layers keep index keys of their own."""

NEXTN = ("num_nextn_predict_layers",)


def latent(f: Fields, index_head_dim: int | None = None) -> Maker:
    """A maker of MLA layers. A config without rope in its latents states 0 there."""
    rank, rope = f.count("kv_lora_rank"), f.count("qk_rope_head_dim", least=0)

    def make(count: int) -> Layers:
        if rope == 0:
            raise f.wrong("qk_rope_head_dim", "a whole number of at least 1")
        return MLA(num_layers=count, kv_lora_rank=rank, qk_rope_head_dim=rope, index_head_dim=index_head_dim)

    return make


def mla(
    indexed: Indexed | None = None,
    layers: tuple[str, ...] = ("num_hidden_layers",),
    mtp: tuple[str, ...] = NEXTN,
    caches: int = 1,
) -> Reader:
    """A reader for MLA models; `caches` is how many each layer holds, `indexed` tells which layers keep index
    keys.

    A MTP layer is like the model's, with index keys of its own where the model has any. kv_lora_rank null or
    use_mla false (DeepSeek-VL2-Tiny, DeepSeek-OCR): plain attention, as in DeepSeek's first model.
    """
    plain = attention(Heads(head_dim=(), mha=True), layers=layers, mtp=mtp)

    def read(f: Fields) -> Parts:
        if not f.flag("use_mla", True) or ("kv_lora_rank" in f.values and not f.has("kv_lora_rank")):
            return plain(f)
        n = f.num_layers(*layers)
        extra = f.optional(*mtp, least=0, most=MOST_LAYERS) if mtp else None
        width = f.count("index_head_dim") if indexed else None
        keeps = indexed(f, n) if indexed else [False] * n
        make = {True: latent(f, width), False: latent(f)}
        found = stack([keep for keep in keeps for _ in range(caches)], make, f.path + layers[0])
        return Parts(found, stack([width is not None] * (extra or 0), make, ""))

    return read


def every_layer(f: Fields, n: int) -> Sequence[bool]:
    """DeepSeek-V3.2: each layer has an indexer; layer_types may say so, or full_attention for none."""
    if not f.has("layer_types"):
        return [True] * n
    words = {"indexed_attention": True, "deepseek_sparse_attention": True, "full_attention": False}
    return [chosen(f, "layer_types", index, word, words) for index, word in enumerate(f.words("layer_types", n))]


def glm_indexers(f: Fields, n: int) -> Sequence[bool]:
    """GLM-5 and after: indexer_types; else index_topk_pattern of F and S; else by index_topk_freq (1: all
    full) and index_skip_topk_offset (2). A shared layer uses another's choice and keeps no index keys."""
    words = {"full": True, "shared": False, "F": True, "S": False}
    if f.has("indexer_types"):
        stated = f.words("indexer_types", n)
        return [chosen(f, "indexer_types", index, word, words) for index, word in enumerate(stated)]
    pattern = f.raw("index_topk_pattern")
    if pattern is not None:
        stated = list(pattern) if isinstance(pattern, str) else f.words("index_topk_pattern", n)
        if len(stated) != n:
            raise f.wrong("index_topk_pattern", f"{n} entries, one a layer")
        return [chosen(f, "index_topk_pattern", index, word, words) for index, word in enumerate(stated)]
    freq = max(f.count("index_topk_freq", default=1, least=0), 1)
    offset = f.count("index_skip_topk_offset", default=2, least=0)
    return [max(index - offset + 1, 0) % freq == 0 for index in range(n)]


def hunyuan_indexers(f: Fields, n: int) -> Sequence[bool]:
    """HY-V4: indexer_types; else the first layer and every 4th from the second on."""
    if f.has("indexer_types"):
        return glm_indexers(f, n)
    return [index == 0 or (index - 1) % 4 == 0 for index in range(n)]


def chosen(f: Fields, field: str, index: int, word: str, words: dict[str, bool]) -> bool:
    if word not in words:
        raise AeliusError(f"{f.path}{field}[{index}]", word, "one of " + ", ".join(words))
    return words[word]


def longcat(f: Fields) -> Parts:
    """LongCat-Flash: num_layers blocks of two attentions each, so two caches a block."""
    return mla(layers=("num_layers",), caches=2)(f)


V4_RATIOS = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}


def deepseek_v4(f: Fields) -> Parts:
    """DeepSeek-V4: each layer keeps one vector a token (head_dim wide, K and V in one) for the last
    sliding_window tokens; a compressed one also keeps a vector for each so many tokens of the past, a sparse
    one an index key beside. Entries beyond num_hidden_layers are the MTP layers'; what those keep is not
    established.
    """
    from aelius_math.cache_kinds import CompressedMLA, SlidingMLA

    n = f.num_layers()
    head_dim, rope = f.count("head_dim"), f.count("qk_rope_head_dim")
    if f.count("num_key_value_heads", default=1) != 1:
        raise f.wrong("num_key_value_heads", "1: all heads share one vector")
    if rope >= head_dim:
        raise f.wrong("qk_rope_head_dim", f"less than head_dim, {head_dim}")
    rates = {kind: ratio for ratio, kind in V4_RATIOS.items()}
    if f.has("compress_rates"):
        section = f.section("compress_rates")
        rates |= {kind: section.count(kind, default=ratio) for ratio, kind in V4_RATIOS.items() if ratio}

    def compressed(kind: str, index_head_dim: int | None) -> Maker:
        return lambda count: CompressedMLA(
            num_layers=count, head_dim=head_dim, compress_ratio=rates[kind], index_head_dim=index_head_dim
        )  # fmt: skip

    sparse, heavy = V4_RATIOS[4], V4_RATIOS[128]
    make = {
        V4_RATIOS[0]: nothing, heavy: compressed(heavy, None),
        sparse: lambda count: compressed(sparse, f.count("index_head_dim"))(count),
    }  # fmt: skip
    window = f.count("sliding_window", most=LARGEST)
    near = SlidingMLA(num_layers=n, kv_lora_rank=head_dim - rope, qk_rope_head_dim=rope, sliding_window=window)
    return Parts((near, *stack(v4_kinds(f, n), make, kinds_field(f))))


def v4_kinds(f: Fields, n: int) -> Sequence[str]:
    """compress_ratios as published (0, 4 or 128), or layer_types as transformers writes them."""
    if not f.has("compress_ratios"):
        return f.words("layer_types", n)
    stated = f.counts("compress_ratios")
    extra = f.optional("num_nextn_predict_layers", least=0, most=MOST_LAYERS) or 0
    if len(stated) not in (n, n + extra):
        raise AeliusError(f.path + "compress_ratios", f"{len(stated)} entries", f"{n} or {n + extra} of them")
    for index, ratio in enumerate(stated):
        if ratio not in V4_RATIOS:
            raise AeliusError(f"{f.path}compress_ratios[{index}]", ratio, "0, 4 or 128")
    return [V4_RATIOS[ratio] for ratio in stated[:n]]
