"""Writes small GGUF files: the header and keys, no tensors."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def typed(value: object) -> bytes:
    """A value with its type before it: ints as uint32, lists by their first entry."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    assert isinstance(value, list)
    if isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    kind, form = (7, "?") if isinstance(value[0], bool) else (5, "i") if min(value) < 0 else (4, "I")
    return struct.pack(f"<IIQ{len(value)}{form}", 9, kind, len(value), *value)


def gguf_bytes(arch: str, keys: Mapping[str, object], **general: object) -> bytes:
    """A GGUF file of one architecture; `keys` without the architecture's name before them."""
    return file_bytes({"general.architecture": arch, **{f"general.{name}": value for name, value in general.items()},
                       **{f"{arch}.{name}": value for name, value in keys.items()},
                       "tokenizer.ggml.tokens": ["a", "bb", "ccc"]})  # fmt: skip


def loadable_bytes(arch: str, keys: Mapping[str, object]) -> bytes:
    """The same as llama.cpp loads it: without a vocabulary, as it says."""
    own = {f"{arch}.{name}": value for name, value in keys.items()}
    return file_bytes({"general.architecture": arch, **own, "tokenizer.ggml.model": "none"})


def file_bytes(pairs: Mapping[str, object]) -> bytes:
    """A GGUF file of these keys, by their full names."""
    body = b"".join(text(key) + typed(value) for key, value in pairs.items())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + body
