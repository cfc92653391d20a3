"""llama.cpp over several devices with a layer split: what each takes, and how the fit pass lays whole layers on them.

Sources: src/llama-model.cpp, load_tensors (the split by free memory), and common/fit.cpp (back to front, last device
first). Read, and checked against no run: the replayed runs had one device. A model with experts takes a further step
that needs the sizes of single tensors; it is not followed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aelius_math.llamacpp_builds import FIT_CTX, FIT_TARGET_MIB, mib_bytes
from aelius_math.llamacpp_case import (
    Block,
    abort_reason,
    block_bytes,
    check_fittable,
    loads_mtp,
    reduced_context,
    room,
)
from aelius_math.llamacpp_context import PAD, Context, at
from aelius_math.llamacpp_memory import Memory, memory
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device after the pass: how many of the log's units it holds, and its memory in bytes."""

    units: int
    used_bytes: int
    free_bytes: int
    margin_bytes: int

    @property
    def leave_bytes(self) -> int:
        return self.free_bytes - self.used_bytes


@dataclass(frozen=True, kw_only=True)
class DevicesFit:
    """What the pass finds and does on several devices; `projected` as first laid out, `devices` as it ends.

    `verdict` as of one device, and "moved": every layer stays on a device, though not on the one it was on.
    """

    verdict: str
    action: str
    build: str
    n_ctx: int
    projected: tuple[Device, ...]
    devices: tuple[Device, ...]
    layers_kept: int
    layers_total: int


def split_by_free(units: int, free: Sequence[int]) -> list[int]:
    """Units [int] of each device as llama.cpp lays them out by itself: front layers first, in proportion to free.

    >>> split_by_free(66, [24, 24]), split_by_free(33, [8, 24])
    ([33, 33], [9, 24])
    """
    total = sum(free)
    if not total:
        raise AeliusError("free_mib", list(free), "some free memory on at least one device")
    counts = [0] * len(free)
    for unit in range(units):
        reached = 0
        for device, size in enumerate(free):
            reached += size
            if unit * total < reached * units:
                counts[device] += 1
                break
    return counts


def fill(total: int, targets: Sequence[int], used: Callable[[int, int, int], int], most: int) -> list[int]:
    """Units [int] that each device is given: back to front, last device first; what is over stays in host memory.

    `used(device, start, count)`: bytes on a device that holds `count` units from `start` on. `targets`: free - margin
    of each. `most`: the units that the pass knows of. The engine finds the same counts by false position.

    >>> sizes = [5, 5, 5, 5, 3]
    >>> fill(5, [10, 14], lambda device, start, count: sum(sizes[start : start + count]), 5)
    [2, 3]
    """
    counts = [0] * len(targets)
    end, left = total, most
    for device in reversed(range(len(targets))):
        while left and used(device, end - counts[device] - 1, counts[device] + 1) <= targets[device]:
            counts[device] += 1
            left -= 1
        end -= counts[device]
    return counts


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The file's units front to back, the weights of each, and what the devices add of their own."""

    model: Model
    context: Context
    blocks: tuple[Block, ...]
    tail: tuple[int, ...]
    """Bytes of weights of the MTP layer, where the file's is loaded, and of the output."""
    constants: tuple[int, ...]
    """Bytes of each device's compute buffers that do not follow from the context."""

    @property
    def total(self) -> int:
        return len(self.blocks) + len(self.tail)

    def weights(self) -> int:
        return sum(block.weights_bytes for block in self.blocks) + sum(self.tail)

    def drafts(self, start: int, count: int) -> bool:
        """Whether the MTP layer, first after the blocks, is among these units and drafts."""
        return bool(self.context.draft_max) and start <= len(self.blocks) < start + count

    def growing(self, start: int, count: int, found: Memory) -> tuple[int, int]:
        """Bytes of the compute buffers that follow from the context, on a device that holds these units: main, MTP."""
        held = self.blocks[start : start + count]
        attends = any(not block.layer.recurrent and block.layer.window is None for block in held)
        main = found.mask_bytes + found.scratch_bytes if attends else 0
        return main, found.draft_mask_bytes + found.draft_scratch_bytes if self.drafts(start, count) else 0

    def needs(self, device: int, start: int, count: int, found: Memory) -> tuple[int, int]:
        """Bytes on a device that holds these units: of the model, and of the MTP context beside it."""
        if not count:
            return 0, 0
        held = [block_bytes(block, found) for block in self.blocks] + list(self.tail)
        main, draft = self.growing(start, count, found)
        draft += (found.draft_kv_bytes or 0) if self.drafts(start, count) else 0
        return sum(held[start : start + count]) + main + self.constants[device], draft

    def lay(self, counts: Sequence[int], free: Sequence[int], margins: Sequence[int], found: Memory) -> tuple[Device, ...]:
        """The devices with so many units each, counted from the back."""
        start = self.total - sum(counts)
        devices = []
        for number, count in enumerate(counts):
            used, draft = self.needs(number, start, count, found)
            beside = draft if self.context.rules.draft_in_margin else 0
            devices.append(
                Device(
                    units=count,
                    used_bytes=used + draft - beside,
                    free_bytes=free[number],
                    margin_bytes=margins[number] + beside,
                )
            )
            start += count
        return tuple(devices)


def each(field: str, value: float | Sequence[float], devices: int) -> list[int]:
    """Bytes for each device, from one number of MiB for all of them or one for each."""
    values = [value] * devices if isinstance(value, int | float) else list(value)
    if len(values) != devices:
        raise AeliusError(field, value, f"one number of MiB, or one for each of the {devices} devices")
    return [mib_bytes(field, size) for size in values]


