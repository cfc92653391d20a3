"""Writes the API reference into docs/api.md, at its mark: each public name with its signature and its docstring, as they stand in the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink

PACKAGE = Path(__file__).parents[2] / "aelius_math"
MARK = "<!-- the package's names -->"
MODULES = {
    "units": ("units",),
    "dtypes": ("dtypes",),
    "cache": ("cache", "cache_kinds"),
    "model": ("model",),
    "catalogue": ("catalogue",),
    "vllm": ("vllm", "vllm_engine", "vllm_explain"),
    "budget": ("budget",),
    "llamacpp": ("llamacpp_context", "llamacpp_memory", "llamacpp_fit", "llamacpp_devices", "llamacpp_worth"),
    "ladder": ("ladder", "ladder_spec"),
    "logs": ("logs",),
    "decode": ("decode", "decode_timings"),
    "ledger": ("entry", "ledger", "binding"),
}
"""What a caller imports from, and the files that its names stand in."""


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if MARK not in html:
        return html
    sections = []
    for name, stems in MODULES.items():
        next(iter(page.toc)).children.append(AnchorLink(f"aelius_math.{name}", f"api-{name}", 2))
        entries = [entry for stem in stems for entry in names(stem)]
        sections.append(f'<h2 id="api-{name}"><code>aelius_math.{name}</code></h2>' + "".join(entries))
    return html.replace(MARK, "".join(sections))


def names(stem: str) -> Iterator[str]:
    """The public classes and functions of a file that have a docstring, with a class's public methods."""
    tree = ast.parse((PACKAGE / f"{stem}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_") and ast.get_docstring(node):
            yield entry(stem, node, node.name, "h3")
            for method in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and ast.get_docstring(method):
                    yield entry(stem, method, f"{node.name}.{method.name}", "h4")


def entry(stem: str, node: ast.ClassDef | ast.FunctionDef, name: str, heading: str) -> str:
    text = f"{signature(node, name)}\n\n{ast.get_docstring(node)}"
    return f'<{heading} id="{stem}.{name}"><code>{name}</code></{heading}><pre class="api"><code>{escape(text)}</code></pre>'


def signature(node: ast.ClassDef | ast.FunctionDef, name: str) -> str:
    """How it is called: a function's parameters, or a class's fields."""
    if isinstance(node, ast.FunctionDef):
        is_property = any(isinstance(d, ast.Name) and d.id in ("property", "cached_property") for d in node.decorator_list)
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return name + returns if is_property else f"{name}({ast.unparse(node.args)}){returns}"
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
    bases = [ast.unparse(base) for base in node.bases]
    inside = ", ".join(ast.unparse(part) for part in fields)
    return f"class {name}({inside})" + (f"   # a {', '.join(bases)}" if bases else "")
