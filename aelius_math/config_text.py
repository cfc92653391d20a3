"""The JSON of a config.json, from its bytes or its text: what is no JSON object is refused, with the reason."""

from __future__ import annotations

import json

from aelius_math.units import AeliusError

LARGEST_CONFIG = 16 << 20
"""Bytes; a config.json is some kB. More than this is another kind of file."""


def parse(data: bytes | str, where: str, field: str = "CONFIG") -> dict[str, object]:
    """The JSON object in these bytes. A bare Infinity or NaN is taken, as Python writes them into
    config.json."""
    if len(data) > LARGEST_CONFIG:
        raise AeliusError(field, where, f"a config.json of at most {LARGEST_CONFIG >> 20} MiB")
    try:
        text = data.removeprefix("\ufeff") if isinstance(data, str) else data.decode("utf-8-sig")
        value = json.loads(text)
    except UnicodeDecodeError:
        raise AeliusError(field, where, "JSON text in UTF-8; these bytes are something else") from None
    except RecursionError:
        raise AeliusError(field, where, "JSON nested less deeply") from None
    except json.JSONDecodeError as error:
        found = "JSON; it is empty" if not data.strip() else f"JSON: {error.msg} at line {error.lineno}"
        raise AeliusError(field, where, found) from None
    except ValueError:
        raise AeliusError(field, where, "JSON with numbers of fewer digits") from None
    if not isinstance(value, dict):
        raise AeliusError(field, value, f"a JSON object in {where}")
    return value
