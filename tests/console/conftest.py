"""The console in a real Chromium, on a database in which every page has something to show.

The database is made once for the whole run, whatever the number of test processes; each takes a copy.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Page, expect

from detent import Detent
from detent.client.engine import Engine
from detent.model.clock import SystemClock
from tests.console.browser import find_chromium, open_browser
from tests.console.served import serve_api
from tests.console.types_check import build_program
from tests.deadlines import scaled

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a run also builds the console and fills the database."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(scaled(240)))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all test processes of a run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def seeded(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a copy of the filled database. Also builds the console, if its sources have changed."""
    if find_chromium() is None:
        pytest.skip("no Chromium is installed")
    made = shared_folder / "console-seed.db"
    with (shared_folder / "console-seed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            build_program().build()
            from tests.console.seed import fill

            fill(f"sqlite:///{made}.part", hours=4)
            Path(f"{made}.part").rename(made)
    copy = tmp_path_factory.mktemp("console") / "shop.db"
    shutil.copy(made, copy)
    return f"sqlite:///{copy}"


@pytest.fixture(scope="session")
def shop(seeded: str) -> Iterator[Detent]:
    """The application, on the filled database."""
    from tests.console.shop import app

    with closing(Engine(Detent(seeded, actor="ana").settings, SystemClock())) as engine:
        before = app.rewire(engine)
        yield app
        app.rewire(before)


@pytest.fixture(scope="session")
def url(shop: Detent) -> Iterator[str]:
    """The address of the console."""
    with serve_api(shop) as served:
        yield served


@pytest.fixture(scope="session")
def worker(seeded: str) -> Iterator[str]:
    """A real worker, for all tests that need one; its name."""
    command = [sys.executable, "-m", "detent.cli", "worker", "tests.console.shop:app", "--name", "w1", "--slots", "4"]
    command += ["--lease", f"{scaled(4):.0f}s"]  # a worker hears of a cancel when it renews its leases
    environment = os.environ | {"DETENT_DATABASE_URL": seeded}
    with subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            yield "w1"
        finally:
            process.terminate()
            process.wait(scaled(30))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser. It ends with its module: while it runs, tests of asyncio cannot run in the same process."""
    if find_chromium() is None:
        pytest.skip("no Chromium is installed")
    expect.set_options(timeout=scaled(15) * 1000)
    with open_browser() as browser:
        yield browser


@dataclass
class Tab:
    """A page of the browser, and every error that it reported."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)

    def open(self, path: str = "") -> Page:
        """Open a page of the console, and wait until it is drawn."""
        self.page.goto(f"{self.url}/{path}")
        self.page.wait_for_selector("main h1")
        return self.page


class OpenTab(Protocol):
    """Opens a tab: `tab(width=360, dark=True)`."""

    def __call__(self, *, url: str = ..., width: int = ..., dark: bool = ...) -> Tab:
        """Open it."""
        ...


@pytest.fixture
def tab(chromium: Browser, url: str) -> Iterator[OpenTab]:
    """Opens tabs, each in a profile of its own. A test fails if the browser reported an error, such as a script that
    the content policy refused."""
    with ExitStack() as exits:
        opened: list[Tab] = []

        def open_tab(*, url: str = url, width: int = 1280, dark: bool = False) -> Tab:
            scheme: Any = "dark" if dark else "light"
            context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
            exits.callback(context.close)
            context.set_default_timeout(scaled(20) * 1000)
            made = Tab(context.new_page(), url)
            _watch(made)
            opened.append(made)
            return made

        yield open_tab
        errors = [error for one in opened for error in one.errors]
    assert errors == []


def _watch(tab: Tab) -> None:
    def hear(said: ConsoleMessage) -> None:
        if said.type == "error":
            tab.errors.append(said.text)

    def fail(error: Error) -> None:
        tab.errors.append(str(error))

    def ask(dialog: Dialog) -> None:
        tab.errors.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()

    tab.page.on("console", hear)
    tab.page.on("pageerror", fail)
    tab.page.on("dialog", ask)
