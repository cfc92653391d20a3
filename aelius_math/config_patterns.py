"""Which layer is of which kind, in the words of transformers' layer_types: stated, or as a model's class
makes it.

Class facts cite transformers 5.24.0, models/NAME/configuration_NAME.py, unless another source is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aelius_math.config_fields import Fields

Kinds = Callable[[Fields, int], Sequence[str]]
"""From a config and its number of layers, the kind of each."""


def all_full(f: Fields, n: int) -> Sequence[str]:
    return ["full_attention"] * n


def all_sliding(fixed: int | None = None) -> Kinds:
    """Every layer slides where sliding_window is a number; `fixed` is the class's window where the field is
    absent."""

    def kinds(f: Fields, n: int) -> Sequence[str]:
        slides = f.has("sliding_window") or (fixed is not None and "sliding_window" not in f.values)
        return ["sliding_attention" if slides else "full_attention"] * n

    return kinds


def switched(kinds: Kinds) -> Kinds:
    """Kinds that count only where use_sliding_window is true and sliding_window a number (false where
    absent)."""

    def kinds_if(f: Fields, n: int) -> Sequence[str]:
        on = f.flag("use_sliding_window", False) and f.has("sliding_window")
        return kinds(f, n) if on else all_full(f, n)

    return kinds_if


def where_window(kinds: Kinds) -> Kinds:
    """Kinds that count only where sliding_window is a number."""
    return lambda f, n: kinds(f, n) if f.has("sliding_window") else all_full(f, n)


def from_layer(field: str, fixed: int | None = None) -> Kinds:
    """Layers from the one that `field` numbers slide, those before are full (Qwen2: max_window_layers)."""

    def kinds(f: Fields, n: int) -> Sequence[str]:
        first = f.count(field, default=fixed, least=0)
        return ["sliding_attention" if index >= first else "full_attention" for index in range(n)]

    return kinds


def layer_types(otherwise: Kinds) -> Kinds:
    """The config's layer_types, one for each layer; where it has none, what the class makes of the other
    fields."""

    def kinds(f: Fields, n: int) -> Sequence[str]:
        return f.words("layer_types", n) if f.has("layer_types") else otherwise(f, n)

    return kinds


def every(period: int, *fields: str, most: str = "sliding_attention", at: int = -1) -> Kinds:
    """Of each `period` layers one is full, the last of them or that numbered `at`; a field may state the
    period."""

    def kinds(f: Fields, n: int) -> Sequence[str]:
        step = f.count(*fields, default=period) if fields else period
        return ["full_attention" if index % step == at % step else most for index in range(n)]

    return kinds


def ropes(f: Fields, n: int) -> Sequence[int]:
    """For each layer, 1 where it has a rope, 0 where not: no_rope_layers, or every no_rope_layer_interval-th (4) has none."""
    if f.raw("no_rope_layers"):
        return f.counts("no_rope_layers", n, least=0, most=1)
    step = f.count("no_rope_layer_interval", default=4)
    return [int((index + 1) % step != 0) for index in range(n)]


def llama4_kinds(f: Fields, n: int) -> Sequence[str]:
    """no_rope_layers has 0 for the full layers; absent or empty, every no_rope_layer_interval-th is full (4).
    No attention_chunk_size: all are full."""
    if not f.has("attention_chunk_size"):
        return all_full(f, n)
    return ["chunked_attention" if rope else "full_attention" for rope in ropes(f, n)]


def mimo_pattern(f: Fields, n: int) -> Sequence[str]:
    pattern = f.counts("hybrid_layer_pattern", n, least=0, most=1)
    return ["sliding_attention" if slides else "full_attention" for slides in pattern]


def exaone4_kinds(f: Fields, n: int) -> Sequence[str]:
    """EXAONE 4: sliding_window_pattern is a word such as "LLLG" over and over, or a number: every such layer
    is full. The last layer is full in either case of the word (models/exaone4, docstring). No window: all are
    full."""
    if not f.has("sliding_window"):
        return all_full(f, n)
    word = f.raw("sliding_window_pattern")
    if not isinstance(word, str):
        return every(4, "sliding_window_pattern")(f, n)
    if not word or set(word) - {"L", "G"}:
        raise f.wrong("sliding_window_pattern", "a word of L and G, or a whole number")
    kinds = ["sliding_attention" if word[index % len(word)] == "L" else "full_attention" for index in range(n)]
    return [*kinds[:-1], "full_attention"]


def cohere2_moe_kinds(f: Fields, n: int) -> Sequence[str]:
    """Command A+: the first_k_dense_replace first layers by a pattern of their own (1: all full), the rest by
    sliding_window_pattern (4), counted from there."""
    first = f.count("first_k_dense_replace", default=0, least=0, most=n)
    head = every(1, "prefix_dense_sliding_window_pattern")(f, first)
    return [*head, *every(4, "sliding_window_pattern", "_sliding_window_pattern")(f, n - first)]


def smollm3_kinds(f: Fields, n: int) -> Sequence[str]:
    """SmolLM3: with use_sliding_window the layers without rope slide, every no_rope_layer_interval-th (4)."""
    if not (f.flag("use_sliding_window", False) and f.has("sliding_window")):
        return all_full(f, n)
    return ["full_attention" if rope else "sliding_attention" for rope in ropes(f, n)]


def qwen2_moe_kinds(f: Fields, n: int) -> Sequence[str]:
    """Qwen1.5 and 2 MoE: with use_sliding_window every other layer below max_window_layers (28) slides."""
    most = f.count("max_window_layers", default=28, least=0)
    return ["sliding_attention" if index % 2 == 0 and index < most else "full_attention" for index in range(n)]


def ends(period: int, first: bool = False) -> Kinds:
    """The last layer is full, and every period-th before it (Muse), or every period-th from the start
    (Beam)."""

    def kinds(f: Fields, n: int) -> Sequence[str]:
        shift = 0 if first else n % period
        full = {index for index in range(n) if (index + 1 - shift) % period == 0} | {n - 1}
        return ["full_attention" if index in full else "sliding_attention" for index in range(n)]

    return kinds


def flint_kinds(f: Fields, n: int) -> Sequence[str]:
    """Flint: full are layers 0 and 1, then every 4th from 1 on, and the last."""
    return ["full_attention" if i < 2 or i % 4 == 1 or i == n - 1 else "sliding_attention" for i in range(n)]


def inkling_kinds(f: Fields, n: int) -> Sequence[str]:
    if f.has("local_layer_ids"):
        local = f.indices("local_layer_ids", n)
    else:
        local = {index for index in range(n) if (index + 1) % 6}
    return ["hybrid_sliding" if index in local else "hybrid" for index in range(n)]
