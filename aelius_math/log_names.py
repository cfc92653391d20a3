"""The names under which a boot's figures are told: one set for both engines, None where a log does not say."""

STATED = (
    "tokens", "max_model_len", "max_concurrency", "available_kv_gib", "block_size", "model", "version", "status",
    "needed_gib", "longest_max_model_len", "tensor_parallel_size", "kv_cache_dtype", "num_speculative_tokens",
    "enable_prefix_caching",
)  # fmt: skip
STATED_LLAMA = (
    "kv_mib",
    "recurrent_mib",
    "compute_mib",
    "n_ctx",
    "cells",
    "projected_mib",
    "free_mib",
    "verdict",
)
