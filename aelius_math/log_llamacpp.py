"""llama.cpp's boot log: its lines, and the contexts and boots they belong to.

A boot holds contexts: the model's own, and one for a drafter or the MTP head. A context holds one cache, or two
where some layers slide. Dry runs of the fit pass print the same lines; they are kept apart. A long module of short parts: one method for each form of line.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aelius_math.log_lines import Statement
from aelius_math.log_llamacpp_lines import FORMS
from aelius_math.log_table import Found, Table, integer, number


@dataclass
class Cache:
    """One KV cache: MiB as printed; cells of one stream; layers; sequences and streams; types of K and V; which it is."""

    total_mib: float
    cells: int
    layers: int
    seqs: int | None
    streams: int | None
    k_type: str
    v_type: str
    k_mib: float
    v_mib: float
    sliding: bool = False
    index: bool = False


@dataclass
class Context:
    """A llama_context: its caches, its recurrent state, its buffers by device, and what it says of its sizes."""

    caches: list[Cache] = field(default_factory=list)
    kv_buffers: dict[str, float] = field(default_factory=dict)
    state: dict[str, float | int | None] | None = None
    rs_buffers: dict[str, float] = field(default_factory=dict)
    compute: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, object] = field(default_factory=dict)
    next_sliding: bool = False
    next_index: bool = False

    @property
    def used(self) -> bool:
        return bool(self.caches or self.kv_buffers or self.state or self.rs_buffers or self.compute)


@dataclass
class LlamaBoot:
    """One boot: the contexts that were loaded, those of dry runs, and what the fit pass said."""

    contexts: list[Context] = field(default_factory=list)
    probes: list[Context] = field(default_factory=list)
    said: dict[str, object] = field(default_factory=dict)
    model_buffers: dict[str, float] = field(default_factory=dict)
    fit: dict[str, object] = field(default_factory=dict)
    devices: list[tuple[str, float, float, float, float]] = field(default_factory=list)
    placed: list[tuple[str, int, int, float, float]] = field(default_factory=list)
    fitting: bool = False
    fitted: bool = False
    started: bool = False
    failed: str | None = None
    clashes: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the model's own context has been made, as far as the log says."""
        return not self.fitting and bool(self.contexts) and bool(self.contexts[0].compute)

    def context(self, fresh: bool = False) -> Context:
        """The context being built; a new one where asked."""
        if fresh or not self.contexts:
            if len(self.contexts) >= 64:
                return self.contexts[-1]
            self.contexts.append(Context())
        return self.contexts[-1]

    def say(self, name: str, value: object) -> None:
        """Keep what is said first; a later word that differs is a clash."""
        if name in self.said and self.said[name] != value and len(self.clashes) < 32:
            self.clashes.append(f"{name}: {self.said[name]} and {value}")
        self.said.setdefault(name, value)


