"""Asks a real build of llama.cpp for its memory, and holds `aelius_math` against what it logs: `make oracle-llamacpp`.

    python tools/oracle_llamacpp.py [--version b11739] [--few] [--write] [--only NAME]

It lays the build into .cache/oracle/ (`llamacpp_lay`), starts it on files of keys (`llamacpp_toys`, `llamacpp_engine`), and
compares every line of cache and state as printed. With --write the runs become golden cases, in
tests/golden/llamacpp_builds/. Exit 1: something differs, or died as it was not known to. Exit 2: it could not be asked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "tests" / "engine"
sys.path[:0] = [str(ROOT), str(ENGINE), str(ROOT / "tests" / "unit")]

import gguf_files  # noqa: E402
import llamacpp_lay  # noqa: E402
import llamacpp_runs  # noqa: E402
import llamacpp_toys as toys  # noqa: E402
from llamacpp_lay import Stop  # noqa: E402

from aelius_math.llamacpp_builds import BUILDS  # noqa: E402

CACHE, GOLDEN = ROOT / ".cache" / "oracle", ROOT / "tests" / "golden" / "llamacpp_builds"
Row = dict[str, Any]
SHOWN = 6
EVERY = 30
"""Seconds between two words on how far it is, where nobody sees a line rewritten."""
UNKNOWN = "unknown model architecture"
DRY = ("qwen3.5-27b", toys.run(16_384, 2))


class Unknown(Exception):
    """An architecture that the build does not have yet."""


def rules_of(build: str) -> str:
    """The rules that a build is held against: July's up to the newest build that they reproduce, else October's."""
    return "jul" if int(build[1:].split(".")[0]) <= int(BUILDS["jul"].newest_seen[0][1:]) else "oct"


def ask(folder: Path, arch: str, keys: toys.Keys, model: Row, asked: list[Row]) -> list[Row]:
    """What the engine said of the load and of each run: made and log; or died, with its last words. It starts again
    behind a run that killed it."""
    said: list[Row] = []
    with tempfile.TemporaryDirectory() as where:
        file = Path(where) / "toy.gguf"
        file.write_bytes(gguf_files.loadable_bytes(arch, keys))
        while len(said) <= len(asked):
            job = {"file": str(file), "model": model, "runs": [toys.params(each) for each in asked[max(0, len(said) - 1) :]]}
            done = subprocess.run(
                [sys.executable, str(ENGINE / "llamacpp_engine.py"), str(folder)], input=json.dumps(job),
                capture_output=True, text=True, check=False, env=os.environ | {"GGML_NO_BACKTRACE": "1"},
            )  # fmt: skip
            answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"made"')]
            words = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
            if not answers:
                raise Stop(f"{arch}: the engine did not load it, and says: {words[0][-200:]}")
            if not answers[0]["made"]:
                told = " ".join(answers[0]["log"][-2:])
                if UNKNOWN in told:
                    raise Unknown(arch)
                raise Stop(f"{arch}: the engine did not load it, and says: {told[-200:]}")
            said += answers if not said else answers[1:]
            if len(said) <= len(asked):
                said.append({"died": words[0].rpartition("/")[2]})
    return said


def rows_of(folder: Path, name: str, few: bool, old: bool) -> list[Row]:
    """A model's runs, each with what the log states, the engine's refusal, or its last words."""
    asked = toys.runs_of(name, few, old)
    rows = []
    model = {"load_mtp": toys.has_mtp(name, old)}
    for run, said in zip(asked, ask(folder, toys.MODELS[name][0], toys.keys_of(name, old), model, asked)[1:], strict=True):
        if "died" in said:
            rows.append({"model": name, **run, "died": said["died"]})
        elif said["made"]:
            rows.append({"model": name, **run, "log": llamacpp_runs.log_of(said["log"])})
        else:
            rows.append({"model": name, **run, "error": said["log"][-1]})
    return rows


def dry_run(folder: Path, old: bool) -> Row:
    """The buffers of a context that was made without allocating, as the fit pass makes them."""
    name, run = DRY
    said = ask(folder, toys.MODELS[name][0], toys.keys_of(name, old), {"no_alloc": True, "load_mtp": True}, [run])[1]
    return {"model": name, **run, "log": llamacpp_runs.buffers_of(said["log"])}


def compare(rows: list[Row], rules: str, old: bool) -> list[tuple[Row, str]]:
    """The runs on which the package and the engine differ, with how."""
    found = []
    for row in rows:
        if "died" not in row:
            differs = llamacpp_runs.difference(toys.MODELS[row["model"]][0], toys.keys_of(row["model"], old), row, rules)
            if differs:
                found.append((row, differs))
    return found


def death_known(row: Row) -> str | None:
    """When the engine is known to die like this; None for a death that is new."""
    return next((when for (name, words), when in toys.DIES.items() if row["model"] == name and row["died"].endswith(words)), None)


def new_deaths(rows: list[Row]) -> list[Row]:
    return [row for row in rows if "died" in row and death_known(row) is None]


def dry_said(dry: Row, rules: str, old: bool) -> tuple[bool, str]:
    """Whether the dry run is as the fit pass's rule has it, no cache and the whole state, and a line on it."""
    model = dry["model"]
    state = llamacpp_runs.says(toys.MODELS[model][0], toys.keys_of(model, old), dry, rules)["rs"]["size"]
    good = dry["log"] == {"kv": 0.0, "rs": state}
    line = f"a dry run of {model} lays {dry['log']['kv']:.2f} MiB of cache and {dry['log']['rs']:.2f} MiB of state"
    expected = f"expected 0.00 and {state:.2f}: what the fit pass counts has changed, read common/fit.cpp"
    return good, f"{line}, as the rule of the fit pass has it" if good else f"{line}; {expected}"


