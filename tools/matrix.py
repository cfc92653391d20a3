"""Runs `make test` under each Python that the pins are for, or with the newest of everything. `make matrix`, `make canary`.

Each run is a copy of the files that git knows, in .cache/matrix/, with its own environment, so that nothing here changes.
Figures are left out of the comparison of notes: another matplotlib may draw the same plot in other strokes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".cache" / "matrix"
VERSIONS = ("3.11", "3.12", "3.13")
UV = Path(sysconfig.get_path("scripts")) / "uv"
KEPT_BOUNDS = ("mkdocs",)  # MkDocs 2 is another program


def interpreter(version: str) -> str | None:
    """A Python of this version: one on PATH, under pyenv or of uv; else the one that uv fetches."""
    fits = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"), reverse=True)
    for python in (sys.executable, shutil.which(f"python{version}"), *map(str, pyenv)):
        if python and subprocess.run([python, "-c", fits], capture_output=True, check=False).returncode == 0:
            return os.path.realpath(python)
    for fetch in (False, True):
        if fetch:
            subprocess.run([UV, "python", "install", version], check=False)
        found = subprocess.run([UV, "python", "find", version], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    return None


def copy(name: str) -> Path:
    """The files that git knows, as they now are. The environment of an earlier run is kept."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.name not in (".venv", ".cache", "tools"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in filter(None, listed.split("\0")):
        if (ROOT / file).exists():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)
    return folder


def newest(folder: Path, version: str) -> None:
    """Resolves requirements.in anew in the copy, without its upper bounds, and prints what is newer."""
    wanted = folder / "requirements.in"
    lines = wanted.read_text(encoding="utf-8").splitlines()
    free = [line if line.split("<")[0] in KEPT_BOUNDS else re.sub(r"<[\d.]+$", "", line) for line in lines]
    wanted.write_text("\n".join(free) + "\n", encoding="utf-8")
    command = [UV, "pip", "compile", wanted, "-o", folder / "requirements.txt", "--upgrade", "--python-version", version]
    subprocess.run([*command, "--generate-hashes", "--no-emit-index-url", "--quiet"], check=True)
    pinned, found = (dict(re.findall(r"^(\S+)==(\S+)", (where / "requirements.txt").read_text(), re.M)) for where in (ROOT, folder))
    moved = [f"  {name} {pinned.get(name, 'none')} -> {new}" for name, new in found.items() if pinned.get(name) != new]
    print("newer than the pins:" if moved else "nothing is newer than the pins", *moved, sep="\n")


def run(name: str, version: str, canary: bool) -> bool:
    python = interpreter(version)
    if python is None:
        print(f"Python {version}: none found and none could be fetched; install it, or: uv python install {version}")
        return False
    folder = copy(name)
    if canary:
        newest(folder, version)
    only = [f"ONLY={os.environ['ONLY']}"] if os.environ.get("ONLY") else []
    command = ["make", f"PYTHON={python}", "PYTEST=--nbval-sanitize-with=tests/figures.cfg", *only, "test"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "VIRTUAL_ENV"))}
    passed = subprocess.run(command, cwd=folder, env=environment, check=False).returncode == 0
    print(f"Python {version}{', the newest of everything' if canary else ''}: {'passed' if passed else 'failed'}", flush=True)
    return passed


def main() -> None:
    canary = "--canary" in sys.argv
    asked = tuple(word for word in sys.argv[1:] if word in VERSIONS)
    versions = asked or (VERSIONS[-1:] if canary else VERSIONS)
    results = [run(f"canary-{version}" if canary else version, version, canary) for version in versions]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