class LlamaReader:
    """Takes statements; gives boots."""

    def __init__(self) -> None:
        self.table = Table(FORMS)
        self.boots: list[LlamaBoot] = []
        self.waiting: list[Found] = []

    def take(self, statement: Statement) -> bool:
        """Read one statement; whether it was one of llama.cpp's."""
        taken = False
        for found in self.table.find(statement):
            taken = True
            if not self.boots or self._is_new(self.boots[-1], found):
                self._settle()
                self.boots.append(LlamaBoot())
            if found.name in LOADING and self.boots[-1].complete and len(self.waiting) < 64:
                self.waiting.append(found)  # of a drafter, or of one more boot: its cache will tell
            else:
                getattr(self, f"_{found.name}")(self.boots[-1], found)
        return taken

    def finish(self) -> None:
        """The log has ended: lines that waited belong to the last boot."""
        self._settle()

    def _settle(self) -> None:
        waiting, self.waiting = self.waiting, []
        for found in waiting:
            getattr(self, f"_{found.name}")(self.boots[-1], found)

    def _is_new(self, boot: LlamaBoot, found: Found) -> bool:
        loaded = boot.started or boot.failed is not None
        if found.name == "build":
            build = f"{found.values[0]} ({found.values[1]})"
            return loaded or bool(boot.contexts) or ("build" in boot.said and boot.said["build"] != build)
        if found.name in ("fit_begins", "projected", "auto_slots", "draft_estimate", "vision_estimate"):
            return loaded or boot.complete
        return found.name in ("path", "constructing", "cache", "kv_buffer") and loaded

    # what a line says

    def _cache(self, boot: LlamaBoot, found: Found) -> None:
        size, cells, layers, seqs, streams, k_type, k_mib, v_type, v_mib = found.values
        cache = Cache(
            number(size), integer(cells), integer(layers), integer(seqs), int(streams) if streams else None,
            k_type or "", v_type or "", number(k_mib), number(v_mib),
        )  # fmt: skip
        if _again(boot, cache):
            boot = self._again(boot)
        else:
            self._settle()
        context = boot.context()
        if context.next_index and len(context.caches) == 1 and not context.compute:
            cache.index = True
        elif context.caches:
            last = context.caches[-1]
            alike = (last.k_type, last.v_type, last.seqs) == (cache.k_type, cache.v_type, cache.seqs)
            if len(context.caches) == 1 and alike and (cache.cells < last.cells or context.next_sliding) and not context.compute:
                cache.sliding = True
            else:
                context = boot.context(fresh=True)
        elif context.compute:
            context = boot.context(fresh=True)
        context.caches.append(cache)

    def _again(self, boot: LlamaBoot) -> LlamaBoot:
        """The model's own context is made once more: by the fit pass, or by one more boot."""
        begun = Context() if boot.contexts[-1].caches else boot.contexts.pop()
        if boot.fitting:
            boot.contexts = [begun]
            return boot
        self.boots.append(LlamaBoot(contexts=[begun]))
        self._settle()
        return self.boots[-1]

    def _self_size(self, boot: LlamaBoot, found: Found) -> None:
        size, k_type, k_mib, v_type, v_mib = found.values
        first = boot.contexts[0].sizes.get("self_size") if boot.complete else None
        if first is not None and first == (number(size), k_type, number(k_mib), v_type, number(v_mib)):
            boot = self._again(boot)
        context = boot.context()
        context.sizes["self_size"] = (number(size), k_type, number(k_mib), v_type, number(v_mib))

    def _kv_buffer(self, boot: LlamaBoot, found: Found) -> None:
        context = boot.context()
        if context.compute:
            context = boot.context(fresh=True)
        device = found.values[0] or ""
        context.kv_buffers[device] = round(context.kv_buffers.get(device, 0.0) + number(found.values[1]), 2)

    def _creating(self, boot: LlamaBoot, found: Found) -> None:
        context = boot.context()
        if found.values[0] in ("non-SWA", "main") and context.caches:
            context = boot.context(fresh=True)
        context.next_sliding = found.values[0] == "SWA"
        context.next_index = found.values[0] == "indexer"

    def _state(self, boot: LlamaBoot, found: Found) -> None:
        size, cells, layers, seqs, rs_seq, r_mib, s_mib = found.values
        boot.context().state = {
            "total_mib": number(size), "cells": integer(cells), "layers_printed": integer(layers), "seqs": integer(seqs),
            "rs_seq": int(rs_seq) if rs_seq else None, "r_mib": number(r_mib), "s_mib": number(s_mib),
        }  # fmt: skip

    def _rs_buffer(self, boot: LlamaBoot, found: Found) -> None:
        boot.context().rs_buffers[found.values[0] or ""] = number(found.values[1])

    def _compute(self, boot: LlamaBoot, found: Found) -> None:
        boot.context().compute[found.values[0] or ""] = number(found.values[1])

    def _model_buffer(self, boot: LlamaBoot, found: Found) -> None:
        boot.model_buffers[found.values[0] or ""] = number(found.values[1])

    def _offloaded(self, boot: LlamaBoot, found: Found) -> None:
        if not boot.fitting:
            boot.said.setdefault("offloaded", (integer(found.values[0]), integer(found.values[1])))

    def _constructing(self, boot: LlamaBoot, found: Found) -> None:
        if boot.context().used or boot.context().sizes:
            boot.context(fresh=True)

    def _size(self, boot: LlamaBoot, found: Found) -> None:
        context = boot.context()
        if found.name in context.sizes and context.used:
            context = boot.context(fresh=True)
        text = found.values[0] or ""
        context.sizes[found.name] = {"true": True, "false": False}.get(text, integer(text) if text[:1].isdigit() else text)

    _n_seq_max = _n_ctx = _n_ctx_seq = _n_ubatch = _n_rs_seq = _kv_unified = _flash_attn = _size

    def _n_ctx_warn(self, boot: LlamaBoot, found: Found) -> None:
        if boot.context().compute:
            boot.context(fresh=True)
        boot.context().sizes.setdefault("n_ctx_seq", integer(found.values[0]))
        boot.context().sizes.setdefault("n_ctx_train", integer(found.values[1]))

    def _n_ctx_train(self, boot: LlamaBoot, found: Found) -> None:
        boot.said.setdefault("n_ctx_train", integer(found.values[0]))

    def _slots(self, boot: LlamaBoot, found: Found) -> None:
        boot.say("n_slots", integer(found.values[0]))

    def _slot_ctx(self, boot: LlamaBoot, found: Found) -> None:
        boot.say("n_ctx_slot", integer(found.values[0]))

    def _auto_slots(self, boot: LlamaBoot, found: Found) -> None:
        boot.say("n_parallel", integer(found.values[0]))

    def _build(self, boot: LlamaBoot, found: Found) -> None:
        boot.say("build", f"{found.values[0]} ({found.values[1]})")

    def _path(self, boot: LlamaBoot, found: Found) -> None:
        if boot.fitted and not boot.fitting:
            boot.said.setdefault("loaded_path", found.values[0])
        boot.said.setdefault("path", found.values[0])

    def _name(self, boot: LlamaBoot, found: Found) -> None:
        boot.said.setdefault("name", found.values[0])

    # the fit pass

    def _fit_begins(self, boot: LlamaBoot, found: Found) -> None:
        self._apart(boot)
        boot.fitting = True

    def _apart(self, boot: LlamaBoot) -> None:
        """What was measured up to here was a dry run."""
        if any(context.used for context in boot.contexts):
            boot.probes = [context for context in boot.contexts if context.used]
        boot.contexts = []
        boot.model_buffers = {}

    def _projected(self, boot: LlamaBoot, found: Found) -> None:
        if "projected" not in boot.fit:
            boot.fit["projected"] = integer(found.values[0])
            boot.fit["free"] = integer(found.values[2])
            boot.fit["memory"] = found.values[1]
        boot.fitting = True

    def _device(self, boot: LlamaBoot, found: Found) -> None:
        name, total, used, free, target = found.values
        if len(boot.devices) < 32:
            boot.devices.append((name or "", number(total), number(used), number(free), number(target)))
        boot.fitting = True

    def _leaves(self, boot: LlamaBoot, found: Found) -> None:
        boot.fit.setdefault("leave", int(number(found.values[0])))
        boot.fit.setdefault("margin", int(number(found.values[1])))
        boot.fit.setdefault("verdict", "fits")

    def _all_met(self, boot: LlamaBoot, found: Found) -> None:
        boot.fit.setdefault("verdict", "fits")

    def _short(self, boot: LlamaBoot, found: Found) -> None:
        boot.fit.setdefault("margin", integer(found.values[0]))
        boot.fit.setdefault("deficit", integer(found.values[1]))

    def _short_all(self, boot: LlamaBoot, found: Found) -> None:
        boot.fit.setdefault("deficit", integer(found.values[0]))

    def _ctx_reduced(self, boot: LlamaBoot, found: Found) -> None:
        boot.fit.setdefault("ctx_from", integer(found.values[0]))
        boot.fit.setdefault("ctx_to", integer(found.values[1]))

    def _ctx_user(self, boot: LlamaBoot, found: Found) -> None:
        boot.fit.setdefault("ctx_user", integer(found.values[0]))

    _ctx_full = _ctx_user

    def _whole_by_ctx(self, boot: LlamaBoot, found: Found) -> None:
        boot.fit.setdefault("verdict", "context reduced")

    def _placed(self, boot: LlamaBoot, found: Found) -> None:
        name, layers, over, used, free = found.values
        if len(boot.placed) < 32:
            boot.placed.append((name or "", integer(layers), int(over or 0), number(used), number(free)))

    def _fit_ok(self, boot: LlamaBoot, found: Found) -> None:
        self._fit_took(boot, found)

    def _fit_failed(self, boot: LlamaBoot, found: Found) -> None:
        boot.fit.setdefault("reason", found.values[0])
        boot.fit["verdict"] = "abort"
        self._fit_took(boot, found)

    def _fit_took(self, boot: LlamaBoot, found: Found) -> None:
        if boot.fitting or not boot.fitted:
            self._apart(boot)
        boot.fitting, boot.fitted = False, True

    def _draft_estimate(self, boot: LlamaBoot, found: Found) -> None:
        boot.said.setdefault("draft_estimate", number(found.values[1]))

    def _vision_estimate(self, boot: LlamaBoot, found: Found) -> None:
        boot.said.setdefault("vision_estimate", number(found.values[-1]))

    # how it ended

    def _started(self, boot: LlamaBoot, found: Found) -> None:
        boot.started = True

    def _failed(self, boot: LlamaBoot, found: Found) -> None:
        if not boot.started and boot.failed is None:
            boot.failed = FAILURES[found.values[0] or ""]


