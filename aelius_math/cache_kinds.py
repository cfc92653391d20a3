"""Further kinds of layer, each one more class beside those of `aelius_math.cache`, with the same few methods.

Imported where such a layer is met, so that the others do not wait for it. What a class keeps is cited at the
class. Engines that cannot run a kind refuse it by its class name.
"""

from __future__ import annotations

from aelius_math import dtypes
from aelius_math.cache import MLA, FullAttention, Layers, Recurrent


class SparseAttention(FullAttention):
    """Full attention whose queries read chosen blocks only: all K and V are kept, and an index key beside
    them.

    MiniMax-M3: sparse_index_dim of sparse_attention_config (vLLM 0.33.0,
    transformers_utils/configs/minimax_m3.py).

    >>> layers = SparseAttention(num_layers=57, num_kv_heads=4, head_size=128, index_head_dim=128)
    >>> layers.token_bytes("bf16"), layers.index_token_bytes("bf16")
    (2048, 256)
    """

    index_head_dim: int

    vllm_spec = ""

    def index_token_bytes(self, dtype: str) -> int:
        return dtypes.row_bytes(dtype, self.index_head_dim)


class SlidingMLA(MLA):
    """MLA layers, or one K that is V too, that keep the last `sliding_window` tokens only.

    >>> layers = SlidingMLA(num_layers=43, kv_lora_rank=448, qk_rope_head_dim=64, sliding_window=128)
    >>> layers.token_bytes("bf16"), layers.window
    (1024, 128)
    """

    sliding_window: int

    vllm_spec = ""

    @property
    def window(self) -> int | None:
        return self.sliding_window


class CompressedMLA(Layers):
    """DeepSeek-V4's far past: one vector, K and V in one, for every `compress_ratio` tokens; perhaps an index
    key.

    Its near past is a `SlidingMLA` of as many layers. What the compressor holds of an unfinished entry is not
    counted (transformers 5.24.0, models/deepseek_v4).

    >>> layers = CompressedMLA(num_layers=21, head_dim=512, compress_ratio=4, index_head_dim=128)
    >>> layers.token_bytes("bf16"), layers.index_token_bytes("bf16")
    (256, 64)
    """

    head_dim: int
    compress_ratio: int
    index_head_dim: int | None = None

    def token_bytes(self, dtype: str, tensor_parallel_size: int = 1) -> int:
        return dtypes.row_bytes(dtype, self.head_dim) // self.compress_ratio

    def index_token_bytes(self, dtype: str) -> int:
        return dtypes.row_bytes(dtype, self.index_head_dim) // self.compress_ratio if self.index_head_dim else 0


class ShortConvolution(Recurrent):
    """Gated short convolutions (LFM2): the last columns of one convolution, and no state.

    vLLM 0.33.0, layers/mamba/mamba_utils.py, short_conv_state_shape.

    >>> layers = ShortConvolution(num_layers=10, hidden_size=2048, conv_kernel_size=3)
    >>> layers.conv_elements(), layers.state_elements()
    (4096, 0)
    """

    hidden_size: int

    drafts_widen_conv = False

    def divided(self) -> dict[str, int]:
        return {"hidden_size": self.hidden_size}

    def conv_width(self, tensor_parallel_size: int) -> int:
        return self.hidden_size // tensor_parallel_size


class LightningAttention(Recurrent):
    """Lightning (linear) attention: one matrix a query head, and no convolution (so a kernel of one).

    vLLM 0.33.0, layers/mamba/mamba_utils.py, linear_attention_state_shape.

    >>> layers = LightningAttention(num_layers=70, num_heads=64, head_dim=128)
    >>> layers.conv_elements(), layers.state_elements()
    (0, 1048576)
    """

    num_heads: int
    head_dim: int
    conv_kernel_size: int = 1

    def divided(self) -> dict[str, int]:
        return {"num_heads": self.num_heads}

    def conv_width(self, tensor_parallel_size: int) -> int:
        return 0

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.num_heads // tensor_parallel_size * self.head_dim * self.head_dim


class RGLRU(Recurrent):
    """Real-gated linear recurrent units (RecurrentGemma): one vector, and a convolution's last columns.

    transformers 5.24.0, models/recurrent_gemma/modeling_recurrent_gemma.py.

    >>> layers = RGLRU(num_layers=18, lru_width=2560, conv_kernel_size=4)
    >>> layers.conv_elements(), layers.state_elements()
    (7680, 2560)
    """

    lru_width: int

    vllm_spec = ""

    def conv_width(self, tensor_parallel_size: int) -> int:
        return self.lru_width // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.lru_width // tensor_parallel_size


class RWKV(Recurrent):
    """RWKV 5 to 7: one matrix a head, and the last token's input of both halves of a block (token shift).

    The shift is a convolution over two tokens, so one column of twice the hidden size is kept.

    >>> layers = RWKV(num_layers=24, hidden_size=2048, num_heads=32, head_size=64)
    >>> layers.conv_elements(), layers.state_elements()
    (4096, 131072)
    """

    hidden_size: int
    num_heads: int
    head_size: int
    conv_kernel_size: int = 2

    vllm_spec = ""

    def conv_width(self, tensor_parallel_size: int) -> int:
        return 2 * self.hidden_size // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return self.num_heads // tensor_parallel_size * self.head_size * self.head_size


class RWKV4(Recurrent):
    """RWKV 4: numerator, denominator and largest exponent, a vector each, and the two token shifts.

    transformers 5.24.0, models/rwkv/modeling_rwkv.py.

    >>> layers = RWKV4(num_layers=12, hidden_size=768, attention_hidden_size=768)
    >>> layers.conv_elements(), layers.state_elements()
    (1536, 2304)
    """

    hidden_size: int
    attention_hidden_size: int
    conv_kernel_size: int = 2

    vllm_spec = ""

    def conv_width(self, tensor_parallel_size: int) -> int:
        return 2 * self.hidden_size // tensor_parallel_size

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        return 3 * self.attention_hidden_size // tensor_parallel_size


class XLSTM(Recurrent):
    """mLSTM layers of xLSTM: a head keeps the matrix C, the vector n and the number m; no convolution.

    transformers 5.24.0, models/xlstm/modeling_xlstm.py.

    >>> layers = XLSTM(num_layers=32, num_heads=8, qk_head_dim=256, v_head_dim=512, state_dtype="fp32")
    >>> layers.conv_elements(), layers.state_elements()
    (0, 1050632)
    """

    num_heads: int
    qk_head_dim: int
    v_head_dim: int
    conv_kernel_size: int = 1

    vllm_spec = ""

    def conv_width(self, tensor_parallel_size: int) -> int:
        return 0

    def state_elements(self, tensor_parallel_size: int = 1) -> int:
        heads = self.num_heads // tensor_parallel_size
        return heads * (self.qk_head_dim * self.v_head_dim + self.qk_head_dim + 1)
