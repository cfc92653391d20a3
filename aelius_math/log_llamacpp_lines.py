"""The lines of llama.cpp's boot log that are read, from 2024 to October 2026, as a table."""

from __future__ import annotations

from aelius_math.log_table import Form

_SELF = "«(?:llama_kv_cache\\w*|llama_new_context_with_model|llama_init_from_model|llama_context)»: "
_CONTEXT = "«(?:llama_context|llama_new_context_with_model|llama_init_from_model)»: "
_FIT = "«(?:llama_params_fit\\w*|common_params_fit\\w*|common_fit\\w*|llama_fit\\w*)»: "

FORMS = (
    # src/llama-kv-cache.cpp: cells of one stream; "4/1 seqs" is sequences / streams, absent before August 2025
    Form(
        "cache",
        "«llama_kv_cache\\w*»: size = {num} MiB ({int} cells, {int} layers, {int}«(?:/(\\d+))?»seqs),"
        "K«\\((\\w+)\\)»:{num}MiB,V«\\((\\w+)\\)»:{num}MiB",
        strict=False,
    ),
    Form(
        "self_size",
        _SELF + "KV self size = {num} MiB, K «\\((\\w+)\\)»: {num} MiB, V «\\((\\w+)\\)»: {num} MiB",
        strict=False,
    ),
    Form("kv_buffer", "«llama_kv_cache\\w*»: {dev} KV buffer size = {num} MiB", strict=False),
    Form(
        "creating",
        "«llama_kv_cache\\w*»: creating «(non-SWA|SWA|main|indexer)» KV cache, size = {int} cells",
        strict=False,
    ),
    Form(
        "state",
        "«(?:llama_memory_recurrent|llama_kv_cache_recurrent)»: size = {num} MiB ({int} cells, {int} layers, {int} seqs"
        "«(?:,?(\\d+)rs_seq)?»), R «\\(\\w+\\)»: {num} MiB, S «\\(\\w+\\)»: {num} MiB",
        strict=False,
    ),
    Form(
        "rs_buffer",
        "«(?:llama_memory_recurrent|llama_kv_cache_recurrent)»: {dev} RS buffer size = {num} MiB",
        strict=False,
    ),
    Form(
        "compute",
        "«(?:sched_reserve|llama_context|llama_new_context_with_model|llama_init_from_model|graph_reserve)»: {dev} compute buffer size = {num} MiB",
        strict=False,
    ),
    Form(
        "model_buffer",
        "«(?:load_tensors|llm_load_tensors)»: {dev} model buffer size = {num} MiB",
        strict=False,
    ),
    Form("offloaded", "offloaded {int}/{int} layers to GPU", strict=False),
    Form("constructing", _CONTEXT + "constructing llama_context", strict=False),
    Form("n_seq_max", _CONTEXT + "n_seq_max = {int}", strict=False),
    Form("n_ctx", _CONTEXT + "n_ctx = {int}", strict=False),
    Form("n_ctx_seq", _CONTEXT + "«n_ctx_(?:per_)?seq» = {int}", strict=False),
    Form("n_ctx_warn", _CONTEXT + "«n_ctx_(?:per_)?seq» ({int}) «[<>]» n_ctx_train ({int})", strict=False),
    Form("n_ctx_train", "«(?:print_info|llm_load_print_meta)»: n_ctx_train = {int}", strict=False),
    Form("n_ubatch", _CONTEXT + "n_ubatch = {int}", strict=False),
    Form("n_rs_seq", _CONTEXT + "n_rs_seq = {int}", strict=False),
    Form("kv_unified", _CONTEXT + "kv_unified = «(true|false)»", strict=False),
    Form("flash_attn", _CONTEXT + "flash_attn = «(enabled|disabled|auto|[01])»", strict=False),
    Form("slots", "initializing«(?:slots)?», n_slots = {int}", strict=False),
    Form("slot_ctx", "n_ctx_slot = {int}, kv_unified", strict=False),
    Form(
        "auto_slots",
        "n_parallel is set to auto, using n_parallel = {int} and kv_unified = «(true|false)»",
        strict=False,
    ),
    Form(
        "build",
        "«(?:print_info|build_info|build|version)»: «(?:build)?:?(\\d{1,6})\\(([0-9a-f]{5,40})\\)»",
        strict=False,
    ),
    Form(
        "path",
        "loaded meta data with «\\d+» key-value pairs and «\\d+» tensors from «(.{1,400}?)»(version GGUF",
        strict=False,
    ),
    Form("path", "load_model: loading model '«([^']{1,400})»'", strict=False),
    Form("name", "print_info: general.name = «(.{1,120})»", strict=False),
    # common/fit.cpp (src/llama.cpp before 2026)
    Form("fit_begins", "fitting params to device memory", strict=False),
    Form(
        "projected",
        _FIT + "projected to use {int} MiB of «(device|host)» memory vs.«(?:atotalof)?»{int} MiB",
        strict=False,
    ),
    Form(
        "device",
        _FIT + "-«(\\w+)\\([^)]{1,80}\\)»:{num}total,{num}used,{num}free vs. target of{num}",
        strict=False,
    ),
    Form(
        "leaves",
        _FIT + "will leave {num} >= {num} MiB of «(?:freedevice|system)» memory, no changes needed",
        strict=False,
    ),
    Form("all_met", _FIT + "targets for free memory can be met on all devices, no changes needed", strict=False),
    Form(
        "short",
        _FIT + "cannot «(?:meetfreememorytarget|fulfillmargin)» of {int} MiB, need to reduce device memory by {int} MiB",
        strict=False,
    ),
    Form(
        "short_all",
        _FIT + "cannot «(?:meetfreememorytargets|fulfillmarginof\\d+MiB)» on all devices, need to use {int} MiB less in total",
        strict=False,
    ),
    Form("ctx_reduced", _FIT + "context size reduced from {int} to {int} ->", strict=False),
    Form("ctx_user", _FIT + "context size set by user to {int} -> no change", strict=False),
    Form("ctx_full", _FIT + "user has requested full context size of {int} -> no change", strict=False),
    Form("whole_by_ctx", "entire model can be fit by reducing context", strict=False),
    Form(
        "placed",
        _FIT + "-«(\\w+)\\([^)]{1,80}\\)»:{int}layers«(?:\\((\\d+)overflowing\\))?», {num} MiB used, {num} MiB free",
        strict=False,
    ),
    Form("fit_ok", "successfully fit params to free device memory", strict=False),
    Form("fit_failed", "failed to fit params to free device memory: «(.{1,160})»", strict=False),
    Form("fit_took", "fitting params to free memory took", strict=False),
    Form(
        "draft_estimate",
        "estimated «(?:fixed)?»memory usage of «(\\w{1,20}?)»«(?:context|model)» is {num} MiB",
        strict=False,
    ),
    Form("vision_estimate", "estimated «.{0,60}?» memory usage of mmproj is {num} MiB", strict=False),
    Form("vision_estimate", "estimated memory usage of mmproj is {num} MiB", strict=False),
    Form("started", "server is listening", strict=False),
    Form("started", "«main|llama_server»: model loaded", strict=False),
    Form(
        "failed",
        "«(cudaMallocfailed:outofmemory|failedtoallocatebufferforkvcache|failedtocreatecontextwithmodel|errorloadingmodel|exitingduetomodelloadingerror|failedtoinitializethecontext)»",
        strict=False,
    ),
)

