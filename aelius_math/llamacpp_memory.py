"""What llama.cpp allocates for a model and its flags, before any fit pass: caches, recurrent state, compute buffer.

Sources, in each build that `aelius_math.llamacpp_builds` names: src/llama-kv-cache.cpp (rows), src/llama-kv-cache-dsa.cpp
(index keys), src/llama-kv-cache-iswa.cpp (window cells), src/llama-memory-recurrent.cpp and src/llama-hparams.cpp (state),
ggml/src/ggml-cuda/fattn.cu and fattn-common.cuh (the f16 copy in the compute buffer).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aelius_math import dtypes
from aelius_math.cache import MLA, FullAttention, Layers
from aelius_math.llamacpp_builds import NO_FLASH_ATTENTION, measured, mib_bytes
from aelius_math.llamacpp_context import PAD, Context
from aelius_math.model import Model
from aelius_math.units import AeliusError, round_up

ATTENTION = ("FullAttention", "SlidingWindow", "ChunkedAttention", "MLA")
STATE = ("GatedDeltaNet", "KimiDelta", "Mamba1", "Mamba2", "ShortConvolution", "LightningAttention", "RWKV")
"""Kinds of layer whose size in llama.cpp has been read, and checked against runs; lightning attention against
src/llama-hparams.cpp only. An architecture that llama.cpp gives no window (Mistral 7B v0.1)
keeps every token: give it FullAttention."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """One KV cache as the log prints it: `cells` are per stream, sizes are of all streams and layers."""

    spec: Layers
    role: str
    layers: int
    cells: int
    streams: int
    type_k: str
    type_v: str
    k_bytes: int
    v_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.k_bytes + self.v_bytes


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a context takes, in bytes; None where it is not known. `cells` are of one stream.

    `kv_bytes` is the main cache and its index keys, `swa_bytes` the windows, `recurrent_bytes` conv and state of all slots with their
    rollback copies, `draft_kv_bytes` the MTP layer's own cache. `compute_bytes` is both contexts' CUDA compute
    buffers: a derived part that grows with the context, and a constant that was measured on one model only.
    """

    build: str
    n_ctx: int
    n_ctx_seq: int
    cells: int
    streams: int
    slots: int
    n_ubatch: int
    caches: tuple[Cache, ...]
    recurrent_rows: int
    conv_bytes: int
    state_bytes: int
    kv_bytes: int
    swa_bytes: int
    swa_cells: int | None
    draft_kv_bytes: int | None
    mask_bytes: int
    scratch_bytes: int
    draft_mask_bytes: int
    draft_scratch_bytes: int
    constant_bytes: int | None
    draft_constant_bytes: int | None

    @property
    def recurrent_bytes(self) -> int:
        return self.conv_bytes + self.state_bytes

    @property
    def compute_main_bytes(self) -> int | None:
        """The main context's compute buffer: masks, one f16 copy of a layer's K and V, the measured constant."""
        return None if self.constant_bytes is None else self.mask_bytes + self.scratch_bytes + self.constant_bytes

    @property
    def compute_draft_bytes(self) -> int | None:
        """The draft context's compute buffer; 0 where nothing is drafted."""
        if self.draft_constant_bytes is None:
            return None
        return self.draft_mask_bytes + self.draft_scratch_bytes + self.draft_constant_bytes

    @property
    def compute_growing_bytes(self) -> int:
        """The part of both compute buffers that follows from the context, whatever the model."""
        return self.mask_bytes + self.scratch_bytes + self.draft_mask_bytes + self.draft_scratch_bytes

    @property
    def compute_bytes(self) -> int | None:
        main, draft = self.compute_main_bytes, self.compute_draft_bytes
        return None if main is None or draft is None else main + draft


def row_values(layer: FullAttention | MLA) -> tuple[int, int]:
    """Values [int, int] in one token's K row and V row of one layer; MLA keeps K only (V is a view of it)."""
    if isinstance(layer, MLA):
        return layer.kv_lora_rank + layer.qk_rope_head_dim, 0
    return layer.num_kv_heads * layer.head_size, layer.num_kv_heads * (layer.head_size_v or layer.head_size)


def index_row(layer: MLA, type_k: str) -> int:
    """Bytes [int] of one token's index key in one layer: one head, of the type of K (src/llama-kv-cache-dsa.cpp).

    >>> index_row(MLA(num_layers=61, kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128), "q8_0")
    136
    """
    size = layer.index_head_dim or 0
    if type_k in dtypes.BLOCK_BYTES and size % dtypes.BLOCK_VALUES:
        raise AeliusError("type_k", type_k, f"a type that is not in blocks of 32: the index key has {size} values")
    return dtypes.row_bytes(type_k, size)


