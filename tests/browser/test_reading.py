"""Reading the site in a browser: by keyboard, with its tooltips, its search, on paper; and what must hold without scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from every_page import STICKS_OUT, paths, violations
from playwright.sync_api import Page, expect

LIMIT = 'article a.num[href$="#request_limit"]'
IN_VIEW = """(id) => {
  const box = document.getElementById(id).getBoundingClientRect()
  const header = document.querySelector(".md-header").getBoundingClientRect().bottom
  return box.width > 0 && box.top >= header - 1 && box.top < innerHeight
}"""


def tab_to(page: Page, selector: str) -> None:
    """Presses Tab until the element has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"80 times Tab do not reach {selector}")


def test_by_keyboard_alone_from_home_to_the_cell_that_derives_a_number(open_page) -> None:
    page: Page = open_page()
    tab_to(page, 'article a.num[href$="#seats_32k_b"]')
    expect(page.locator("#tip")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/ledger/#seats_32k_b$"))
    assert page.evaluate(IN_VIEW, "seats_32k_b")
    tab_to(page, '#seats_32k_b a[href*="#num-"]')
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/notebooks/.*#num-seats_32k_b$"))
    assert page.evaluate(IN_VIEW, "num-seats_32k_b")


@pytest.mark.parametrize(("phone", "room"), [(False, 900), (True, 2 * 844)], ids=["desktop", "phone"])
def test_question_answer_and_both_plots_of_the_home_page_take_a_screen_or_two_of_a_phone(open_page, phone: bool, room: int) -> None:
    page: Page = open_page("", phone=True) if phone else open_page("", viewport={"width": 1440, "height": 900})
    foot = page.locator("article figure").last.evaluate("(figure) => figure.getBoundingClientRect().bottom + scrollY")
    assert foot <= room
    page.get_by_role("link", name="Explain a boot log").click()
    expect(page.get_by_role("tab", name="Explain my log")).to_have_attribute("aria-selected", "true")
    expect(page.locator("[name=log]")).to_be_visible()


def test_the_ways_back_from_ledger_and_errata_lead_to_the_number_on_the_screen_of_a_phone(open_page) -> None:
    page: Page = open_page(phone=True)
    ways = []
    for path, links in (("ledger/", "table.ledger td a"), ("errata/", "article p > a")):
        page.goto(path, wait_until="load")
        ways += page.locator(f'{links}[href*="/notebooks/"]').evaluate_all("(links) => links.map((link) => link.href)")
    assert len(ways) > 300
    for way in ways[:1] + ways[7::31] + ways[-1:]:
        page.goto(way, wait_until="load")
        assert page.evaluate(IN_VIEW, way.partition("#")[2]), way


@pytest.mark.parametrize("row", [40, 150, 300])
def test_back_leads_to_the_row_of_the_ledger_that_was_left(open_page, row: int) -> None:
    page: Page = open_page("ledger/", phone=True)
    place = page.locator("table.ledger tbody tr").nth(row)
    place.scroll_into_view_if_needed()
    page.wait_for_function("!document.documentElement.classList.contains('settling')")
    top = place.bounding_box()["y"]
    place.locator("td a").last.click()
    page.wait_for_function("!location.pathname.endsWith('/ledger/')")
    page.go_back()
    place = page.locator("table.ledger tbody tr").nth(row)
    page.wait_for_function("document.readyState === 'complete' && !document.documentElement.classList.contains('settling')")
    page.wait_for_timeout(1000)  # whatever else is laid out late
    assert abs(place.bounding_box()["y"] - top) < 60


def test_the_first_tab_offers_to_skip_to_the_content(open_page) -> None:
    page: Page = open_page("notebooks/01_two_numbers/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('a.md-skip')")


def test_a_tooltip_opens_under_the_pointer_lets_it_in_and_closes_by_escape(open_page) -> None:
    page: Page = open_page()
    number, tip = page.locator(LIMIT).first, page.locator("#tip")
    number.hover()
    expect(tip).to_be_visible()
    expect(number).to_have_attribute("aria-describedby", "tip-said")
    expect(tip).to_contain_text("262,144")
    tip.hover()
    page.wait_for_timeout(400)
    expect(tip).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    number.hover()
    expect(tip).to_be_visible()
    page.mouse.move(2, 400)
    expect(tip).to_be_hidden()


def test_a_tooltip_opens_with_the_focus_and_closes_when_it_leaves(open_page) -> None:
    page: Page = open_page()
    number, tip = page.locator(LIMIT).first, page.locator("#tip")
    number.focus()
    expect(tip).to_be_visible()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    assert page.evaluate("document.activeElement.matches('a.num')"), "Escape took the focus away"
    page.keyboard.press("Shift+Tab")
    number.focus()
    expect(tip).to_be_visible()


def test_a_first_tap_opens_the_tooltip_within_the_screen_and_a_second_follows_the_number(open_page) -> None:
    page: Page = open_page(phone=True, has_touch=True, is_mobile=True)
    number, tip = page.locator(LIMIT).first, page.locator("#tip")
    number.tap()
    expect(tip).to_be_visible()
    box = tip.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert page.evaluate(STICKS_OUT) == []
    page.locator("article h1").tap()
    expect(tip).to_be_hidden()
    number.tap()
    expect(tip).to_be_visible()
    number.tap()
    page.wait_for_url(re.compile(r"/ledger/#request_limit$"))


def test_a_tap_on_the_tooltip_leads_to_the_ledger(open_page) -> None:
    page: Page = open_page(phone=True, has_touch=True, is_mobile=True)
    page.locator(LIMIT).first.tap()
    link = page.locator("#tip a")
    expect(link).to_have_text("In the ledger")
    assert violations(page) == []
    box = page.locator("#tip b").bounding_box()
    assert box
    page.touchscreen.tap(box["x"] + 8, box["y"] + 8)  # beside the link's words
    page.wait_for_url(re.compile(r"/ledger/#request_limit$"))


def test_the_link_of_a_tooltip_is_for_the_pointer_and_the_number_stays_the_only_stop_of_the_keyboard(open_page) -> None:
    page: Page = open_page()
    page.locator(LIMIT).first.focus()
    expect(page.locator("#tip a")).to_be_visible()
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.matches('#tip a')")
    page.locator(LIMIT).first.hover()
    expect(page.locator("#tip")).to_contain_text("262,144")
    page.locator("#tip a").click()
    page.wait_for_url(re.compile(r"/ledger/#request_limit$"))


def test_every_number_on_the_home_page_that_can_be_tapped_looks_so(open_page) -> None:
    bare = (
        open_page()
        .locator("article p a.num")
        .evaluate_all(
            "(links) => links.filter((link) => getComputedStyle(link).backgroundImage === 'none').map((link) => link.textContent)"
        )
    )
    assert bare == []


def test_search_finds_a_heading_inside_a_note_by_keyboard(open_page, site: Path) -> None:
    html = (site / "notebooks" / "09_wall" / "index.html").read_text(encoding="utf-8")
    anchor, heading = re.findall(r'<h2 id="([^"]+)">([^<]{24,})<', html)[0]
    page: Page = open_page()
    page.keyboard.press("/")
    page.keyboard.type(heading.strip())
    found = page.locator(f'.md-search-result__link[href*="/09_wall/"][href*="#{anchor}"]')
    expect(found.first).to_be_attached(timeout=15_000)
    more = page.locator(".md-search-result__more summary").first
    if not found.first.is_visible() and more.is_visible():
        more.click()
    expect(found.first).to_be_visible()
    found.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"/09_wall/.*#{re.escape(anchor)}"))
    page.wait_for_load_state()
    assert page.evaluate(IN_VIEW, anchor)


