"""Gives the page "Your rig" what it runs: Pyodide, the package as a zip, and the lists of its form.

Nothing of it is loaded with the page; the page's script asks for it when a reader does. All of it is served from the site.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

from aelius_math import catalogue, rig, vllm_versions
from aelius_math.ladder import slice_sizes
from aelius_math.ladder_slices import parse_slices
from aelius_math.ledger import given
from aelius_math.llamacpp_builds import BUILDS
from aelius_math.llamacpp_context import CACHE_TYPES
from aelius_math.rig_form import LABELS
from aelius_math.vllm_engine import GDN_PREFILL, KDA_PREFILL

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "aelius_math"
PYODIDE = ROOT / "tools" / "node" / "node_modules" / "pyodide"
PARTS = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
LEFT_OUT = ("figures", "simulated", "__main__", "cli")
"""Files of the package, by the beginning of their names, that the page does not run."""
PAGE = "rig.md"
LICENCES = """Pyodide (https://pyodide.org), {version}: Mozilla Public License 2.0, source at https://github.com/pyodide/pyodide.
In it CPython and its standard library: Python Software Foundation License 2.
"""
DTYPES = ("auto", "fp8", "bfloat16", "float16", "int8_per_token_head", "fp8_per_token_head", "int4_per_token_head", "nvfp4", "fp8_ds_mla")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    if not PYODIDE.is_dir():
        raise PluginError("tools/node/node_modules/pyodide is not there; make clean, then make site, lays it anew.")
    for name in PARTS:
        files.append(File.generated(config, f"assets/pyodide/{name}", abs_src_path=str(PYODIDE / name)))
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text("utf-8"))
    files.append(File.generated(config, "assets/pyodide/pyodide-lock.json", content=json.dumps({"info": lock["info"], "packages": {}})))
    version = json.loads((PYODIDE / "package.json").read_text("utf-8"))["version"]
    files.append(File.generated(config, "assets/pyodide/LICENCES.txt", content=LICENCES.format(version=version)))
    files.append(File.generated(config, "assets/pyodide/aelius_math.zip", content=package()))
    return files


def package() -> bytes:
    """The package as a zip, the same bytes for the same files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(PACKAGE.iterdir()):
            if path.suffix in (".py", ".toml", ".json") and not path.name.startswith(LEFT_OUT):
                archive.writestr(zipfile.ZipInfo(f"aelius_math/{path.name}"), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def article() -> dict[str, Any]:
    """The article's machine, as somebody would type it."""
    slices = f"{given('ladder_big')},{given('ladder_mids')}x{given('ladder_mid')}"
    left = int(given("pool")) - sum(parse_slices(slices, 1024))
    return {
        "engine": "vllm", "memory": "available", "model": "qwen3.8-27b", "available": f"{given('kv_available')} B",
        "version": str(given("engine_version")), "max_model_len": str(given("request_limit")), "tensor_parallel_size": str(given("cards")),
        "kv_cache_dtype": "fp8", "num_speculative_tokens": str(given("drafts")), "slices": slices,
        "short_tokens": str(slice_sizes(left, int(given("ladder_shorts"))).stop - 1),
    }  # fmt: skip


def data(page: Page, files: Files) -> dict[str, Any]:
    """What the form offers, and where its parts are."""
    notes = {}
    for file in files:
        if file.src_uri.startswith("notebooks/") and file.src_uri.endswith(".ipynb"):
            notes[Path(file.src_uri).stem] = file.url_relative_to(page.file)
    for version in vllm_versions.RELEASES:
        vllm_versions.possible(version)
    return {
        "folder": get_relative_url("assets/pyodide/", page.url),
        "worker": get_relative_url("javascripts/rig_worker.js", page.url),
        "bytes": sum((PYODIDE / name).stat().st_size for name in PARTS if name != "pyodide.asm.mjs") + len(package()),
        "notes": notes,
        "labels": LABELS,
        "article": article(),
        "lists": {
            "model": [[name, f"{catalogue.entry(name)['repository']}"] for name in catalogue.names()],
            "card": [[key, card.name] for key, card in rig.cards().items()],
            "version": [[version, version] for version in vllm_versions.RELEASES],
            "kv_cache_dtype": [[name, name] for name in DTYPES],
            "gdn_prefill": [[name, name] for name in GDN_PREFILL],
            "kda_prefill": [[name, name] for name in KDA_PREFILL],
            "type": [[name, name] for name in CACHE_TYPES],
            "build": [[build.name, f"{build.date}, {build.commit}"] for build in BUILDS.values()],
            "k": [["1024", "1,024"], ["1000", "1,000"]],
            "unit": [["GiB", "GiB"], ["GB", "GB"]],
        },
        "sources": {key: f"{card.visible}: {card.source}" for key, card in rig.cards().items()},
    }


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """A tab has an address of its own, which the page's script opens: rig.md#view=log may be linked as any anchor."""
    if page.file.src_uri == PAGE and page.present_anchor_ids is not None:
        page.present_anchor_ids |= {f"view={name}" for name in re.findall(r'id="tab-(\w+)"', html)}


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    if page.file.src_uri != PAGE:
        return output
    text = json.dumps(page.meta["rig"], separators=(",", ":")).replace("</", "<\\/")
    style, script = (get_relative_url(name, page.url) for name in ("stylesheets/rig.css", "javascripts/rig.js"))
    output = output.replace("</head>", f'<link rel="stylesheet" href="{style}"></head>', 1)
    added = f'<script type="application/json" id="rig-data">{text}</script><script type="module" src="{script}"></script>'
    return output.replace("</body>", added + "</body>", 1)


def on_page_context(context: Any, page: Page, config: MkDocsConfig, nav: Any) -> None:
    if page.file.src_uri == PAGE:
        page.meta["rig"] = data(page, all_files)


def on_env(env: Any, config: MkDocsConfig, files: Files) -> None:
    global all_files
    all_files = files


all_files: Files
