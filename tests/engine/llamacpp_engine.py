"""Makes contexts with a real llama.cpp library, and prints what it logs. It runs in a process of its own.

    python tests/engine/llamacpp_engine.py DIR < job.json > said.jsonl

DIR holds the package llama-cpp-py-sync, unpacked, and cffi. A job is a JSON object: `file` (a GGUF of keys alone), `model`
(fields of llama_model_params that differ from the defaults) and `runs`, each an object of fields of llama_context_params.
The first line printed is of the load, then one for each run: {"made": true or false, "log": [lines]}. What a structure
holds, and in which order, comes from the package: it was generated from the header of its own build. A field that a build
does not have yet is left out.

The model is made by llama_model_init_from_user: the keys decide every tensor, and no weight is ever read. Nothing is
decoded. The process dies where an assertion of the engine fails.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

PACKAGE = "llama_cpp_py_sync"
FROM_FILE = """
    struct gguf_read { bool no_alloc; void ** tensors; };
    struct gguf_context * gguf_init_from_file(const char * path, struct gguf_read how);
"""
DEBUG = 1  # GGML_LOG_LEVEL_DEBUG: a line for each node of the graph


def bindings(folder: Path) -> Any:
    """The package's generated bindings alone: its other modules want more packages."""
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("bindings", folder / PACKAGE / "_cffi_bindings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def filled(params: Any, fields: dict[str, Any]) -> Any:
    """A structure of parameters, with these fields set."""
    for name, value in fields.items():
        if hasattr(params, name):
            setattr(params, name, value)
    return params


def main(folder: Path) -> None:
    job = json.load(sys.stdin)
    engine = bindings(folder)
    ffi, lib = engine.ffi, engine.get_lib()
    lines: list[str] = []

    @ffi.callback("void(enum ggml_log_level, const char *, void *)")
    def keep(level: int, text: Any, _: object) -> None:
        if level != DEBUG:
            lines.append(ffi.string(text).decode(errors="replace"))

    @ffi.callback("void(struct ggml_tensor *, void *)")
    def leave(tensor: object, _: object) -> None:
        """Weights stay as the allocator gave them."""

    def say(made: bool) -> None:
        print(json.dumps({"made": made, "log": "".join(lines).splitlines()}), flush=True)
        lines.clear()

    lib.llama_log_set(keep, ffi.NULL)
    reader = type(ffi)()
    reader.cdef(FROM_FILE)
    gguf = reader.dlopen(str(folder / PACKAGE / "libggml-base.so.0"))  # the name that libllama.so asks for
    keys = gguf.gguf_init_from_file(job["file"].encode(), (True, reader.NULL))
    params = {"n_gpu_layers": 0, "use_extra_bufts": False, **job["model"]}
    model = lib.llama_model_init_from_user(
        ffi.cast("struct gguf_context *", keys), leave, ffi.NULL, filled(lib.llama_model_default_params(), params)
    )
    say(bool(model))
    for run in job["runs"] if model else ():
        context = lib.llama_init_from_model(model, filled(lib.llama_context_default_params(), run))
        say(bool(context))
        if context:
            lib.llama_free(context)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