def test_a_search_for_a_term_shows_its_definition_first_and_not_the_package(open_page) -> None:
    page: Page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("null block")
    expect(page.locator(".md-search-result__item").first.locator("a").first).to_have_attribute(
        "href", re.compile("/notation/"), timeout=15_000
    )
    expect(page.locator(".md-search-result__item").first.locator(".md-search-result__terms")).to_have_count(0)  # nothing is missing


def test_the_search_index_is_asked_for_when_somebody_searches_and_not_before(open_page) -> None:
    page: Page = open_page("notebooks/01_two_numbers/")
    loaded = "() => performance.getEntriesByType('resource').some(({ name }) => name.includes('search_index'))"
    page.wait_for_timeout(500)
    assert not page.evaluate(loaded)
    page.keyboard.press("/")
    page.wait_for_function(loaded)
    page = open_page("notebooks/01_two_numbers/?h=pool")
    page.wait_for_function(loaded)


def test_every_note_prints_on_paper_and_without_what_belongs_to_a_screen(open_page, site: Path) -> None:
    page: Page = open_page()
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 less its margins, at 96 to the inch
    for path in paths(site):
        page.goto(path, wait_until="load")
        page.emulate_media(media="print")
        shown = page.evaluate(
            """() => [...document.querySelectorAll(".md-header, .md-sidebar, .md-footer__inner, .note-files, .copy, .headerlink, .ledger-filter")]
                 .filter((part) => part.getClientRects().length).map((part) => part.className)"""
        )
        assert shown == [] and page.evaluate(STICKS_OUT) == [], path
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dark == "rgb(255, 255, 255)", path
        page.emulate_media(media="screen")


