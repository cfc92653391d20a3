"""Readers for attention whose heads vary by layer, or whose layers share a cache or keep something beside it.

Class facts cite transformers 5.24.0, models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aelius_math.cache import FullAttention, Layers, SlidingWindow
from aelius_math.config_attention import Heads, kinds_field, makers
from aelius_math.config_fields import MOST_LAYERS, Fields, Parts, merge, stack
from aelius_math.config_patterns import all_full, every, inkling_kinds, layer_types, mimo_pattern
from aelius_math.units import LARGEST, AeliusError, ceil_div


def openelm(f: Fields) -> Parts:
    """OpenELM: num_kv_heads is a list, one entry a layer (apple/OpenELM, configuration_openelm.py)."""
    n = f.num_layers("num_transformer_layers", "num_hidden_layers")
    return per_layer(f.counts("num_kv_heads", n, least=1), f.count("head_dim"))


def decilm(f: Fields) -> Parts:
    """DeciLM-7B: num_key_value_heads_per_layer (Deci/DeciLM-7B, configuration_decilm.py)."""
    n = f.num_layers()
    return per_layer(f.counts("num_key_value_heads_per_layer", n, least=1), Heads().head_size(f))


def per_layer(kv_heads: Sequence[int], head_size: int) -> Parts:
    specs = (FullAttention(num_layers=1, num_kv_heads=heads, head_size=head_size) for heads in kv_heads)
    return Parts(merge(specs))


def nemotron_nas(f: Fields) -> Parts:
    """Nemotron Super and Ultra (Puzzle): block_configs tell for each layer whether it attends, and how many
    query heads share a KV head (vLLM 0.33.0, models/nemotron_nas.py)."""
    blocks = f.items("block_configs", f.num_layers())
    heads, head_size = f.count("num_attention_heads"), Heads().head_size(f)
    specs: list[Layers] = []
    for index, block in enumerate(blocks):
        inner = Fields(block, f"{f.path}block_configs[{index}].").section("attention")
        if inner.flag("no_op", False) or inner.flag("replace_with_linear", False):
            continue
        share = inner.count("n_heads_in_group")
        if heads % share:
            raise inner.wrong("n_heads_in_group", f"a divisor of num_attention_heads, {heads}")
        kind = partial(FullAttention, num_layers=1, num_kv_heads=heads // share, head_size=head_size)
        if inner.has("window_length"):
            window = inner.count("window_length", most=LARGEST)
            specs.append(SlidingWindow(**kind.keywords, sliding_window=window))
        else:
            specs.append(kind())
    if not specs:
        raise AeliusError(f.path + "block_configs", "no attention at all", "at least one layer that attends")
    return Parts(merge(specs))


def hunyuan(f: Fields) -> Parts:
    """Hunyuan: with use_cla each cla_share_factor layers share the first one's cache (vLLM 0.11.0,
    models/hunyuan_v1.py); the factor counts for nothing without it."""
    kv_heads, head_size = Heads(head_dim=("head_dim", "attention_head_dim"), mha=True).kv(f)
    n = f.num_layers()
    own = ceil_div(n, f.count("cla_share_factor")) if f.flag("use_cla", False) else n
    mtp = f.optional("num_nextn_predict_layers", least=0, most=MOST_LAYERS)
    kind = partial(FullAttention, num_kv_heads=kv_heads, head_size=head_size)
    return Parts((kind(num_layers=own),), (kind(num_layers=mtp),) if mtp else ())


def gemma3n(f: Fields) -> Parts:
    """Gemma 3n: the last num_kv_shared_layers (15) reuse a cache; layer_types, else every 5th is full."""
    n = f.num_layers()
    kinds = layer_types(every(5))(f, n)
    make = makers(f, *Heads(fixed_kv_heads=2, fixed_heads=8, fixed_head_dim=256).kv(f), fixed=512)
    return Parts(stack(owners(f, kinds, "num_kv_shared_layers", 15), make, kinds_field(f)))


def owners(f: Fields, kinds: Sequence[str], field: str, fixed: int) -> Sequence[str]:
    """The layers that own a cache: all but the last so many, which reuse one."""
    shared = f.count(field, default=fixed, least=0, most=len(kinds))
    if shared == len(kinds):
        raise f.wrong(field, f"less than num_hidden_layers, {len(kinds)}: some layer must own a cache")
    return kinds[: len(kinds) - shared]


def gemma4(f: Fields) -> Parts:
    """Gemma 4: full layers are global_head_dim (512) wide, with num_global_key_value_heads where
    attention_k_eq_v is true; K and V are both kept all the same. transformers writes both into
    per_layer_config instead. The last layer is full, whatever layer_types says of it."""
    n = f.num_layers()
    kinds = [*layer_types(every(6))(f, n)]
    kinds[-1] = "full_attention" if kinds[-1] == "sliding_attention" else kinds[-1]
    kv_heads, head_size = Heads(fixed_head_dim=256).kv(f)
    kinds = [*owners(f, kinds, "num_kv_shared_layers", 0)]
    if f.has("per_layer_config"):
        return gemma4_by_layer(f, kinds, kv_heads, head_size)
    full_heads = kv_heads
    if f.flag("attention_k_eq_v", False):
        full_heads = f.count("num_global_key_value_heads", default=kv_heads)
        if f.count("num_attention_heads", default=full_heads) % full_heads:
            raise f.wrong("num_global_key_value_heads", "a divisor of num_attention_heads")
    make = makers(f, kv_heads, head_size)
    make["full_attention"] = makers(f, full_heads, f.count("global_head_dim", default=512))["full_attention"]
    return Parts(stack(kinds, make, kinds_field(f)))


def gemma4_by_layer(f: Fields, kinds: Sequence[str], kv_heads: int, head_size: int) -> Parts:
    overrides = f.section("per_layer_config")
    specs: list[Layers | None] = []
    for index, kind in enumerate(kinds):
        key = str(index)
        own = overrides.section(key) if overrides.has(key) else Fields({})
        heads, width = (
            own.count("num_key_value_heads", default=kv_heads),
            own.count("head_dim", default=head_size),
        )
        specs += stack([kind], makers(f, heads, width), kinds_field(f))
    return Parts(merge(specs))


def mimo_v2(f: Fields) -> Parts:
    """MiMo-V2: hybrid_layer_pattern has 1 for sliding layers, which have heads of their own; V is narrower
    than K.

    attention_chunk_size is there and not used. vLLM 0.33.0, models/mimo_v2.py; its MTP layers slide
    (models/mimo_v2_mtp.py).
    """
    n = f.num_layers()
    kinds = layer_types(mimo_pattern)(f, n)
    kv_heads, head_size = Heads().kv(f)
    full = partial(
        FullAttention, num_kv_heads=kv_heads, head_size=head_size,
        head_size_v=f.count("v_head_dim", default=head_size),
    )  # fmt: skip

    def sliding(count: int) -> Layers:
        width = f.count("swa_head_dim", default=head_size)
        return SlidingWindow(
            num_layers=count, head_size=width,
            num_kv_heads=f.count("swa_num_key_value_heads", default=kv_heads),
            head_size_v=f.count("swa_v_head_dim", default=f.count("v_head_dim", default=width)),
            sliding_window=f.count("sliding_window_size", "sliding_window", most=LARGEST),
        )  # fmt: skip

    def full_layers(count: int) -> Layers:
        return full(num_layers=count)

    mtp = f.optional("num_nextn_predict_layers", least=0, most=MOST_LAYERS)
    make = {"full_attention": full_layers, "sliding_attention": sliding}
    return Parts(stack(kinds, make, kinds_field(f)), (sliding(mtp),) if mtp else ())


def step3p5(f: Fields) -> Parts:
    """Step 3.5: num_attention_groups are KV heads; attention_other_setting holds the sliding layers' own.
    layer_types may go on into the MTP layers."""
    heads = Heads(kv_heads=("num_attention_groups", "num_key_value_heads"))
    n = f.num_layers()
    extra = f.optional("num_nextn_predict_layers", least=0, most=MOST_LAYERS) or 0
    make = makers(f, *heads.kv(f))
    if f.has("attention_other_setting"):
        other = f.section("attention_other_setting")
        kind = other.text("attention_type", "sliding_attention")
        if kind not in make:
            raise other.wrong("attention_type", "one of " + ", ".join(make))
        kv_heads = other.count("num_attention_groups", "num_key_value_heads", default=heads.kv(f)[0])
        make[kind] = makers(f, kv_heads, other.count("head_dim", default=heads.head_size(f)))[kind]
    if not f.has("layer_types"):
        kinds: Sequence[str] = ["full_attention"] * (n + extra)
    else:
        stated = f.raw("layer_types")
        longer = isinstance(stated, list | tuple) and len(stated) == n + extra
        kinds = [*f.words("layer_types", n + extra if longer else n)]
        kinds += [] if longer else ["full_attention"] * extra
    field = kinds_field(f)
    return Parts(stack(kinds[:n], make, field), stack(kinds[n:], make, field))


def minimax_m2(f: Fields) -> Parts:
    """MiniMax-M2: num_mtp_modules of mtp_transformer_layers each (1), where use_mtp is not false."""
    kv_heads, head_size = Heads(fixed_head_dim=128).kv(f)
    kind = partial(FullAttention, num_kv_heads=kv_heads, head_size=head_size)
    extra = f.optional("num_mtp_modules", least=0, most=MOST_LAYERS) or 0
    extra *= f.count("mtp_transformer_layers", default=1, least=0, most=MOST_LAYERS) if f.flag("use_mtp", True) else 0
    return Parts((kind(num_layers=f.num_layers()),), (kind(num_layers=extra),) if extra else ())


def minimax_m3(f: Fields) -> Parts:
    """MiniMax-M3: sparse layers keep all K and V, and an index key beside them. MTP is not read: what its
    modules keep is not established."""
    from aelius_math.cache_kinds import SparseAttention

    n = f.num_layers()
    kv_heads, head_size = Heads(fixed_head_dim=128).kv(f)
    make = makers(f, kv_heads, head_size)
    config = f.section("sparse_attention_config") if f.has("sparse_attention_config") else None

    def sparse(count: int) -> Layers:
        width = config.count("sparse_index_dim") if config else f.count("index_head_dim")
        return SparseAttention(num_layers=count, num_kv_heads=kv_heads, head_size=head_size, index_head_dim=width)

    make["minimax_m3_sparse"] = sparse
    if f.has("layer_types"):
        kinds: Sequence[str] = f.words("layer_types", n)
    elif config and config.flag("use_sparse_attention", True) and config.has("sparse_attention_freq"):
        kinds = ["minimax_m3_sparse" if on else "full_attention" for on in config.counts("sparse_attention_freq", n, most=1)]
    else:
        kinds = all_full(f, n)
    return Parts(stack(kinds, make, kinds_field(f)))


def inkling(f: Fields) -> Parts:
    """Inkling: sliding layers have heads of their own; each layer also keeps the last columns of four short
    convolutions: over K, over V, and over the outputs of both halves (models/inkling/modeling_inkling.py)."""
    from aelius_math.cache_kinds import ShortConvolution

    n = f.num_layers()
    kinds = layer_types(inkling_kinds)(f, n)
    full, swa = Heads(), Heads(kv_heads=("swa_num_key_value_heads",), heads=("swa_num_attention_heads",),
                               head_dim=("swa_head_dim",))  # fmt: skip
    hidden, kernel = f.count("hidden_size"), f.count("conv_kernel_size", "sconv_kernel_size", default=4)
    specs: list[Layers] = []
    for kind in kinds:
        if kind not in ("hybrid", "hybrid_sliding"):
            raise AeliusError(kinds_field(f), kind, "hybrid or hybrid_sliding for each layer")
        kv_heads, head_size = (full if kind == "hybrid" else swa).kv(f)
        make = makers(f, kv_heads, head_size, ("sliding_window_size", "sliding_window"))
        spec = make["full_attention" if kind == "hybrid" else "sliding_attention"](1)
        width = 2 * kv_heads * head_size + 2 * hidden
        specs += [spec, ShortConvolution(num_layers=1, hidden_size=width, conv_kernel_size=kernel)] if spec else []
    return Parts(merge(specs))
