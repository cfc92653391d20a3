"""Readers for models whose layers are all attention over K and V: full, sliding or chunked.

`attention(...)` makes a reader out of what a model's class fixes; the readers are listed in
`config_families`. Class facts cite transformers 5.24.0, models/NAME/configuration_NAME.py, unless another
source is named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aelius_math.cache import ChunkedAttention, FullAttention, Layers, SlidingWindow
from aelius_math.config_fields import MOST_LAYERS, Fields, Maker, Parts, stack
from aelius_math.config_patterns import Kinds, all_full, layer_types
from aelius_math.units import LARGEST

Reader = Callable[[Fields], Parts]


class Heads(NamedTuple):
    """Names under which a class keeps its heads, and what it fixes when a config is silent."""

    heads: tuple[str, ...] = ("num_attention_heads",)
    kv_heads: tuple[str, ...] = ("num_key_value_heads",)  # none: the class has one for each query head
    hidden: tuple[str, ...] = ("hidden_size",)
    head_dim: tuple[str, ...] = ("head_dim",)  # none: the class divides
    fixed_heads: int | None = None
    fixed_kv_heads: int | None = None
    fixed_head_dim: int | None = None
    mha: bool = False  # the class takes absent KV heads as one for each query head

    def kv(self, f: Fields) -> tuple[int, int]:
        """KV heads and head size [int, int] of the model."""
        stated = f.optional(*self.kv_heads) if self.kv_heads else None
        kv_heads = stated or self.fixed_kv_heads
        if kv_heads is None and (self.mha or not self.kv_heads):
            kv_heads = f.count(*self.heads, default=self.fixed_heads)
        if kv_heads is None:
            raise f.wrong(f.first(*self.kv_heads), "a whole number of at least 1")
        heads = (f.optional(*self.heads) if self.heads else None) or self.fixed_heads
        if heads is not None and heads % kv_heads:
            raise f.wrong(f.first(*self.kv_heads), f"a divisor of {f.first(*self.heads)}, {heads}")
        return kv_heads, self.head_size(f)

    def head_size(self, f: Fields) -> int:
        """The width [int] of a head: stated, fixed by the class, or hidden size over heads where that is
        whole."""
        stated = f.optional(*self.head_dim) if self.head_dim else None
        if stated or self.fixed_head_dim:
            return stated or self.fixed_head_dim or 0
        hidden, heads = f.count(*self.hidden), f.count(*self.heads, default=self.fixed_heads)
        if hidden % heads:
            missing = f"; {self.head_dim[0]} is not stated" if self.head_dim else ""
            raise f.wrong(f.first(*self.heads), f"a divisor of {f.first(*self.hidden)}, {hidden}{missing}")
        return hidden // heads


def makers(
    f: Fields,
    kv_heads: int,
    head_size: int,
    windows: tuple[str, ...] = ("sliding_window",),
    fixed: int | None = None,
) -> dict[str, Maker]:
    """Makers of the three kinds of attention over K and V, alike in heads; `windows` names the window's
    field."""

    def full(count: int) -> Layers:
        return FullAttention(num_layers=count, num_kv_heads=kv_heads, head_size=head_size)

    def sliding(count: int) -> Layers:
        window = f.count(*windows, default=fixed, most=LARGEST)
        return SlidingWindow(
            num_layers=count, num_kv_heads=kv_heads, head_size=head_size, sliding_window=window
        )  # fmt: skip

    def chunked(count: int) -> Layers:
        chunk = f.count("attention_chunk_size", most=LARGEST)
        return ChunkedAttention(
            num_layers=count, num_kv_heads=kv_heads, head_size=head_size, attention_chunk_size=chunk
        )  # fmt: skip

    return {
        "full_attention": full, "sliding_attention": sliding, "chunked_attention": chunked, "attention": full,
    }  # fmt: skip


def attention(
    heads: Heads = Heads(),  # noqa: B008 (a NamedTuple is immutable)
    kinds: Kinds = layer_types(all_full),  # noqa: B008 (a function without state)
    layers: tuple[str, ...] = ("num_hidden_layers",),
    mtp: tuple[str, ...] = (),
    window: int | None = None,
    windows: tuple[str, ...] = ("sliding_window",),
) -> Reader:
    """A reader for a class whose layers are alike in heads.

    `mtp` names the field that counts layers of multi-token prediction, full ones; `window` is the class's own
    where the config is silent, `windows` the window's field.
    """

    def read(f: Fields) -> Parts:
        n = f.num_layers(*layers)
        make = makers(f, *heads.kv(f), windows, window)
        found = stack(kinds(f, n), make, kinds_field(f, layers[0]))
        extra = f.optional(*mtp, least=0, most=MOST_LAYERS) if mtp else None
        return Parts(found, stack(["full_attention"] * (extra or 0), make, ""))

    return read


def kinds_field(f: Fields, layers: str = "num_hidden_layers") -> str:
    """The field that an unknown kind of layer is to be blamed on."""
    return f.path + ("layer_types" if f.has("layer_types") else layers)
