"""Builds the site with each generator that it is kept fit for, and compares what they made, file by file. `make compare`.

Every page, script, style and index must be the same to the byte. Only the line of a page that names its generator is left
out, and a file's time inside a gzip header.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".cache" / "compare"
NAMED = re.compile(rb'<meta name="generator"[^>]*>')
SHOWN = 12


def build(generator: str) -> Path:
    folder = FOLDER / generator
    command = [sys.executable, "-m", generator, "build", "--strict", "--config-file", "mkdocs.yml", "--site-dir", str(folder)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(f"compare: {generator} did not build the site; the reason stands above")
    return folder


def content(file: Path) -> bytes:
    data = file.read_bytes()
    return gzip.decompress(data) if file.suffix == ".gz" else NAMED.sub(b"", data) if file.suffix == ".html" else data


def differences(one: Path, other: Path) -> list[str]:
    """A line or a few for each file that only one of the folders holds, or that differs."""
    here, there = ({file.relative_to(folder): file for file in folder.rglob("*") if file.is_file()} for folder in (one, other))
    found = [f"{name}: only in {(one if name in here else other).name}" for name in sorted(here.keys() ^ there.keys())]
    for name in sorted(here.keys() & there.keys()):
        pair = [content(files[name]) for files in (here, there)]
        if pair[0] != pair[1]:
            lines = [data.decode("utf-8", "replace").splitlines() for data in pair]
            shown = list(unified_diff(*lines, one.name, other.name, n=0, lineterm=""))[:SHOWN]
            found.append("\n".join([f"{name}:", *(f"  {line[:160]}" for line in shown)]))
    return found


def main() -> None:
    first, *others = (build(generator) for generator in sys.argv[1:])
    files = sum(file.is_file() for file in first.rglob("*"))
    pages = sum(1 for _ in first.rglob("*.html"))
    failed = False
    for other in others:
        found = differences(first, other)
        failed = failed or bool(found)
        print(*found, sep="\n") if found else print(f"{other.name} made what {first.name} made: {pages} pages, {files} files")
    sys.exit(failed)


if __name__ == "__main__":
    main()
