"""Every page on a phone, light and dark: nothing goes wrong, sticks out, or shuts a reader out. (open_page watches the rest.)"""

from __future__ import annotations

from pathlib import Path

from every_page import wrong


def test_on_a_phone_no_page_has_an_error_a_foreign_request_an_overflow_or_a_violation(open_page, site: Path) -> None:
    assert list(wrong(open_page(phone=True, reduced_motion="reduce"), site)) == []