def cache_row(layer: FullAttention | MLA, type_k: str, type_v: str, equal_types: bool = True) -> tuple[int, int]:
    """Bytes [int, int] of one token's K row and V row in one layer: whole blocks of 32 where the type is quantised.

    >>> cache_row(FullAttention(num_layers=16, num_kv_heads=4, head_size=256), "q8_0", "q4_0")
    (1088, 576)
    """
    if isinstance(layer, MLA) and equal_types and type_k != type_v:
        raise AeliusError("type_v", type_v, f"{type_k}, as type_k: llama.cpp refuses unequal types for MLA")
    k_values, v_values = row_values(layer)
    heads = (k_values,) if isinstance(layer, MLA) else (layer.head_size, layer.head_size_v or layer.head_size)
    for field, name, size in zip(("type_k", "type_v"), (type_k, type_v), heads, strict=False):
        if name in dtypes.BLOCK_BYTES and size % dtypes.BLOCK_VALUES:
            raise AeliusError(field, name, f"a type that is not in blocks of 32: the head has {size} values")
    return dtypes.row_bytes(type_k, k_values), dtypes.row_bytes(type_v, v_values)


def window_cells(window: int, n_ctx_seq: int, slots: int, unified: bool, n_ubatch: int) -> int:
    """Cells [int] of one stream of a sliding-window cache: the windows that share it and a micro-batch, padded up.

    >>> window_cells(1024, 8192, 4, True, 512), window_cells(128, 131072, 1, False, 2048)
    (4608, 2304)
    """
    return round_up(min(n_ctx_seq, window * (slots if unified else 1) + n_ubatch), PAD)


def attention_caches(layers: Sequence[Layers], context: Context, n_ctx_seq: int, n_ubatch: int, draft: bool = False) -> list[Cache]:
    """The KV caches of the layers that keep K and V, the growing kinds first; recurrent layers keep none."""
    type_k = context.type_k_draft if draft else context.type_k
    type_v = context.type_v_draft if draft else context.type_v
    caches: list[Cache] = []
    for layer in layers:
        if type(layer).__name__ not in ATTENTION + STATE:
            known = "a kind of layer whose size in llama.cpp is known: " + ", ".join(ATTENTION + STATE)
            raise AeliusError("layers", type(layer).__name__, known)
        if not isinstance(layer, FullAttention | MLA):
            continue
        cells = n_ctx_seq
        if layer.window is not None:
            cells = window_cells(layer.window, n_ctx_seq, context.slots, context.unified, n_ubatch)
        k_row, v_row = cache_row(layer, type_k, type_v, context.rules.mla_equal_types)
        rows = layer.num_layers * cells * context.streams
        cache = Cache(
            spec=layer,
            role=("draft " if draft else "") + ("full" if layer.window is None else "window"),
            layers=layer.num_layers,
            cells=cells,
            streams=context.streams,
            type_k=type_k,
            type_v=type_v,
            k_bytes=rows * k_row,
            v_bytes=rows * v_row,
        )
        caches.append(cache)
        if isinstance(layer, MLA) and layer.index_head_dim and not draft:  # an MTP layer attends to all
            keys = rows * index_row(layer, type_k)
            caches.append(replace(cache, role="index", k_bytes=keys, v_bytes=0))
    return sorted(caches, key=lambda cache: ("full", "index", "window").index(cache.role.removeprefix("draft ")))


def mask_bytes(layers: Sequence[Layers], cells: int, n_ubatch: int) -> int:
    """Bytes [int] of the f16 attention mask over the growing cache, [n_ubatch / streams, cells] for each stream."""
    grows = any(not layer.recurrent and layer.window is None for layer in layers)
    return cells * n_ubatch * 2 if grows else 0


def scratch_bytes(layers: Sequence[Layers], all_cells: int, type_k: str, type_v: str) -> int:
    """Bytes [int] of the f16 copy of K and V that CUDA's attention makes of one layer, where they are not f16 already.

    In the compute buffer since PR 23907 (June 2026). Buffers are reused, so the largest layer counts.
    """
    sizes = [0]
    for layer in layers:
        if isinstance(layer, FullAttention | MLA) and layer.window is None:
            k_values, v_values = row_values(layer)
            copied = (k_values if type_k != "f16" else 0) + (v_values if type_v != "f16" else 0)
            sizes.append(2 * copied * all_cells)
    return max(sizes)


