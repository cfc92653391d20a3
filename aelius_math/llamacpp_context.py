"""The flags of a llama.cpp context, and how many cells they make: src/llama-context.cpp, the same in both builds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aelius_math.llamacpp_builds import AUTO_SLOTS, Build, build_of
from aelius_math.units import AeliusError, round_up, whole

PAD = 256
"""Cells of a stream are a multiple of this (src/llama-context.cpp)."""

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
"""What -ctk, -ctv, -ctkd and -ctvd take (common/arg.cpp)."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The flags that size a context; names are llama.cpp's.

    `n_ctx` is -c: None left unset, 0 "all of the model's". `n_seq_max` is -np, the slots: None left unset, which is
    four slots over one unified cache, whatever -kvu says (tools/server/server.cpp); a number alone splits the
    context among them, as `-np 2` does. `kv_unified` is -kvu; None is left unset. `draft_max` is --spec-draft-n-max
    with an MTP draft on; 0 is drafting off.

    >>> Context(n_ctx=65536, n_seq_max=2).split(262144), Context(n_ctx=4096, n_seq_max=10).split(262144)
    ((65536, 32768), (5120, 512))
    """

    n_ctx: int | None
    n_seq_max: int | None = 1
    kv_unified: bool | None = None
    type_k: str = "f16"
    type_v: str = "f16"
    type_k_draft: str = "f16"
    type_v_draft: str = "f16"
    draft_max: int = 0
    n_ubatch: int = 512
    n_batch: int = 2048
    build: str = "oct"

    def __post_init__(self) -> None:
        if self.n_ctx is not None:
            whole("n_ctx", self.n_ctx, 0, (1 << 32) - PAD)
        if self.n_seq_max is not None:
            whole("n_seq_max", self.n_seq_max, 1, 256)
        if self.kv_unified not in (None, True, False):
            raise AeliusError("kv_unified", self.kv_unified, "True, False, or None for the engine's own choice")
        for field in ("type_k", "type_v", "type_k_draft", "type_v_draft"):
            if getattr(self, field) not in CACHE_TYPES:
                raise AeliusError(field, getattr(self, field), "one of " + ", ".join(CACHE_TYPES))
        whole("draft_max", self.draft_max, 0, 1024)
        whole("n_ubatch", self.n_ubatch, 1, 1 << 24)
        whole("n_batch", self.n_batch, 1, 1 << 24)
        build_of(self.build)

    @property
    def slots(self) -> int:
        return AUTO_SLOTS if self.n_seq_max is None else self.n_seq_max

    @property
    def unified(self) -> bool:
        return self.n_seq_max is None or bool(self.kv_unified)

    @property
    def streams(self) -> int:
        """Separate runs of cells in each cache: one a slot when the cache is split, one in all when it is unified."""
        return 1 if self.unified else self.slots

    @property
    def rules(self) -> Build:
        return build_of(self.build)

    def asked(self, n_ctx_train: int | None) -> int:
        """Tokens [int] asked for: -c, or what the build takes the model's own length to mean when -c is unset or 0."""
        if self.n_ctx:
            return self.n_ctx
        if n_ctx_train is None:
            raise AeliusError("n_ctx", self.n_ctx, "a context size: the model does not say its own")
        return n_ctx_train * (self.streams if self.rules.context_per_slot else 1)

    def split(self, n_ctx_train: int | None = None) -> tuple[int, int]:
        """n_ctx and n_ctx_seq [int, int] as the log prints them: all cells, and those that one slot sees.

        The engine pads up to 256 twice, in all and per slot; its message says "rounding down".
        """
        n_ctx = round_up(self.asked(n_ctx_train), PAD)
        if self.unified:
            return n_ctx, n_ctx
        per_slot = round_up(n_ctx // self.slots, PAD)
        if not per_slot:
            raise AeliusError("n_ctx", self.n_ctx, f"at least {self.slots} tokens for {self.slots} slots")
        return per_slot * self.slots, per_slot


def at(context: Context, n_ctx: int | None) -> Context:
    """The same flags at another context size."""
    return replace(context, n_ctx=n_ctx)
