"""The built-in catalogue: configs of common models, each with where it was read.

The data is `catalogue.json` beside this module, loaded when it is asked for. An entry holds the fields that
decide what a model keeps, under the config's own names, and the sources.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TypedDict

from aelius_math.model import Model, from_config
from aelius_math.units import AeliusError


class Entry(TypedDict):
    """One model: the repository it is published under, where its fields were read, and the fields."""

    repository: str
    sources: list[str]
    config: dict[str, object]


@cache
def _entries() -> dict[str, Entry]:
    data: dict[str, Entry] = json.loads(Path(__file__).with_name("catalogue.json").read_text("utf-8"))
    return data


def names() -> tuple[str, ...]:
    """The models of the catalogue, by the names that the command line takes.

    >>> "qwen3.8-27b" in names()
    True
    """
    return tuple(_entries())


def entry(name: str) -> Entry:
    """A model's entry: repository, sources, config. The name's case does not matter; its repository will do
    as well."""
    wanted = name.lower() if isinstance(name, str) else name
    for key, found in _entries().items():
        if wanted in (key, found["repository"].lower()):
            return found
    raise AeliusError("model", name, "a name of the catalogue: " + ", ".join(names()))


def config(name: str) -> dict[str, object]:
    """The config of a model of the catalogue: the fields that decide what it keeps."""
    copy: dict[str, object] = json.loads(json.dumps(entry(name)["config"]))  # the caller may change it
    return copy


def load(name: str) -> Model:
    """A model of the catalogue.

    >>> load("qwen3.8-27b").kv_bytes_per_token()
    65536
    """
    from aelius_math.records import replace

    found = entry(name)
    return replace(from_config(found["config"]), name=found["repository"])
