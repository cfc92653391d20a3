"""The key-value header of a GGUF file, read within its bounds; tensors are not looked at.

Written out here because a header is all that is needed: the `gguf` package goes through every token of the
vocabulary as numpy arrays, reads all tensor entries, and takes what lies past the end of a broken file for
empty arrays. The two read the same values (tests/unit/test_gguf.py holds a file that the package wrote).
Layout: ggml, docs/gguf.md.
"""

from __future__ import annotations

import mmap
import struct
from typing import BinaryIO

from aelius_math.units import AeliusError

MAGIC = b"GGUF"
SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
STRING, ARRAY = 8, 9
MOST_KEYS = 65_536
MOST_KEPT = 16_384
"""Entries of an array that are kept; longer ones are vocabularies, and are passed over."""
MOST_ENTRIES = 1 << 24
LONGEST_TEXT = 1 << 20


class Cursor:
    """A place in the bytes of a file, that never moves past their end."""

    def __init__(self, data: bytes | mmap.mmap, where: str) -> None:
        self.data, self.where, self.at = data, where, 0

    def wrong(self, found: object, expected: str) -> AeliusError:
        return AeliusError("CONFIG", found, f"{expected}, at byte {self.at:,} of {self.where}")

    def skip(self, size: int) -> int:
        """Moves on; returns where it stood."""
        if size > len(self.data) - self.at:
            raise self.wrong(f"{len(self.data):,} bytes", f"a GGUF file of at least {self.at + size:,} bytes")
        stood, self.at = self.at, self.at + size
        return stood

    def scalar(self, form: str) -> int | float | bool:
        value: int | float | bool = struct.unpack_from(form, self.data, self.skip(struct.calcsize(form)))[0]
        return value

    def length(self, most: int, of: str) -> int:
        count = int(self.scalar("<Q"))
        if count > most:
            raise self.wrong(count, f"at most {most:,} {of}")
        return count

    def text(self) -> str:
        size = self.length(LONGEST_TEXT, "bytes of text")
        start = self.skip(size)
        return self.data[start : start + size].decode("utf-8", "replace")

    def value(self, kind: int) -> object:
        if kind in SCALARS:
            return self.scalar(SCALARS[kind])
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            return self.array()
        raise self.wrong(kind, "a GGUF value type from 0 to 12")

    def array(self) -> list[object] | None:
        """The entries; None for text and for more than are worth keeping."""
        kind, count = int(self.scalar("<I")), self.length(MOST_ENTRIES, "entries")
        if kind == STRING:
            unpack, data, at, last = struct.Struct("<Q").unpack_from, self.data, self.at, len(self.data) - 8
            for _ in range(count):
                if at > last:
                    break
                at += 8 + unpack(data, at)[0]
            else:
                self.skip(at - self.at)
                return None
            self.skip(len(data) + 1)
        if kind not in SCALARS:
            raise self.wrong(kind, "an array of numbers or texts")
        form = SCALARS[kind]
        start = self.skip(count * struct.calcsize(form))
        if count > MOST_KEPT:
            return None
        return list(struct.unpack_from(f"<{count}{form[1]}", self.data, start))


def header(file: BinaryIO, where: str) -> dict[str, object]:
    """The keys and values of a GGUF file: numbers, truths, texts, lists of numbers, and None for longer
    arrays."""
    try:
        data: bytes | mmap.mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        data = file.read(1 << 28)  # a pipe, or a system without mmap
    return parse(data, where)


def parse(data: bytes | mmap.mmap, where: str) -> dict[str, object]:
    """As `header`, from the bytes themselves."""
    cursor = Cursor(data, where)
    start = cursor.skip(4)
    if data[start : start + 4] != MAGIC:
        raise cursor.wrong(bytes(data[:4]), "the four letters GGUF")
    version = int(cursor.scalar("<I"))
    if version not in (2, 3):
        swapped = version & 0xFFFF == 0
        raise cursor.wrong(version, "GGUF version 2 or 3" + (", little-endian" if swapped else ""))
    cursor.scalar("<Q")  # tensors
    found: dict[str, object] = {}
    for _ in range(cursor.length(MOST_KEYS, "keys")):
        key = cursor.text()
        if key in found:
            raise cursor.wrong(key, "each key once")
        found[key] = cursor.value(int(cursor.scalar("<I")))
    return found
