"""What a llama.cpp context costs per 1,024 tokens, what each flag is worth in tokens, and what a margin can decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from aelius_math.llamacpp_builds import FIT_TARGET_MIB
from aelius_math.llamacpp_context import PAD, Context, at
from aelius_math.llamacpp_fit import Fit, fit
from aelius_math.llamacpp_memory import Memory, memory
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError

K = 1024


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Bytes that 1,024 more tokens of context add, by what they are added to; whole numbers for one or two streams."""

    kv_bytes: Fraction
    draft_kv_bytes: Fraction
    scratch_bytes: Fraction
    mask_bytes: Fraction

    @property
    def total_bytes(self) -> Fraction:
        return self.kv_bytes + self.draft_kv_bytes + self.scratch_bytes + self.mask_bytes


def context_bytes(found: Memory) -> tuple[int, int, int, int]:
    """Bytes that follow the context: main cache, MTP cache, f16 copies, masks."""
    if found.draft_kv_bytes is None:
        raise AeliusError("draft_max", None, "0: the model has no MTP layers, its drafter is not known")
    scratch = found.scratch_bytes + found.draft_scratch_bytes
    return found.kv_bytes, found.draft_kv_bytes, scratch, found.mask_bytes + found.draft_mask_bytes


def growth(model: Model, context: Context) -> Growth:
    """Bytes that each 1,024 tokens of context add, far from where windows still fill; the size of `context` is not used.

    >>> from aelius_math.catalogue import load
    >>> july = Context(n_ctx=65536, n_seq_max=2, type_k="q8_0", type_v="q8_0", draft_max=1, build="jul")
    >>> grows = growth(load("qwen3.8-27b"), july)
    >>> [float(part / MIB) for part in (grows.kv_bytes, grows.draft_kv_bytes, grows.scratch_bytes, grows.mask_bytes)]
    [34.0, 4.0, 4.0, 1.0]
    """
    span = K * PAD * context.streams
    near, far = (context_bytes(memory(model, at(context, size))) for size in (span, 2 * span))
    parts = [Fraction((after - before) * K, span) for before, after in zip(near, far, strict=True)]
    return Growth(kv_bytes=parts[0], draft_kv_bytes=parts[1], scratch_bytes=parts[2], mask_bytes=parts[3])


def tokens_worth(model: Model, context: Context, mib: float) -> int:
    """Tokens [int, rounded down] of context that so many MiB hold.

    >>> from aelius_math.catalogue import load
    >>> july = Context(n_ctx=65536, n_seq_max=2, type_k="q8_0", type_v="q8_0", draft_max=1, build="jul")
    >>> tokens_worth(load("qwen3.8-27b"), july, 1024)
    24385
    """
    total = growth(model, context).total_bytes
    if not total:
        raise AeliusError("context", context.n_ctx, "a model whose memory grows with its context")
    return int(Fraction(mib) * MIB * K / total)


@dataclass(frozen=True, kw_only=True)
class MarginWindow:
    """Which --fit-target lets one context through and stops the next, whatever weights, state and desktop take.

    With x the MiB to spare at `base` under `target` (0 <= x < `slack_below`, as `evicts` does not fit): `passes`
    fits if the target is at most `passes_at` + x, and `fails` does not if it is above `fails_at` + x. All in MiB.
    `least` and `most` are the whole numbers that do both for some x.
    """

    passes_at: Fraction
    fails_at: Fraction
    slack_below: Fraction

    @property
    def least(self) -> int:
        return floor(self.fails_at) + 1

    @property
    def most(self) -> int:
        """The largest whole number at most passes_at + x for an x below slack_below."""
        return ceil(self.passes_at + self.slack_below) - 1

    def slacks(self, target_mib: int) -> tuple[Fraction, Fraction] | None:
        """From (included) and to (not included): the spare MiB at `base` under which this target does both."""
        low = max(Fraction(0), target_mib - self.passes_at)
        high = min(self.slack_below, target_mib - self.fails_at)
        return (low, high) if low < high else None