@pytest.mark.parametrize("path", ["", "notebooks/04_why_289661/"])
def test_a_page_becomes_a_pdf_of_several_pages(open_page, path: str) -> None:
    pdf = open_page(path, dark=True).pdf(format="A4")
    assert pdf.startswith(b"%PDF-") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2


def test_anchors_lead_below_the_header_and_into_what_was_folded(open_page, site: Path) -> None:
    page: Page = open_page()
    for path in paths(site):
        page.goto(path, wait_until="load")
        targets = page.evaluate("""() => [...document.querySelectorAll("article h2[id], article [id^=num-]")].map((part) => part.id)""")
        for target in targets[1:-1:15]:
            page.evaluate("(target) => { location.hash = ''; location.hash = target }", target)
            assert page.evaluate(IN_VIEW, target) or page.evaluate(
                "(id) => innerHeight + scrollY >= document.documentElement.scrollHeight - 2 && document.getElementById(id).getClientRects().length > 0",
                target,
            ), f"{path}#{target}"


def test_on_a_phone_tables_of_text_fit_and_what_scrolls_sideways_shows_it_at_its_edges(open_page, site: Path) -> None:
    page: Page = open_page(phone=True, has_touch=True, is_mobile=True)
    scrolled = 0
    for path in paths(site):
        page.goto(path, wait_until="load")
        boxes = page.evaluate(
            """() => [...document.querySelectorAll("article *")].filter((box) => {
                 box.closest(".note-code, .note-output")?.style.setProperty("content-visibility", "visible")
                 return /auto|scroll/.test(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth + 1 && !box.matches("textarea")
               }).map((box) => [box.className, box.querySelector("table")?.className ?? "", getComputedStyle(box).backgroundAttachment])"""
        )
        for name, table, attachment in boxes:
            assert "local" in attachment, (path, name)
            assert "md-typeset__scrollwrap" not in name and not {"given", "recorded"} & set(table.split()), (path, name, table)
        scrolled += len(boxes)
    assert scrolled > 50


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("path", ["logs/", "notebooks/04_why_289661/"])
def test_the_button_to_copy_covers_no_line_of_the_code(open_page, path: str, phone: bool) -> None:
    page: Page = open_page(path, phone=phone, has_touch=phone, is_mobile=phone)
    blocks = page.locator(".highlight:visible")
    for index in range(0, blocks.count(), 5):
        block = blocks.nth(index)
        block.scroll_into_view_if_needed()
        foot, line = block.evaluate(
            """(block) => {
              const text = document.createRange()
              text.selectNodeContents(block.querySelector("code"))
              return [block.querySelector(".copy").getBoundingClientRect().bottom, text.getClientRects()[0].top]
            }"""
        )
        assert foot <= line + 1, index


def test_next_and_previous_lead_from_note_to_note(open_page, site: Path) -> None:
    notes = [path for path in paths(site) if path.startswith("notebooks/")]
    page: Page = open_page(notes[0])
    for expected in notes[1:4]:
        page.locator(".md-footer a[rel=next]").click()
        page.wait_for_url(f"**/{expected}")
    page.locator(".md-footer a[rel=prev]").click()
    page.wait_for_url(f"**/{notes[2]}")


