"""A real Chromium for tests and screenshots. There is none to download: the one of the machine is used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

__all__ = ["find_chromium", "open_browser"]

_ARGUMENTS = ["--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb", "--hide-scrollbars"]


def find_chromium() -> str | None:
    """Return the program of a Chromium on this machine; None if there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return None


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Run a Chromium without windows until the block ends."""
    program = find_chromium()
    assert program is not None, "no Chromium is installed"
    # The sandbox of Chromium does not work for root, as in a container.
    arguments = [*_ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else _ARGUMENTS
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
