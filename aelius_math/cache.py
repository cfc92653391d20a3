"""What each kind of layer keeps for one sequence: one frozen class a kind, all numbers of the whole model.

A class answers the same few questions, so a new kind is one more class and no change elsewhere:

    token_bytes(dtype, tensor_parallel_size)    bytes that one more token adds in one layer, on one card
    index_token_bytes(dtype)                    bytes of index keys beside them (sparse attention)
    window                                      tokens after which a layer stops growing; None: it never does
    conv_elements(tensor_parallel_size, num_speculative_tokens), state_elements(tensor_parallel_size)
                                                elements of fixed state in one layer, on one card

Attention grows or slides; recurrent layers have `recurrent = True`, no token bytes and a fixed state.
Sources: vLLM 0.28.0, vllm/v1/kv_cache_interface.py and vllm/model_executor/layers/mamba/mamba_utils.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from aelius_math import dtypes
from aelius_math.units import AeliusError, ceil_div, whole

OPTIONAL = {"head_size_v", "index_head_dim", "state_dtype", "conv_dtype"}


@dataclass(frozen=True, kw_only=True)
class Layers:
    """A number of layers of one kind; base of the kinds below."""

    num_layers: int

    recurrent = False  # no annotation: the same for all layers of a kind, not a field

    @property
    def window(self) -> int | None:
        return None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name in OPTIONAL:
                continue
            if field.name in ("state_dtype", "conv_dtype"):
                object.__setattr__(self, field.name, dtypes.known(value, field.name))
                dtypes.element_bytes(value, field.name)
            else:
                whole(f"{type(self).__name__}.{field.name}", value)

    def token_bytes(self, dtype: str, tensor_parallel_size: int = 1) -> int:
        return 0

    def index_token_bytes(self, dtype: str) -> int:
        return 0

    def conv_elements(self, tensor_parallel_size: int = 1, num_speculative_tokens: int = 0) -> int:
        return 0

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return 0


def heads_per_card(num_kv_heads: int, tensor_parallel_size: int) -> int:
    """KV heads [int] that one card keeps; below one head a card, heads are copied (vLLM 0.28.0, config/model.py).

    >>> heads_per_card(4, 2), heads_per_card(4, 8)
    (2, 1)
    """
    return max(1, num_kv_heads // tensor_parallel_size)


@dataclass(frozen=True, kw_only=True)
class FullAttention(Layers):
    """Layers whose K and V grow with every token: [2, tokens, num_kv_heads, head_size].

    >>> FullAttention(num_layers=16, num_kv_heads=4, head_size=256).token_bytes("bf16")
    4096
    """

    num_kv_heads: int
    head_size: int
    head_size_v: int | None = None

    def token_bytes(self, dtype: str, tensor_parallel_size: int = 1) -> int:
        heads = heads_per_card(self.num_kv_heads, tensor_parallel_size)
        sizes = (self.head_size, self.head_size_v or self.head_size)
        return sum(dtypes.vector_bytes(dtype, heads, size) for size in sizes)


@dataclass(frozen=True, kw_only=True)
class SlidingWindow(FullAttention):
    """Layers that look back `sliding_window` tokens and keep no more than those.

    >>> layers = SlidingWindow(num_layers=52, num_kv_heads=16, head_size=128, sliding_window=1024)
    >>> layers.token_bytes("bf16"), layers.window
    (8192, 1024)
    """

    sliding_window: int

    @property
    def window(self) -> int | None:
        return self.sliding_window


@dataclass(frozen=True, kw_only=True)
class ChunkedAttention(FullAttention):
    """Layers that look back to the start of the current chunk of `attention_chunk_size` tokens."""

    attention_chunk_size: int

    @property
    def window(self) -> int | None:
        return self.attention_chunk_size


@dataclass(frozen=True, kw_only=True)
class MLA(Layers):
    """Layers that keep one compressed vector a token for all heads, the same on every card.

    >>> MLA(num_layers=61, kv_lora_rank=512, qk_rope_head_dim=64).token_bytes("bf16")
    1152
    """

    kv_lora_rank: int
    qk_rope_head_dim: int
    index_head_dim: int | None = None

    FP8_DS_MLA_EXTRA_BYTES = 80  # 656 in all for 576: 512 fp8, 4 fp32 scales, 64 bf16

    def token_bytes(self, dtype: str, tensor_parallel_size: int = 1) -> int:
        latent = self.kv_lora_rank + self.qk_rope_head_dim
        if dtypes.known(dtype) == "fp8_ds_mla":
            if (self.kv_lora_rank, self.qk_rope_head_dim) != (512, 64):
                raise AeliusError("kv_lora_rank + qk_rope_head_dim", latent, "512 + 64 for fp8_ds_mla")
            return latent + self.FP8_DS_MLA_EXTRA_BYTES
        return dtypes.row_bytes(dtype, latent)

    def index_token_bytes(self, dtype: str) -> int:
        return dtypes.row_bytes(dtype, self.index_head_dim) if self.index_head_dim else 0


@dataclass(frozen=True, kw_only=True)
class Recurrent(Layers):
    """Layers whose state has a fixed size; base of the recurrent kinds. A dtype of None is the model's own."""

    state_dtype: str | None = None
    conv_dtype: str | None = None

    recurrent = True
    conv_kernel_size: int

    def conv_width(self, tensor_parallel_size: int) -> int:
        """Channels of the convolution that one card keeps."""
        raise NotImplementedError

    def conv_elements(self, tensor_parallel_size: int = 1, num_speculative_tokens: int = 0) -> int:
        columns = self.conv_kernel_size - 1 + num_speculative_tokens
        return columns * self.conv_width(tensor_parallel_size)


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet(Recurrent):
    """Gated DeltaNet layers: a convolution's last columns and one matrix a value head.

    >>> layers = GatedDeltaNet(num_layers=48, num_k_heads=16, num_v_heads=48, head_k_dim=128, head_v_dim=128, conv_kernel_size=4)
    >>> layers.conv_elements(), layers.state_elements()
    (30720, 786432)
    """

    num_k_heads: int
    num_v_heads: int
    head_k_dim: int
    head_v_dim: int

    def conv_width(self, tensor_parallel_size: int) -> int:
        keys, values = self.num_k_heads * self.head_k_dim, self.num_v_heads * self.head_v_dim
        return (2 * keys + values) // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.num_v_heads // tensor_parallel_size * self.head_v_dim * self.head_k_dim


