"""Readers for models with recurrent layers among, beside or instead of attention.

Class facts cite transformers 5.24.0, models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from collections.abc import Callable

from aelius_math.cache import FullAttention, GatedDeltaNet, Layers
from aelius_math.config_attention import Heads, Kinds, Reader, every, layer_types
from aelius_math.config_fields import Fields, Parts, stack

LINEAR_INTERVAL: Kinds = layer_types(every(4, "full_attention_interval", most="linear_attention"))
"""Qwen3-Next and Qwen3.5: layer_types, else every full_attention_interval-th layer (4) is full."""


def gated_delta_net(f: Fields, state_dtype: str | None) -> Callable[[int], Layers]:
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


def qwen_linear(mtp: str, fixed_mtp: int = 1) -> Reader:
    """Qwen3-Next and Qwen3.5: Gated DeltaNet with gated full attention between.

    head_dim is 256 in both classes. The MTP module has one attention layer where the field is absent
    (vLLM 0.33.0, models/qwen3_next_mtp.py and qwen3_5_mtp.py). The state's dtype is mamba_ssm_dtype; without it the
    model's own (vLLM 0.33.0, models/config.py).
    """
    heads = Heads(fixed_head_dim=256)

    def read(f: Fields) -> Parts:
        n = f.num_layers()
        kv_heads, head_size = heads.kv(f)

        def full(count: int) -> Layers:
            return FullAttention(num_layers=count, num_kv_heads=kv_heads, head_size=head_size)

        make = {"full_attention": full, "linear_attention": gated_delta_net(f, f.dtype("mamba_ssm_dtype"))}
        field = f.path + ("layer_types" if f.has("layer_types") else "num_hidden_layers")
        layers = stack(LINEAR_INTERVAL(f, n), make, field)
        extra = f.count(mtp, default=fixed_mtp, least=0)
        return Parts(layers, (full(extra),) if extra else ())

    return read
