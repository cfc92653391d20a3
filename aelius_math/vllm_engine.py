"""vLLM's settings, and the error when one request does not fit."""

from __future__ import annotations

from aelius_math import dtypes
from aelius_math.cache import Layers
from aelius_math.records import Record
from aelius_math.units import AeliusError, show_bytes, whole
from aelius_math.vllm_versions import possible

MODES = ("none", "align", "all")
PREFILLS = ("gdn_prefill_backend", "kda_prefill_backend")
GDN_PREFILL = ("triton", "flashinfer", "cutedsl", "aiter_flydsl", "sycl")
KDA_PREFILL = ("triton", "flashkda", "flashinfer")


class DoesNotFit(AeliusError):
    """The engine would refuse to start: one request of max_model_len needs more than there is.

    `needed_bytes` let it start; `request_bytes` is what its error prints, without the null block.
    """

    def __init__(
        self, available_bytes: int, needed_bytes: int, longest: int, num_blocks: int, blocks: int, null_block_bytes: int = 0
    ) -> None:
        self.needed_bytes = needed_bytes
        self.request_bytes = needed_bytes - null_block_bytes
        self.longest_max_model_len = longest
        self.num_blocks = num_blocks
        self.blocks_per_request = blocks
        shorter = f"a max_model_len of at most {longest:,}" if longest else "a smaller model"
        beside = " beside the null block" if null_block_bytes else ""
        super().__init__(
            "available_bytes",
            available_bytes,
            f"at least {needed_bytes:,} ({show_bytes(needed_bytes)}): one full request wants {blocks:,} blocks{beside} "
            f"of {num_blocks:,}. Give more memory, or {shorter}",
        )

    @property
    def numbers(self) -> dict[str, object]:
        """What was refused, under the names of the command's JSON."""
        names = ("needed_bytes", "longest_max_model_len", "num_blocks", "blocks_per_request")
        return {"refused": True, "available_bytes": self.value, **{name: getattr(self, name) for name in names}}


class Engine(Record):
    """vLLM's settings that the pool depends on, by vLLM's own names; None leaves a setting to the release.

    >>> Engine(max_model_len=262144, tensor_parallel_size=2, kv_cache_dtype="fp8").version
    '0.28.0'
    """

    version: str = "0.28.0"
    tensor_parallel_size: int = 1
    kv_cache_dtype: str = "auto"
    max_model_len: int
    max_num_batched_tokens: int | None = None
    enable_prefix_caching: bool | None = None
    num_speculative_tokens: int = 0
    speculative_method: str | None = None
    draft: tuple[Layers, ...] | None = None
    mamba_cache_mode: str | None = None
    mamba_ssm_cache_dtype: str | None = None
    block_size: int | None = None
    num_gpu_blocks_override: int | None = None
    hybrid_kv_cache_manager: bool = True
    kernel_block_size: int | None = None
    gdn_prefill_backend: str | None = None
    kda_prefill_backend: str | None = None
    max_num_seqs: int | None = None
    pipeline_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    prefill_context_parallel_size: int = 1

    def __post_init__(self) -> None:
        possible(self.version)
        for field in ("tensor_parallel_size", "max_model_len"):
            whole(field, getattr(self, field))
        whole("num_speculative_tokens", self.num_speculative_tokens, 0)
        for field in (
            "max_num_batched_tokens",
            "block_size",
            "num_gpu_blocks_override",
            "kernel_block_size",
            "max_num_seqs",
        ):
            if getattr(self, field) is not None:
                whole(field, getattr(self, field))
        for field in (
            "pipeline_parallel_size",
            "decode_context_parallel_size",
            "prefill_context_parallel_size",
        ):
            if getattr(self, field) != 1:
                raise AeliusError(field, getattr(self, field), "1: pools of more are not derived here")
        if self.enable_prefix_caching not in (None, True, False):
            raise AeliusError("enable_prefix_caching", self.enable_prefix_caching, "True, False or None")
        if self.hybrid_kv_cache_manager not in (True, False):
            raise AeliusError("hybrid_kv_cache_manager", self.hybrid_kv_cache_manager, "True or False")
        if self.mamba_cache_mode not in (None, *MODES):
            raise AeliusError("mamba_cache_mode", self.mamba_cache_mode, "one of " + ", ".join(MODES))
        if self.speculative_method is not None and not isinstance(self.speculative_method, str):
            raise AeliusError("speculative_method", self.speculative_method, 'a name such as "mtp"')
        for field, names in (("gdn_prefill_backend", GDN_PREFILL), ("kda_prefill_backend", KDA_PREFILL)):
            if getattr(self, field) not in (None, *names):
                raise AeliusError(field, getattr(self, field), "one of " + ", ".join(names))
        if self.kv_cache_dtype != "auto":
            dtypes.known(self.kv_cache_dtype, "kv_cache_dtype")
        if self.mamba_ssm_cache_dtype is not None:
            dtypes.element_bytes(self.mamba_ssm_cache_dtype, "mamba_ssm_cache_dtype")
        if self.draft is not None:
            layers = (self.draft,) if isinstance(self.draft, Layers) else self.draft
            if not isinstance(layers, tuple | list) or not all(isinstance(layer, Layers) for layer in layers):
                raise AeliusError("draft", self.draft, "a tuple of layer specs from aelius_math.cache")
            object.__setattr__(self, "draft", tuple(layers))
