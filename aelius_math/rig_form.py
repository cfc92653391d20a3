"""A rig as somebody types it: texts in, numbers out; what is missing is asked for, what is taken is said."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from aelius_math import catalogue
from aelius_math.config_text import parse
from aelius_math.ledger import given
from aelius_math.model import Model, from_config
from aelius_math.units import BYTE_UNITS, GB, GIB, KIB, MB, MIB, AeliusError, parse_bytes, parse_tokens

LABELS = {
    "model": "Model", "config": "config.json", "dtype": "Model's dtype", "version": "Version", "available": "Available KV cache memory",
    "max_model_len": "Longest request", "tensor_parallel_size": "Tensor parallel", "kv_cache_dtype": "KV cache dtype",
    "enable_prefix_caching": "Prefix caching", "num_speculative_tokens": "Draft tokens", "max_num_batched_tokens": "Tokens of a step",
    "max_num_seqs": "Sequences at a time", "gpu_memory_utilization": "Share of the card", "weights": "Weights on each card",
    "extra": "Activations, CUDA and graphs", "slices": "Big slices", "short_tokens": "Short slice", "reserve": "Reserve",
    "n_ctx": "Context", "n_seq_max": "Slots", "kv_unified": "One cache for all slots", "n_ubatch": "Micro-batch", "type_k": "Type of K",
    "type_v": "Type of V", "gdn_prefill_backend": "Prefill of Gated DeltaNet",
    "kda_prefill_backend": "Prefill of Kimi Delta Attention",
    "draft_max": "Drafted tokens", "type_draft": "Type of the MTP cache", "free": "Free memory",
    "weights_mib": "Weights on the device", "vision_mib": "Vision on the device", "fit_target_mib": "Margin",
    "compute_mib": "Compute buffers", "build": "Build", "cards": "Cards", "visible": "Memory CUDA sees", "tenant": "Other programs on it",
    "count": "Cards, how many",
}  # fmt: skip
"""What the page calls each setting."""


WHOLE_DEVICE, LEAST_MIB = ("free", "weights_mib"), 64
"""Sizes of a whole device or model; a bare number below so many MiB is asked for its unit."""


MOST_CARDS = 16


class Card(NamedTuple):
    """A card of the catalogue: what CUDA sees of its memory, and who measured it."""

    name: str
    visible: str
    source: str


@cache
def cards() -> dict[str, Card]:
    """The cards whose usable memory somebody published.

    >>> cards()["rtx-3090"].visible
    '24126 MiB'
    """
    text = Path(__file__).with_name("cards.toml").read_text("utf-8")
    read = {
        key: {"visible": f"{given(fields.pop('given'))} MiB"} | fields if "given" in fields else fields
        for key, fields in tomllib.loads(text).items()
    }
    return {key: Card(**fields) for key, fields in read.items()}


class Missing(AeliusError):
    """A setting that nobody can know but the reader."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(field, None, why)


