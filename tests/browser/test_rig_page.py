"""Your rig in a browser: Python there gives the command line's numbers, and nothing goes wrong that is not said."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from every_page import STICKS_OUT, violations
from playwright.sync_api import Page, Route, expect

ROOT = Path(__file__).parents[2]
LOG = (ROOT / "tests" / "logs" / "tp2_028.txt").read_text(encoding="utf-8")
SLOW = 60_000
FIVE = [
    {"model": "qwen3.8-27b", "available": "5.24 GiB", "tensor_parallel_size": "2", "kv_cache_dtype": "fp8", "num_speculative_tokens": "4"},
    {"model": "llama-3.1-8b", "available": "8 GiB", "max_model_len": "32K"},
    {"model": "gemma-3-27b", "available": "16 GiB", "max_model_len": "64K", "max_num_batched_tokens": "8192"},
    {"model": "deepseek-v3", "available": "30 GB", "version": "0.27.0", "tensor_parallel_size": "8"},
    {"model": "nemotron-3-super-120b-a12b", "available": "20 GiB", "kv_cache_dtype": "fp8", "enable_prefix_caching": "on"},
]
POOL_OF_ARTICLE = "289,661 tokens are live at once for everybody"
SELECTS = {"model", "kv_cache_dtype", "version", "enable_prefix_caching"}
KEEPS_COPIES = "navigator.clipboard.writeText = async (text) => { window.copied = text }"


def headline(page: Page) -> str:
    return page.locator(".rig-headline").inner_text(timeout=SLOW)


def put(page: Page, settings: dict[str, str]) -> None:
    for name in ("tensor_parallel_size", "max_model_len", "kv_cache_dtype", "num_speculative_tokens", "max_num_batched_tokens", "version",
                 "enable_prefix_caching", *settings):  # fmt: skip
        field = page.locator(f"#rig-form [name={name}]")
        value = settings.get(name, "")
        field.select_option(value) if name in SELECTS else field.fill(value)


def copied(page: Page, label: str) -> str:
    page.get_by_role("button", name=label).click()
    return page.evaluate("window.copied")


def test_five_models_give_the_numbers_of_the_command_line(open_page) -> None:
    page: Page = open_page("rig/")
    assert not page.evaluate("performance.getEntriesByType('resource').some(({ name }) => name.includes('pyodide'))")
    page.evaluate(KEEPS_COPIES)
    for settings in FIVE:
        put(page, settings)
        line = page.locator(".rig-copies pre")
        expect(line).to_contain_text(f"pool {settings['model']} ", timeout=SLOW)
        expect(page.locator("#rig-answer:not([aria-busy])")).to_be_visible()
        command = copied(page, "Copy as command line").splitlines()[0]
        shown = json.loads(copied(page, "Copy as JSON"))["pool"]
        words = [sys.executable, "-m", "aelius_math", *shlex.split(command)[3:], "--json"]
        printed = json.loads(subprocess.run(words, capture_output=True, check=True, cwd=ROOT).stdout)
        assert {name: printed[name] for name in shown} == shown
        assert f"{printed['tokens']:,} tokens" in headline(page)
    assert violations(page) == [] and page.evaluate(STICKS_OUT) == []


def test_a_shared_address_opens_to_the_same_answer_on_a_phone_in_the_dark(open_page) -> None:
    page: Page = open_page("rig/")
    page.get_by_role("button", name="Start with the article's machine").click()
    assert POOL_OF_ARTICLE in headline(page)
    page.wait_for_function("location.hash.includes('slices')")
    shared = page.url.partition("/rig/")[2]
    phone: Page = open_page("rig/" + shared, phone=True, dark=True)
    assert headline(phone) == headline(page)
    expect(phone.get_by_text("The ladder", exact=True)).to_be_visible()
    assert violations(phone) == [] and phone.evaluate(STICKS_OUT) == []


def test_on_a_phone_the_answer_in_short_stands_at_the_foot_of_the_form_and_leads_to_the_whole(open_page) -> None:
    page: Page = open_page("rig/", phone=True)
    short = page.locator("#rig-short")
    expect(short).to_be_hidden()
    page.locator("#rig-article").click()
    expect(short).to_contain_text("5 conversations of 32K at once", timeout=SLOW)
    page.locator("[name=engine]").scroll_into_view_if_needed()
    expect(short).to_be_in_viewport(ratio=1)
    expect(page.locator(".rig-headline")).not_to_be_in_viewport()
    page.wait_for_function("location.hash.includes('slices')")
    short.click()
    expect(page.locator(".rig-headline")).to_be_in_viewport(ratio=1)
    assert "slices" in page.url, "the way to the answer took the settings out of the address"
    page.locator("[name=available]").fill("5.24 miles")
    expect(short).to_contain_text("expected")
    page.evaluate("location.hash = 'engine=vllm&memory=available&model=qwen3-8b'")
    expect(short).to_contain_text("What is missing")
    expect(short).to_contain_text("Available KV cache memory")


@pytest.mark.parametrize("how", ["missing", "cut"])
def test_a_failed_load_of_the_largest_file_is_said_too(open_page, how: str) -> None:
    page: Page = open_page("rig/")
    page.context.route("**/pyodide.asm.wasm", lambda route: route.fulfill(status=404, body="") if how == "missing" else route.abort())
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#rig-failed")).to_contain_text("Python did not load", timeout=SLOW)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.context.unroute("**/pyodide.asm.wasm")
    page.problems.clear()  # type: ignore[attr-defined]


def test_a_failed_load_says_so_offers_the_command_line_and_can_be_tried_again(open_page) -> None:
    page: Page = open_page("rig/")
    answer_with = {"fail": True}

    def serve(route: Route) -> None:
        route.fulfill(status=404, body="") if answer_with["fail"] else route.continue_()

    page.context.route("**/python_stdlib.zip", serve)
    page.locator("[name=available]").fill("5.24 GiB")
    failed = page.locator("#rig-failed")
    expect(failed).to_contain_text("Python did not load", timeout=SLOW)
    expect(failed.get_by_role("link", name="The command line")).to_be_visible()
    expect(page.locator("[name=available]")).to_have_value("5.24 GiB")
    assert violations(page) == []
    page.problems.clear()  # type: ignore[attr-defined]
    answer_with["fail"] = False
    failed.get_by_role("button", name="Try again").click()
    expect(page.locator(".rig-asks")).to_contain_text("Model", timeout=SLOW)
    page.problems.clear()  # type: ignore[attr-defined]


def test_without_webassembly_the_page_says_what_to_run_instead(open_page) -> None:
    page: Page = open_page("rig/")
    page.evaluate("delete window.WebAssembly")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#rig-failed")).to_contain_text("does not run WebAssembly")


def test_loading_can_be_cancelled(open_page) -> None:
    page: Page = open_page("rig/")
    page.context.route("**/pyodide.asm.wasm", lambda route: None)  # never answered
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#rig-bytes")).to_have_text(re.compile(r"of \d+\.\d MB"))
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#rig-progress")).to_be_hidden()
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_focused()
    page.context.unroute("**/pyodide.asm.wasm")


def test_once_loaded_it_works_without_a_network_and_by_keyboard(open_page) -> None:
    page: Page = open_page("rig/")
    page.locator("#rig-article").focus()
    page.keyboard.press("Enter")
    assert POOL_OF_ARTICLE in headline(page)
    expect(page.locator("#rig-undo")).to_be_hidden()  # nothing was there before
    page.context.set_offline(True)
    page.locator("[name=num_speculative_tokens]").focus()
    page.keyboard.press("Backspace")
    page.keyboard.type("0")
    expect(page.locator(".rig-headline")).to_contain_text("329,", timeout=SLOW)
    page.locator("#tab-work").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-log")).to_be_focused()
    page.locator("[name=log]").fill(LOG)
    expect(page.locator("#log-answer")).to_contain_text("289,661 tokens")
    page.context.set_offline(False)
    # Chromium asks for the icon again when the address changes; the page works without it.
    page.problems[:] = [problem for problem in page.problems if "favicon" not in problem]  # type: ignore[attr-defined]


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_without_scripts_the_page_says_how_to_run_the_command_line(open_page, phone: bool) -> None:
    page: Page = open_page("rig/", phone=phone, java_script_enabled=False)
    expect(page.get_by_text("python -m aelius_math pool")).to_be_visible()
    expect(page.locator("#rig-form")).to_be_hidden()
