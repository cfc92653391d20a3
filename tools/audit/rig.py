"""How long Your rig takes in this machine's Chromium: from a click to the first answer, cold, and from a change to the next.

`make audit` runs it before Lighthouse. It prints medians and asserts nothing: they lean on the machine.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright
from run import ROOT, Host

sys.path.insert(0, str(Path(__file__).parents[1]))
import chromium

COLD, CHANGES = 3, 15
BUDGET = {"click to first answer, cold": 6000, "change to first result": 50}
"""Milliseconds."""
WATCH = """() => new Promise((done) => {
  const field = document.querySelector("[name=available]"), answer = document.querySelector("#rig-answer")
  const seen = new MutationObserver(() => (seen.disconnect(), done(performance.now() - from)))
  seen.observe(answer, { childList: true })
  field.value = `${5 + Math.random()} GiB`
  const from = performance.now()
  field.dispatchEvent(new Event("input", { bubbles: true }))
})"""


def cold(browser: Browser, address: str) -> tuple[float, list[float]]:
    """One visitor with an empty cache: the first answer, then some changes, each in ms."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        page.evaluate("document.querySelector('#rig-article').addEventListener('click', () => { window.clicked = performance.now() })")
        page.click("#rig-article")
        page.wait_for_selector(".rig-headline", timeout=120_000)
        first = page.evaluate("performance.now() - window.clicked")
        page.wait_for_selector("#rig-answer:not([aria-busy])")
        changes = []
        for _ in range(CHANGES):
            changes.append(page.evaluate(WATCH))
            page.wait_for_selector("#rig-answer:not([aria-busy])")
        return first, changes


def main() -> None:
    path = chromium.find()
    if path is None:
        sys.exit(f"audit: no Chromium. {chromium.REMEDY}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(ROOT / "site")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-dev-shm-usage"])
        runs = [cold(browser, f"http://127.0.0.1:{server.server_port}/rig/") for _ in range(COLD)]
        browser.close()
    took = {
        "click to first answer, cold": [first for first, _ in runs],
        "change to first result": [one for _, changes in runs for one in changes],
    }
    for what, times in took.items():
        print(f"Your rig, {what}: median {median(times):,.0f} ms of {len(times)}, slowest {max(times):,.0f}; budget {BUDGET[what]:,} ms")


if __name__ == "__main__":
    main()