def to_do(build: str, rules: str, rows: list[Row], differing: list[tuple[Row, str]], dry_good: bool) -> str:
    """The last line: whether a person must act."""
    what = [f"{len(differing)} runs differ"] if differing else []
    what += [f"the engine died on {len(new_deaths(rows))} runs as it was not known to"] if new_deaths(rows) else []
    what += [] if dry_good else ["the dry run"]
    if what:
        return "To look at: " + "; ".join(what) + ". CONTRIBUTING.md says how, under A new version of an engine."
    seen = BUILDS[rules].newest_seen[0]
    if int(build[1:].split(".")[0]) > int(seen[1:]):
        return f"All holds. The newest build that was seen is {seen}: WRITE=1 keeps these runs, then name {build} in newest_seen."
    return "All holds: nothing is to be done."


def report(build: dict[str, str], rules: str, rows: list[Row], differing: list[tuple[Row, str]], dry: Row, old: bool) -> str:
    """One screen."""
    of = BUILDS[rules]
    dry_good, dry_line = dry_said(dry, rules, old)
    kinds = Counter("died" if "died" in row else "refused" if "error" in row else "made" for row in rows)
    lines = [
        f"llama.cpp {build['build']} ({build['commit']}), from {llamacpp_lay.PACKAGE} {build['version']}, held against "
        f"the rules that were read at {of.commit} ({of.date})",
        f"{len({row['model'] for row in rows})} models, {len(rows)} runs: {kinds['made']} contexts made, {kinds['refused']} refused "
        f"by the engine, {kinds['died']} on which it died",
        f"{len(rows) - kinds['died'] - len(differing)} agree, {len(differing)} differ",
        dry_line,
    ]
    for row, differs in differing[:SHOWN]:
        flags = ", ".join(f"{name} {value}" for name, value in row.items() if name not in ("model", "log", "error"))
        lines += [f"  {row['model']}: {flags}", f"    {differs}"]
    if len(differing) > SHOWN:
        names = Counter(row["model"] for row, _ in differing)
        lines.append("  and more: " + ", ".join(f"{name} {count}" for name, count in names.items()))
    for row in rows:
        if "died" in row:
            known = death_known(row)
            word = f"known, {known}" if known else "not known: a run that proves nothing, or a toy that lacks a key"
            lines.append(f"  died: {row['model']}, ctx {row['ctx']}, slots {row['slots']}: {row['died']} ({word})")
    lines.append(to_do(build["build"], rules, rows, differing, dry_good))
    return "\n".join(lines)


