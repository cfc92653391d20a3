"""Readers for models with recurrent layers among, beside or instead of attention.

A state's dtype is None where the engine keeps it in the model's own. Class facts cite transformers 5.24.0,
models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from collections.abc import Sequence

from aelius_math.cache import GatedDeltaNet, KimiDelta, Layers
from aelius_math.config_attention import Heads, Reader, kinds_field, makers
from aelius_math.config_fields import MOST_LAYERS, Fields, Maker, Parts, stack
from aelius_math.config_mla import latent
from aelius_math.config_patterns import every, layer_types
from aelius_math.units import AeliusError

LINEAR = "linear_attention"


def gated_delta_net(f: Fields, state_dtype: str | None) -> Maker:
    """Gated DeltaNet layers under transformers' linear_* fields."""

    def make(count: int) -> Layers:
        return GatedDeltaNet(
            num_layers=count,
            num_k_heads=f.count("linear_num_key_heads"),
            num_v_heads=f.count("linear_num_value_heads"),
            head_k_dim=f.count("linear_key_head_dim"),
            head_v_dim=f.count("linear_value_head_dim"),
            conv_kernel_size=f.count("linear_conv_kernel_dim"),
            state_dtype=state_dtype,
        )

    return make


def qwen_linear(mtp: str) -> Reader:
    """Qwen3-Next and Qwen3.5: Gated DeltaNet; every full_attention_interval-th layer (4) is full, 256 wide.

    The MTP module has one attention layer where the field is absent (vLLM 0.33.0, models/qwen3_next_mtp.py
    and qwen3_5_mtp.py). The state's dtype is mamba_ssm_dtype; without it the model's own (vLLM 0.33.0,
    models/config.py).
    """
    kinds = layer_types(every(4, "full_attention_interval", most=LINEAR))

    def read(f: Fields) -> Parts:
        n = f.num_layers()
        make = makers(f, *Heads(fixed_head_dim=256).kv(f))
        make[LINEAR] = gated_delta_net(f, f.dtype("mamba_ssm_dtype"))
        layers = stack(kinds(f, n), make, kinds_field(f))
        extra = f.count(mtp, default=1, least=0, most=MOST_LAYERS)
        return Parts(layers, stack(["full_attention"] * extra, make, ""))

    return read