def margin_window(
    model: Model,
    context: Context,
    *,
    base: int = 64 * K,
    evicts: int = 80 * K,
    passes: int = 84 * K,
    fails: int = 86 * K,
    target_mib: int = FIT_TARGET_MIB,
) -> MarginWindow:
    """The margins that agree with: `base` fits and `evicts` does not at `target_mib`; `passes` fits and `fails` not.

    >>> from aelius_math.catalogue import load
    >>> july = Context(n_ctx=65536, n_seq_max=2, type_k="q8_0", type_v="q8_0", draft_max=1, build="jul")
    >>> window = margin_window(load("qwen3.8-27b"), july)
    >>> [int(part) for part in (window.passes_at, window.fails_at, window.slack_below)], window.least, window.most
    ([164, 78, 688], 79, 851)
    """
    sizes = [sum(context_bytes(memory(model, at(context, size)))) for size in (base, evicts, passes, fails)]
    above = [Fraction(size - sizes[0], MIB) for size in sizes]
    return MarginWindow(passes_at=target_mib - above[2], fails_at=target_mib - above[3], slack_below=above[1])


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What changing one flag does: the wall with it, and how many tokens that is more (or, below 0, less)."""

    flag: str
    wall_tokens: int
    gain_tokens: int
    saved_bytes: int
    """Bytes less that the pass wants at the context as it was; a state counted twice counts twice here."""


def flag_worth(
    model: Model,
    context: Context,
    *,
    free_mib: float | None = None,
    weights_mib: float,
    fit_target_mib: float = FIT_TARGET_MIB,
    vision_mib: float = 0,
    free_before_mib: float | None = None,
) -> list[Worth]:
    """What each flag that could be changed is worth in tokens, most first; those whose memory is not known left out.

    A smaller recurrent state is also read as more free memory, in builds that count it twice.
    """
    base = fit(
        model,
        context,
        free_mib=free_mib,
        weights_mib=weights_mib,
        fit_target_mib=fit_target_mib,
        vision_mib=vision_mib,
        free_before_mib=free_before_mib,
    )
    if base.wall_tokens is None:
        return []
    before = base.free_bytes + (base.memory.recurrent_bytes if context.rules.state_counted_twice else 0)
    found: list[Worth] = []
    for flag, changed, target, vision in changes(model, context, fit_target_mib, vision_mib):
        other = fit(
            model,
            changed,
            free_before_mib=before / MIB,
            weights_mib=weights_mib,
            fit_target_mib=target,
            vision_mib=vision,
        )
        if other.wall_tokens is not None:
            gain = other.wall_tokens - base.wall_tokens
            saved = wanted(base) - wanted(other)
            found.append(Worth(flag=flag, wall_tokens=other.wall_tokens, gain_tokens=gain, saved_bytes=saved))
    return sorted(found, key=lambda worth: -worth.gain_tokens)


def wanted(result: Fit) -> int:
    """Bytes that a fit pass wants free: what is used, the margin, less what it reads as free."""
    return result.known_bytes + result.margin_bytes - result.free_bytes


def changes(model: Model, context: Context, fit_target_mib: float, vision_mib: float) -> list[tuple[str, Context, float, float]]:
    """The flags that could be changed from here: their text, and the context, target and vision they make."""
    plain = (context, fit_target_mib, vision_mib)
    flags: list[tuple[str, Context, float, float]] = []

    def change(flag: str, **fields: object) -> None:
        flags.append((flag, replace(context, **fields), fit_target_mib, vision_mib))  # type: ignore[arg-type]

    if fit_target_mib:
        flags.append(("--fit-target 0", plain[0], 0, vision_mib))
    if vision_mib:
        flags.append(("--no-mmproj-offload", plain[0], fit_target_mib, 0))
    if context.draft_max > 1:
        change(f"--spec-draft-n-max {context.draft_max - 1}", draft_max=context.draft_max - 1)
    if context.draft_max:
        change("no --spec-type draft-mtp", draft_max=0)
        types = {context.type_k_draft, context.type_v_draft}
        for name in ("f16", "q8_0"):
            if types != {name}:
                change(f"-ctkd {name} -ctvd {name}", type_k_draft=name, type_v_draft=name)
    if context.slots > 1:
        change("-np 1", n_seq_max=1, kv_unified=None)
    if context.slots > 1 and context.n_seq_max is not None:
        change("-kvu" if not context.unified else "-no-kvu", kv_unified=not context.unified)
    for size in (256, 512):
        if context.n_ubatch != size:
            change(f"-ub {size}", n_ubatch=size)
    for name in ("f16", "q8_0", "q4_0"):
        if {context.type_k, context.type_v} != {name}:
            change(f"-ctk {name} -ctv {name}", type_k=name, type_v=name)
    return flags


def walls(
    model: Model,
    context: Context,
    *,
    free_before_mib: float,
    weights_mib: float,
    vision_mib: float,
    drafts: Sequence[int] = (1, 2, 3),
    fit_target_mib: float = FIT_TARGET_MIB,
) -> dict[tuple[int, bool], int | None]:
    """The wall [tokens] for each number of drafted tokens, with vision (True) and without."""
    return {
        (draft, sees): fit(
            model,
            replace(context, draft_max=draft),
            free_before_mib=free_before_mib,
            weights_mib=weights_mib,
            vision_mib=vision_mib if sees else 0,
            fit_target_mib=fit_target_mib,
        ).wall_tokens
        for draft in drafts
        for sees in (True, False)
    }
