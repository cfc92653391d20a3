"""Asks a release of vLLM itself: its own planner, run on the CPU, beside the package's.

    python tools/oracle_vllm.py VERSION [--toys 400] [--write]

Fetches the release's source (40 to 50 MB) by the index that uv is set to, keeps the Python files of vllm/ in
.cache/oracle/, runs its planner by tests/engine/vllm_planner.py on the catalogue's models and on toys, and reports what
agrees. With --write the engine's answers become the cases of that version in tests/golden/vllm_planner.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import time
import tomllib
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "tests" / "engine"
sys.path.insert(0, str(ENGINE))

from vllm_compare import compared  # noqa: E402
from vllm_draw import of_catalogue, toys  # noqa: E402

from aelius_math.units import AeliusError  # noqa: E402
from aelius_math.vllm_versions import RELEASES, parse  # noqa: E402

CACHE = ROOT / ".cache" / "oracle"
GOLDEN = ROOT / "tests" / "golden" / "vllm_planner.json"
FIRST = (0, 28, 0)
KEPT_TOYS, KEPT_OF_A_MODEL = 30, 2
SHOWN = 4
NOT_FOUND = ("no solution found", "no version of", "because there is no", "not found in the package registry")


class Stop(Exception):
    """What went wrong, and what to do."""


def checked(text: str) -> str:
    """The version as releases are named; refuses what this cannot run."""
    try:
        numbers, prerelease = parse(text)
    except AeliusError:
        raise Stop(f'VERSION={text!r} names no release. Write one like VERSION={RELEASES[0]}.') from None
    if prerelease or numbers < FIRST:
        first = ".".join(map(str, FIRST))
        raise Stop(f"VERSION={text}: releases from {first} on can be run, and no pre-releases. Write one like VERSION={RELEASES[0]}.")
    return ".".join(map(str, numbers))


def located(lock: str, version: str) -> tuple[str, str, int]:
    """Address, SHA-256 and bytes of the source release, from uv's lock of it."""
    for package in tomllib.loads(lock).get("packages", []):
        source = package.get("sdist")
        if package["name"] == "vllm" and source:
            return source["url"], source["hashes"]["sha256"], source.get("size", 0)
    raise Stop(f"vLLM {version} is there without its source, and only that can be run. Try another VERSION.")


