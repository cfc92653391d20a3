"""Takes the README's picture of the built site, docs/images/site.png, with the machine's Chromium. `make picture` runs it."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import chromium

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "site.png"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1280,860")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    browser = chromium.find()
    if browser is None:
        sys.exit(f"picture: no Chromium found. {chromium.REMEDY}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=ROOT / "site"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    PICTURE.parent.mkdir(exist_ok=True)
    address = f"http://127.0.0.1:{server.server_port}/"
    run = subprocess.run([browser, *FLAGS, f"--screenshot={PICTURE}", address], capture_output=True, timeout=120, check=False)
    if run.returncode or not PICTURE.exists():
        sys.exit(f"picture: {browser} failed:\n{run.stderr.decode(errors='replace')}")
    print(f"{PICTURE.relative_to(ROOT)} is taken")


if __name__ == "__main__":
    main()
