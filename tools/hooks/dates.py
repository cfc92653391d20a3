"""Dates each page of the sitemap by the last commit that changed what it is made of; without that, by nothing.

A build's own day says nothing about a page. Where git is not there, or knows only the last commit (a shallow clone, as of
an action), the sitemap has no dates.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[2]
LEDGER = ("aelius_math/article.toml", "aelius_math/facts.toml", "notebooks")
MADE_OF = {"index.md": ("notebooks",), "ledger.md": LEDGER, "errata.md": LEDGER, "api.md": ("aelius_math",)}
"""What else a page is made of, beside its own file."""


def on_env(env: object, config: MkDocsConfig, files: Files) -> None:
    """For overrides/sitemap.xml; mkdocs' own date of a page is the build's, and it wants every page to have one."""
    for page in (file.page for file in files if file.page is not None):
        sources = [str(page.file.abs_src_path), *(str(ROOT / more) for more in MADE_OF.get(page.file.src_uri, ()))]
        page.meta["changed"] = changed(*sources)


@cache
def changed(*sources: str) -> str:
    """The day of the last commit that touched any of them, as 2026-11-30; "" if it is not known."""
    if git("rev-parse", "--is-shallow-repository") != "false":
        return ""
    return git("log", "-1", "--format=%cs", "--", *sources)


def git(*words: str) -> str:
    try:
        run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