def resolved(version: str) -> str:
    """uv's lock of this one release: the index that uv is set to says where its source is."""
    command = [str(ROOT / ".venv" / "bin" / "uv"), "pip", "compile", "-", "--no-deps", "--format", "pylock.toml", "--no-header", "--quiet"]
    done = subprocess.run(command, input=f"vllm=={version}\n", capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode == 0:
        return done.stdout
    said = " ".join(done.stderr.split())
    if any(words in said.lower() for words in NOT_FOUND):
        raise Stop(f"the index knows no vLLM {version}. Look for a release there, and give it as VERSION.")
    raise Stop(f"the index did not answer: {said[-300:]}\n  This needs the network once for each release.")


def fetched(version: str) -> Path:
    """The folder with the release's vllm/, fetched if it is not there yet."""
    folder = CACHE / f"vllm-{version}"
    if (folder / "vllm" / "v1" / "kv_cache_interface.py").exists():
        return folder
    url, digest, size = located(resolved(version), version)
    print(f"Fetching the source of vLLM {version}: {size / 1e6:.0f} MB, once.", flush=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    archive = CACHE / f"vllm-{version}.tar.gz"
    sha = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=60) as answer, archive.open("wb") as file:
            while part := answer.read(1 << 20):
                sha.update(part)
                file.write(part)
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        archive.unlink(missing_ok=True)
        raise Stop(f"the source of vLLM {version} did not arrive: {error}.\n  Run it again when the network is there.") from None
    if sha.hexdigest() != digest:
        archive.unlink()
        raise Stop(f"the source of vLLM {version} is not what the index says: its SHA-256 is {sha.hexdigest()}, expected {digest}.")
    unpacked(archive, folder)
    archive.unlink()
    return folder


def unpacked(archive: Path, folder: Path) -> None:
    """The Python files of vllm/, without the folder that the archive puts around them."""
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, inner = member.name.partition("/")
            if member.isfile() and inner.startswith("vllm/") and inner.endswith(".py"):
                member.name = inner
                tar.extract(member, folder, filter="data")


def asked(folder: Path, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The engine's plan of each case, in a process of its own: stubs take torch's place there."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    command = [sys.executable, str(ENGINE / "vllm_planner.py"), str(folder)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-3:]
        raise Stop(
            "the release's files do not run as those before it: "
            + " | ".join(line.strip() for line in last)
            + "\n  What they import or read anew belongs in tests/engine/vllm_stubs.py, vllm_layers.py or vllm_planner.py."
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def derived(cases: list[dict[str, Any]], version: str) -> tuple[list[dict[str, Any]], Counter[str]]:
    """The cases that the package plans, with the version; of the others, the fields that it refuses."""
    kept: list[dict[str, Any]] = []
    refused: Counter[str] = Counter()
    for case in cases:
        one = case | {"engine": {"version": version} | case["engine"]}
        try:
            compared(one, {})
        except AeliusError as error:
            refused[error.field] += 1
        else:
            kept.append(one)
    return kept, refused


def known(version: str) -> str:
    """The version whose rules plan here: the newest that is known, for one that is not."""
    newer = parse(version)[0][:2] > parse(RELEASES[0])[0][:2]
    return RELEASES[0] if newer else version


def written(version: str, answered: list[dict[str, Any]]) -> int:
    """Puts the engine's answers in place of the version's cases: the catalogue's, and toys; those it refused by name not."""
    cases = [case for case in answered if case["planned"].get("error") != "other"]
    seen: Counter[str] = Counter()
    new = []
    for case in cases:
        name = case.get("model", "")
        seen[name] += 1
        if seen[name] <= (KEPT_OF_A_MODEL if name else KEPT_TOYS):
            new.append(case)
    old = [case for case in json.loads(GOLDEN.read_text("utf-8")) if case["engine"].get("version", "0.28.0") != version]
    both = sorted([*old, *new], key=lambda case: parse(case["engine"].get("version", "0.28.0")))
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in both)
    GOLDEN.write_text(f"[\n{lines}\n]\n", "utf-8")
    return len(new)


def shown(case: dict[str, Any], ours: dict[str, Any]) -> str:
    """One difference: the case's flags, and both answers where they differ."""
    theirs = case["planned"]
    names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    flags = " ".join(f"{name}={value}" for name, value in case["engine"].items() if name not in ("version", "draft"))
    what = case.get("model") or " + ".join(f"{layer['num_layers']} {layer['kind']}" for layer in case["layers"])
    answers = "; ".join(f"{name}: vLLM {theirs.get(name)}, here {ours.get(name)}" for name in names)
    return f"  {what}, {case['available_bytes']} bytes\n    {flags}\n    {answers}"[:900]


def run(version: str, count: int, write: bool) -> int:
    began = time.monotonic()
    folder = fetched(version)
    rules = known(version)
    if rules != version:
        print(f"vLLM {version} is not known to the package: planned by the rules of {rules}.")
    cases, refused = derived([*of_catalogue(), *toys(count)], rules)
    theirs = asked(folder, cases)
    pairs = [(case, answer, compared(case, answer)) for case, answer in zip(cases, theirs, strict=True)]
    answered = [case | {"engine": case["engine"] | {"version": version}, "planned": answer} for case, answer, _ in pairs]
    differ = [(case, ours) for case, (_, answer, ours) in zip(answered, pairs, strict=True) if answer != ours]
    models = len({case["model"] for case in cases if "model" in case})
    print(f"vLLM {version}: {len(cases)} pools of {models} models of the catalogue and of toys, in {time.monotonic() - began:.0f} s.")
    print(f"  agree {len(cases) - len(differ)}, differ {len(differ)}")
    if refused:
        fields = ", ".join(f"{name} {number}" for name, number in refused.most_common())
        print(f"  not compared {refused.total()}, which the package refuses by name: {fields}")
    for case, ours in differ[:SHOWN]:
        print(shown(case, ours))
    if len(differ) > SHOWN:
        print(f"  and {len(differ) - SHOWN} more")
    if write:
        print(f"  {written(version, answered)} cases of {version} stand in {GOLDEN.relative_to(ROOT)}: make test ONLY=planner")
    elif not differ:
        print(f"  WRITE=1 makes them the golden cases of {version}.")
    return bool(differ)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make oracle-vllm", description=__doc__)
    parser.add_argument("version", nargs="?", default="")
    parser.add_argument("--toys", type=int, default=400)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    try:
        return run(checked(args.version), args.toys, args.write)
    except Stop as stop:
        print(f"oracle-vllm: {stop}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
