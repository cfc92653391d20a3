"""llama.cpp's fit pass as a decision procedure: does a model fit beside its margin, and what moves if it does not.

Source: common/fit.cpp, common_params_fit_impl. Its steps, in its order:

1. Project. A dry run without weights gives the bytes that each device would use; `free` is read while it exists.
   Every device keeps its margin: "no changes needed".
2. Context. Only if -c is unset: shrink it, along a line from the floor to the full length.
3. Abort, if the user has fixed what would be moved (-ngl, -ot, -ts, -sm row). A warning: loading goes on.
4. Layers. Whole layers leave the device, layer 0 first; the output and MTP stay. One MiB too many costs a layer.

This module decides for one device; `aelius_math.llamacpp_devices` for several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aelius_math.cache import Recurrent
from aelius_math.llamacpp_builds import FIT_CTX, FIT_TARGET_MIB, REPLAYED_27B, is_qwen_27b, mib_bytes
from aelius_math.llamacpp_case import (
    Block,
    Case,
    abort_reason,
    block_bytes,
    blocks_of,
    check_fittable,
    free_as_read,
    reduced_context,
    room,
    units_total,
)
from aelius_math.llamacpp_context import PAD, Context, at
from aelius_math.llamacpp_memory import Memory, memory
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError, whole


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What the fit pass finds. Sizes are bytes; the same name with `_mib` is bytes / 2**20. None: not known.

    `verdict`: "fits"; "evict", a deficit was found; "context reduced", -c was unset and has been shrunk until it
    fits; "unknown", the answer hangs on a compute buffer that nobody measured. `action`: what the pass then does.
    `known_bytes` leaves out a compute constant that is not known; `projected_bytes` is what the log prints.
    `layers_kept` of `layers_total` are the log's units: layers, the output, the MTP layer.
    `counted_twice_bytes`: recurrent state by which `free_bytes` is short although `projected_bytes` holds it.
    `moved_bytes`: weights, cache and state that leave the device with the layers that do.
    `fused_ops`: whether the fused recurrent kernel stays on for every layer; None where unsettled, or none is used.
    """

    verdict: str
    action: str
    build: str
    memory: Memory
    weights_bytes: int
    compute_bytes: int | None
    known_bytes: int
    projected_bytes: int | None
    free_bytes: int
    margin_bytes: int
    draft_in_margin_bytes: int
    leave_bytes: int | None
    deficit_bytes: int | None
    counted_twice_bytes: int
    moved_bytes: int | None
    layers_kept: int | None
    layers_total: int | None
    n_ctx: int
    wall_tokens: int | None
    fused_ops: bool | None

    @property
    def fits(self) -> bool:
        return self.verdict in ("fits", "context reduced")

    @property
    def on_device_bytes(self) -> int | None:
        """Bytes on the device once loaded, the MTP context with them, vision without; what the pass moved is off."""
        if self.projected_bytes is None or self.moved_bytes is None:
            return None
        return self.projected_bytes + self.draft_in_margin_bytes - self.moved_bytes

    @property
    def projected_mib(self) -> float | None:
        return as_mib(self.projected_bytes)

    @property
    def free_mib(self) -> float:
        return self.free_bytes / MIB

    @property
    def margin_mib(self) -> float:
        return self.margin_bytes / MIB

    @property
    def leave_mib(self) -> float | None:
        return as_mib(self.leave_bytes)

    @property
    def deficit_mib(self) -> float | None:
        return as_mib(self.deficit_bytes)


def as_mib(size: int | None) -> float | None:
    """MiB [float, exact: a power of two divides] of a size that may not be known."""
    return None if size is None else size / MIB


class Decision(NamedTuple):
    """What the pass comes to; `moved`: layers that it sends to the CPU, None where their number is not known."""

    verdict: str
    moved: int | None
    n_ctx: int
    action: str


def evicted(blocks: Sequence[Block], found: Memory, over: int) -> int:
    """Layers [int] that leave the device, layer 0 first, until at least `over` bytes are gone."""
    gone = count = 0
    for block in blocks:
        if gone >= over:
            break
        gone += block_bytes(block, found)
        count += 1
    return count


