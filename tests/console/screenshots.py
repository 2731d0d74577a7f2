"""Takes pictures of pages in light, dark and phone width: `python -m tests.console.screenshots URL FOLDER [PAGE …]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Page

from tests.console.browser import open_browser

__all__ = ["SIZES", "take"]

SIZES: dict[str, Any] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1360, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1360, "height": 860}},
    "phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}
_SETTLE_MILLIS = 700


def take(browser: Browser, url: str, pages: dict[str, str], folder: Path, sizes: list[str]) -> list[str]:
    """Take a picture of each page in each size, and return the errors that the browser reported."""
    errors: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    for size in sizes:
        context = browser.new_context(**SIZES[size], timezone_id="UTC")
        for name, path in pages.items():
            page = context.new_page()
            _watch(page, f"{size} {name}", errors)
            page.goto(f"{url}/{path}")
            page.wait_for_selector("main h1", timeout=60_000)
            page.wait_for_timeout(_SETTLE_MILLIS)
            page.screenshot(path=folder / f"{name}-{size}.png", full_page=True)
            wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
            if wide:
                errors.append(f"{size} {name}: the page is wider than the window")
            page.close()
        context.close()
    return errors


def _watch(page: Page, name: str, errors: list[str]) -> None:
    def hear(said: ConsoleMessage) -> None:
        if said.type == "error":
            errors.append(f"{name}: {said.text} {said.location}")

    def fail(error: Error) -> None:
        errors.append(f"{name}: {error}")

    page.on("console", hear)
    page.on("pageerror", fail)


if __name__ == "__main__":
    given = sys.argv[3:] or ["", "jobs", "dead", "queues"]
    chosen = {(one.replace("/", "-").partition("?")[0] or "overview"): one for one in given}
    with open_browser() as chromium:
        for line in take(chromium, sys.argv[1], chosen, Path(sys.argv[2]), list(SIZES)):
            sys.stdout.write(line + "\n")
