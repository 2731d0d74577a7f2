"""Every page: drawn without an error, readable on a phone, without a finding of axe, in light and dark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from detent import Detent
from tests.console.conftest import OpenTab
from tests.console.types_check import CONSOLE, build_program

_LISTED = re.compile(r'path: "([^"]*)"')
PAGES = [path for path in _LISTED.findall((CONSOLE / "src" / "pages" / "index.ts").read_text()) if ":" not in path]
_SERIOUS = ("serious", "critical")
_LOOKS = 10
"""How often a page is examined: a finding counts if it is still there the last time."""
_SETTLED = """new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 50))
  .then(() => Promise.all(document.getAnimations()
  .filter((one) => one.effect.getComputedTiming().iterations !== Infinity)
  .map((one) => one.finished.catch(() => {})))).then(() => null)"""


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that looks for barriers."""
    build_program().build(development=True)
    return (CONSOLE / "node_modules" / "axe-core" / "axe.min.js").read_text()


def _findings(page: Any, axe: str) -> list[str]:
    # A colour that is changing is neither of the two: contrast is measured without transitions.
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(axe)
    findings: list[str] = []
    for _ in range(_LOOKS):
        page.evaluate(_SETTLED)
        found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
        findings = [
            f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
            for one in found["violations"]
            if one["impact"] in _SERIOUS
            for node in one["nodes"][:3]
        ]
        if not findings:
            break
    return findings


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_in_order(tab: OpenTab, axe: str, path: str) -> None:
    page = tab().open(path)
    expect(page.locator("main .ghost")).to_have_count(0)
    assert _findings(page, axe) == []
    page.emulate_media(color_scheme="dark")
    assert _findings(page, axe) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_page_of_a_job_is_in_order(tab: OpenTab, axe: str, shop: Detent) -> None:
    (dead,) = shop.jobs.list(state="quarantined", task="shop.charge", limit=1)
    page = tab().open(f"jobs/{dead.id}")
    page.get_by_text("CardDeclined").first.wait_for()
    assert _findings(page, axe) == []
    page.emulate_media(color_scheme="dark")
    assert _findings(page, axe) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize(
    "which", ["a workflow", "waits", "a batch run", "mismatches", "a pipeline run", "an ops run", "policies"]
)
def test_a_page_of_one_thing_is_in_order(tab: OpenTab, axe: str, shop: Detent, which: str) -> None:
    (batch,) = shop.runs.list(kind="batch", state="partial", limit=1)
    (pipeline,) = shop.runs.list(kind="pipeline", state="failed", limit=1)
    (deploy,) = shop.ops.list(state="success", limit=1)
    (asked, *_) = shop.workflows.list(task="shop.expense", state="parked", limit=1)
    path, shown = {
        "a workflow": (f"jobs/{asked.id}", "[data-step=parked]"),
        "waits": ("workflows?tab=waits", "tr[data-row]"),
        "a batch run": (f"runs/{batch.id}", "tbody[data-ref]"),
        "mismatches": (f"runs/{batch.id}?tab=mismatches", "section[aria-labelledby=card-mismatches]"),
        "a pipeline run": (f"runs/{pipeline.id}", ".tile[data-state=failed]"),
        "an ops run": (f"ops/{deploy.id}", ".log-line"),
        "policies": ("alerts?view=policies", "tr[data-row]"),
    }[which]
    page = tab().open(path)
    page.locator(shown).first.wait_for()
    assert _findings(page, axe) == []
    page.emulate_media(color_scheme="dark")
    assert _findings(page, axe) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
