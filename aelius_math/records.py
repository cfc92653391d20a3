"""Frozen, keyword-only records: what a frozen dataclass gives, without the import of `dataclasses`.

That import takes longer than all of this package's core together, and a command should answer at once. A subclass
annotates its fields; a value after the annotation is the default. `dataclasses.fields` and `replace` work on records too.

>>> class Card(Record):
...     name: str
...     gib: int = 24
>>> Card(name="first"), replace(Card(name="first"), gib=32) == Card(name="first", gib=32)
(Card(name='first', gib=24), True)
>>> Card(name="first").gib = 48
Traceback (most recent call last):
AttributeError: Card is frozen: gib cannot be set
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar, dataclass_transform

R = TypeVar("R", bound="Record")


class _Fields:
    """`__dataclass_fields__`, made when it is asked for."""

    def __get__(self, record: object, owner: type[Record]) -> dict[str, object]:
        import dataclasses

        made: Any = dataclasses.make_dataclass(
            owner.__name__,
            [
                (name, Any, dataclasses.field(default=owner._defaults[name])) if name in owner._defaults else (name, Any)
                for name in owner._fields
            ],
            kw_only=True,
        )
        return dict(made.__dataclass_fields__)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base of the records."""

    _fields: ClassVar[tuple[str, ...]] = ()  # of each subclass: the names in order, those of its bases first
    _defaults: ClassVar[dict[str, object]] = {}
    __dataclass_fields__ = _Fields()

    def __init_subclass__(cls) -> None:
        annotated = cls.__dict__.get("__annotations__", ())  # noqa: RUF063 (inspect is what is to be spared)
        own = [name for name in annotated if not name.startswith("_")]
        cls._fields = (*cls._fields, *(name for name in own if name not in cls._fields))
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}

    def __init__(self, **given: Any) -> None:
        values = self.__dict__
        for name in self._fields:
            if name in given:
                values[name] = given.pop(name)
            elif name in self._defaults:
                values[name] = self._defaults[name]
            else:
                raise TypeError(f"{type(self).__name__} needs {name}=")
        if given:
            raise TypeError(f"{type(self).__name__} has no {', '.join(given)}; its fields: {', '.join(self._fields)}")
        self.__post_init__()

    def __post_init__(self) -> None:
        pass

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")

    def _values(self) -> tuple[object, ...]:
        return tuple([self.__dict__[name] for name in self._fields])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._fields)
        return f"{type(self).__name__}({shown})"


def replace(record: R, **changes: Any) -> R:
    """A record as another, with some fields changed."""
    return type(record)(**{**{name: record.__dict__[name] for name in record._fields}, **changes})
