"""Every digit of the built site is answered for; and the checker that says so finds what is planted."""

from __future__ import annotations

from pathlib import Path

import pytest

import site_numbers
from aelius_math.ledger import collect, published

POOL = '<a class="num" href="../ledger/#pool" title="live pool: 289,661 tokens">289,661</a>'


def page(body: str, head: str = "") -> str:
    return f"<!doctype html><html><head>{head}</head><body><article><h1>Q?</h1>{body}</article></body></html>"


def check(folder: Path, html: str) -> site_numbers.Report:
    (folder / "note").mkdir(parents=True)
    (folder / "note" / "index.html").write_text(html, encoding="utf-8")
    return site_numbers.check(folder, published())


def test_every_digit_of_the_built_site_is_bound_named_or_exempt(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = site_numbers.check(site, collect())
    with capsys.disabled():
        print(f"\n{report}")
    assert report.problems == []
    assert report.digits["bound"] > 0


@pytest.mark.parametrize(
    "body",
    [
        "<p>The pool is 289,661 tokens.</p>",
        f"<p>The pool is {POOL.replace('>289,661', '>289,616')} tokens.</p>",
        f"<p>The pool is {POOL.replace('#pool', '#pol')} tokens.</p>",
        f"<p>The pool is {POOL.replace('#pool', '')} tokens.</p>",
        f"<p>The pool is {POOL} blocks.</p>",
        f"<p>The pool is {POOL} <b>GiB</b>.</p>",
        '<p>The pool is <a href="../ledger/#pool">289,661</a> tokens.</p>',
        "<h2>Why 289,661?</h2>",
        "<table><tr><td>12</td></tr></table>",
        "<p><code>--fit-target 512</code></p>",
        '<img alt="12 bars" src="x.svg">',
        '<svg role="img" aria-label="12 bars"></svg>',
        '<span title="12 bars">x</span>',
        '<input placeholder="such as 12">',
        f"<h1>Why {POOL}?</h1><p><a>Why 289,616?</a></p>",
        '<div class="note-output"><svg aria-label="18 of 181" data-numbers="ladder_shorts=18"></svg></div>',
        f'<table class="ledger"><tr><td>{POOL} blocks</td></tr></table>',
        '<ol start="3"><li>x</li></ol>',
        '<ol><li value="7">x</li></ol>',
        "<details><summary>All 12</summary></details>",
        "<figure><figcaption>All 12</figcaption></figure>",
        '<div class="note-output"><figure><svg aria-label="12 bars"></svg></figure></div>',
        '<div class="note-output"><figure><svg></svg><figcaption>All 12</figcaption></figure></div>',
        '<div class="note-output"><svg aria-label="289,616 live" data-numbers="pool=289,616"></svg></div>',
        '<div class="note-output"><svg aria-label="289,661 live of 12" data-numbers="pool=289,661"></svg></div>',
        '<span class="mathematics"><mn>12</mn></span>',
        "<p>fp88</p>",
        "<p>an fp8.5 cache</p>",
        "<nav>12 more</nav>",
        "<noscript>12</noscript>",
        f"<p>{POOL}</p><nav>661</nav>",
    ],
)
def test_a_planted_digit_is_found(tmp_path: Path, body: str) -> None:
    assert check(tmp_path, page(body)).problems


@pytest.mark.parametrize(
    "head",
    ["<title>12 things</title>", '<meta name="description" content="All 12.">', '<meta property="og:title" content="All 12">'],
)
def test_a_planted_digit_in_the_head_is_found(tmp_path: Path, head: str) -> None:
    assert check(tmp_path, page("", head)).problems


@pytest.mark.parametrize(
    "body",
    [
        f"<p>The pool is {POOL} tokens on an <em>RTX</em> 3090 with fp8.</p>",
        f"<h1>Why {POOL}?</h1><nav><a>Why 289,661?</a></nav>",
        f"<h1>Why {POOL}?</h1><p>See <a>Why 289,661?</a></p>",
        f"<h1>Why {POOL}?</h1><footer><span>Next</span><span>Why 289,661?</span></footer>",
        f'<table class="ledger"><tr><td>{POOL} tokens of 12</td></tr></table>',
        "<pre><code>289,661</code></pre>",
        '<div class="note-output"><table><tr><td>289,661</td></tr></table></div>',
        '<div class="note-output"><svg aria-label="289,661 live" data-numbers="pool=289,661"><text>289,661</text></svg></div>',
        '<table class="ledger"><tr><td>289,661</td></tr></table>',
        '<p>So.<sup><a class="footnote-ref" href="#fn:1">1</a></sup></p>',
        "<script>var x = 12</script><style>p { margin: 12px }</style>",
        '<span class="mathematics"><mn>2</mn><annotation>x_2</annotation></span>',
        '<svg viewBox="0 0 12 12"><path d="M12 12"/></svg>',
        '<p id="p12" data-x="12">x</p>',
    ],
)
def test_what_is_answered_for_is_let_through(tmp_path: Path, body: str) -> None:
    assert check(tmp_path, page(body)).problems == []


def test_a_description_may_repeat_what_the_page_says(tmp_path: Path) -> None:
    head = '<meta name="description" content="All of 289,661 live.">'
    assert check(tmp_path, page(f"<p>All of {POOL} live. And more.</p>", head)).problems == []


def test_too_many_exempt_digits_are_found(tmp_path: Path) -> None:
    assert any("exempt" in problem for problem in check(tmp_path, page(f"<p>On 16 August 2026 {POOL}.</p>")).problems)
