"""What must hold of every page on a screen: one load, then both schemes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
AXE = (ROOT / "tools" / "node" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
RUN_AXE = """async (options) => (await axe.run(document, { resultTypes: ["violations"], ...options })).violations.map(
  ({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")} (${nodes.length})`)"""
STICKS_OUT = """() => {
  const room = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= room) return []
  const wide = [...document.body.querySelectorAll("*")].filter((part) => part.getBoundingClientRect().right > room + 1)
  return wide.slice(0, 5).map((part) => `${part.tagName.toLowerCase()}.${part.className}`)
    .concat(`the page scrolls sideways: ${document.documentElement.scrollWidth} in ${room}`)
}"""

LEADS_NOWHERE = """() => [...document.querySelectorAll("a:not([href], [id], [name])")].slice(0, 5).map(
  (link) => `a link that leads nowhere: ${link.className} ${link.textContent.slice(0, 40)}`)"""


def paths(site: Path) -> list[str]:
    """Every page's address under the site's: "" for the home page, "ledger/"."""
    found = [page.parent.relative_to(site).as_posix() for page in sorted(site.rglob("index.html"))]
    return ["" if path == "." else path + "/" for path in found]


def violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """What axe finds on the page as it stands: by all its rules, or by those named. What scrolls has been looked for by then."""
    if page.evaluate("matchMedia('(scripting: enabled)').matches"):
        page.wait_for_function("document.readyState === 'complete' && !document.documentElement.classList.contains('settling')")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    return page.evaluate(RUN_AXE, {"runOnly": rules} if rules else {})


def wrong(page: Page, site: Path) -> Iterator[str]:
    """Overflow, and what axe finds: every rule in the light scheme; in the dark one, where only colours differ, contrast.

    The page is opened with less motion: no colour is caught on its way from one scheme to the other."""
    for path in paths(site):
        page.emulate_media(color_scheme="light")
        page.goto(path, wait_until="load")
        yield from (f"{path}: {problem}" for problem in page.evaluate(STICKS_OUT) + violations(page) + page.evaluate(LEADS_NOWHERE))
        page.emulate_media(color_scheme="dark")
        yield from (f"{path}: dark: {problem}" for problem in page.evaluate(STICKS_OUT) + violations(page, ["color-contrast"]))
