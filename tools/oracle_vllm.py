"""Asks a release of vLLM itself: its own planner, run on the CPU, beside the package's.

    python tools/oracle_vllm.py VERSION [--toys 400] [--write] [--against OTHER]

Fetches the release's source (40 to 50 MB) by the index that uv is set to, keeps the Python files of vllm/ in
.cache/oracle/, runs its planner by tests/engine/vllm_planner.py on the catalogue's models and on toys, and reports what
agrees. With --write the engine's answers become the cases of that version in tests/golden/vllm_planner/. With
--against nothing is asked: both releases are fetched, and the planner's files that differ are listed.
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
from oracle_vllm_report import changed, told  # noqa: E402

CACHE = ROOT / ".cache" / "oracle"
GOLDEN = ROOT / "tests" / "golden" / "vllm_planner"
FIRST = (0, 20, 0)  # before, _align_hybrid_block_size stands elsewhere (model_executor/models/config.py)
OBTAINED = "the release's own planner, spec classes, layers and backends, run on a CPU by tests/engine/ (make oracle-vllm)"
KEPT_TOYS, KEPT_OF_A_MODEL = 30, 2
NOT_FOUND = ("no solution found", "no version of", "because there is no", "not found in the package registry")


class Stop(Exception):
    """What went wrong, and what to do."""


def checked(text: str, name: str = "VERSION", to_run: bool = True) -> str:
    """The version as releases are named; refuses what this cannot run, or where it is only read what was never read."""
    oldest = FIRST if to_run else parse(RELEASES[-1])[0]
    like = f"{name}={RELEASES[0]}"
    if not text:
        raise Stop(f"say which release: {like} is the newest that was read here; a newer one is asked alike.")
    try:
        numbers, prerelease = parse(text)
    except AeliusError:
        raise Stop(f"{name}={text!r} names no release. Write one like {like}.") from None
    if prerelease or numbers < oldest:
        first, what = ".".join(map(str, oldest)), "run" if to_run else "compared"
        raise Stop(f"{name}={text}: releases from {first} on can be {what}, and no pre-releases. Write one like {like}.")
    return ".".join(map(str, numbers))


def nearest(version: str) -> str:
    """The releases that were read next to one that is not there."""
    below = [release for release in RELEASES if parse(release) < parse(version)][:1]
    above = [release for release in RELEASES if parse(release) > parse(version)][-1:]
    return " and ".join(below + above)


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
        raise Stop(f"the index knows no vLLM {version}. The nearest that were read here: {nearest(version)}.")
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
        raise Stop(
            f"the release's files do not run as those before it: {reason(done.stderr, folder)}"
            "\n  What they import or read anew belongs in tests/engine/vllm_stubs.py, vllm_layers.py or vllm_planner.py."
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def reason(stderr: str, folder: Path) -> str:
    """Why the planner stopped: the file of the release that is absent, or the error and where this project met it."""
    lines = stderr.strip().splitlines() or ["it said nothing"]
    if "No such file or directory" in lines[-1]:
        absent = lines[-1].rpartition(": ")[2].strip("'")
        return f"{absent.removeprefix(f'{folder}/')} is asked for, and this release has no such file."
    met = [line.strip() for line in lines if line.strip().startswith("File ") and str(ENGINE) in line]
    where = f" ({met[-1].replace(f'{ROOT}/', '')})" if met else ""
    return lines[-1].strip() + where


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


def plain(case: dict[str, Any]) -> str:
    """What is asked in a case, whatever the version and the answer."""
    engine = {name: value for name, value in case["engine"].items() if name != "version"}
    return json.dumps(case | {"engine": engine, "planned": None}, sort_keys=True)


def kept_before(version: str, drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The version's golden cases that are not drawn any more, to be asked again."""
    file = GOLDEN / f"{version}.json"
    there = {plain(case) for case in drawn}
    old = json.loads(file.read_text("utf-8"))["runs"] if file.exists() else []
    return [{name: value for name, value in case.items() if name != "planned"} for case in old if plain(case) not in there]


def written(version: str, answered: list[dict[str, Any]], always: set[str]) -> int:
    """Puts the engine's answers in place of the version's cases: of each model and of toys the first, and all of `always`
    (those that were cases before, and those that differ); those that the engine refused for another reason not."""
    cases = [case for case in answered if case["planned"].get("error") != "other"]
    seen: Counter[str] = Counter()
    new = []
    for case in cases:
        name = case.get("model", "")
        seen[name] += 1
        if seen[name] <= (KEPT_OF_A_MODEL if name else KEPT_TOYS) or plain(case) in always:
            new.append(case)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in new)
    if new:
        head = f'"version":"{version}","obtained":{json.dumps(OBTAINED)}'
        (GOLDEN / f"{version}.json").write_text(f'{{{head},\n"runs":[\n{lines}\n]}}\n', "utf-8")
    return len(new)


def run(version: str, count: int, write: bool) -> int:
    began = time.monotonic()
    folder = fetched(version)
    rules = known(version)
    if rules != version:
        print(f"vLLM {version} was not read yet: planned by the rules of {rules}.")
    drawn = [*of_catalogue(), *toys(count)]
    before = kept_before(version, drawn)
    cases, refused = derived([*drawn, *before], rules)
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
    if differ:
        file = CACHE / f"vllm-{version}.differ.txt"
        print("\n".join(told(differ, file, str(file.relative_to(ROOT)))))
    if write:
        always = {plain(case) for case in (*before, *(case for case, _ in differ))}
        made = f"  {written(version, answered, always)} cases of {version} stand in {GOLDEN.relative_to(ROOT)}/"
        fails = f", with those of the {len(differ)} that the engine planned: `make test ONLY=planner` fails until their rules are taught"
        print(made + (fails if differ else ": `make test ONLY=planner` passes") + ".")
    elif not differ:
        print(f"  WRITE=1 makes them the golden cases of {version}.")
    return bool(differ)


def set_side_by_side(version: str, other: str) -> int:
    """Fetches two releases, and lists the planner's files that differ; asks nothing."""
    old, new = sorted((version, other), key=parse)
    folders = fetched(old), fetched(new)
    found = changed(*folders)
    if not found:
        print(f"Between vLLM {old} and {new} no file that the planner's rules stand in differs. What holds for one holds for the other.")
        return 0
    print(f"Between vLLM {old} and {new} these files, in which the planner's rules stand, differ:")
    for name, size in found:
        print(f"  {name}: {size}")
    print("  To read one: diff -u " + " ".join(f"{folder.relative_to(ROOT)}/{found[0][0]}" for folder in folders))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make oracle-vllm", description=__doc__)
    parser.add_argument("version", nargs="?", default="")
    parser.add_argument("--toys", type=int, default=400)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--against", default="")
    args = parser.parse_args()
    try:
        if args.against:
            return set_side_by_side(checked(args.version, to_run=False), checked(args.against, "AGAINST", to_run=False))
        return run(checked(args.version), args.toys, args.write)
    except Stop as stop:
        print(f"oracle-vllm: {stop}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