KEYS = (
    "llama_kv_cache", "llama_memory_recurrent", "KV self size", "compute buffer size", "model buffer size", "layers to GPU",
    "n_seq_max", "n_ctx =", "n_ctx_seq", "n_ctx_per_seq", "n_ctx_train", "n_ubatch", "n_rs_seq", "kv_unified", "flash_attn", "n_slots", "n_parallel is set", "loaded meta data",
    "loading model '", "general.name", "params_fit", "fit_params", "common_fit", "fitting params", "fit params to free", "by reducing context", "estimated ",
    "server is listening", "model loaded", "cudaMalloc failed", "failed to allocate buffer", "failed to create context",
    "failed to initialize the context", "error loading model", "model loading error", "constructing llama_context",
    "print_info: build", "build: ", "build_info", "version: ",
)  # fmt: skip
"""What a line must hold to be looked at."""

PARTS = (
    "llama_", "KVself", "buffersize", "layerstoGPU", "n_seq_max", "n_ctx=", "n_ctx_seq", "_per_seq", "n_ctx_train", "n_ubatch", "n_rs_seq",
    "kv_unified", "flash_attn", "n_slots", "n_parallelis", "metadata", "loadingmodel", "general.name", "_fit", "fit_", "fittingparams", "fitparams", "reducingcontext",
    "estimated", "islistening", "modelloaded", "failed", "modelloadingerror", "print_info:build", "build:", "build_info", "version:",
)  # fmt: skip
"""A part of every key, its white space gone."""
