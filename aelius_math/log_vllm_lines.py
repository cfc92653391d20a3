"""The lines of vLLM's boot log that are read, from 0.2 to 0.33, as a table."""

from __future__ import annotations

from aelius_math.log_table import Form

FORMS = (
    # v1/core/kv_cache_utils.py: two lines; from 0.28.0 one. Up to February 2025 the block count instead.
    Form("tokens", "«(?:GPU|CPU|XPU|TPU|HPU|NPU)» KV cache size: {int} tokens", end=",Maximumconcurrency"),
    Form("concurrency", "Maximum concurrency for {int} tokens per request: {num}x"),
    Form("gpu_blocks", "# GPU blocks: {int}, # CPU blocks: {int}"),
    Form("gpu_blocks", "# GPU blocks: {int}"),
    Form("override", "Overriding num_gpu_blocks={int} with num_gpu_blocks_override={int}"),
    Form("padding", "Add {int} padding layers, may waste at most {num}% KV cache memory"),
    Form("context_parallel", "Multiplying the GPU KV cache size by the «\\w+»_world_size {int}", strict=False),
    Form("auto_fit", "Auto-fit max_model_len: reduced from {int} to {int} to fit", strict=False),
    # v1/core/kv_cache_utils.py _check_enough_kv_cache_memory; the parenthesis never closes in most versions.
    Form(
        "needed",
        "To serve at least one request with the model«s?»'s max seq len ({int}), «\\(?»{num} GiB KV cache is needed, which is larger"
        " than the available KV cache memory ({num} GiB)",
        strict=False,
    ),
    Form("longest", "stimated maximum model length is {int}.", strict=False),
    # worker/worker.py raise_if_cache_size_invalid, up to 0.9 and the old engine
    Form(
        "too_long",
        "The model's max seq len ({int}) is larger than the maximum number of tokens that can be stored in KV cache ({int})",
        strict=False,
    ),
    Form("no_memory", "ValueError: No available memory for the cache blocks", strict=False),
    Form(
        "no_startup_memory",
        "ValueError: Free memory on device «.{0,60}?» on startup is less than desired GPU memory utilization",
        strict=False,
    ),
    # v1/worker/gpu_worker.py
    Form("available", "Available KV cache memory: {num} GiB"),
    Form(
        "reserved",
        "Initial free memory {num} GiB, reserved {num} GiB memory for KV Cache as specified by kv_cache_memory_bytes",
        strict=False,
    ),
    Form("in_use_bytes", "Current kv cache memory in use is {int} bytes", strict=False),
    Form("old_available", "the rest of the memory reserved for KV Cache is {num}GiB", strict=False),
    Form("older_available", "Memory profiling results: «.{0,300}?kv_cache_size=»{num}GiB", strict=False),
    Form("model_loading", "Model loading took {num} GiB", strict=False),
    Form("graph_estimate", "Estimated CUDA graph memory: {num} GiB total"),
    # platforms/interface.py; before 0.20 model_executor/models/config.py
    Form("block", "Setting attention block size to {int} tokens", end="toensurethat"),
    Form("block", "Setting attention block size to {int} tokens."),
    Form("mamba_mode", "Mamba cache mode is set to '{word}' for", strict=False),
    # layers/mamba/gdn/qwen_gdn_linear_attn.py; from 0.33 the kernel decides how many blocks are set aside
    Form("prefill", "Using «(Triton/FLA|FlashInfer|CuteDSL|AITERFlyDSL|SYCL)» GDN prefill kernel", end="(requested="),
    Form("architecture", "Resolved architecture: {name}"),
    Form("using_len", "Using max model len {int}"),
    Form("batched", "Chunked prefill is enabled with max_num_batched_tokens={int}."),
    Form("args", "non-default args: «\\{»", strict=False, once=True),
    Form("args", "args: Namespace(", strict=False, once=True),
    Form(
        "engine",
        "Initializing «an?(?:V1)?» LLM engine «(?:\\(v([^()]{1,60})\\))?» with config:",
        strict=False,
        once=True,
    ),
    Form("version", "vLLM API server version «v?»{version}"),
    Form("version", "«(?:\u2584|\u2588).{0,60}?»version «v?»{version}", strict=False),
    Form("started", "Application startup complete", strict=False),
    Form("started", "Starting vLLM «(?:API)?server(?:0|\\d+)?on»", strict=False),
    Form(
        "crashed",
        "«(Enginecoreinitializationfailed|EngineCorefailedtostart|WorkerProcfailedtostart|CUDAoutofmemory)»",
        strict=False,
    ),
)

KEYS = (
    "KV cache size:", "KV Cache size:", "Maximum concurrency", "Multiplying the GPU", "KV cache memory", "kv cache memory", "GPU blocks", "num_gpu_blocks",
    "padding layers", "max_model_len", "max seq len", "imum model length", "attention block size to", "Mamba cache mode",
    "Resolved architecture", "max model len", "Chunked prefill is", "non-default args", "args: Namespace", "LLM engine",
    "vLLM API server", "\u2584", "\u2588", "startup complete", "Starting vLLM", "CUDA graph memory", "Model loading took",
    "ngine core init", "EngineCore failed", "CUDA out of memory", "WorkerProc failed", "cache blocks", "Memory profiling",
    "Free memory on", "for KV Cache", "GDN prefill kernel",
)  # fmt: skip
"""What a line must hold to be looked at."""

PARTS = (
    "achesize:", "Maximumconc", "Multiplying", "cachememory", "forKVCache", "PUblocks", "gpu_blocks", "addinglayers", "max_model_len", "maxseqlen",
    "modellen", "blocksizeto", "cachemode", "Resolvedarch", "prefillis", "defaultargs", "Namespace", "LLMengine", "APIserver",
    "\u2584", "\u2588", "startupcomplete", "StartingvLLM", "graphmemory", "loadingtook", "coreinit", "failed", "outofmemory",
    "cacheblocks", "Memoryprof", "memoryon", "prefillkernel",
)  # fmt: skip
"""A part of every key, its white space gone: few, for they are looked for in all of a long log."""
