"""A model as its cache sees it: which kinds of layer, how many, and the dtype of what they keep.

`Model` is given layers by hand; `from_config` reads them from a config.json.
"""

from __future__ import annotations

from collections.abc import Mapping

from aelius_math import dtypes
from aelius_math.cache import Layers
from aelius_math.records import Record
from aelius_math.units import AeliusError


class Model(Record):
    """The layers that keep something for a sequence, in the order in which their kinds first appear.

    `dtype` is the model's own, of activations and so of a cache left at "auto"; None where a config.json does
    not say: then whatever needs it is refused. `architecture` is what the file calls it: a config.json's model_type,
    a GGUF's general.architecture; None for layers by hand.
    """

    name: str
    layers: tuple[Layers, ...]
    mtp_layers: tuple[Layers, ...] = ()
    dtype: str | None = "bf16"
    max_position_embeddings: int | None = None
    kv_cache_dtype: str | None = None
    architecture: str | None = None

    def __post_init__(self) -> None:
        for field in ("layers", "mtp_layers"):
            value = getattr(self, field)
            if not isinstance(value, tuple | list) or not all(isinstance(layer, Layers) for layer in value):
                raise AeliusError(f"Model.{field}", value, "a tuple of layer specs from aelius_math.cache")
            object.__setattr__(self, field, tuple(value))
        if not self.layers:
            raise AeliusError("Model.layers", self.layers, "at least one layer spec")
        if self.dtype is not None:
            dtypes.element_bytes(self.dtype, "Model.dtype")
            object.__setattr__(self, "dtype", dtypes.known(self.dtype))

    def kv_bytes_per_token(self, dtype: str = "bf16") -> int:
        """Bytes [int] that one more token adds, over the layers that grow without bound; MTP not included.

        >>> from aelius_math.cache import FullAttention
        >>> Model(name="toy", layers=(FullAttention(num_layers=16, num_kv_heads=4, head_size=256),)).kv_bytes_per_token()
        65536
        """
        return sum(layer.num_layers * layer.token_bytes(dtype) for layer in self.layers if layer.window is None)

    def index_bytes_per_token(self, dtype: str = "bf16") -> int:
        """Bytes [int] of sparse-attention index keys that one more token adds."""
        return sum(layer.num_layers * layer.index_token_bytes(dtype) for layer in self.layers)

    def window_bytes(self, dtype: str = "bf16") -> int:
        """Bytes [int] of the window and chunk layers, every window full."""
        return sum(layer.num_layers * layer.token_bytes(dtype) * (layer.window or 0) for layer in self.layers)

    @property
    def conv_elements(self) -> int:
        """Elements [int] of convolution state of one sequence, summed over layers."""
        return sum(layer.num_layers * layer.conv_elements() for layer in self.layers)

    @property
    def state_elements(self) -> int:
        """Elements [int] of recurrent state of one sequence, summed over layers."""
        return sum(layer.num_layers * layer.state_elements() for layer in self.layers)

    def mtp_bytes_per_token(self, dtype: str = "bf16") -> int:
        """Bytes [int] that one more token adds in the multi-token-prediction layers, index keys included."""
        return sum(layer.num_layers * (layer.token_bytes(dtype) + layer.index_token_bytes(dtype)) for layer in self.mtp_layers)


def from_config(config: Mapping[str, object], *, dtype: str | None = None) -> Model:
    """The model that a config.json describes: its layers by kind, in the order in which the kinds first appear.

    `dtype` is the model's own where the config does not say, and goes before what it says; without either it is
    None. Raises AeliusError with the field's name and value for an unknown model_type or kind of layer, a field that
    is needed and not given, a value of the wrong kind, and values that contradict each other where both count.

    >>> config = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    ...           "num_key_value_heads": 8, "torch_dtype": "bfloat16"}
    >>> from_config(config).kv_bytes_per_token()
    131072
    """
    from aelius_math.config import read  # the readers load when a config does

    return Model(**read(config, dtype)._asdict())
