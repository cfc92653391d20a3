"""Readers for models with Mamba layers, RG-LRU, RWKV or xLSTM: alone, among attention, or beside it in each
layer.

A state's dtype is None where the engine keeps it in the model's own. Class facts cite transformers 5.24.0,
models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from collections.abc import Sequence

from aelius_math.cache import Layers, Mamba1, Mamba2
from aelius_math.config_attention import Heads, makers
from aelius_math.config_fields import MOST_LAYERS, Fields, Maker, Parts, merge, nothing, stack
from aelius_math.units import AeliusError

MHA = Heads(mha=True)


def mamba1(f: Fields, inner: int, state: str, kernel: str) -> Maker:
    def make(count: int) -> Layers:
        return Mamba1(
            num_layers=count,
            intermediate_size=inner,
            state_size=f.count(state),
            conv_kernel_size=f.count(kernel),
        )

    return make


def mamba2(
    f: Fields, heads: str, head_dim: int, groups: str, state: str, kernel: str,
    chunk: str = "mamba_chunk_size", fixed_chunk: int = 256, state_dtype: str | None = None,
) -> Maker:  # fmt: skip
    def make(count: int) -> Layers:
        return Mamba2(
            num_layers=count, num_heads=f.count(heads), head_dim=head_dim, n_groups=f.count(groups),
            state_size=f.count(state), conv_kernel_size=f.count(kernel),
            chunk_size=f.count(chunk, default=fixed_chunk), state_dtype=state_dtype,
        )  # fmt: skip

    return make


def mamba(f: Fields) -> Parts:
    """Mamba and Falcon Mamba: intermediate_size is the inner width where given, whatever expand says; else
    expand x hidden_size."""
    inner = f.optional("intermediate_size") or f.count("expand") * f.count("hidden_size")
    make = mamba1(f, inner, "state_size", "conv_kernel")
    return Parts(stack(["mamba"] * f.num_layers(), {"mamba": make}, f.path))


def mamba_2(f: Fields) -> Parts:
    """Mamba 2: heads times their width must be expand times the hidden size, as its class demands."""
    heads, head_dim = f.count("num_heads"), f.count("head_dim")
    if f.has("hidden_size") and heads * head_dim != f.count("expand", default=2) * f.count("hidden_size"):
        raise f.wrong("head_dim", f"expand x hidden_size / num_heads, with {heads} heads")
    make = mamba2(f, "num_heads", head_dim, "n_groups", "state_size", "conv_kernel", "chunk_size")
    return Parts(stack(["mamba"] * f.num_layers(), {"mamba": make}, f.path))


def head_width(f: Fields, inner: int) -> int:
    """mamba_d_head: stated, or "auto": the inner width over the heads; both must agree where both are
    given."""
    heads = f.count("mamba_n_heads")
    stated = None if f.raw("mamba_d_head") == "auto" else f.optional("mamba_d_head")
    width = stated or inner // heads
    if width * heads != inner:
        raise f.wrong("mamba_d_head", f"{inner} / mamba_n_heads, {heads}")
    return width


def jamba(f: Fields) -> Parts:
    """Jamba: Mamba 1 as wide as mamba_expand x hidden_size (intermediate_size is the MLP's); each
    attn_layer_period-th layer attends, from attn_layer_offset on."""
    n = f.num_layers()
    period, offset = f.count("attn_layer_period"), f.count("attn_layer_offset", least=0)
    kinds = ["attention" if index % period == offset else "mamba" for index in range(n)]
    make = makers(f, *MHA.kv(f))
    make["mamba"] = mamba1(f, f.count("mamba_expand") * f.count("hidden_size"), "mamba_d_state", "mamba_d_conv")
    return Parts(stack(kinds, make, f.path))


def granite_hybrid(f: Fields) -> Parts:
    """Granite 4 and Bamba: Mamba 2 and attention by layer_types, or by Bamba's attn_layer_indices.

    Without either, Granite's layers are all Mamba; null attn_layer_indices likewise. Without a Mamba layer
    (Granite's dense siblings) the mamba_* fields count for nothing.
    """
    n = f.num_layers()
    words = next((name for name in ("layer_types", "layers_block_type") if f.has(name)), None)
    if words:
        kinds: Sequence[str] = f.words(words, n)
    elif f.has("attn_layer_indices"):
        full = f.indices("attn_layer_indices", n)
        kinds = ["attention" if index in full else "mamba" for index in range(n)]
    elif f.raw("model_type") == "bamba" and "attn_layer_indices" not in f.values:
        raise f.wrong("attn_layer_indices", "a list of layer numbers, or null")
    else:
        kinds = ["mamba"] * n
    make = makers(f, *MHA.kv(f)) if set(kinds) - {"mamba", "linear_attention"} else {}

    def recurrent(count: int) -> Layers | None:
        width = head_width(f, f.count("mamba_expand") * f.count("hidden_size"))
        return mamba2(f, "mamba_n_heads", width, "mamba_n_groups", "mamba_d_state", "mamba_d_conv")(count)

    make |= {"mamba": recurrent, "linear_attention": recurrent}
    return Parts(stack(kinds, make, f.path + (words or "attn_layer_indices")))


def falcon_h1(f: Fields) -> Parts:
    """Falcon-H1: each layer holds attention and Mamba 2 side by side, mamba_d_ssm wide (else mamba_expand x
    hidden)."""
    n = f.num_layers()
    inner = f.optional("mamba_d_ssm") or f.count("mamba_expand") * f.count("hidden_size")
    make = makers(f, *MHA.kv(f))
    ssm = mamba2(f, "mamba_n_heads", head_width(f, inner), "mamba_n_groups", "mamba_d_state", "mamba_d_conv")
    return Parts(merge([make["full_attention"](n), ssm(n)]))


def phi4flash(f: Fields) -> Parts:
    """Phi-4-mini-flash (SambaY): every mb_per_layer-th layer (2) is Mamba 1, the others attend. Of the first
    half the attention slides; layer n / 2 + 1 is the one full layer, and all after it share its cache and the
    last state.

    microsoft/Phi-4-mini-flash-reasoning, configuration_phi4flash.py; vLLM 0.10.0, models/phi4flash.py.
    mamba_* are 16, 4 and 2 where absent.
    """
    n = f.num_layers()
    step = f.count("mb_per_layer", default=2, least=2)
    kinds = [
        "mamba" if index % step == 0 else "sliding_attention" if index < n // 2 and index % 2 else "full_attention"
        for index in range(min(n, n // 2 + 2))
    ]
    inner = f.count("mamba_expand", default=2) * f.count("hidden_size")

    def recurrent(count: int) -> Layers:
        return Mamba1(
            num_layers=count, intermediate_size=inner, state_size=f.count("mamba_d_state", default=16),
            conv_kernel_size=f.count("mamba_d_conv", default=4),
        )  # fmt: skip

    return Parts(stack(kinds, {**makers(f, *MHA.kv(f)), "mamba": recurrent}, f.path))


def zamba(f: Fields) -> Parts:
    """Zamba: Mamba 1 in each layer, and shared attention beside it in some, twice the hidden size wide. Each
    use of the shared weights keeps K and V of its own."""
    n = f.num_layers()
    if f.has("layers_block_type"):
        hybrid = f.words("layers_block_type", n)
    else:
        period, offset = f.count("attn_layer_period"), f.count("attn_layer_offset", least=0)
        hybrid = ["mamba", "mamba", "hybrid"][:n]
        hybrid += ["hybrid" if index % period == offset else "mamba" for index in range(n - 3)]
    inner = f.count("mamba_expand") * f.count("hidden_size")
    return shared_attention(f, hybrid, mamba1(f, inner, "mamba_d_state", "mamba_d_conv"))


ZAMBA2_54 = {6, 12, 18, 24, 30, 36, 42, 47, 51}
"""Zamba2Config's own hybrid layers, of 54, where a config names none."""


def zamba2(f: Fields) -> Parts:
    """Zamba2: as Zamba, with Mamba 2; kv_channels is not the width of the cache."""
    n = f.num_layers()
    if f.has("layers_block_type"):
        kinds = f.words("layers_block_type", n)
    else:
        if not f.has("hybrid_layer_ids") and n != 54:
            raise f.wrong("hybrid_layer_ids", "a list of layer numbers")
        hybrid = f.indices("hybrid_layer_ids", n) if f.has("hybrid_layer_ids") else ZAMBA2_54
        kinds = ["hybrid" if index in hybrid else "mamba" for index in range(n)]
    inner, heads = f.count("mamba_expand") * f.count("hidden_size"), f.count("n_mamba_heads")
    if inner % heads:
        raise f.wrong("n_mamba_heads", f"a divisor of mamba_expand x hidden_size, {inner}")
    ssm = mamba2(f, "n_mamba_heads", inner // heads, "mamba_ngroups", "mamba_d_state", "mamba_d_conv", "chunk_size")
    return shared_attention(f, kinds, ssm)


def shared_attention(f: Fields, kinds: Sequence[str], ssm: Maker) -> Parts:
    for index, kind in enumerate(kinds):
        if kind not in ("mamba", "hybrid", "linear_attention"):
            raise AeliusError(f"{f.path}layers_block_type[{index}]", kind, "mamba or hybrid")
    count = f.count("num_attention_heads")
    kv_heads = f.count("num_key_value_heads", default=count)
    width = f.count("attention_head_dim", default=2 * f.count("hidden_size") // count)
    attending = sum(kind == "hybrid" for kind in kinds)
    full = makers(f, kv_heads, width)["full_attention"](attending) if attending else None
    return Parts(merge([ssm(len(kinds)), full]))


NEMOTRON_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def nemotron_h(f: Fields) -> Parts:
    """Nemotron-H and Nemotron 3: hybrid_override_pattern (M Mamba 2, * attention, - MLP, E experts) or
    layers_block_type; num_hidden_layers may be absent, and head_dim is 128 where no field states it.

    The state is fp32 where mamba_ssm_cache_dtype is absent (vLLM 0.33.0, models/config.py). expand counts for
    nothing.
    """
    kinds = nemotron_kinds(f, "hybrid_override_pattern", ("layers_block_type", "layer_types"))
    if f.has("num_hidden_layers") and f.num_layers() != len(kinds):
        raise f.wrong("num_hidden_layers", f"{len(kinds)}, the length of the pattern")
    heads = Heads(head_dim=("head_dim", "attention_head_dim"), fixed_head_dim=128, mha=True)
    make = {**makers(f, *heads.kv(f)), "mlp": nothing, "moe": nothing}
    dtype = f.dtype("mamba_ssm_cache_dtype") or "fp32"

    def recurrent(count: int) -> Layers | None:
        return mamba2(f, "mamba_num_heads", f.count("mamba_head_dim"), f.first("n_groups", "mamba_n_groups"),
                      "ssm_state_size", f.first("conv_kernel", "mamba_d_conv"), "chunk_size", 128,
                      dtype)(count)  # fmt: skip

    make |= {"mamba": recurrent, "linear_attention": recurrent}
    layers = stack(kinds, make, f.path + f.first("layers_block_type", "layer_types", "hybrid_override_pattern"))
    if not layers:
        raise AeliusError(f.path + "hybrid_override_pattern", "no M and no *", "a layer that keeps something")
    extra = f.optional("num_nextn_predict_layers", least=0, most=MOST_LAYERS) or 0
    if not extra:
        return Parts(layers)
    mtp = nemotron_kinds(f, "mtp_hybrid_override_pattern", ("mtp_layers_block_type",))
    return Parts(layers, stack([*mtp] * extra, make, f.path + "mtp_layers_block_type"))


def nemotron_kinds(f: Fields, pattern: str, lists: tuple[str, ...]) -> Sequence[str]:
    """The kinds of a pattern's letters or of a list's words; where both are given they must agree."""
    stated = next((f.words(name) for name in lists if f.has(name)), None)
    if not f.has(pattern):
        if stated is None:
            raise f.wrong(pattern, "a pattern of M, *, - and E, or a list layers_block_type")
        return stated
    letters = f.text(pattern)
    if not 1 <= len(letters) <= MOST_LAYERS:
        raise AeliusError(f.path + pattern, f"{len(letters)} letters", f"from 1 to {MOST_LAYERS:,}")
    for index, letter in enumerate(letters):
        if letter not in NEMOTRON_LETTERS:
            raise AeliusError(f"{f.path}{pattern}[{index}]", letter, "one of M, *, - and E")
    kinds = [NEMOTRON_LETTERS[letter] for letter in letters]
    words = {"linear_attention": "mamba", "full_attention": "attention"}
    if stated is not None and [words.get(word, word) for word in stated] != kinds:
        raise AeliusError(f.path + pattern, letters, "the same layers as layers_block_type")
    return kinds
