"""Readers for attention whose heads vary by layer, whose layers share a cache, or whose fields are spelled
their own way.

Class facts cite transformers 5.24.0, models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from aelius_math.cache import FullAttention
from aelius_math.config_attention import Heads, Reader, attention, makers
from aelius_math.config_fields import Fields, Parts, nothing, stack
from aelius_math.config_patterns import (
    layer_types,
    llama4_kinds,
)

GPT2 = Heads(heads=("n_head", "num_attention_heads"), kv_heads=(), hidden=("n_embd", "hidden_size"), head_dim=())
GPT2_LAYERS = ("n_layer", "num_hidden_layers")


def falcon(f: Fields) -> Parts:
    """Falcon: KV heads count in the new decoder architecture; without it multi_query (true if absent) means
    one.

    RefinedWeb, the first name of the 40B: n_head_kv counts, whatever multi_query says (vLLM 0.33.0,
    transformers_utils/configs/falcon.py).
    """
    heads = Heads(heads=("num_attention_heads", "n_head"), kv_heads=("num_kv_heads", "n_head_kv"),
                  hidden=("n_embed", "hidden_size"), head_dim=(), mha=True)  # fmt: skip
    new = f.flag("new_decoder_architecture", False) or f.raw("model_type") == "RefinedWeb"
    if new:
        kv_heads, head_size = heads.kv(f)
    else:
        kv_heads, head_size = heads._replace(kv_heads=()).kv(f)
        kv_heads = 1 if f.flag("multi_query", True) else kv_heads
    n = f.num_layers("num_hidden_layers", "n_layer")
    return Parts((FullAttention(num_layers=n, num_kv_heads=kv_heads, head_size=head_size),))


def gpt_bigcode(f: Fields) -> Parts:
    """StarCoder, SantaCoder: multi_query (true if absent) means one KV head."""
    kv_heads, head_size = GPT2.kv(f)
    kv_heads = 1 if f.flag("multi_query", True) else kv_heads
    n = f.num_layers(*GPT2_LAYERS)
    return Parts((FullAttention(num_layers=n, num_kv_heads=kv_heads, head_size=head_size),))


def mpt(f: Fields) -> Parts:
    """MPT and DBRX: KV heads stand in attn_config; MPT has one for each query head unless attn_type says
    otherwise."""
    heads = Heads(heads=("n_heads", "num_attention_heads"), kv_heads=(), hidden=("d_model", "hidden_size"), head_dim=())
    kv_heads, head_size = heads.kv(f)
    inner = Fields(f.raw("attn_config") or {}, f.path + "attn_config.")
    kind = inner.text("attn_type", "multihead_attention")
    if inner.has("kv_n_heads"):
        total, kv_heads = kv_heads, inner.count("kv_n_heads")
        if total % kv_heads:
            raise inner.wrong("kv_n_heads", f"a divisor of n_heads, {total}")
    elif kind == "multiquery_attention":
        kv_heads = 1
    elif f.raw("model_type") == "dbrx" or kind != "multihead_attention":
        raise inner.wrong("kv_n_heads", "a whole number of at least 1")
    n = f.num_layers("n_layers", "num_hidden_layers")
    return Parts((FullAttention(num_layers=n, num_kv_heads=kv_heads, head_size=head_size),))


def chatglm(f: Fields) -> Parts:
    """ChatGLM and GLM-4 under their first name: multi_query_group_num counts where multi_query_attention is
    true (vLLM 0.33.0, transformers_utils/configs/chatglm.py: false if absent)."""
    heads = Heads(kv_heads=(), head_dim=("kv_channels",))
    kv_heads, head_size = heads.kv(f)
    if f.flag("multi_query_attention", False):
        kv_heads, head_size = heads._replace(kv_heads=("multi_query_group_num",)).kv(f)
    n = f.num_layers("num_layers", "num_hidden_layers")
    return Parts((FullAttention(num_layers=n, num_kv_heads=kv_heads, head_size=head_size),))


LLAMA4 = attention(Heads(mha=True), layer_types(llama4_kinds))


def mllama(f: Fields) -> Parts:
    """Llama 3.2 Vision: cross-attention layers keep the image's K and V, none of the text's."""
    n = f.num_layers()
    crossing = f.indices("cross_attention_layers", n)
    kv_heads, head_size = Heads().kv(f)
    kinds = ["cross_attention" if index in crossing else "full_attention" for index in range(n)]
    return Parts(stack(kinds, {**makers(f, kv_heads, head_size), "cross_attention": nothing}, f.path))


def decoder(layers: tuple[str, ...], heads: Heads) -> Reader:
    """Encoder-decoder models: the decoder's self-attention. Cross-attention keeps K and V of the input, once,
    not of what is generated; it is not counted."""

    def read(f: Fields) -> Parts:
        kv_heads, head_size = heads.kv(f)
        n = f.num_layers(*layers)
        return Parts((FullAttention(num_layers=n, num_kv_heads=kv_heads, head_size=head_size),))

    return read


T5 = decoder(
    ("num_decoder_layers", "num_layers", "num_hidden_layers"),
    Heads(heads=("num_heads",), kv_heads=(), hidden=("d_model",), head_dim=("d_kv",)),
)
BART = decoder(
    ("decoder_layers",),
    Heads(heads=("decoder_attention_heads",), kv_heads=(), hidden=("d_model",), head_dim=()),
)
