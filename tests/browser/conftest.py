"""The built site in Chromium: served under a sub-path, and every page watched for what a reader would never see.

`open_page` gives a page; when its test ends, an error in its console or a request to another host fails the test.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

import chromium

ROOT = Path(__file__).parents[2]
SUB_PATH = "/aelius/"
DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def site() -> Path:
    folder = Path(os.environ.get("AELIUS_SITE", ROOT / ".cache" / "site"))
    assert (folder / "index.html").exists(), "no site to test: make test builds it first"
    return folder


class Host(SimpleHTTPRequestHandler):
    """Serves the site under SUB_PATH, and nothing outside it."""

    protocol_version = "HTTP/1.1"

    def translate_path(self, path: str) -> str:
        inside = path.startswith(SUB_PATH)
        return super().translate_path("/" + path.removeprefix(SUB_PATH) if inside else "/outside-of-the-site")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the site is served; ends with a slash."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(site))) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{SUB_PATH}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One start for a file of tests. Where there is no Chromium they are left out, by name; in CI they fail."""
    path = chromium.find()
    if path is None:
        missing = f"no Chromium. {chromium.REMEDY}"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-dev-shm-usage"])
        yield browser
        browser.close()


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[OpenPage]:
    """open_page("ledger/", phone=True, dark=True, java_script_enabled=False): further words are playwright's new_context's.

    Returns the page, loaded. `page.problems` lists what went wrong so far; a test that expects some clears it."""
    contexts, pages = [], []

    def open_one(path: str = "", phone: bool = False, dark: bool = False, **options: object) -> Page:
        options.setdefault("viewport", PHONE if phone else DESKTOP)
        options.setdefault("color_scheme", "dark" if dark else "light")
        context = browser.new_context(base_url=address, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        watch(page, address)
        pages.append(page)
        page.goto(address + path, wait_until="load")
        return page

    yield open_one
    problems = [problem for page in pages for problem in page.problems]
    for context in contexts:
        context.close()
    assert problems == []


def watch(page: Page, address: str) -> None:
    """Collects into page.problems: errors and warnings in the console, exceptions, failures, requests to another host."""
    problems: list[str] = []
    page.problems = problems  # type: ignore[attr-defined]
    host = urlsplit(address).netloc

    def console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            problems.append(f"{page.url}: console: {message.text}")

    def request(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != host:
            problems.append(f"{page.url}: asks {request.url}")

    def failed(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page was left before it came
            problems.append(f"{page.url}: {request.url} failed: {request.failure}")

    page.on("console", console)
    page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
    page.on("requestfailed", failed)
    page.on("request", request)
