"""The build itself: what must stop it stops it. Each fault is planted in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files

from hooks import notes

ROOT = Path(__file__).parents[2]
PARTS = (".cache/mkdocs-jupyter", "aelius_math", "docs", "notebooks", "overrides", "tests/golden", "tools")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    (tmp_path / "tools" / "node" / "node_modules").symlink_to(ROOT / "tools" / "node" / "node_modules")
    for name in ("mkdocs.yml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def build(copy: Path, **more: str) -> tuple[int, str]:
    """Exit code and output of the command that the Makefile runs."""
    command = next(
        line
        for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
        if "-m $(generator) build" in line and "--site-dir" not in line
    )
    words = [
        sys.executable,
        *command.strip().removeprefix("@$(run) ").replace("$(generator)", os.environ.get("GENERATOR", "mkdocs")).split(),
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy), "NO_MKDOCS_2_WARNING": "1", **more}
    run = subprocess.run(words, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return run.returncode, run.stdout


def test_dead_links_and_anchors_of_a_page_stop_the_build_and_are_listed(copy: Path) -> None:
    with (copy / "docs" / "ledger.md").open("a", encoding="utf-8") as file:
        file.write("\n[a](nowhere.md)\n\n[b](index.md#nowhere)\n")
    code, output = build(copy)
    assert code != 0 and "nowhere.md" in output and "#nowhere" in output


def test_numbers_that_do_not_hold_stop_the_build_and_are_all_listed(copy: Path) -> None:
    with (copy / "docs" / "ledger.md").open("a", encoding="utf-8") as file:
        file.write("\n[289,661](num:nothing), [289,616](num:pool) and 77\n")
    code, output = build(copy)
    assert code != 0 and all(word in output for word in ("num:nothing", "289,616", "77", "make numbers"))


def test_with_site_url_every_page_names_its_card_and_where_it_stands_by_whole_addresses(copy: Path) -> None:
    base = "https://a.example/x/"
    code, output = build(copy, SITE_URL=base)
    assert code == 0, output
    site = copy / "site"
    for page in site.rglob("index.html"):
        head = BeautifulSoup(page.read_text(encoding="utf-8").partition("</head>")[0], "html.parser")
        said = {tag.get("property") or tag.get("name"): tag["content"] for tag in head.find_all("meta", content=True)}
        assert said["og:image"].startswith(base) and (site / said["og:image"].removeprefix(base)).is_file(), page
        assert said["twitter:card"] == "summary_large_image" and "Home" not in said["og:title"]
        assert (
            said["og:url"]
            == head.find("link", rel="canonical")["href"]
            == base + page.parent.relative_to(site).as_posix().replace(".", "", 1) + "/" * (page.parent != site)
        )
    sitemap = (site / "sitemap.xml").read_text(encoding="utf-8")
    assert sitemap.count("<loc>") == len(list(site.rglob("index.html"))) > 1 and "<lastmod>" not in sitemap, (
        "a copy without git knows no dates"
    )
    assert (site / "feed.xml").is_file()


def test_a_dead_link_of_a_note_stops_the_build() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="notebooks/01_a.ipynb"))
    for href in ("02_nowhere.ipynb", "../nowhere.md#x", "/ledger/"):
        with pytest.raises(PluginError, match=re.escape(href)):
            notes.set_links(BeautifulSoup(f'<a href="{href}">x</a>', "html.parser"), page, Files([]))
    notes.set_links(
        BeautifulSoup('<a href="#given">x</a><a href="num:pool">x</a><a href="https://a.b">x</a>', "html.parser"), page, Files([])
    )