def _again(boot: LlamaBoot, cache: Cache) -> bool:
    """Whether a cache is that of a model whose cache is there already: as many layers, as much to a cell."""
    first = next((one for context in boot.contexts[:1] for one in context.caches if not one.sliding), None)
    if (
        first is None
        or not cache.layers
        or not first.cells
        or not cache.cells
        or boot.contexts[-1] is boot.contexts[0]
        and not boot.contexts[0].compute
    ):
        return False
    same = (first.layers, first.k_type, first.v_type) == (cache.layers, cache.k_type, cache.v_type)
    cells, others = first.cells * (first.streams or 1), cache.cells * (cache.streams or 1)
    return same and abs(first.total_mib / cells - cache.total_mib / others) * min(cells, others) <= 0.02


LOADING = frozenset(("path", "name", "n_ctx_train", "offloaded", "model_buffer"))
"""Lines of the loading of a model's file."""

FAILURES = {
    "cudaMallocfailed:outofmemory": "cudaMalloc ran out of memory",
    "failedtoallocatebufferforkvcache": "the KV cache could not be allocated",
    "failedtocreatecontextwithmodel": "the context could not be made",
    "errorloadingmodel": "the model could not be loaded",
    "exitingduetomodelloadingerror": "the model could not be loaded",
    "failedtoinitializethecontext": "the context could not be made",
}


def is_host(device: str) -> bool:
    """Whether a buffer's name is host memory's: CPU, CPU_Mapped, CUDA_Host and the like."""
    return device.startswith("CPU") or device.endswith("_Host")


def evidence(boots: list[LlamaBoot]) -> bool:
    """Whether the lines are enough to call the text a boot log of llama.cpp's."""
    return any(boot.fit or any(context.used or context.sizes for context in boot.contexts + boot.probes) for boot in boots)
