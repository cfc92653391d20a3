"""The built site as the tests read it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder that `make test` built; by itself pytest reads what is there from the last time."""
    folder = Path(os.environ.get("AELIUS_SITE", ROOT / ".cache" / "site"))
    assert (folder / "index.html").exists(), "no site to test: make test builds it first"
    return folder
