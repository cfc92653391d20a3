"""Reading a config.json field by field: every value is checked as it is read, and a mistake names its path.

Nothing here knows a model. `Fields` is one section of a config.json; `stack` turns a list of layer kinds into
specs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from aelius_math import dtypes
from aelius_math.cache import Layers
from aelius_math.units import LARGEST, AeliusError, whole

MOST_LAYERS = 10_000
MOST = 1 << 24
"""No head count or width above this is taken for real."""


CONTEXT = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len", "n_ctx",
    "context_length", "max_context_length",
)  # fmt: skip
"""Names of the longest context, as vLLM tries them (0.33.0,
transformers_utils/model_arch_config_convertor.py)."""


class Parts(NamedTuple):
    """What a reader finds: the model's layers, and those that multi-token prediction adds."""

    layers: tuple[Layers, ...]
    mtp_layers: tuple[Layers, ...] = ()


class Fields:
    """One section of a config.json. `path` is where it stands, such as "text_config."; null counts as
    absent."""

    def __init__(self, values: object, path: str = "") -> None:
        if not isinstance(values, Mapping):
            raise AeliusError(path.rstrip(".") or "config", values, "a JSON object of model facts")
        self.values: Mapping[str, object] = values
        self.path = path

    def raw(self, name: str) -> object:
        return self.values.get(name)

    def has(self, *names: str) -> bool:
        """Whether any of these spellings is given."""
        return any(self.values.get(name) is not None for name in names)

    def first(self, *names: str) -> str:
        """The spelling that is given; the first one where none is."""
        return next((name for name in names if self.values.get(name) is not None), names[0])

    def wrong(self, name: str, expected: str) -> AeliusError:
        """The error for this field's value, or for its absence."""
        if self.values.get(name) is None:
            expected += " (the config does not say, and its class does not fix it)"
        return AeliusError(self.path + name, self.values.get(name), expected)

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """A whole number, under the first of these spellings that is given."""
        name = self.first(*names) if names else ""
        value = self.values.get(name)
        if value is None:
            if default is not None:
                return default
            spellings = f"a whole number of at least {least}" + "".join(f", or {other}" for other in names[1:])
            raise self.wrong(name, spellings)
        return whole(self.path + name, value, least, most)

    def optional(self, *names: str, least: int = 1, most: int = MOST) -> int | None:
        """As `count`, None where no spelling is given."""
        return self.count(*names, least=least, most=most) if self.has(*names) else None

    def num_layers(self, *names: str) -> int:
        return self.count(*(names or ("num_hidden_layers",)), most=MOST_LAYERS)

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.wrong(name, "a text; the config has none" if value is None else "a text")
        return value

    def items(self, name: str, length: int | None = None, of: str = "num_hidden_layers") -> list[object]:
        """A list; of `length` entries where that is given, else at least one and at most as many as layers
        can be."""
        value = self.values.get(name)
        if not isinstance(value, list | tuple):
            raise self.wrong(name, "a list")
        if length is not None and len(value) != length:
            raise AeliusError(self.path + name, f"{len(value)} entries", f"{length}, one for each of {of}")
        if not 1 <= len(value) <= MOST_LAYERS:
            raise AeliusError(self.path + name, f"{len(value)} entries", f"from 1 to {MOST_LAYERS:,} entries")
        return list(value)

    def words(self, name: str, length: int | None = None, of: str = "num_hidden_layers") -> list[str]:
        values = self.items(name, length, of)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise AeliusError(f"{self.path}{name}[{index}]", value, "a text")
        return values  # type: ignore[return-value]

    def counts(self, name: str, length: int | None = None, least: int = 0, most: int = MOST) -> list[int]:
        values = self.items(name, length)
        return [whole(f"{self.path}{name}[{index}]", value, least, most) for index, value in enumerate(values)]

    def indices(self, name: str, num_layers: int, first: int = 0) -> set[int]:
        """Numbers of layers, counted from `first`, returned counted from 0; an empty list is an empty set."""
        value = self.values.get(name)
        if not isinstance(value, list | tuple):
            raise self.wrong(name, "a list of layer numbers")
        if len(value) > num_layers:
            raise AeliusError(self.path + name, f"{len(value)} entries", f"at most {num_layers}, the number of layers")
        last = num_layers - 1 + first
        return {whole(f"{self.path}{name}[{i}]", number, first, last) - first for i, number in enumerate(value)}

    def section(self, name: str) -> Fields:
        if self.values.get(name) is None:
            raise self.wrong(name, "a JSON object")
        return Fields(self.values[name], f"{self.path}{name}.")

    def dtype(self, name: str) -> str | None:
        """A plain dtype, None where the field is absent or "auto"."""
        value = self.values.get(name)
        if value is None or value == "auto":
            return None
        dtypes.element_bytes(value, self.path + name)
        return dtypes.known(value, self.path + name)

    def context(self) -> int | None:
        """Tokens of context that the config claims; None where it claims none, or more than any number of
        tokens can be (model_max_length of 1e30 is a way to say nothing). Claims are not always usable."""
        for name in CONTEXT:
            value = self.values.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST:
                return value
        return None


Maker = Callable[[int], Layers | None]
"""Makes a spec of so many layers; None for layers that keep nothing."""


def nothing(count: int) -> None:
    """Layers that keep nothing for a sequence: MLPs, experts, layers that share another's cache."""


def stack(kinds: Iterable[object], makers: Mapping[Any, Maker], field: str) -> tuple[Layers, ...]:
    """Specs in the order in which kinds first appear; a kind that no maker is given for is refused by
    name."""
    counts: Counter[object] = Counter()
    for index, kind in enumerate(kinds):
        if kind not in makers:
            known = ", ".join(str(name) for name in makers)
            raise AeliusError(f"{field}[{index}]", kind, f"one of {known}")
        counts[kind] += 1
    return merge(makers[kind](count) for kind, count in counts.items())


def merge(specs: Iterable[Layers | None]) -> tuple[Layers, ...]:
    """Specs that differ only in their number become one."""
    from aelius_math.records import replace

    found: list[Layers] = []
    for spec in specs:
        if spec is None:
            continue
        for index, other in enumerate(found):
            if type(other) is type(spec) and replace(other, num_layers=spec.num_layers) == spec:
                found[index] = replace(other, num_layers=other.num_layers + spec.num_layers)
                break
        else:
            found.append(spec)
    return tuple(found)


_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def name_of(config: Fields, model_type: str) -> str:
    """The model's name where the config has one of the form owner/name, else its model_type."""
    for field in ("_name_or_path", "name_or_path"):
        value = config.raw(field)
        if isinstance(value, str) and len(value) <= 200 and _REPOSITORY.fullmatch(value):
            return value
    return model_type