def test_with_less_motion_nothing_moves(open_page) -> None:
    page: Page = open_page("notebooks/04_why_289661/", reduced_motion="reduce")
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((part) => {
             const style = getComputedStyle(part)
             return parseFloat(style.transitionDuration) > 0 || style.animationName !== "none"
           }).map((part) => part.className)"""
    )
    assert moving == [] and page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_without_scripts_a_page_reads_whole(open_page) -> None:
    page: Page = open_page("ledger/", java_script_enabled=False)
    assert page.locator("table.ledger tbody tr").count() == page.locator("table.ledger tbody tr:visible").count() > 100
    assert page.locator("article a.num").first.get_attribute("title")
    page = open_page("notebooks/01_two_numbers/", java_script_enabled=False)
    expect(page.locator("article figure svg[role=img]").first).to_be_visible()


def test_the_ledger_is_narrowed_by_note_kind_and_verdict_and_the_address_keeps_it(open_page) -> None:
    page: Page = open_page("ledger/?verdict=measured-cannot-be-derived")
    shown = page.locator("table.ledger tbody tr:visible")
    few = shown.count()
    assert few == page.locator('table.ledger tr[data-verdict="measured-cannot-be-derived"]').count() > 0
    expect(page.locator(".ledger-filter output")).to_contain_text(str(few))
    page.locator("[name=verdict]").select_option("")
    page.locator("[name=note]").select_option("09_wall")
    page.locator("[name=kind]").select_option("derived")
    assert shown.count() == page.locator('table.ledger tr[data-note="09_wall"][data-kind="derived"]').count() > 0
    assert page.url.endswith("?note=09_wall&kind=derived")
    page.reload()
    expect(page.locator("[name=note]")).to_have_value("09_wall")
    page.locator("[name=q]").fill("no such word")
    expect(page.locator(".ledger-filter output")).to_contain_text("0 of")
    assert page.locator("article :is(h2, table):visible").count() == 0
    page = open_page("ledger/", java_script_enabled=False)
    page.locator("[name=kind]").select_option("assumed")
    assert page.locator("table.ledger tbody tr:visible").count() == page.locator('table.ledger tr[data-kind="assumed"]').count() > 0
    expect(page.locator("[name=q]")).to_be_hidden()


def test_the_ledger_finds_a_number_however_its_digits_are_grouped(open_page) -> None:
    page: Page = open_page("ledger/")
    for words in ("289,661", "289661", "289 661", " 289\u202f661", "pool 289661", "289,6"):
        page.locator("[name=q]").fill(words)
        expect(page.locator("tr#pool")).to_be_visible()
    page.locator("[name=q]").fill("289662")
    expect(page.locator(".ledger-filter output")).to_contain_text("0 of")
    page.locator("[name=q]").fill("16 64")  # two numbers, not one
    expect(page.locator("tr#full_attention_blocks")).to_be_visible()


SLIDER = "#plot-seats-by-length"


def test_a_slider_under_a_plot_says_the_row_of_its_table_and_moves_the_mark_by_keyboard(open_page) -> None:
    page: Page = open_page("notebooks/06_ladder/")
    slider, output, mark = (
        page.locator(f"{SLIDER} input[type=range]"),
        page.locator(f"{SLIDER} output"),
        page.locator(f"{SLIDER} .plot-mark"),
    )
    rows = [
        row.split("\t")
        for row in page.locator(f"{SLIDER} tbody tr").evaluate_all(
            "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent).join('\\t'))"
        )
    ]
    places = page.locator(f"{SLIDER} tbody tr").evaluate_all("(rows) => rows.map((row) => Number(row.dataset.x))")
    expect(page.get_by_label("Length of each request")).to_have_value(str([row[0] for row in rows].index("32K")))
    slider.focus()
    for key, index in (("Home", 0), ("ArrowRight", 1), ("End", len(rows) - 1)):
        page.keyboard.press(key)
        said = slider.get_attribute("aria-valuetext") or ""
        assert all(re.search(rf"(?<!\w){re.escape(cell)}(?!\w)", said) for cell in rows[index]), (key, said)
        assert output.locator("b").all_inner_texts() == rows[index]
        plot, line = page.locator(f"{SLIDER} svg").bounding_box(), mark.bounding_box()
        assert plot and line and abs((line["x"] - plot["x"]) / plot["width"] - places[index]) < 0.005
    assert violations(page) == [] and page.evaluate(STICKS_OUT) == []
    page.emulate_media(media="print")
    expect(slider).to_be_hidden()
    expect(mark).to_be_hidden()
    expect(page.locator(f"{SLIDER} svg")).to_be_visible()


def test_without_scripts_a_plot_with_stops_is_whole_and_its_values_unfold(open_page) -> None:
    page: Page = open_page("notebooks/06_ladder/", phone=True, java_script_enabled=False)
    expect(page.locator(f"{SLIDER} svg[role=img]")).to_be_visible()
    assert page.locator(f"{SLIDER} :is(input, .plot-mark)").count() == 0
    page.locator(f"{SLIDER} summary").click()
    expect(page.locator(f"{SLIDER} tbody tr").first).to_be_visible()
