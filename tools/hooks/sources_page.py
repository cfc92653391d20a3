"""Writes the tables of docs/sources.md at their marks: engine files by who names them, models, cards, public logs. Nothing kept by hand.

The full paths of the engine files are in tools/sources.toml; where they are leaned on is read out of the package and the notes.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from aelius_math import rig_form

ROOT = Path(__file__).parents[2]
FILE = re.compile(r"(?<![\w./\[-])(?:[\w.-]+/)*[\w-]+\.(?:py|cpp|h|cu|cuh)\b(?!\]|:\d)")
ADDRESS = re.compile(r"https://[^\s,;)]+")


@dataclass(frozen=True)
class File:
    """An engine file that rules were read in."""

    engine: str
    path: str
    address: str | None
    revision: str


def listed() -> list[File]:
    """Every file of tools/sources.toml."""
    files = []
    for engine, table in tomllib.loads((ROOT / "tools" / "sources.toml").read_text(encoding="utf-8")).items():
        revisions = dict.fromkeys(table["files"], table.get("revision", "")) | table.get("elsewhere", {})
        for path, revision in sorted(revisions.items()):
            linked = "repository" in table and "NAME" not in path
            files.append(File(engine, path, f"{table['repository']}/blob/{revision}/{path}" if linked else None, revision))
    return files


def mentions() -> dict[str, set[str]]:
    """Every engine file as the package or a note names it, and where."""
    found = defaultdict(set)
    for script in (*(ROOT / "aelius_math").glob("*.py"), *(ROOT / "notebooks").glob("*.py")):
        for name in FILE.findall(script.read_text(encoding="utf-8")):
            own = (ROOT / name).exists() or (ROOT / "aelius_math" / name).exists()
            if not own and name != "llama.cpp" and not name.endswith("/llama.cpp"):
                found[name].add(script.stem)
    return found


def called(name: str, files: Iterable[File]) -> list[File]:
    """The files whose path ends in the name."""
    return [file for file in files if f"/{file.path}".endswith(f"/{name}")]


def engine_files() -> str:
    tables = tomllib.loads((ROOT / "tools" / "sources.toml").read_text(encoding="utf-8"))
    files = listed()
    leaning = defaultdict(set)
    for name, where in mentions().items():
        for file in called(name, files):
            leaning[file] |= where
    parts = []
    for engine, table in tables.items():
        rows = []
        for file in files:
            if file.engine == engine:
                version = f" ({file.revision})" if file.path in table.get("elsewhere", {}) else ""
                rows.append(
                    (linked(file.path, file.address) + version, ", ".join(f"<code>{stem}</code>" for stem in sorted(leaning[file])))
                )
        parts.append(
            f'<h3 id="engine-{engine}">{escape(table["title"])}</h3><p>Read {escape(table["read"])}.</p>'
            + table_of(("file", "what rests on it"), rows)
        )
    return "".join(parts)


def linked(text: str, address: str | None) -> str:
    code = f"<code>{escape(text)}</code>"
    return f'<a href="{escape(address)}">{code}</a>' if address else code


def with_links(text: str) -> str:
    return ADDRESS.sub(lambda match: f'<a href="{match[0]}">{match[0].removeprefix("https://")}</a>', escape(text))


def table_of(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table class="sources"><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>'


def golden(name: str) -> list[dict[str, object]]:
    data: list[dict[str, object]] = json.loads((ROOT / "tests" / "golden" / f"{name}.json").read_text(encoding="utf-8"))
    return data


def vllm_logs() -> Iterator[tuple[str, ...]]:
    for log in golden("vllm_logs"):
        version = (
            f"{log['vllm_version'] or 'version not stated'}{', inferred from a line' if log.get('version_inferred_from_log_line') else ''}"
        )
        printed = f"{log['gpu_kv_cache_tokens']:,} tokens" if log["gpu_kv_cache_tokens"] else "no tokens in the excerpt"
        yield with_links(str(log["source"])), escape(f"{log['model']}, {log['gpus']}"), escape(version), printed


def llamacpp_logs() -> Iterator[tuple[str, ...]]:
    used = defaultdict(set)
    for name, what in (("llamacpp_logs", "{kind}"), ("llamacpp_fits", "fit pass")):
        for line in golden(name):
            used[str(line["source"])].add(what.format(**line))
    for source, kinds in sorted(used.items()):
        yield with_links(source), escape(", ".join(sorted(kinds)))


def models() -> Iterator[tuple[str, ...]]:
    for name, entry in json.loads((ROOT / "aelius_math" / "catalogue.json").read_text(encoding="utf-8")).items():
        yield f"<code>{escape(name)}</code>", "<br>".join(map(with_links, entry["sources"]))


def cards() -> Iterator[tuple[str, ...]]:
    for card in rig_form.cards().values():
        yield escape(card.name), with_links(card.source)


MARKS = {
    "<!-- engine files -->": engine_files,
    "<!-- models -->": lambda: table_of(("model", "its config, from"), models()),
    "<!-- cards -->": lambda: table_of(("card", "what is usable of it, from"), cards()),
    "<!-- vllm logs -->": lambda: table_of(("thread", "machine", "vLLM", "printed"), vllm_logs()),
    "<!-- llamacpp logs -->": lambda: table_of(("thread", "lines taken"), llamacpp_logs()),
}


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    for mark, table in MARKS.items():
        if mark in html:
            html = html.replace(mark, table())
    return html
