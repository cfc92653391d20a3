"""Readers for models whose layers are all attention over K and V: full, sliding or chunked.

`attention(...)` makes a reader out of what a model's class fixes; the readers are listed in `config_families`.
Class facts cite transformers 5.24.0, models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from aelius_math.cache import ChunkedAttention, FullAttention, Layers, SlidingWindow
from aelius_math.config_fields import Fields, Maker, Parts, stack
from aelius_math.units import LARGEST, AeliusError

Reader = Callable[[Fields], Parts]
Kinds = Callable[[Fields, int], Sequence[str]]
"""The kind of each layer, in the words of transformers' layer_types."""


class Heads(NamedTuple):
    """Names under which a class keeps its heads, and what it fixes when a config is silent."""

    heads: tuple[str, ...] = ("num_attention_heads",)
    kv_heads: tuple[str, ...] = ("num_key_value_heads",)
    hidden: tuple[str, ...] = ("hidden_size",)
    head_dim: tuple[str, ...] = ("head_dim",)
    fixed_heads: int | None = None
    fixed_kv_heads: int | None = None
    fixed_head_dim: int | None = None
    mha: bool = False  # the class takes absent KV heads as one for each query head

    def kv(self, f: Fields) -> tuple[int, int]:
        """KV heads and head size [int, int] of the model."""
        kv_heads = f.optional(*self.kv_heads) or self.fixed_kv_heads
        if kv_heads is None and self.mha:
            kv_heads = f.count(*self.heads, default=self.fixed_heads)
        if kv_heads is None:
            raise f.wrong(f.first(*self.kv_heads), "a whole number of at least 1")
        heads = f.optional(*self.heads) or self.fixed_heads
        if heads is not None and heads % kv_heads:
            raise f.wrong(f.first(*self.kv_heads), f"a divisor of {self.heads[0]}, {heads}")
        return kv_heads, self.head_size(f)

    def head_size(self, f: Fields) -> int:
        """The width [int] of a head: stated, fixed by the class, or hidden size over heads where that is whole."""
        stated = f.optional(*self.head_dim) if self.head_dim else None
        if stated or self.fixed_head_dim:
            return stated or self.fixed_head_dim or 0
        hidden, heads = f.count(*self.hidden), f.count(*self.heads, default=self.fixed_heads)
        if hidden % heads:
            field = self.head_dim[0] if self.head_dim else self.heads[0]
            raise AeliusError(f.path + field, None, f"a head size, as {hidden} / {heads} heads is not a whole number")
        return hidden // heads


def window(f: Fields, *names: str, fixed: int | None = None) -> int:
    """Tokens that a sliding layer looks back; needed where a layer slides."""
    return f.count(*(names or ("sliding_window",)), default=fixed, most=LARGEST)


def makers(f: Fields, kv_heads: int, head_size: int, fixed_window: int | None = None) -> dict[object, Maker]:
    """Makers of the three kinds of attention, from the usual fields."""

    def full(count: int) -> Layers:
        return FullAttention(num_layers=count, num_kv_heads=kv_heads, head_size=head_size)

    def sliding(count: int) -> Layers:
        return SlidingWindow(
            num_layers=count, num_kv_heads=kv_heads, head_size=head_size, sliding_window=window(f, fixed=fixed_window)
        )

    def chunked(count: int) -> Layers:
        return ChunkedAttention(
            num_layers=count, num_kv_heads=kv_heads, head_size=head_size,
            attention_chunk_size=f.count("attention_chunk_size", most=LARGEST),
        )  # fmt: skip

    return {"full_attention": full, "sliding_attention": sliding, "chunked_attention": chunked}


def all_full(f: Fields, n: int) -> Sequence[str]:
    return ["full_attention"] * n


def layer_types(otherwise: Kinds) -> Kinds:
    """The config's layer_types, one for each layer; where it has none, what the class makes of the other fields."""

    def kinds(f: Fields, n: int) -> Sequence[str]:
        return f.words("layer_types", n) if f.has("layer_types") else otherwise(f, n)

    return kinds


def every(period: int, *fields: str, most: str = "sliding_attention", last: str = "full_attention") -> Kinds:
    """Every period-th layer is full; a field may state the period."""

    def kinds(f: Fields, n: int) -> Sequence[str]:
        step = f.count(*fields, default=period) if fields else period
        return [last if (index + 1) % step == 0 else most for index in range(n)]

    return kinds


def attention(
    heads: Heads = Heads(),  # noqa: B008 (a NamedTuple is immutable)
    kinds: Kinds = all_full,
    layers: tuple[str, ...] = ("num_hidden_layers",),
    mtp: tuple[str, ...] = (),
    fixed_window: int | None = None,
) -> Reader:
    """A reader for a class of attention layers alike in heads; `mtp` names the fields that count MTP layers."""

    def read(f: Fields) -> Parts:
        n = f.num_layers(*layers)
        kv_heads, head_size = heads.kv(f)
        make = makers(f, kv_heads, head_size, fixed_window)
        field = f.path + ("layer_types" if f.has("layer_types") else layers[0])
        extra = f.optional(*mtp, least=0) if mtp else None
        return Parts(stack(kinds(f, n), make, field), stack(["full_attention"] * (extra or 0), make, field))

    return read


GEMMA3 = attention(
    # Gemma3TextConfig: 8 heads, 4 KV heads, head_dim 256, sliding_window 4096; layer_types by
    # sliding_window_pattern, 6 where absent. gemma-3-4b-it states none of the four.
    Heads(fixed_heads=8, fixed_kv_heads=4, fixed_head_dim=256),
    layer_types(every(6, "sliding_window_pattern", "_sliding_window_pattern")),
    fixed_window=4096,
)
