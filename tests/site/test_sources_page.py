"""The page Sources: every engine file that the code names is listed, at its full path, and none that it does not name."""

from __future__ import annotations

import re
from pathlib import Path

from hooks import sources_page


def test_every_engine_file_that_the_code_names_is_listed_once() -> None:
    files = sources_page.listed()
    found = {name: [file.path for file in sources_page.called(name, files)] for name in sources_page.mentions()}
    assert {name: paths for name, paths in found.items() if len(paths) != 1} == {}


def test_every_listed_file_is_named_by_the_code() -> None:
    files = sources_page.listed()
    named = {file for name in sources_page.mentions() for file in sources_page.called(name, files)}
    assert [file.path for file in files if file not in named] == []


def test_a_name_that_ends_two_paths_is_told_apart_by_its_folder() -> None:
    files = sources_page.listed()
    assert len(sources_page.called("config.py", files)) == 1
    assert [file.path for file in sources_page.called("config/model.py", files)] == ["vllm/config/model.py"]


def test_the_page_has_a_row_for_every_log_model_and_card(site: Path) -> None:
    page = (site / "sources" / "index.html").read_text(encoding="utf-8")
    assert not [mark for mark in sources_page.MARKS if mark in page]
    rows = len(re.findall("<tr><td>", page))
    logs = {str(line["source"]) for name in ("llamacpp_logs", "llamacpp_fits") for line in sources_page.golden(name)}
    expected = len(sources_page.golden("vllm_logs")) + len(logs) + len(list(sources_page.models())) + len(list(sources_page.cards()))
    assert rows == expected + len(sources_page.listed())
