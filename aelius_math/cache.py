"""What each kind of layer keeps for one sequence: one frozen class a kind, all numbers of the whole model.

A class answers the same few questions, so a new kind is one more class and no change elsewhere. The kinds that many models
have are here, in one long module; the rarer ones are in `cache_kinds`:

    token_bytes(dtype, tensor_parallel_size)    bytes that one more token adds in one layer, on one card
    index_token_bytes(dtype)                    bytes of index keys beside them (sparse attention)
    window                                      tokens after which a layer stops growing; None: it never does
    conv_elements(tensor_parallel_size, num_speculative_tokens), state_elements(tensor_parallel_size)
                                                elements of fixed state in one layer, on one card

and what vLLM's planner asks: `vllm_spec`, the engine's name of the kind (None: the planner refuses it);
`spec_key`, `table_key`; `planned_blocks`, `running_blocks`; `divided`, what tensor parallel must divide.

Attention grows or slides; recurrent layers have `recurrent = True`, no token bytes and a fixed state.
Sources: vLLM 0.28.0, vllm/v1/kv_cache_interface.py and vllm/model_executor/layers/mamba/mamba_utils.py.
"""

from __future__ import annotations

from typing import NamedTuple

from aelius_math import dtypes
from aelius_math.records import Record
from aelius_math.units import AeliusError, ceil_div, whole

OPTIONAL = {"head_size_v", "index_head_dim", "state_dtype", "conv_dtype"}


class Layers(Record):
    """A number of layers of one kind; base of the kinds below."""

    num_layers: int

    recurrent = False  # no annotation: the same for all layers of a kind, not a field
    vllm_spec = ""  # the class in vllm/v1/kv_cache_interface.py; empty where the planner has no rule

    @property
    def window(self) -> int | None:
        return None

    def __post_init__(self) -> None:
        for name in self._fields:
            value = getattr(self, name)
            if value is None and name in OPTIONAL:
                continue
            if name in ("state_dtype", "conv_dtype"):
                object.__setattr__(self, name, dtypes.known(value, name))
                dtypes.element_bytes(value, name)
            else:
                whole(f"{type(self).__name__}.{name}", value)

    def token_bytes(self, dtype: str, tensor_parallel_size: int = 1) -> int:
        return 0

    def index_token_bytes(self, dtype: str) -> int:
        return 0

    def conv_elements(self, tensor_parallel_size: int = 1, num_speculative_tokens: int = 0) -> int:
        return 0

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return 0

    def divided(self) -> dict[str, int]:
        """What is split over the cards, by field: each must divide evenly."""
        return {}

    def spec_key(self, tensor_parallel_size: int = 1) -> tuple[object, ...]:
        """What vLLM compares: layers with the same key belong to one bucket."""
        raise NotImplementedError

    def table_key(self) -> tuple[object, ...]:
        """Layers with the same one need as many blocks, so may share one group though their pages differ."""
        return (self.vllm_spec,)

    def planned_blocks(self, tokens: int, block_size: int, request: Request) -> int:
        """Blocks [int] that the planner sets aside in one group for a request of `tokens`."""
        return ceil_div(tokens, block_size)

    def running_blocks(self, tokens: int, block_size: int, request: Request) -> int:
        """Blocks [int] that a request of `tokens` holds in one group between two steps (read, not run)."""
        return self.planned_blocks(tokens, block_size, request)


class Request(NamedTuple):
    """What the planner knows of a request beside its length."""

    in_flight_tokens: int = 0
    retained_tokens: int = 0
    num_speculative_tokens: int = 0
    mamba_cache_mode: str = "none"
    drafts_in_mode_all: bool = True
    checkpoint_blocks: int = 0


