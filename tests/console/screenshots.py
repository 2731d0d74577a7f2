"""Takes pictures of pages in light, dark and phone width: `python -m tests.console.screenshots URL FOLDER [PAGE …]`.

Without pages it takes those of docs/console.md: every page in light, one in dark, one at the width of a phone. `URL` is
a server with a worker on the database that `python -m tests.console.seed` makes.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Page

from tests.console.browser import open_browser

__all__ = ["SIZES", "document", "take"]

SIZES: dict[str, Any] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1360, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1360, "height": 860}},
    "phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}
_SETTLE_MILLIS = 700


def take(
    browser: Browser, url: str, pages: dict[str, str], folder: Path, sizes: list[str], *, whole: bool = True
) -> list[str]:
    """Take a picture of each page in each size, the whole page or what fits into the window, and return the errors that
    the browser reported."""
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
            page.screenshot(path=folder / f"{name}-{size}.png", full_page=whole)
            wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
            if wide:
                errors.append(f"{size} {name}: the page is wider than the window")
            page.close()
        context.close()
    return errors


def document(browser: Browser, url: str, folder: Path) -> list[str]:
    """Take the pictures of docs/console.md, and return the errors that the browser reported."""
    dead, batch, pipeline, deployed, workflow = (
        _first_id(url, path)
        for path in (
            "dead?task=shop.charge",
            "runs?kind=batch&state=partial",
            "runs?kind=pipeline&state=failed",
            "ops?state=success",
            "workflows?task=shop.parcel&state=parked",
        )
    )
    names = (
        "jobs",
        "dead",
        "workflows",
        "runs",
        "ops",
        "queues",
        "schedules",
        "limits",
        "workers",
        "alerts",
        "lifecycles",
    )
    pages = {f"console-{name}": name for name in (*names, "integrity", "record", "access")}
    pages |= {
        "console-overview": "",
        "console-job": f"jobs/{dead}",
        "console-batch-run": f"runs/{batch}",
        "console-pipeline-run": f"runs/{pipeline}",
        "console-workflow": f"jobs/{workflow}",
        "console-ops-run": f"ops/{deployed}",
    }
    errors = take(browser, url, pages, folder, ["light"], whole=False)
    errors += take(browser, url, {"console-dead": "dead"}, folder, ["dark"], whole=False)
    errors += take(browser, url, {"console-jobs": "jobs"}, folder, ["phone"], whole=False)
    for file in folder.glob("console-*-light.png"):
        file.rename(folder / f"{file.name.removesuffix('-light.png')}.png")
    return errors


def _first_id(url: str, path: str) -> str:
    with urllib.request.urlopen(f"{url}/api/v1/{path}") as answer:
        found: str = json.load(answer)["items"][0]["id"]
        return found


def _watch(page: Page, name: str, errors: list[str]) -> None:
    def hear(said: ConsoleMessage) -> None:
        if said.type == "error":
            errors.append(f"{name}: {said.text} {said.location}")

    def fail(error: Error) -> None:
        errors.append(f"{name}: {error}")

    page.on("console", hear)
    page.on("pageerror", fail)


if __name__ == "__main__":
    address, place, *given = sys.argv[1:]
    with open_browser() as chromium:
        if given:
            chosen = {(one.replace("/", "-").partition("?")[0] or "overview"): one for one in given}
            found = take(chromium, address, chosen, Path(place), list(SIZES))
        else:
            found = document(chromium, address, Path(place))
        for line in found:
            sys.stdout.write(line + "\n")