def fit_devices(
    model: Model,
    context: Context,
    *,
    blocks: Sequence[Block],
    output_mib: float,
    free_mib: Sequence[float],
    compute_mib: Sequence[float],
    mtp_mib: float | None = None,
    fit_target_mib: float | Sequence[float] = FIT_TARGET_MIB,
    vision_mib: float = 0,
    n_gpu_layers: int | None = None,
    tensor_split: Sequence[float] | None = None,
    split_mode: str = "layer",
    override_tensor: bool = False,
) -> DevicesFit:
    """Whether a model fits several devices, each beside its own margin [bytes], and how the pass lays it out if not.

    `blocks`, `mtp_mib`, `output_mib`: the file's weights. `free_mib`: of each device, as the pass reads it.
    `compute_mib`: of each device, both contexts together, from the log: no constant has been measured on more than
    one device. `vision_mib` goes to the first device's margin. `n_gpu_layers`: only that the user set it, to all.
    """
    number = len(free_mib)
    if not number:
        raise AeliusError("free_mib", free_mib, "a number of MiB for each device")
    free, margins = each("free_mib", free_mib, number), each("fit_target_mib", fit_target_mib, number)
    margins[0] += mib_bytes("vision_mib", vision_mib)
    if split_mode not in ("layer", "row", "tensor"):
        raise AeliusError("split_mode", split_mode, "layer, row or tensor")
    found, rules = memory(model, context), context.rules
    check_fittable(found, context)
    mtp = [mib_bytes("mtp_mib", mtp_mib)] if loads_mtp(model, context) else []  # None is refused where it counts
    layout = Layout(
        model=model,
        context=context,
        blocks=tuple(blocks),
        tail=(*mtp, mib_bytes("output_mib", output_mib)),
        constants=(),
    )
    counts = split_by_free(layout.total, each("tensor_split", tensor_split, number) if tensor_split else free)
    layout = replace(layout, constants=constants(layout, counts, each("compute_mib", compute_mib, number), found))
    projected = layout.lay(counts, free, margins, found)
    lacking = [room(device.used_bytes, device.free_bytes, device.margin_bytes)[1] for device in projected]
    abort = abort_reason(n_gpu_layers, override_tensor, bool(tensor_split), split_mode)
    n_ctx, verdict, action = (
        found.n_ctx,
        "fits",
        "targets for free memory can be met on all devices, no changes needed",
    )
    devices = projected
    if split_mode == "tensor" or (any(lacking) and abort):
        abort = abort if split_mode != "tensor" else "llama_params_fit is not implemented for SPLIT_MODE_TENSOR, abort"
        verdict = "evict" if any(lacking) else "fits"
        action = f"failed to fit params to free device memory: {abort}; loading goes on"
    elif any(lacking):
        targets = [device.free_bytes - device.margin_bytes for device in projected]
        used = sum(device.used_bytes for device in projected)
        shrinks = context.n_ctx is None and used > sum(targets)
        if shrinks:
            n_ctx = shrunk(layout, counts, sum(targets), used, free, margins)
            found = memory(model, at(context, n_ctx))
        beside = not rules.draft_in_margin

        def takes(device: int, start: int, count: int) -> int:
            main, draft = layout.needs(device, start, count, found)
            return main + (draft if beside else 0)

        most = layout.total - (len(mtp) if not rules.fit_counts_mtp_block else 0)
        counts = fill(layout.total, targets, takes, most)
        devices = layout.lay(counts, free, margins, found)
        moved = layout.total - sum(counts)
        reduced = f"context size reduced to {n_ctx}; " if shrinks else ""
        verdict = "evict" if moved else "context reduced" if shrinks else "moved"
        action = reduced + (f"{moved} units move to the CPU, layer 0 first" if moved else "layers are laid anew")
    return DevicesFit(
        verdict=verdict,
        action=action,
        build=context.build,
        n_ctx=n_ctx,
        projected=projected,
        devices=devices,
        layers_kept=sum(device.units for device in devices),
        layers_total=layout.total,
    )


def constants(layout: Layout, counts: Sequence[int], compute: Sequence[int], found: Memory) -> tuple[int, ...]:
    """Bytes of each device's compute buffers that are left when what follows from the context is taken off."""
    start, sizes = 0, []
    for count, given in zip(counts, compute, strict=True):
        growing = sum(layout.growing(start, count, found))
        if given < growing:
            least = f"at least {growing / MIB:.2f}, which follow from the context"
            raise AeliusError("compute_mib", given / MIB, least)
        sizes.append(given - growing)
        start += count
    return tuple(sizes)


def shrunk(layout: Layout, counts: Sequence[int], target: int, used: int, free: Sequence[int], margins: Sequence[int]) -> int:
    """Tokens [int] to which an unset context shrinks: half a layer a device, and half of one more, are kept back."""
    context = layout.context
    streams = context.streams if context.rules.context_per_slot else 1
    full = context.asked(layout.model.max_position_embeddings)
    floor = min(full, FIT_CTX * streams)
    layers = layout.total - 1 if context.rules.fit_counts_mtp_block else len(layout.blocks)
    target -= (len(free) + 1) * (layout.weights() // layers) // 2
    at_floor = layout.lay(counts, free, margins, memory(layout.model, at(context, floor)))
    return reduced_context(floor, full, sum(device.used_bytes for device in at_floor), used, target, PAD * streams)
