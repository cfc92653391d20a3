"""What `make compare` calls the same, and what it does not."""

from __future__ import annotations

import gzip
from pathlib import Path

from compare import differences


def sites(tmp_path: Path, one: bytes, other: bytes, name: str = "index.html") -> list[str]:
    for folder, data in (("a", one), ("b", other)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(data)
    return differences(tmp_path / "a", tmp_path / "b")


def test_pages_that_differ_only_in_the_name_of_their_generator_are_the_same(tmp_path: Path) -> None:
    page = b'<head>\n<meta name="generator" content="%s">\n</head>'
    assert sites(tmp_path, page % b"one 1.0", page % b"another 2") == []


def test_gzips_of_the_same_content_are_the_same(tmp_path: Path) -> None:
    assert sites(tmp_path, gzip.compress(b"x", mtime=1), gzip.compress(b"x", mtime=2), "sitemap.xml.gz") == []


def test_a_page_that_differs_in_one_word_is_shown(tmp_path: Path) -> None:
    found = sites(tmp_path, b"<p>the pool</p>", b"<p>the poll</p>")
    assert len(found) == 1 and "the pool" in found[0] and "the poll" in found[0] and "index.html" in found[0]


def test_a_file_that_only_one_site_has_is_named(tmp_path: Path) -> None:
    sites(tmp_path, b"", b"")
    (tmp_path / "b" / "feed.xml").write_text("")
    assert differences(tmp_path / "a", tmp_path / "b") == ["feed.xml: only in b"]
