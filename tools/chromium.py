"""Finds the machine's Chromium: the one that the environment names in CHROMIUM, or the first of the usual names."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
REMEDY = "Install it (Debian: apt-get install chromium), or say where it is: CHROMIUM=/path/to/chromium"


def find() -> str | None:
    """The path of its command; None where there is none. A CHROMIUM that leads nowhere is not replaced by another."""
    named = os.environ.get("CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
