"""What the tests of the notes and of the site share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "engine")]

# The same examples at every run, and no clock: a run of the tests says something of the code alone. New examples: make fuzz.
settings.register_profile("aelius", derandomize=True, deadline=None)
settings.load_profile("aelius")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says in the last lines what did not run, and why."""
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", ()):
        if isinstance(report.longrepr, tuple):
            reasons.setdefault(report.longrepr[2].removeprefix("Skipped: "), []).append(report.nodeid.rpartition("/")[2])
    for reason, tests in reasons.items():
        terminalreporter.section(f"{len(tests)} did not run: {reason}")
        for test in tests:
            terminalreporter.write_line(f"  {test}")