@dataclass(frozen=True, kw_only=True)
class KimiDelta(Recurrent):
    """Kimi Delta Attention layers: as Gated DeltaNet, with one number of heads for all."""

    num_heads: int
    head_dim: int

    def conv_width(self, tensor_parallel_size: int) -> int:
        return 3 * self.num_heads * self.head_dim // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.num_heads // tensor_parallel_size * self.head_dim * self.head_dim


@dataclass(frozen=True, kw_only=True)
class Mamba1(Recurrent):
    """Mamba layers of the first kind; drafts do not widen their convolution."""

    intermediate_size: int
    state_size: int

    def conv_width(self, tensor_parallel_size: int) -> int:
        return self.intermediate_size // tensor_parallel_size

    def conv_elements(self, tensor_parallel_size: int = 1, num_speculative_tokens: int = 0) -> int:
        return super().conv_elements(tensor_parallel_size, 0)

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.intermediate_size // tensor_parallel_size * self.state_size


@dataclass(frozen=True, kw_only=True)
class Mamba2(Recurrent):
    """Mamba layers of the second kind, with heads and groups; groups that do not divide by the cards are raised."""

    num_heads: int
    head_dim: int
    n_groups: int
    state_size: int
    chunk_size: int = 256

    def conv_width(self, tensor_parallel_size: int) -> int:
        groups = self.n_groups
        if groups % tensor_parallel_size:
            groups = tensor_parallel_size if groups == 1 else ceil_div(groups, tensor_parallel_size) * tensor_parallel_size
        return (self.num_heads * self.head_dim + 2 * groups * self.state_size) // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.num_heads // tensor_parallel_size * self.head_dim * self.state_size
