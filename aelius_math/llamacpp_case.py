"""What the parts of llama.cpp's fit pass share: the layers of the file, one device's needs, the wall, and its words.

Source: common/fit.cpp. The decision itself is `aelius_math.llamacpp_fit`, and `aelius_math.llamacpp_devices`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aelius_math.cache import Layers, Recurrent
from aelius_math.llamacpp_builds import BlockWeights, mib_bytes
from aelius_math.llamacpp_context import PAD, Context, at
from aelius_math.llamacpp_memory import Memory, memory
from aelius_math.model import Model
from aelius_math.units import AeliusError, round_up

ONE_CACHE_A_LAYER = (
    "FullAttention",
    "SlidingWindow",
    "ChunkedAttention",
    "MLA",
    "GatedDeltaNet",
    "KimiDelta",
)
"""Kinds that stand for one layer of the file each; models of other kinds may have layers that keep nothing."""

MOST_CELLS = (1 << 32) - PAD
"""n_ctx is a uint32: a context that still fits here has no wall."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One layer of the file: which of the model's kinds it is, and the bytes of its weights."""

    layer: Layers
    weights_bytes: int


def room(used: int, free: int, margin: int) -> tuple[int, int]:
    """Left and lacking [int, int] on a device: free - used, and what that is short of the margin; in one unit.

    >>> room(17885, 21755, 1576), room(20619, 21728, 1186)
    ((3870, 0), (1109, 77))
    """
    return free - used, max(0, used + margin - free)


def reduced_context(floor: int, full: int, at_floor: int, at_full: int, target: int, align: int = PAD) -> int:
    """Tokens [int] to which an unset context is shrunk: where a line from (floor, at_floor) to (full, at_full) meets
    the target, rounded down to `align`; the floor, where even that does not fit.

    >>> reduced_context(4096, 131072, 1000, 5000, 3000), reduced_context(4096, 131072, 8000, 33000, 7162)
    (67584, 4096)
    """
    if at_full <= at_floor:
        return floor
    n_ctx = floor + (full - floor) * (target - at_floor) // (at_full - at_floor)
    return max(n_ctx - n_ctx % align, floor)


def abort_reason(
    n_gpu_layers: int | None,
    override_tensor: bool = False,
    tensor_split: bool = False,
    split_mode: str = "layer",
) -> str | None:
    """Why the pass stops before it moves layers, in the log's words; None: it goes on.

    `tensor_split` and `split_mode` count with several devices only.

    >>> abort_reason(99)
    'n_gpu_layers already set by user to 99, abort'
    """
    if n_gpu_layers is not None:
        return f"n_gpu_layers already set by user to {n_gpu_layers}, abort"
    if tensor_split:
        return "model_params::tensor_split already set by user, abort"
    if split_mode == "row":
        return "changing weight allocation for LLAMA_SPLIT_MODE_ROW not implemented, abort"
    return "model_params::tensor_buft_overrides already set by user, abort" if override_tensor else None


def blocks_of(model: Model, weights: BlockWeights) -> tuple[Block, ...]:
    """The layers front to back, from an order of kinds that repeats and a weight for each kind."""
    kinds = {type(layer).__name__: layer for layer in model.layers}
    total = sum(layer.num_layers for layer in model.layers)
    order = [weights.pattern[place % len(weights.pattern)] for place in range(total)]
    for kind, layer in kinds.items():
        if order.count(kind) != layer.num_layers or kind not in weights.by_kind:
            raise AeliusError("pattern", weights.pattern, f"an order with {layer.num_layers} layers of {kind}")
    return tuple(Block(layer=kinds[kind], weights_bytes=mib_bytes("weights", weights.by_kind[kind])) for kind in order)