def olmo_hybrid(f: Fields) -> Parts:
    """OLMo Hybrid: as Qwen3-Next; absent linear_* fields follow from the heads: K is 3/4 of the hidden size
    over all heads, V twice as wide. layer_types, else every 4th is full, and the last if none is."""
    n = f.num_layers()
    heads = f.count("num_attention_heads")
    k_heads = f.count("linear_num_key_heads", default=heads)
    k_dim = f.count("linear_key_head_dim", default=3 * f.count("hidden_size") // (4 * k_heads))

    def linear(count: int) -> Layers:
        return GatedDeltaNet(
            num_layers=count, num_k_heads=k_heads,
            num_v_heads=f.count("linear_num_value_heads", default=heads),
            head_k_dim=k_dim, head_v_dim=f.count("linear_value_head_dim", default=2 * k_dim),
            conv_kernel_size=f.count("linear_conv_kernel_dim", default=4),
        )  # fmt: skip

    kinds = [*layer_types(every(4, most=LINEAR))(f, n)]
    if "full_attention" not in kinds and not f.has("layer_types"):
        kinds[-1] = "full_attention"
    return Parts(stack(kinds, {**makers(f, *Heads(mha=True).kv(f)), LINEAR: linear}, kinds_field(f)))


def kimi_linear(f: Fields) -> Parts:
    """Kimi Linear and K3: KDA layers and MLA layers by the lists of linear_attn_config, which count from 1.

    head_dim at the top is used by neither cache. KDA keeps its state in fp32 (vLLM 0.33.0,
    layers/mamba/mamba_utils.py, kda_state_dtype). transformers writes layer_types and linear_* fields
    instead.
    """
    n = f.num_layers()
    if f.has("linear_attn_config"):
        kinds, linear = kimi_lists(f.section("linear_attn_config"), n)
        names = ("num_heads", "head_dim", "short_conv_kernel_size")
    else:
        kinds, linear = f.words("layer_types", n), f
        names = ("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")

    def kda(count: int) -> Layers:
        heads, head_dim, kernel = (linear.count(name) for name in names)
        return KimiDelta(
            num_layers=count, num_heads=heads, head_dim=head_dim, conv_kernel_size=kernel, state_dtype="fp32"
        )  # fmt: skip

    make = {"full_attention": latent(f), LINEAR: kda}
    layers = stack(kinds, make, kinds_field(f))
    extra = f.optional("num_nextn_predict_layers", least=0, most=MOST_LAYERS)
    return Parts(layers, stack(["full_attention"] * (extra or 0), make, ""))


def kimi_lists(config: Fields, n: int) -> tuple[Sequence[str], Fields]:
    """The kinds by full_attn_layers and kda_layers, each layer in one of them; and the section itself."""
    full, linear = config.indices("full_attn_layers", n, 1), config.indices("kda_layers", n, 1)
    if full & linear or len(full) + len(linear) != n:
        found = f"{len(full)} full and {len(linear)} KDA layers, {len(full & linear)} of them both"
        raise AeliusError(config.path.rstrip("."), found, f"each of the {n} layers in one list")
    return ["full_attention" if index in full else LINEAR for index in range(n)], config


def lightning(f: Fields) -> Maker:
    """Lightning attention: one matrix for each query head, as wide as a head; no convolution."""
    from aelius_math.cache_kinds import LightningAttention

    def make(count: int) -> Layers:
        heads = f.count("num_attention_heads")
        return LightningAttention(num_layers=count, num_heads=heads, head_dim=Heads().head_size(f))

    return make


def minimax(f: Fields) -> Parts:
    """MiniMax-Text-01, M1 and VL-01: attn_type_list has 1 for full layers, 0 for lightning (vLLM 0.23.0,
    models/minimax_text_01.py); transformers writes layer_types, and without it every other layer is full."""
    n = f.num_layers()
    if f.has("attn_type_list"):
        kinds: Sequence[str] = ["full_attention" if kind else LINEAR for kind in f.counts("attn_type_list", n, most=1)]
    elif f.raw("model_type") == "minimax" or f.has("layer_types"):
        kinds = layer_types(every(2, most=LINEAR, at=0))(f, n)
    else:
        raise f.wrong("attn_type_list", "a list of 0 and 1, one a layer")
    return Parts(stack(kinds, {**makers(f, *Heads(mha=True).kv(f)), LINEAR: lightning(f)}, kinds_field(f)))


def bailing(f: Fields) -> Parts:
    """Ring and Ling hybrids: of layer_group_size layers the last is full, and so are those after the last
    whole group.

    The full ones are MLA where kv_lora_rank is given, else grouped-query attention. The others are KDA where
    short_conv_kernel_size is given (BailingMoeV3), else lightning (BailingMoeV2_5, BailingMoeLinear), one
    head for each query head. vLLM 0.33.0, models/bailing_moe_linear.py and bailing_moe_v3.py.
    """
    n, group = f.num_layers(), f.count("layer_group_size")
    whole_groups = n // group * group
    silent = ["full_attention" if (index + 1) % group == 0 or index >= whole_groups else LINEAR for index in range(n)]

    def kda(count: int) -> Layers:
        return KimiDelta(
            num_layers=count, num_heads=f.count("num_attention_heads"), head_dim=f.count("head_dim"),
            conv_kernel_size=f.count("short_conv_kernel_size"), state_dtype="fp32",
        )  # fmt: skip

    full = latent(f) if f.has("kv_lora_rank") else makers(f, *Heads(mha=True).kv(f))["full_attention"]
    make = {"full_attention": full, LINEAR: kda if f.has("short_conv_kernel_size") else lightning(f)}
    extra = f.optional("num_nextn_predict_layers", least=0, most=MOST_LAYERS)
    kinds = f.words("layer_types", n) if f.has("layer_types") else silent
    layers = stack(kinds, make, kinds_field(f))
    return Parts(layers, stack(["full_attention"] * (extra or 0), make, ""))


def lfm2(f: Fields) -> Parts:
    """LFM2: short convolutions as wide as the hidden size; full layers by layer_types or full_attn_idxs."""
    n = f.num_layers()
    if f.has("layer_types"):
        kinds: Sequence[str] = f.words("layer_types", n)
    else:
        full = f.indices("full_attn_idxs", n)
        kinds = ["full_attention" if index in full else "conv" for index in range(n)]

    make = {**makers(f, *Heads(mha=True).kv(f)), "conv": short_convolution(f)}
    return Parts(stack(kinds, make, kinds_field(f)))


def short_convolution(f: Fields) -> Maker:
    from aelius_math.cache_kinds import ShortConvolution

    def make(count: int) -> Layers:
        width, kernel = f.count("hidden_size"), f.count("conv_L_cache")
        return ShortConvolution(num_layers=count, hidden_size=width, conv_kernel_size=kernel)

    return make


def lfm3(f: Fields) -> Parts:
    """LFM3: as LFM2, with sliding layers (256) too; without layer_types, of four layers the third is full and
    the first, but for the very first, slides."""
    n = f.num_layers()
    cycle = ("sliding_attention", "conv", "full_attention", "conv")
    silent = ["conv", *(cycle[index % 4] for index in range(1, n))]
    make = {**makers(f, *Heads(fixed_head_dim=128).kv(f), fixed=256), "conv": short_convolution(f)}
    kinds = f.words("layer_types", n) if f.has("layer_types") else silent
    return Parts(stack(kinds, make, kinds_field(f)))


def lara_mini(f: Fields) -> Parts:
    """Lara Mini: Gated DeltaNet, sliding (512) and full layers, in fives where layer_types is absent."""
    n = f.num_layers()
    cycle = (LINEAR, "sliding_attention", LINEAR, "full_attention", "sliding_attention")
    silent = [cycle[index % 5] for index in range(n)]
    make = {**makers(f, *Heads(fixed_head_dim=128).kv(f), fixed=512), LINEAR: gated_delta_net(f, None)}
    kinds = f.words("layer_types", n) if f.has("layer_types") else silent
    return Parts(stack(kinds, make, kinds_field(f)))
