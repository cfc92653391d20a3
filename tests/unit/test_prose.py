"""The scan of notes and pages: planted faults are found, and what a reader does not see is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import prose
from aelius_math.ledger import num, published

LEDGER = {**published(), "gap": num(1.105, "gap", unit="x")}


def scan(text: str) -> prose.Report:
    return prose.check(LEDGER, sources=[prose.Block("page.md", 1, text)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The pool is 289,661 tokens.", "bound to no number"),
        ("The pool is [289,616](num:pool) tokens.", "is not 289,661"),
        ("The pool is [289,661](num:pol) tokens.", "has no 'pol'"),
        ("The pool is [289,661](num:pool) blocks.", "is in 'blocks'"),
        ("# Why exactly 289,661?", "bound to no number"),
        ("| a | 12 |\n|---|---|\n", "bound to no number"),
        ("`289,661`", "bound to no number"),
        ("`--fit-target 512`", "bound to no number"),
        ("![289,661 tokens](plot.svg)", "bound to no number"),
        ('[a page](page.md "of 12")', "bound to no number"),
        ('<img alt="12 bars">', "bound to no number"),
        ('<span aria-label="12 bars">x</span>', "bound to no number"),
        ('<ol start="3">', "bound to no number"),
        ("---\ntitle: About 12 things\n---\n", "bound to no number"),
        ("---\ndescription: All 12.\n---\n", "bound to no number"),
        ("$x = 262144$", "in mathematics"),
        ("$$\n\\frac{1}{12}\n$$", "in mathematics"),
        ("$x = 4.1$", "in mathematics"),
        ("It takes two cards.", "counts something"),
        ("It is twice as much.", "counts something"),
        ("It is [almost half](num:gap).", "is true where"),
        ("It is fp88 and q8_01.", "bound to no number"),
        ("A cache of fp8.5 bytes", "bound to no number"),
        ("12. items are many, and 13 more", "'13'"),
        ("Half of them.", "counts something"),
        ("x² and 10⁶ tokens", "bound to no number"),
    ],
)
def test_a_planted_fault_is_found(text: str, said: str) -> None:
    problems = scan(text).problems
    assert len(problems) >= 1 and any(said in problem for problem in problems), problems


@pytest.mark.parametrize(
    "text",
    [
        "The pool is [289,661](num:pool) tokens for [two](num:cards) cards.",
        "The pool is **[289,661](num:pool)** [`tokens`](glossary.md#tokens-12).",
        "An fp8 cache of Qwen3.8-27B on an RTX 3090, not q8_0.",
        "`fp8` and `q8_0`",
        "```\n289,661\n```\n",
        "<!-- 289,661 -->",
        "[a note](notebooks/01_two_numbers.ipynb)",
        "[log]: https://example.org/2026/12\n",
        "1. first\n2. second\n",
        "A claim.[^1]\n\n[^1]: The article.",
        "$a_1 + b^2$ and $\\frac{1}{2}$",
        "## Heading {#two-12}",
        "&#8239;x",
        "Read on 16 August 2026.",
        "vLLM 0.28 and 0.20.1 are told apart. " + "[289,661](num:pool) " * 30,
        "one of them",
        '<span class="a12" id="b12">x</span>',
        "It costs $5 or so, said nobody: $x$.".replace("5", "x"),
    ],
)
def test_what_is_bound_or_listed_or_not_seen_is_let_through(text: str) -> None:
    problems = [problem for problem in scan(text).problems if "are exempt" not in problem]
    assert problems == []


def test_all_problems_are_listed_with_file_and_line() -> None:
    problems = scan("a\n12\n\n[1](num:nobody)\n").problems
    assert sorted(problem.split(": ")[0] for problem in problems) == ["page.md:2", "page.md:4"]


def test_too_many_exempt_digits_are_a_problem() -> None:
    assert any("exempt" in problem for problem in scan("On 16 August 2026 it was [16](num:full_attention_blocks).").problems)


def test_digits_are_counted_by_what_they_are() -> None:
    report = scan("[289,661](num:pool) fp8 2026-08-16")
    assert dict(report.digits) == {"bound": 6, "named": 1, "exempt": 8}
    assert "6 digits bound, 8 exempt (57.1% of those in no name), 1 in names" in report.summary()


def test_the_cells_of_a_note_are_read_as_jupytext_reads_them() -> None:
    jupytext = pytest.importorskip("jupytext")
    script = '# %% [markdown]\n# # A question\n#\n# 1. an item\n\n# %% tags=["fold"]\nx = 1\n\n# %% [markdown] tags=["a"]\n# end\n'
    expected = [cell.source for cell in jupytext.reads(script, fmt="py:percent").cells if cell.cell_type == "markdown"]
    found = prose.cells(script, "note.py")
    assert [block.text for block in found] == expected
    assert [block.line for block in found] == [2, 10]


def test_verdicts_of_the_article_are_prose_too(tmp_path: Path) -> None:
    toml = '[pool]\nvalue = 289661\nsays = "all 11"\n\n[gap]\nvalue = 1\nverdict_note = "It is 12."\ncare = ["a", "b 13", "c"]\n'
    found = prose.verdicts(toml, "article.toml")
    assert [(block.line, block.text) for block in found] == [(1, "all 11"), (5, "It is 12."), (5, "a"), (5, "b 13"), (5, "c")]


def test_notes_pages_and_verdicts_are_all_read(tmp_path: Path) -> None:
    for folder in ("notebooks", "docs/deep", "aelius_math"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "notebooks" / "01_a.py").write_text("# %% [markdown]\n# 11\n")
    (tmp_path / "docs" / "deep" / "page.md").write_text("12\n")
    (tmp_path / "aelius_math" / "article.toml").write_text('[a]\nvalue = 1\nverdict_note = "13"\n')
    found = [problem.split(": ")[0] for problem in prose.check(LEDGER, tmp_path).problems]
    assert found == ["notebooks/01_a.py:2", "docs/deep/page.md:1", "aelius_math/article.toml [a]:1"]


def test_an_exemption_has_a_reason_and_a_name_has_a_digit() -> None:
    assert prose.exempt()
    lists = prose.tomllib.loads((prose.HERE / "names.toml").read_text())
    assert [name for name in lists["names"] if not any(character.isdigit() for character in name)] == []
    assert [phrase for phrase in lists["phrases"] if not prose.WORDS.search(phrase)] == []
