"""The two llama.cpp builds whose rules are known, and what has been measured of them.

A build is named by its month: "jul" is e3546c794 (2026-07-11), "oct" is 0c1e57098 (2026-10-01). What differs between
them is a field of `Build`, so a rule never asks for a build by name. What a context takes was held against the logs of
real builds, up to `newest_seen`; the fit pass only against the two that are named. Everything in `MEASURED` was read off a log to
0.01 MiB: no rule gives it, and it holds for the one model named, not for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from aelius_math.cache import FullAttention, GatedDeltaNet
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError

FIT_TARGET_MIB = 1024
"""--fit-target: MiB that the fit pass leaves free on each device unless told otherwise (common/common.h)."""

FIT_CTX = 4096
"""--fit-ctx: tokens below which the fit pass does not shrink a context that was left unset (common/common.h)."""

DRAFT_MAX = 3
"""--spec-draft-n-max: drafted tokens a step when drafting is on and the number is left unset (common/common.h)."""

AUTO_SLOTS = 4
"""-np left unset: llama-server opens four slots over one unified cache (tools/server/server.cpp)."""

ROLLBACK_JULY = frozenset(
    ("qwen35", "qwen35moe", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
)
ROLLBACK = ROLLBACK_JULY | {
    "nemotron_h", "nemotron_h_moe", "lfm2", "lfm2moe", "lfm2_moe", "kimi-k3", "kimi_k3", "bailingmoe3", "bailing_moe_v3",
}  # fmt: skip
"""Architectures whose recurrent state can be rolled back when drafts are rejected, as a GGUF and a config.json name them
(src/llama-arch.cpp, llm_arch_supports_rs_rollback; others in its list have kinds of layer that are not read here)."""

NO_FLASH_ATTENTION = frozenset(("grok", "grok-1"))
"""Architectures for which flash attention is switched off, without which V cannot be quantised (src/llama-context.cpp)."""

ROLLBACK_KINDS_JULY = {"GatedDeltaNet": True, "Mamba2": False, "KimiDelta": False, "ShortConvolution": False}
ROLLBACK_KINDS = {"GatedDeltaNet": True, "Mamba2": None, "KimiDelta": None, "ShortConvolution": True}
"""The same for a model that does not say its architecture. A Gated DeltaNet is taken for Qwen3.5's, a short convolution
for LFM2's; None: some architectures of this kind can, some cannot. Kinds that are not named cannot."""


@dataclass(frozen=True, kw_only=True)
class Build:
    """What one build of llama.cpp does where the builds differ."""

    name: str
    commit: str
    date: str
    state_counted_twice: bool
    """The dry run allocates the recurrent state for real (llama_memory_recurrent ignores no_alloc), so that `free`
    is already short by it while `used` holds it again. PR 28550, which mends it, was still open in October."""
    draft_in_margin: bool
    """The MTP context is measured once and added to the margin; else it is part of what is projected."""
    fit_counts_mtp_block: bool
    """The fit pass knows of the MTP block; else it may hand out one unit fewer than there are."""
    context_per_slot: bool
    """With a split cache, an unset context and its floor are multiplied by the number of slots."""
    mla_equal_types: bool
    """K and V of MLA must have one type, though nothing is kept of V (src/llama-context.cpp)."""
    rollback: frozenset[str]
    rollback_kinds: Mapping[str, bool | None]
    newest_seen: tuple[str, str, str]
    """The newest build whose own log `memory` reproduces by these rules, by runs in tests/golden/: number, commit, date."""
    one_layer_disables_fused: bool
    """One recurrent layer on another device than its op switches the fused op off for all of them (resolve_fused_ops,
    gone since PR 27877)."""


BUILDS = {
    "jul": Build(
        name="jul",
        commit="e3546c794",
        date="2026-07-11",
        state_counted_twice=True,
        draft_in_margin=True,
        fit_counts_mtp_block=False,
        context_per_slot=False,
        mla_equal_types=False,
        newest_seen=("b9982", "99f3dc322", "2026-07-13"),
        rollback=ROLLBACK_JULY,
        rollback_kinds=ROLLBACK_KINDS_JULY,
        one_layer_disables_fused=True,
    ),
    "oct": Build(
        name="oct",
        commit="0c1e57098",
        date="2026-10-01",
        state_counted_twice=True,
        draft_in_margin=False,
        fit_counts_mtp_block=True,
        context_per_slot=True,
        mla_equal_types=True,
        newest_seen=("b11739", "0ce8cd114", "2026-10-19"),
        rollback=ROLLBACK,
        rollback_kinds=ROLLBACK_KINDS,
        one_layer_disables_fused=False,
    ),
}