def rollback_copies(model: Model, context: Context) -> int:
    """Copies [int] of a slot's recurrent state that rejected drafts are rolled back to: one for each drafted token.

    Which architectures can is a list in src/llama-arch.cpp, llm_arch_supports_rs_rollback; for the others the engine sets
    the number to 0. A model that does not say its architecture is judged by its kinds of layer; raises AeliusError where
    they do not tell.

    >>> from aelius_math.cache_kinds import ShortConvolution
    >>> lfm2 = ShortConvolution(num_layers=10, hidden_size=2048, conv_kernel_size=3)
    >>> [rollback_copies(Model(name="LFM2", layers=(lfm2,), architecture="lfm2"), Context(n_ctx=256, draft_max=2, build=build))
    ...  for build in ("jul", "oct")]
    [0, 2]
    """
    rules, kinds = context.rules, {type(layer).__name__ for layer in model.layers if layer.recurrent}
    if not context.draft_max or not kinds:
        return 0
    if model.architecture is not None:
        return context.draft_max if model.architecture in rules.rollback else 0
    able = [rules.rollback_kinds.get(kind, False) for kind in kinds]
    if None in able and False not in able:
        expected = "llama.cpp's or the config's name of it, as nemotron_h: some of its kind keep a state for each drafted token"
        raise AeliusError("architecture", None, expected)
    return context.draft_max if all(able) else 0


def memory(model: Model, context: Context) -> Memory:
    """Bytes that llama.cpp allocates for `context` over the weights, each kind apart.

    The recurrent state is f32 whatever the cache types, one row a slot and, for rollback, one a drafted token. The MTP
    draft has a cache and a compute buffer of its own, of the draft types. A model without MTP layers has a drafter
    that is a model of its own: its cache is not known here (None).

    >>> from aelius_math.cache import GatedDeltaNet
    >>> model = Model(name="27B", layers=(FullAttention(num_layers=16, num_kv_heads=4, head_size=256), GatedDeltaNet(
    ...     num_layers=48, num_k_heads=16, num_v_heads=48, head_k_dim=128, head_v_dim=128, conv_kernel_size=4)),
    ...     mtp_layers=(FullAttention(num_layers=1, num_kv_heads=4, head_size=256),))
    >>> found = memory(model, Context(n_ctx=65536, n_seq_max=2, type_k="q8_0", type_v="q8_0", draft_max=1))
    >>> [size / 2**20 for size in (found.kv_bytes, found.recurrent_bytes, found.draft_kv_bytes)]
    [2176.0, 598.5, 256.0]
    """
    n_ctx, n_ctx_seq = context.split(model.max_position_embeddings)
    n_ubatch = min(context.n_ubatch, context.n_batch, context.asked(model.max_position_embeddings))
    if model.architecture in NO_FLASH_ATTENTION and context.type_v in dtypes.BLOCK_BYTES:
        raise AeliusError("type_v", context.type_v, "f32, f16 or bf16: the model runs without flash attention")
    caches = attention_caches(model.layers, context, n_ctx_seq, n_ubatch)
    drafts: list[Cache] = []
    if context.draft_max:
        drafts = attention_caches(model.mtp_layers, context, n_ctx_seq, n_ubatch, draft=True)
    recurrent = any(layer.recurrent for layer in model.layers)
    rows = context.slots * (1 + rollback_copies(model, context)) if recurrent else 0
    windows = [cache for cache in caches if cache.role == "window"]
    draft_quantised = "f16" != context.type_k_draft or "f16" != context.type_v_draft
    constants = measured(model)
    if constants and context.slots * (1 + context.draft_max) > constants.most_logit_rows:
        constants = None
    key = (n_ubatch, context.streams)
    main_constant = constants.main_mib.get(key) if constants else None
    draft_constant = main_constant if draft_quantised or not constants else constants.draft_f16_mib.get(key)
    drafting = bool(drafts)
    return Memory(
        build=context.build,
        n_ctx=n_ctx,
        n_ctx_seq=n_ctx_seq,
        cells=n_ctx_seq,
        streams=context.streams,
        slots=context.slots,
        n_ubatch=n_ubatch,
        caches=tuple(caches + drafts),
        recurrent_rows=rows,
        conv_bytes=4 * model.conv_elements * rows,
        state_bytes=4 * model.state_elements * rows,
        kv_bytes=sum(cache.size_bytes for cache in caches if cache.role != "window"),
        swa_bytes=sum(cache.size_bytes for cache in windows),
        swa_cells=windows[0].cells if windows else None,
        draft_kv_bytes=sum(cache.size_bytes for cache in drafts) if drafts or not context.draft_max else None,
        mask_bytes=mask_bytes(model.layers, n_ctx_seq, n_ubatch),
        scratch_bytes=scratch_bytes(model.layers, n_ctx, context.type_k, context.type_v),
        draft_mask_bytes=mask_bytes(model.mtp_layers, n_ctx_seq, n_ubatch) if drafting else 0,
        draft_scratch_bytes=scratch_bytes(model.mtp_layers, n_ctx, context.type_k_draft, context.type_v_draft) if drafting else 0,
        constant_bytes=None if main_constant is None else mib_bytes("constant", main_constant),
        draft_constant_bytes=(0 if not context.draft_max else None if draft_constant is None else mib_bytes("constant", draft_constant)),
    )
