"""Reading CONFIG, the argument that commands share: a config.json, a GGUF, a name of the catalogue, or
"-"."""

from __future__ import annotations

import os
import sys
from io import BufferedReader

from aelius_math.config_text import LARGEST_CONFIG, parse
from aelius_math.model import Model, from_config
from aelius_math.units import AeliusError

EXPECTED = 'a config.json, a GGUF, "-" for standard input, or a name of the catalogue'


def add_config(parser: object) -> None:
    """The positional argument CONFIG of a command, and --dtype."""
    parser.add_argument("config", metavar="CONFIG", help=EXPECTED)  # type: ignore[attr-defined]
    parser.add_argument(  # type: ignore[attr-defined]
        "--dtype", help="the model's own dtype, where the config does not say (bfloat16, float16, float32)"
    )


def load_model(text: str, *, dtype: str | None = None) -> Model:
    """The model that CONFIG names. Raises AeliusError, with what was wrong and where."""
    if text == "-":
        return from_config(parse(sys.stdin.buffer.read(LARGEST_CONFIG + 1), "standard input"), dtype=dtype)
    if "\0" in text:
        raise AeliusError("CONFIG", text, EXPECTED)
    if os.path.isdir(text):
        raise AeliusError("CONFIG", text, "a file, not a directory: try its config.json")
    if not os.path.lexists(text):
        return from_catalogue(text, dtype)
    try:
        with open(text, "rb") as file:
            if file.peek(4)[:4] == b"GGUF":
                return from_gguf(file, text, dtype)
            data = file.read(LARGEST_CONFIG + 1)
    except OSError as error:
        raise AeliusError("CONFIG", text, f"a file that can be read: {error.strerror}") from None
    return from_config(parse(data, text), dtype=dtype)


def from_gguf(file: BufferedReader, where: str, dtype: str | None) -> Model:
    from aelius_math.gguf_config import model_from_gguf
    from aelius_math.gguf_header import header

    return model_from_gguf(header(file, where), dtype=dtype)


def from_catalogue(name: str, dtype: str | None) -> Model:
    from aelius_math import catalogue
    from aelius_math.records import replace

    try:
        model = catalogue.load(name)
    except AeliusError:
        from difflib import get_close_matches

        near = get_close_matches(name.lower(), catalogue.names(), 3, 0.5)
        hint = f"; near to it: {', '.join(near)}" if near else ""
        raise AeliusError("CONFIG", name, f"{EXPECTED} (there is no such file, no such name{hint})") from None
    return replace(model, dtype=dtype) if dtype else model