def build_of(name: object) -> Build:
    """The build of that name; refuses builds whose rules have not been read.

    >>> build_of("jul").commit
    'e3546c794'
    """
    if isinstance(name, str) and name in BUILDS:
        return BUILDS[name]
    raise AeliusError("build", name, "jul (2026-07-11) or oct (2026-10-01)")


def mib_bytes(field: str, value: object) -> int:
    """Bytes [int] of a number of MiB, whole or with decimals as a log prints them.

    >>> mib_bytes("free_mib", 20996), mib_bytes("weights_mib", 887.99)
    (22015901696, 931125002)
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isfinite(value) or not 0 <= value <= 1 << 33:  # type: ignore[arg-type, operator]
        raise AeliusError(field, value, "a number of MiB of at least 0")
    return value * MIB if isinstance(value, int) else round(value * MIB)  # type: ignore[operator]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Constants of one model, read off logs of CUDA builds since PR 23907 (June 2026). Keys: (n_ubatch, streams)."""

    main_mib: dict[tuple[int, int], float]
    draft_f16_mib: dict[tuple[int, int], float]
    """With an f16 draft cache; with a quantised one the draft's constant is the main context's."""
    most_logit_rows: int
    """The constants hold while few rows want logits: slots x (1 + draft). 8 were run; up to this many, the rows
    (n_vocab x 4 bytes each) stay below the smallest constant: inferred."""


QWEN_27B = Measured(
    main_mib={(256, 1): 40.27, (256, 2): 40.27, (512, 1): 80.28, (512, 2): 80.28},
    draft_f16_mib={(256, 1): 34.01, (256, 2): 49.01, (512, 1): 68.02, (512, 2): 98.02},
    most_logit_rows=32,
)

VISION_27B_MIB = 887.99 + 248.10
"""MiB of the GPU that the 27B's F16 or BF16 mmproj takes, as its log prints them: weights and CUDA compute for a
1472 x 1472 image. The log's worst case of 1161.02 counts 24.93 on the CPU too."""

VOCABULARY_27B, EMBEDDING_27B = 248_320, 5_120


@dataclass(frozen=True, kw_only=True)
class BlockWeights:
    """MiB that one layer weighs, by kind, and the order of the layers: of one file, measured as it was replayed."""

    weights_mib: int
    by_kind: dict[str, float]
    pattern: tuple[str, ...]


REPLAYED_27B = BlockWeights(
    weights_mib=14_497,
    by_kind={"GatedDeltaNet": 205.6, "FullAttention": 199.7},
    pattern=("GatedDeltaNet", "GatedDeltaNet", "GatedDeltaNet", "FullAttention"),
)
"""The 27B at Q4_K whose fit runs are in tests/golden/llamacpp_wall.json."""


def is_qwen_27b(model: Model) -> bool:
    """Whether the layers are those of Qwen3.5, 3.6 and 3.8 27B, on which the constants were measured."""
    if len(model.layers) != 2:
        return False
    kinds = {type(layer): layer for layer in model.layers}
    full, delta = kinds.get(FullAttention), kinds.get(GatedDeltaNet)
    return (
        isinstance(full, FullAttention)
        and isinstance(delta, GatedDeltaNet)
        and (full.num_layers, full.num_kv_heads, full.head_size) == (16, 4, 256)
        and (full.head_size_v or full.head_size) == full.head_size
        and (delta.num_layers, delta.num_k_heads, delta.num_v_heads) == (48, 16, 48)
        and (delta.head_k_dim, delta.head_v_dim, delta.conv_kernel_size) == (128, 128, 4)
    )


def measured(model: Model) -> Measured | None:
    """The constants measured on this model's geometry; None: nobody measured them."""
    return QWEN_27B if is_qwen_27b(model) else None


def logits_buffer_bytes(n_ubatch: int, n_vocab: int, n_embd: int) -> int:
    """Bytes [int] of the whole compute buffer of builds before June 2026: every row of a micro-batch had logits.

    >>> logits_buffer_bytes(512, VOCABULARY_27B, EMBEDDING_27B) / MIB
    495.0
    """
    return n_ubatch * (n_vocab + n_embd) * 4