def fit(
    model: Model,
    context: Context,
    *,
    free_mib: float | None = None,
    weights_mib: float,
    fit_target_mib: float = FIT_TARGET_MIB,
    vision_mib: float = 0,
    n_gpu_layers: int | None = None,
    free_before_mib: float | None = None,
    compute_mib: float | None = None,
    blocks: Sequence[Block] | None = None,
    override_tensor: bool = False,
) -> Fit:
    """Whether a model fits one device beside its margin, by how much [bytes], and what the fit pass does if not.

    `free_mib`: free memory as the pass reads it, the number after "vs." in its line. `free_before_mib` instead of
    it: free memory before the server starts; a build that counts the recurrent state twice reads that much less.
    `weights_mib`: weights on the device. `vision_mib`: mmproj weights and compute, which go to the margin.
    `compute_mib`: both compute buffers together, from your own log, where they have not been measured.
    `blocks`: the file's layers front to back, which tell how many must move.

    Raises AeliusError for sizes that are none, a draft without MTP layers, and an -ngl that leaves layers out when
    `blocks` does not say which bytes go with them.
    """
    found = memory(model, context)
    check_fittable(found, context)
    free, twice = free_as_read(found, context, free_mib, free_before_mib)
    weights = mib_bytes("weights_mib", weights_mib)
    if blocks is None and is_qwen_27b(model) and abs(weights - REPLAYED_27B.weights_mib * MIB) < MIB:
        blocks = blocks_of(model, REPLAYED_27B)
    constant = None
    if compute_mib is not None:
        constant = mib_bytes("compute_mib", compute_mib) - found.compute_growing_bytes
        if constant < 0:
            expected = f"at least the {found.compute_growing_bytes / MIB:.2f} MiB that follow from the context of {found.n_ctx:,} tokens"
            raise AeliusError("compute_mib", compute_mib, expected)
    total = units_total(model, context)
    skipped = left_out(n_gpu_layers, total, blocks)
    case = Case(
        model=model,
        context=context,
        free=free,
        weights=weights,
        target=mib_bytes("fit_target_mib", fit_target_mib) + mib_bytes("vision_mib", vision_mib),
        constant=constant,
        skipped=tuple(blocks or ())[:skipped],
    )
    used, margin, known = case.needs(context.n_ctx)
    leave, deficit = room(used, free, margin)
    end = decide(case, total, blocks, abort_reason(n_gpu_layers, override_tensor))
    kept = None if total is None or end.moved is None else total - skipped - end.moved
    return Fit(
        verdict=end.verdict,
        action=end.action,
        build=context.build,
        memory=found,
        weights_bytes=mib_bytes("weights_mib", weights_mib),
        compute_bytes=found.compute_bytes if compute_mib is None else mib_bytes("compute_mib", compute_mib),
        known_bytes=used,
        projected_bytes=used if known else None,
        free_bytes=free,
        margin_bytes=margin,
        draft_in_margin_bytes=margin - case.target,
        leave_bytes=leave if known else None,
        deficit_bytes=deficit if known else None,
        counted_twice_bytes=twice,
        moved_bytes=moved_bytes(case, blocks, end),
        layers_kept=kept,
        layers_total=total,
        n_ctx=end.n_ctx,
        wall_tokens=case.wall() if known else None,
        fused_ops=fused_ops(model, context, kept == total if kept is not None else None, end.verdict),
    )


def left_out(n_gpu_layers: int | None, total: int | None, blocks: Sequence[Block] | None) -> int:
    """Layers [int] that the user's own -ngl leaves on the CPU, front layers first."""
    if n_gpu_layers is None:
        return 0
    whole("n_gpu_layers", n_gpu_layers, 0)
    if total is None:
        raise AeliusError("n_gpu_layers", n_gpu_layers, "none set: this model's layers cannot be counted")
    out = max(0, total - n_gpu_layers)
    if out > len(blocks or ()):
        raise AeliusError("n_gpu_layers", n_gpu_layers, f"at least {total} (all), or blocks: what each layer weighs")
    return out


def moved_bytes(case: Case, blocks: Sequence[Block] | None, end: Decision) -> int | None:
    """Bytes [int] of weights, cache and state that the pass sends to the CPU."""
    if not end.moved:
        return end.moved
    found = memory(case.model, at(case.context, end.n_ctx))
    return sum(block_bytes(block, found) for block in (blocks or ())[: end.moved])


def decide(case: Case, total: int | None, blocks: Sequence[Block] | None, abort: str | None) -> Decision:
    """The pass itself, on what the case needs at its context."""
    context, rules = case.context, case.context.rules
    used, margin, known = case.needs(context.n_ctx)
    n_ctx, target = context.split(case.model.max_position_embeddings)[0], case.free - margin
    if used <= target:
        if known:
            return Decision("fits", 0, n_ctx, "no changes needed")
        rest = (target - used) / MIB
        action = f"fits if the rest of the compute buffers, which is not known here, takes at most {rest:,.2f} MiB"
        return Decision("unknown", None, n_ctx, action)
    action = ""
    if context.n_ctx is None:
        streams = context.streams if rules.context_per_slot else 1
        full, floor = context.asked(case.model.max_position_embeddings), FIT_CTX * streams
        if full > floor:
            at_floor = case.needs(floor)[0]
            n_ctx = reduced_context(floor, full, at_floor, used, target, PAD * streams)
            action = f"context size reduced from {full} to {n_ctx}; "
            if at_floor <= target:
                return Decision("context reduced" if known else "unknown", 0, n_ctx, action + "entire model fits")
            used = at_floor
    if abort:
        action += f"failed to fit params to free device memory: {abort}; loading goes on"
        return Decision("evict", 0, n_ctx, action)
    if not blocks or total is None or not known:
        return Decision("evict", None, n_ctx, action + "whole layers move to the CPU, layer 0 first")
    moved = evicted(blocks, memory(case.model, at(context, n_ctx)), used - target)
    return Decision("evict", moved, n_ctx, action + f"{moved} of {len(blocks)} layers move to the CPU, layer 0 first")


def fused_ops(model: Model, context: Context, all_kept: bool | None, verdict: str) -> bool | None:
    """Whether the fused recurrent kernel stays on; None: not known, unsettled, or the model has no recurrent layers.

    Drafts are verified several tokens at a time, by the chunked kernel, which is the one that is switched off.
    """
    if not any(isinstance(layer, Recurrent) for layer in model.layers):
        return None
    if not context.rules.one_layer_disables_fused or all_kept:
        return True
    moved = all_kept is False or verdict == "evict"
    return False if moved and context.draft_max else None
