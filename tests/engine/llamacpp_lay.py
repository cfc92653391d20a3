"""Lays a real build of llama.cpp into a folder of its own: the package llama-cpp-py-sync, and cffi to call it.

The package holds llama.cpp's own libraries, compiled for the CPU, and bindings generated from the header of that build. They
are linked against a C library of 2.38 or newer. Where the machine's is older, `relink` has the copy call the plain
names of four of its functions: strtol, strtoul, strtoull, sscanf. What 2.38 added to them is the prefix 0b.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from aelius_math.llamacpp_builds import BUILDS

PACKAGE = "llama-cpp-py-sync"
NEEDS = (2, 38)
NOT_FOUND = ("no solution found", "no version of", "because there is no", "not found in the package registry")
SYMBOLS, VERSIONS, NEEDED = 11, 0x6FFFFFFF, 0x6FFFFFFE  # SHT_DYNSYM, SHT_GNU_versym, SHT_GNU_verneed
WEAK, UNVERSIONED = 2, 1  # VER_FLG_WEAK, VER_NDX_GLOBAL
RENAMED = b"__isoc23_"


class Stop(Exception):
    """What was given, what was expected, and what to change, in one sentence."""


def release(version: str) -> str:
    """The package's version, from any of the ways to write a build: 0.11739, 11739, b11739; empty is the newest."""
    if not version:
        return ""
    match = re.fullmatch(r"(?:0\.|b)?(\d{4,6}(?:\.\d+)?)", version)
    if not match:
        raise Stop(f"VERSION: got {version!r}, expected a build of llama.cpp, as b11739, or none for the newest")
    return f"0.{match[1]}"


def lay(root: Path, version: str) -> Path:
    """The folder of a build, laid where it is not there yet. The newest is looked for each time."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Stop(f"machine: got {platform.system()} {platform.machine()}, expected Linux x86_64, for which the build is compiled")
    wanted = release(version)
    folder = root / f"llamacpp-{wanted}"
    if wanted and (folder / ".laid").exists():
        return folder
    fresh = root / "llamacpp-laying"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    print(f"Fetching llama.cpp, {f'b{wanted[2:]}' if wanted else 'the newest build'}: 7 MB, once for each build.", flush=True)
    install(fresh, f"{PACKAGE}=={wanted}" if wanted else PACKAGE)
    folder = root / f"llamacpp-{built(fresh)['version']}"
    if libc() < NEEDS:
        for library in sorted((fresh / "llama_cpp_py_sync").glob("*.so*")):
            library.write_bytes(relink(library.read_bytes()))
    (fresh / ".laid").touch()
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return folder


def install(folder: Path, package: str) -> None:
    command = (".venv/bin/uv", "pip", "install", "--quiet", "--target", str(folder), "--no-deps", "--only-binary", ":all:")
    done = subprocess.run((*command, package, "cffi", "pycparser"), capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split())
        if any(words in said.lower() for words in NOT_FOUND):
            build = package.rpartition("==0.")[2]
            raise Stop(
                f"VERSION: the index has no build b{build} of llama.cpp. Not every build is there: {', '.join(of.newest_seen[0] for of in BUILDS.values())} are, and none given is the newest"
            )
        said = said[:300].rstrip(".")
        raise Stop(f"{package}: not to be had; the installer says: {said}. Give another VERSION, or see to the network")


def built(folder: Path) -> dict[str, str]:
    """Version of the package, number and commit of llama.cpp's build, as the package states them."""
    text = (folder / "llama_cpp_py_sync" / "_version.py").read_text(encoding="utf-8")
    stated = dict(re.findall(r'^__(\w+?)__ = "(.*)"$', text, re.MULTILINE))
    missing = {"version", "llama_cpp_tag", "llama_cpp_commit"} - stated.keys()
    if missing:
        raise Stop(f"_version.py: {', '.join(sorted(missing))} not found, expected what the build is made of")
    return {"version": stated["version"], "build": stated["llama_cpp_tag"], "commit": stated["llama_cpp_commit"]}


def is_old(folder: Path) -> bool:
    """Whether the build is one that cannot leave out the layers of multi-token prediction."""
    return "load_mtp" not in (folder / "llama_cpp_py_sync" / "_cffi_bindings.py").read_text(encoding="utf-8")


def libc() -> tuple[int, ...]:
    """The version of the machine's C library; (0,) where it is another than glibc."""
    found = re.fullmatch(r"glibc (\d+)\.(\d+).*", os.confstr("CS_GNU_LIBC_VERSION") or "")
    return (int(found[1]), int(found[2])) if found else (0,)


def relink(library: bytes) -> bytes:
    """The same ELF file, where each function that it wants from glibc 2.38 as __isoc23_NAME is wanted as NAME.

    Only the tables of names change: an entry's name (a tail of the same string), its version (none), and the demand for
    2.38 itself (weak). Raises Stop where 2.38 is wanted for something else.
    """
    if library[:6] != b"\x7fELF\x02\x01":
        raise Stop(f"library: begins with {library[:6]!r}, expected a little-endian ELF file of 64 bits")
    data = bytearray(library)
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * size) for index in range(count)]
    kinds = {section[1]: section for section in sections}
    if not {SYMBOLS, VERSIONS, NEEDED} <= kinds.keys():
        return library
    strings = sections[kinds[SYMBOLS][6]][4]

    def name(offset: int) -> bytes:
        start = strings + offset
        return bytes(data[start : data.index(0, start)])

    newer = weakened(data, kinds[NEEDED], name)
    for index in range(kinds[SYMBOLS][5] // 24):
        (version,) = struct.unpack_from("<H", data, kinds[VERSIONS][4] + 2 * index)
        entry = kinds[SYMBOLS][4] + 24 * index
        (offset,) = struct.unpack_from("<I", data, entry)
        if version not in newer:
            continue
        if not name(offset).startswith(RENAMED):
            raise Stop(f"library: wants {name(offset).decode()} of glibc 2.38, which this machine does not have")
        struct.pack_into("<I", data, entry, offset + len(RENAMED))
        struct.pack_into("<H", data, kinds[VERSIONS][4] + 2 * index, UNVERSIONED)
    return bytes(data)


def weakened(data: bytearray, needed: tuple[int, ...], name: Callable[[int], bytes]) -> set[int]:
    """Makes the demands for glibc 2.38 weak; gives their numbers."""
    found, at = set(), needed[4]
    for _ in range(needed[7]):
        _, count, _, first, following = struct.unpack_from("<HHIII", data, at)
        aux = at + first
        for _ in range(count):
            _, flags, number, text, step = struct.unpack_from("<IHHII", data, aux)
            if name(text) == b"GLIBC_2.38":
                found.add(number)
                struct.pack_into("<H", data, aux + 4, flags | WEAK)
            aux += step
        at += following
    return found