def heads_per_card(num_kv_heads: int, tensor_parallel_size: int) -> int:
    """KV heads [int] that one card keeps; below one head a card, heads are copied (vLLM 0.28.0, config/model.py).

    >>> heads_per_card(4, 2), heads_per_card(4, 8)
    (2, 1)
    """
    return max(1, num_kv_heads // tensor_parallel_size)


class FullAttention(Layers):
    """Layers whose K and V grow with every token: [2, tokens, num_kv_heads, head_size].

    >>> FullAttention(num_layers=16, num_kv_heads=4, head_size=256).token_bytes("bf16")
    4096
    """

    num_kv_heads: int
    head_size: int
    head_size_v: int | None = None

    vllm_spec = "FullAttentionSpec"

    def divided(self) -> dict[str, int]:
        return {"num_kv_heads": self.num_kv_heads}

    def spec_key(self, tensor_parallel_size: int = 1) -> tuple[object, ...]:
        heads = heads_per_card(self.num_kv_heads, tensor_parallel_size)
        return (self.vllm_spec, heads, self.head_size, self.head_size_v or self.head_size, self.window)

    def table_key(self) -> tuple[object, ...]:
        return ("full",) if self.window is None else (self.vllm_spec, self.window)

    def token_bytes(self, dtype: str, tensor_parallel_size: int = 1) -> int:
        heads = heads_per_card(self.num_kv_heads, tensor_parallel_size)
        sizes = (self.head_size, self.head_size_v or self.head_size)
        return sum(dtypes.vector_bytes(dtype, heads, size) for size in sizes)


class SlidingWindow(FullAttention):
    """Layers that look back `sliding_window` tokens and keep no more than those.

    >>> layers = SlidingWindow(num_layers=52, num_kv_heads=16, head_size=128, sliding_window=1024)
    >>> layers.token_bytes("bf16"), layers.window
    (8192, 1024)
    """

    sliding_window: int

    vllm_spec = "SlidingWindowSpec"

    @property
    def window(self) -> int | None:
        return self.sliding_window

    def planned_blocks(self, tokens: int, block_size: int, request: Request) -> int:
        held = min(self.sliding_window - 1 + request.retained_tokens + request.in_flight_tokens, tokens)
        return ceil_div(held, block_size) + 1  # the window need not begin where a block does

    def running_blocks(self, tokens: int, block_size: int, request: Request) -> int:
        return ceil_div(tokens, block_size) - max(0, tokens - self.sliding_window + 1) // block_size


class ChunkedAttention(FullAttention):
    """Layers that look back to the start of the current chunk of `attention_chunk_size` tokens."""

    attention_chunk_size: int

    vllm_spec = "ChunkedLocalAttentionSpec"

    @property
    def window(self) -> int | None:
        return self.attention_chunk_size

    def planned_blocks(self, tokens: int, block_size: int, request: Request) -> int:
        return ceil_div(min(self.attention_chunk_size + request.in_flight_tokens, tokens), block_size)

    def running_blocks(self, tokens: int, block_size: int, request: Request) -> int:
        done = tokens // self.attention_chunk_size * self.attention_chunk_size
        return ceil_div(tokens, block_size) - done // block_size


class MLA(Layers):
    """Layers that keep one compressed vector a token for all heads, the same on every card.

    >>> MLA(num_layers=61, kv_lora_rank=512, qk_rope_head_dim=64).token_bytes("bf16")
    1152
    """

    kv_lora_rank: int
    qk_rope_head_dim: int
    index_head_dim: int | None = None

    INDEX_QUANT_BLOCK = 128
    FP8_DS_MLA_EXTRA_BYTES = 80  # 656 in all for 576: 512 fp8, 4 fp32 scales, 64 bf16
    vllm_spec = "MLAAttentionSpec"

    def spec_key(self, tensor_parallel_size: int = 1) -> tuple[object, ...]:
        return (self.vllm_spec, self.kv_lora_rank + self.qk_rope_head_dim)

    def table_key(self) -> tuple[object, ...]:
        return ("full",)

    def token_bytes(self, dtype: str, tensor_parallel_size: int = 1) -> int:
        latent = self.kv_lora_rank + self.qk_rope_head_dim
        if dtypes.known(dtype) == "fp8_ds_mla":
            if (self.kv_lora_rank, self.qk_rope_head_dim) != (512, 64):
                raise AeliusError("kv_lora_rank + qk_rope_head_dim", latent, "512 + 64 for fp8_ds_mla")
            return latent + self.FP8_DS_MLA_EXTRA_BYTES
        return dtypes.row_bytes(dtype, latent)

    def index_token_bytes(self, dtype: str) -> int:
        return dtypes.row_bytes(dtype, self.index_head_dim) if self.index_head_dim else 0

    def vllm_index_bytes(self) -> int:
        """Bytes [int] of one token's index key as vLLM keeps it: fp8 whatever the cache, a fp32 scale for every 128.

        vLLM 0.28.0, vllm/model_executor/models/deepseek_v2.py, DeepseekV32IndexerCache.
        """
        dim = self.index_head_dim or 0
        return dim + dim // self.INDEX_QUANT_BLOCK * 4


class Recurrent(Layers):
    """Layers whose state has a fixed size; base of the recurrent kinds. A dtype of None is the model's own."""

    state_dtype: str | None = None
    conv_dtype: str | None = None

    recurrent = True
    vllm_spec = "MambaSpec"
    drafts_widen_conv = True  # one more column for each draft token
    offers_mode_all = False  # whether vLLM's classes of this kind can cache a state for every block
    mode_all_chunk = 2048  # tokens that mode "all" aligns to where the config has no chunk (vllm/config/model.py)
    conv_kernel_size: int

    def conv_width(self, tensor_parallel_size: int) -> int:
        """Channels of the convolution that one card keeps."""
        raise NotImplementedError

    def conv_elements(self, tensor_parallel_size: int = 1, num_speculative_tokens: int = 0) -> int:
        columns = self.conv_kernel_size - 1 + (num_speculative_tokens if self.drafts_widen_conv else 0)
        return columns * self.conv_width(tensor_parallel_size)

    def state_bytes(self, dtype: str | None, tensor_parallel_size: int = 1, num_speculative_tokens: int = 0) -> int:
        """Bytes [int] of one sequence's state in one layer on one card; `dtype` is the model's own.

        >>> layers = GatedDeltaNet(num_layers=48, num_k_heads=16, num_v_heads=48, head_k_dim=128, head_v_dim=128,
        ...                        conv_kernel_size=4, state_dtype="fp32")
        >>> layers.num_layers * layers.state_bytes("bf16")
        153944064
        """
        conv = self.conv_elements(tensor_parallel_size, num_speculative_tokens)
        state = self.state_elements(tensor_parallel_size)
        size = conv * dtypes.element_bytes(self.conv_dtype or dtype, "conv_dtype") if conv else 0
        return size + (state * dtypes.element_bytes(self.state_dtype or dtype, "state_dtype") if state else 0)

    def spec_key(self, tensor_parallel_size: int = 1) -> tuple[object, ...]:
        shapes = self.conv_elements(tensor_parallel_size), self.state_elements(tensor_parallel_size)
        return (self.vllm_spec, type(self).__name__, *shapes, self.conv_dtype, self.state_dtype)

    def planned_blocks(self, tokens: int, block_size: int, request: Request) -> int:
        drafts = request.num_speculative_tokens
        if request.mamba_cache_mode == "all":
            return ceil_div(tokens, block_size) + (drafts if request.drafts_in_mode_all else 0)
        return drafts + (2 + request.checkpoint_blocks if request.mamba_cache_mode == "align" else 1)

    def running_blocks(self, tokens: int, block_size: int, request: Request) -> int:
        planned = self.planned_blocks(tokens, block_size, request)
        if request.mamba_cache_mode != "align":
            return planned
        return planned - 1 - request.checkpoint_blocks  # held during a copy, and during a prefill's checkpoint


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

    mode_all_chunk = 64  # the kernels'; the engine's classes do not offer mode "all", so this is a what-if

    def divided(self) -> dict[str, int]:
        return {"num_k_heads": self.num_k_heads, "num_v_heads": self.num_v_heads}

    def conv_width(self, tensor_parallel_size: int) -> int:
        keys, values = self.num_k_heads * self.head_k_dim, self.num_v_heads * self.head_v_dim
        return (2 * keys + values) // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.num_v_heads // tensor_parallel_size * self.head_v_dim * self.head_k_dim


class KimiDelta(Recurrent):
    """Kimi Delta Attention layers: as Gated DeltaNet, with one number of heads for all."""

    num_heads: int
    head_dim: int

    mode_all_chunk = 64  # as Gated DeltaNet

    def divided(self) -> dict[str, int]:
        return {"num_heads": self.num_heads}

    def conv_width(self, tensor_parallel_size: int) -> int:
        return 3 * self.num_heads * self.head_dim // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.num_heads // tensor_parallel_size * self.head_dim * self.head_dim


class Mamba1(Recurrent):
    """Mamba layers of the first kind; drafts do not widen their convolution."""

    intermediate_size: int
    state_size: int

    drafts_widen_conv = False
    offers_mode_all = True

    def divided(self) -> dict[str, int]:
        return {"intermediate_size": self.intermediate_size}

    def conv_width(self, tensor_parallel_size: int) -> int:
        return self.intermediate_size // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.intermediate_size // tensor_parallel_size * self.state_size


class Mamba2(Recurrent):
    """Mamba layers of the second kind, with heads and groups; a single group is copied to every card."""

    num_heads: int
    head_dim: int
    n_groups: int
    state_size: int
    chunk_size: int = 256

    offers_mode_all = True

    @property
    def mode_all_chunk(self) -> int:  # type: ignore[override]
        return self.chunk_size

    def divided(self) -> dict[str, int]:
        return {"num_heads": self.num_heads} | ({"n_groups": self.n_groups} if self.n_groups > 1 else {})

    def conv_width(self, tensor_parallel_size: int) -> int:
        groups = tensor_parallel_size if self.n_groups % tensor_parallel_size else self.n_groups
        return (self.num_heads * self.head_dim + 2 * groups * self.state_size) // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.num_heads // tensor_parallel_size * self.head_dim * self.state_size