class Form:
    """The settings, read by name. `taken`: what stands for a setting left open, one sentence each.

    >>> form = Form({"available": "5.24", "max_model_len": "256K"})
    >>> form.size("available"), form.tokens("max_model_len")
    (5626407157, 262144)
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        if not isinstance(settings, Mapping):
            raise AeliusError("settings", settings, "a dict of settings")
        self.settings = settings
        self.taken: list[str] = []
        k, unit = str(settings.get("k") or 1024), str(settings.get("unit") or "GiB")
        if k not in ("1024", "1000") or unit not in ("GiB", "GB"):
            raise AeliusError("k, unit", (k, unit), "1024 or 1000, and GiB or GB")
        self.k, self.unit = int(k), unit

    def text(self, name: str) -> str:
        """What was typed, without blanks around it; "" for nothing."""
        value = self.settings.get(name)
        return "" if value is None else str(value).strip()

    def whole(self, name: str, default: int | None = None, said: str = "") -> int | None:
        """A whole number; the default is said to have been taken."""
        text = self.text(name).replace(",", "")
        if not text:
            if said:
                self.taken.append(f"{LABELS.get(name, name)}: {said}")
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise AeliusError(name, self.text(name), "a whole number, not below 0")
        return int(text)

    def tokens(self, name: str) -> int | None:
        """A number of tokens, such as 262144 or 256K, by the K chosen."""
        text = self.text(name)
        return parse_tokens(text, name, self.k) if text else None

    def size(self, name: str) -> int | None:
        """Bytes; a bare number is of the unit chosen."""
        return self.bytes_of(self.text(name), name)

    def bytes_of(self, text: str, name: str) -> int | None:
        if not text:
            return None
        try:
            return parse_bytes(spelled(text + self.unit if text[-1].isdigit() else text), name)
        except AeliusError as error:
            raise AeliusError(name, text, error.expected) from None

    def sizes(self, name: str) -> list[int]:
        """Sizes apart by ";", or by ", ": one for each card."""
        parts = [part.strip() for part in self.text(name).replace(", ", ";").split(";")]
        return [size for part in parts if (size := self.bytes_of(part, name)) is not None]

    def mib(self, name: str) -> int | float | None:
        """MiB; a bare number is of MiB, as llama.cpp prints it."""
        text = self.text(name)
        if not text:
            return None
        if text[-1].isdigit():
            plain = text.replace(",", "")
            self.bytes_of(text + "MiB", name)
            if name in WHOLE_DEVICE and 0 < float(plain) < LEAST_MIB:
                raise AeliusError(name, text, f"MiB as llama.cpp prints them, or a unit behind it, such as {text} GiB")
            return float(plain) if "." in plain else int(plain)
        size = self.bytes_of(text, name) or 0
        return size // MIB if size % MIB == 0 else round(size / MIB, 6)

    def choice(self, name: str) -> bool | None:
        """On, off, or left to the engine."""
        text = self.text(name).lower()
        if text not in ("", "on", "off"):
            raise AeliusError(name, text, "on, off, or nothing")
        return None if not text else text == "on"

    def cards(self) -> list[dict[str, str]]:
        count = self.text("count")
        if count and not (count.isdigit() and 1 <= int(count[:6]) <= MOST_CARDS):
            raise AeliusError("count", count, f"a whole number from 1 to {MOST_CARDS}")
        given = self.settings.get("cards") or []
        if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(card, Mapping) for card in given):
            raise AeliusError("cards", given, "a list of cards")
        return [{key: str(value or "").strip() for key, value in card.items()} for card in given]


def spelled(text: str) -> str:
    """A size with its unit as units are written: case does not tell them apart.

    >>> spelled("9.5gb"), spelled("9.5 GIB"), spelled("9.5 furlongs")
    ('9.5GB', '9.5 GiB', '9.5 furlongs')
    """
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    known = {unit.lower(): unit for unit in BYTE_UNITS}
    return number + known.get(text[len(number) :].lower(), text[len(number) :])


@lru_cache(maxsize=8)
def pasted(config: str, dtype: str) -> Model:
    try:
        read = parse(config, "the text pasted", "config")
    except AeliusError as error:
        raise AeliusError("config", " ".join(config.split())[:40], error.expected) from None
    return from_config(read, dtype=dtype or None)


@lru_cache(maxsize=8)
def listed(name: str, dtype: str) -> Model:
    from dataclasses import replace

    model = catalogue.load(name)
    return replace(model, dtype=dtype) if dtype else model


def model_of(form: Form) -> Model:
    """The model: the config that was pasted, else the one chosen."""
    config, name = form.text("config"), form.text("model")
    if config:
        try:
            model = pasted(config, form.text("dtype"))
        except AeliusError as error:
            if not name or error.value is None:
                raise
            raise AeliusError(error.field, error.value, f"{error.expected}; empty it to take the list's {name}") from None
        if name:
            form.taken.append(f"Model: the config.json that stands here, not the list's {name}")
        return model
    if not name:
        raise Missing("model", "a model of the catalogue, or its config.json")
    return listed(name, form.text("dtype"))


def named(field: str) -> str:
    """What the page calls a field; one of a card's own has the card's number behind it."""
    name, _, number = field.partition(" ")
    if number.isdigit():
        return f"Card {number}, {LABELS[name]}"
    return LABELS.get(field, field)


def said(error: AeliusError, form: Form | None = None) -> dict[str, str]:
    """What is wrong, as it was typed."""
    typed = " ".join(((form.text(error.field) if form else "") or str(error.value)).split())
    return {"field": error.field, "text": f"{named(error.field)}: got {typed[:60]!r}, expected {error.expected}."}


def asked(error: AeliusError) -> dict[str, str]:
    """What is missing: a setting, or something in the config that was pasted."""
    if error.field == "max_num_batched_tokens":
        logged = 'vLLM logs it: "Chunked prefill is enabled with max_num_batched_tokens=".'
        return {"field": error.field, "text": f"{named(error.field)}: {error.expected}. {logged}"}
    if error.field.partition(" ")[0] not in LABELS:
        whole = "Is it the whole file?"
        return {"field": error.field, "text": f"config.json has no {error.field}: expected {error.expected}. {whole}"}
    return {"field": error.field, "text": f"{named(error.field)}: {error.expected}."}


class Show:
    """Numbers as texts, by the K and the unit of bytes that the reader chose."""

    def __init__(self, k: int, unit: str) -> None:
        self.k, self.unit = k, unit

    def size(self, size: int) -> str:
        """Bytes for people.

        >>> Show(1024, "GiB").size(5626265600), Show(1024, "GB").size(28131328)
        ('5.24 GiB', '28.1 MB')
        """
        sign, size = ("-" if size < 0 else ""), abs(size)
        units = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if self.unit == "GiB" else ((GB, "GB"), (MB, "MB"), (1000, "kB"))
        for one, name in units:
            if size >= one:
                count = size / one
                return f"{sign}{count:,.{2 if count < 10 else 1 if count < 1000 else 0}f} {name}"
        return f"{sign}{size:,} bytes"

    def exact(self, size: int) -> str:
        """Bytes to the last one, and for people."""
        return f"{size:,} bytes" + (f" ({self.size(size)})" if abs(size) >= 1000 else "")

    def length(self, tokens: int) -> str:
        """A length by its K.

        >>> Show(1024, "GiB").length(262144), Show(1000, "GiB").length(262144), Show(1024, "GiB").length(7)
        ('256K', '262.1K', '7')
        """
        if abs(tokens) < self.k:
            return f"{tokens:,}"
        return f"{tokens // self.k:,}K" if tokens % self.k == 0 else f"{tokens / self.k:,.1f}K"

    def tokens(self, tokens: int) -> str:
        return f"{tokens:,} tokens" + (f" ({self.length(tokens)})" if tokens >= self.k else "")


def plural(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def on_off(value: object) -> str:
    """A setting as the form has it."""
    return "on" if value is True else "off" if value is False else ""