def layer_cache_bytes(layer: Layers, found: Memory) -> int:
    """Bytes [int] of cache or state that one layer of this kind keeps, for all slots."""
    if isinstance(layer, Recurrent):
        return 4 * (layer.conv_elements() + layer.state_elements()) * found.recurrent_rows
    return sum(cache.size_bytes // cache.layers for cache in found.caches if cache.spec is layer)


def block_bytes(block: Block, found: Memory) -> int:
    """Bytes [int] of one layer on its device: weights, and its share of cache or state."""
    return block.weights_bytes + layer_cache_bytes(block.layer, found)


def units_total(model: Model, context: Context) -> int | None:
    """Units [int] of the log's "offloaded x/y layers": layers, output, MTP; None where layers cannot be counted."""
    if any(type(layer).__name__ not in ONE_CACHE_A_LAYER for layer in model.layers):
        return None
    mtp = sum(layer.num_layers for layer in model.mtp_layers) if loads_mtp(model, context) else 0
    return sum(layer.num_layers for layer in model.layers) + 1 + mtp


def loads_mtp(model: Model, context: Context) -> bool:
    """Whether the MTP layer is loaded: in October only when it drafts, in July with every file that holds one."""
    return bool(model.mtp_layers) and bool(context.draft_max or not context.rules.fit_counts_mtp_block)


def check_fittable(found: Memory, context: Context) -> None:
    """Raises AeliusError where memory is known, but not all that the pass would count."""
    if found.draft_kv_bytes is None:
        raise AeliusError("draft_max", context.draft_max, "0: the model has no MTP layers, its drafter is not known")
    for cache in found.caches:
        if cache.role == "index":
            size = getattr(cache.spec, "index_head_dim", None)
            raise AeliusError(
                "index_head_dim",
                size,
                "none: the compute buffer of sparse attention, which grows too, has not been read",
            )


@dataclass(frozen=True, kw_only=True)
class Case:
    """One device and what competes for it; asked at one context size after another."""

    model: Model
    context: Context
    free: int
    weights: int
    target: int
    constant: int | None
    """Bytes of the compute buffers' constant, from the caller's own log; None: as measured, where it was."""
    skipped: tuple[Block, ...] = ()
    """Layers that the user's own -ngl leaves out."""

    def needs(self, n_ctx: int | None) -> tuple[int, int, bool]:
        """Bytes used, bytes of margin, and whether nothing is missing from them, at a context size."""
        found = memory(self.model, at(self.context, n_ctx))
        main = found.constant_bytes if self.constant is None else self.constant
        extra = found.draft_constant_bytes if self.constant is None else 0
        used = self.weights + found.kv_bytes + found.swa_bytes + found.recurrent_bytes
        used += found.mask_bytes + found.scratch_bytes + (main or 0)
        used -= sum(block_bytes(block, found) for block in self.skipped)
        draft = (found.draft_kv_bytes or 0) + found.draft_mask_bytes + found.draft_scratch_bytes + (extra or 0)
        known = main is not None and extra is not None
        if self.context.rules.draft_in_margin:
            return used, self.target + draft, known
        return used + draft, self.target, known

    def passes(self, n_ctx: int) -> bool:
        used, margin, known = self.needs(n_ctx)
        return known and not room(used, self.free, margin)[1]

    def wall(self) -> int | None:
        """Tokens [int] of the largest context that fits, as the engine pads it; 0: none does; None: no wall."""
        step = PAD * self.context.streams
        return largest(self.passes, step, round_up(self.context.n_ubatch, step))


def largest(passes: Callable[[int], bool], step: int, start: int) -> int | None:
    """The largest multiple of step that passes; None: all do. From `start` on none passes after one that fails.

    >>> largest(lambda size: size <= 1000, 256, 512)
    768
    """
    low, high = start, MOST_CELLS // step * step
    if passes(high):
        return None
    if not passes(low):
        return max((size for size in range(step, low, step) if passes(size)), default=0)
    while high - low > step:
        middle = (low + high) // 2 // step * step
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def free_as_read(found: Memory, context: Context, free_mib: float | None, free_before_mib: float | None) -> tuple[int, int]:
    """Free bytes as the pass reads them, and the recurrent state that they are short by (0 as read: it is in them)."""
    if free_mib is not None and free_before_mib is None:
        return mib_bytes("free_mib", free_mib), 0
    if free_before_mib is None or free_mib is not None:
        raise AeliusError("free_mib", free_mib, "one of free_mib (as fit reads it) and free_before_mib (at start)")
    twice = found.recurrent_bytes if context.rules.state_counted_twice else 0
    return mib_bytes("free_before_mib", free_before_mib) - twice, twice
