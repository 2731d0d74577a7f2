"""The dialog of the console that asks for a reason before a change."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

__all__ = ["confirm"]


def confirm(page: Page, reason: str, button: str | re.Pattern[str]) -> None:
    """Give a reason, press the button, and wait until the dialog is closed."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^Reason")).fill(reason)
    dialog.get_by_role("button", name=button).click()
    expect(dialog).to_have_count(0)