def golden(build: dict[str, str], rules: str, rows: list[Row], dry: Row, old: bool) -> str:
    """The file of a build: what it is, the keys of each model, a line for each run."""
    models = {name: {"architecture": toys.MODELS[name][0], "keys": toys.keys_of(name, old)} for name in {row["model"]: 0 for row in rows}}
    head = {
        "engine": "llama.cpp", **build, "rules": rules, "package": llamacpp_lay.PACKAGE,
        "obtained": "make oracle-llamacpp: a CPU build on toy files, the log of each context", "common_keys": toys.COMMON, "dry_run": dry,
    }  # fmt: skip
    body = [f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in head.items()]
    body.append('"models": {\n' + ",\n".join(
        f"{json.dumps(name)}: {json.dumps(own(model), separators=(',', ':'))}" for name, model in models.items()) + "\n}")  # fmt: skip
    body.append('"runs": [\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]")
    return "{\n" + ",\n".join(body) + "\n}\n"


def own(model: Row) -> Row:
    """A model without the keys that all have."""
    return model | {"keys": {key: value for key, value in model["keys"].items() if toys.COMMON.get(key) != value}}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="hold aelius_math against a real build of llama.cpp")
    parser.add_argument("--version", default="", help="a build, as b11739 (default: the newest to be had)")
    parser.add_argument("--few", action="store_true", help="a few runs of each model")
    parser.add_argument("--write", action="store_true", help="keep the runs as golden cases")
    parser.add_argument("--only", default="", help="models with this word in their name")
    given = parser.parse_args(argv)
    try:
        names = [name for name in toys.MODELS if given.only in name]
        if given.write and given.only:
            raise Stop("WRITE: got it with ONLY, expected all models, as a golden file holds every one")
        if not names:
            raise Stop(f"ONLY: got {given.only!r}, expected a part of one of " + ", ".join(toys.MODELS))
        folder = llamacpp_lay.lay(CACHE, given.version)
        build = llamacpp_lay.built(folder)
        rules, old = rules_of(build["build"]), llamacpp_lay.is_old(folder)
        rows: list[Row] = []
        told = time.monotonic()
        for name in list(names):
            try:
                rows += rows_of(folder, name, given.few, old)
            except Unknown:
                names.remove(name)
            if sys.stderr.isatty():
                print(f"\r{len(rows)} runs, {name:40}\r", end="", file=sys.stderr, flush=True)
            elif time.monotonic() - told > EVERY:
                told = time.monotonic()
                print(f"{len(rows)} runs so far, the last of {name}; some five minutes in all", file=sys.stderr, flush=True)
        dry = dry_run(folder, old)
    except Stop as wrong:
        print(f"oracle-llamacpp: {wrong}", file=sys.stderr)
        return 2
    differing = compare(rows, rules, old)
    print(report(build, rules, rows, differing, dry, old))
    unknown = {toys.MODELS[name][0] for name in toys.MODELS if given.only in name and name not in names}
    if unknown:
        print(f"not asked, as the build does not know them: {', '.join(sorted(unknown))}")
    if given.write:
        path = GOLDEN / f"{build['build']}.json"
        path.write_text(golden(build, rules, rows, dry, old), encoding="utf-8")
        print(f"written: {path.name}, in {GOLDEN.relative_to(ROOT)}")
    return 1 if differing or new_deaths(rows) or not dry_said(dry, rules, old)[0] else 0


if __name__ == "__main__":
    sys.exit(main())
