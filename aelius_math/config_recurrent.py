"""Readers for RecurrentGemma, RWKV and xLSTM, whose layers keep vectors or matrices of their own kind.

A state's dtype is None where the engine keeps it in the model's own. Class facts cite transformers 5.24.0,
models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from aelius_math.cache import Layers
from aelius_math.config_attention import Heads, makers
from aelius_math.config_fields import Fields, Parts, stack
from aelius_math.units import round_up


def recurrent_gemma(f: Fields) -> Parts:
    """RecurrentGemma: block_types over and over (recurrent, recurrent, attention); its attention slides. The
    unit's state is fp32 (models/recurrent_gemma/modeling_recurrent_gemma.py)."""
    from aelius_math.cache_kinds import RGLRU

    n = f.num_layers()
    cycle = f.words("block_types") if f.has("block_types") else ["recurrent", "recurrent", "attention"]
    kinds = [cycle[index % len(cycle)] for index in range(n)]
    kv = makers(f, *Heads(head_dim=(), mha=True).kv(f), ("attention_window_size",))

    def unit(count: int) -> Layers:
        width = f.count("lru_width", default=f.count("hidden_size"))
        return RGLRU(num_layers=count, lru_width=width, conv_kernel_size=f.count("conv1d_width"), state_dtype="fp32")

    make = {"recurrent": unit, "attention": kv["sliding_attention"]}
    return Parts(stack(kinds, make, f.path + "block_types"))


def rwkv(f: Fields) -> Parts:
    """RWKV 5, 6 and 7: hidden size over head_size (head_dim in 7) heads, a matrix each; no KV cache."""
    from aelius_math.cache_kinds import RWKV

    if f.has("attn"):
        raise f.wrong("attn", "null: attention among RWKV layers is not read")
    hidden, size = f.count("hidden_size"), f.count("head_size", "head_dim")
    inner = f.count("attention_hidden_size", default=hidden)
    if inner % size:
        raise f.wrong(f.first("head_size", "head_dim"), f"a divisor of {inner}")
    n = f.num_layers()
    return Parts((RWKV(num_layers=n, hidden_size=hidden, num_heads=inner // size, head_size=size),))


def rwkv4(f: Fields) -> Parts:
    """RWKV 4: three vectors of attention_hidden_size (the hidden size if absent)."""
    from aelius_math.cache_kinds import RWKV4

    hidden = f.count("hidden_size")
    inner = f.count("attention_hidden_size", default=hidden)
    return Parts((RWKV4(num_layers=f.num_layers(), hidden_size=hidden, attention_hidden_size=inner),))


def xlstm(f: Fields) -> Parts:
    """xLSTM: heads of qk_dim_factor and v_dim_factor (0.5 and 1) times the width, each rounded up to a
    multiple of 64."""
    from aelius_math.cache_kinds import XLSTM

    hidden, heads = f.count("hidden_size", "embedding_dim"), f.count("num_heads")
    from fractions import Fraction  # exact, and needed here only

    widths = []
    for field, fixed in (("qk_dim_factor", 0.5), ("v_dim_factor", 1.0)):
        factor = f.raw(field)
        factor = fixed if factor is None else factor
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= 64:
            raise f.wrong(field, "a number above 0 and of at most 64")
        widths.append(round_up(-int(-Fraction(factor) * hidden // 1), 64) // heads)
    n = f.num_layers("num_hidden_layers", "num_blocks")
    dtype = f.dtype("inference_state_dtype") or "fp32"
    return Parts((XLSTM(num_layers=n, num_heads=heads, qk_head_dim=widths[0], v_head_dim=widths[1], state_dtype=dtype),))
