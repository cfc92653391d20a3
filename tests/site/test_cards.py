"""The cards that stand for a page where its address is shared, and the dates of the sitemap."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError
from PIL import Image

from aelius_math.ledger import collect
from hooks import cards, dates

MOST_BYTES = 40_000


def test_every_page_has_a_card_of_the_size_that_is_asked_for_and_no_two_are_alike(site: Path) -> None:
    pages = [page.parent for page in site.rglob("index.html")]
    found = {path.stem: path.read_bytes() for path in (site / "cards").glob("*.png")}
    assert set(found) == {page.name if page != site else "home" for page in pages}
    assert len(set(found.values())) == len(pages)
    for name, picture in found.items():
        with Image.open(site / "cards" / f"{name}.png") as image:
            assert image.size == (1200, 630) and image.format == "PNG", name
        assert len(picture) < MOST_BYTES, name


def test_the_same_page_makes_the_same_bytes_and_another_number_others() -> None:
    words = ("Why exactly so many?", "Because it is no quotient.", "200 blocks", "blocks of the pool")
    assert cards.draw(*words) == cards.draw(*words) != cards.draw(*words[:2], "201 blocks", words[3])


def test_a_card_shows_the_first_number_of_the_answer_or_the_one_that_is_named_for_it() -> None:
    html = '<h1>Q</h1><p><a class="num" href="../ledger/#cards">two</a> of <a class="num" href="../ledger/#blocks">200</a></p>'
    assert cards.number("notebooks/99_x.ipynb", html) == ("blocks", "200")
    assert cards.number("index.md", html) == (cards.SHOWN["index.md"], "")
    assert cards.number("api.md", "<p>None.</p>") == (cards.ELSEWHERE, "")


def test_a_number_on_a_card_says_its_unit_once() -> None:
    ledger = collect()
    assert cards.with_unit("289,661", ledger["pool"]) == cards.with_unit("", ledger["pool"]) == "289,661 tokens"
    assert cards.with_unit("44%", ledger["lost_blocks"]) == "44%"
    assert cards.with_unit("", ledger["kv_window"]) == "16 GiB"


def test_a_card_of_a_number_that_is_in_no_ledger_stops_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(cards.SHOWN, "x.md", "nothing")
    page = SimpleNamespace(meta={}, title="Q", file=SimpleNamespace(src_uri="x.md", dest_uri="x/index.html"))
    with pytest.raises(PluginError, match="x.md shows 'nothing'"):
        cards.on_page_content("<h1>Q</h1>", page, SimpleNamespace(site_dir=str(tmp_path)), None)  # type: ignore[arg-type]


def test_no_word_of_a_card_is_cut_off() -> None:
    long = "a rather long label of a number that somebody wrote without a thought of how much room there is for it"
    _, lines = cards.fitted(long, (32, 28, 24, 20), 2, 400, 600)
    assert " ".join(lines) == long and len(lines) == 2
    assert cards.beginning("One. " + "word " * 200 + ".", 2) == ["One."]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files, one committed on another day than the other."""
    monkeypatch.setattr(dates, "ROOT", tmp_path)
    dates.changed.cache_clear()
    run(tmp_path, "init", "-q", "-b", "main")
    for name, day in (("a.md", "2026-01-02"), ("b.md", "2026-03-04")):
        (tmp_path / name).write_text("x", encoding="utf-8")
        run(tmp_path, "add", name)
        run(tmp_path, "-c", "user.name=x", "-c", "user.email=x@y.z", "commit", "-qm", name, day=day)
    yield tmp_path
    dates.changed.cache_clear()


def run(folder: Path, *words: str, day: str = "2026-01-01") -> None:
    when = f"{day}T12:00:00+0000"
    subprocess.run(
        ["git", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when},
    )


def test_a_page_is_dated_by_the_last_commit_of_what_it_is_made_of(repository: Path) -> None:
    a, b = str(repository / "a.md"), str(repository / "b.md")
    assert (dates.changed(a), dates.changed(b), dates.changed(a, b)) == ("2026-01-02", "2026-03-04", "2026-03-04")


def test_what_git_does_not_know_has_no_date(repository: Path) -> None:
    (repository / "c.md").touch()
    assert dates.changed(str(repository / "c.md")) == ""
    run(repository, "clone", "-q", "--depth", "1", f"file://{repository}", str(repository / "shallow"))
    dates.ROOT = repository / "shallow"
    dates.changed.cache_clear()
    assert dates.changed(str(repository / "shallow" / "a.md")) == "", "the one commit of a shallow clone dates everything alike"
