"""Stories about runs in the console: a batch from its preview to its rollback, a pipeline, a deploy with a live log."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from detent import Detent
from tests.console import shop as shop_module
from tests.console.conftest import OpenTab
from tests.console.dialog import confirm


@pytest.mark.usefixtures("worker")
def test_a_batch_is_previewed_applied_in_part_retried_and_rolled_back(tab: OpenTab, shop: Detent) -> None:
    """Read the difference, search it, apply a part of it, see what failed, retry it, and take it all back."""
    run = shop.runs.preview(shop_module.Reprice(percent=10, many=12, broken=2, mends=True), reason="spring sale")
    page = tab().open(f"runs/{run.id}")
    state = page.locator("main h1 .state")
    expect(page.get_by_text("10 of 12 targets would change")).to_be_visible()
    first = page.locator("tbody[data-ref=ring-001]")
    expect(first.locator("del")).to_have_text("937")
    expect(first.locator("ins")).to_have_text("843")
    expect(page.locator("tbody[data-ref=ring-005]")).to_have_count(0)
    page.get_by_label("Only changed").uncheck()
    expect(page.locator("tbody[data-ref=ring-005]")).to_contain_text("no change")
    page.get_by_label("Search targets and values").fill("ring-01")
    expect(page.locator("tbody[data-ref]")).to_have_count(3)
    page.get_by_label("Search targets and values").fill("")
    retry = page.get_by_role("button", name="Retry failed")
    expect(retry).to_have_attribute("data-hint", "No target has failed.")

    for ref in ("ring-001", "ring-002", "ring-003"):
        page.get_by_label(f"Select {ref}").check()
    page.get_by_role("button", name="Apply 3 selected").click()
    confirm(page, "a part first", "Apply 3 targets")
    expect(state).to_have_text("partial")
    expect(first.locator(".diff-error")).to_contain_text("the shop answered 500 for ring-001")
    page.get_by_role("button", name="Retry failed").click()
    confirm(page, "the shop is up again", "Retry failed")
    expect(state).to_have_text("applied")
    page.get_by_role("button", name="Roll back").click()
    confirm(page, "too cheap", "Roll back")
    expect(state).to_have_text("rolled back")
    expect(page.locator("tbody[data-ref=ring-003] .state")).to_have_text("rolled back")
    page.get_by_role("link", name="Record", exact=True).last.click()
    expect(page.locator(".record-list")).to_contain_text("too cheap")


@pytest.mark.usefixtures("worker")
def test_a_pipeline_run_fills_its_grid(tab: OpenTab, shop: Detent) -> None:
    run = shop.runs.start(shop_module.Diamonds(parts=6, pages=2))
    page = tab().open(f"runs/{run.id}")
    tiles = page.locator(".tile")
    expect(tiles).to_have_count(6)
    expect(page.locator(".tile[data-state=completed]")).to_have_count(6)
    expect(page.locator("main h1 .state")).to_have_text("completed")
    expect(page.locator(".step.done")).to_have_count(4)
    hint = re.compile("This pipeline run is completed. Retry is possible only if it is failed")
    expect(page.get_by_role("button", name="Retry")).to_have_attribute("data-hint", hint)


def test_the_log_of_a_deploy_is_followed(tab: OpenTab, shop: Detent) -> None:
    """New lines appear by themselves; an address that is not of the web is no link; a cancel refuses the worker."""
    queued = shop.ops.queue("console", "staging", git_sha="0ddba11", metadata={"deploy_url": "javascript:alert(1)"})
    page = tab().open(f"ops/{queued.id}")
    expect(page.get_by_text("No line yet")).to_be_visible()
    while (run := shop.ops.claim("runner-9")) is not None and run.id != queued.id:
        shop.ops.event(run, "begun")
        shop.ops.finish(run, "success")
    assert run is not None
    shop.ops.event(run, "building <b>the image</b>")
    expect(page.locator(".log-line").last).to_contain_text("building <b>the image</b>")
    shop.ops.event(run, "the health check failed", level="error")
    expect(page.locator(".log-line.level-error")).to_have_count(1)
    expect(page.locator("a[href^='javascript']")).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    confirm(page, "the wrong revision", "Cancel the run")
    expect(page.locator("main h1 .state")).to_have_text("cancelled")


def test_a_token_is_shown_once_and_revoked(tab: OpenTab, shop: Detent) -> None:
    page = tab().open("access")
    page.get_by_role("button", name="Create a token").click()
    page.get_by_role("dialog").get_by_label("Name").fill("reader")
    confirm(page, "for the wall", "Create")
    text = page.locator(".token-text").inner_text()
    assert len(text) > 20
    page.get_by_role("button", name="I have copied it").click()
    expect(page.get_by_text(text)).to_have_count(0)
    row = page.get_by_role("row").filter(has_text="reader")
    page.reload()
    row.get_by_role("button", name="Revoke").click()
    confirm(page, "not needed", "Revoke")
    expect(row).to_have_class(re.compile("gone"))
    expect(row.locator(".state")).to_have_text("revoked")
    assert [one.revoked_by for one in shop.tokens.list(revoked=True) if one.name == "reader"] == ["ana"]


def test_a_state_of_a_lifecycle_leads_to_its_jobs(tab: OpenTab, shop: Detent) -> None:
    dead = sum(one.jobs for one in shop.jobs.counts() if one.state == "quarantined")
    page = tab().open("lifecycles")
    expect(page.locator("[data-count=quarantined]")).to_have_text(re.compile(rf"^{dead}$"))
    page.locator("a.node", has_text="quarantined").click()
    page.wait_for_url("**/jobs?state=quarantined")


def test_an_integrity_check_is_made_and_a_repair_planned(tab: OpenTab) -> None:
    page = tab().open("integrity")
    page.get_by_role("button", name="Check now").click()
    confirm(page, "", "Check")
    expect(page.get_by_text("Healthy at the last check")).to_be_visible()
    page.get_by_role("button", name="Plan a repair").click()
    confirm(page, "to see it", "Make the plan")
    expect(page.get_by_text("Nothing to repair")).to_be_visible()


def test_a_run_is_found_and_read_with_the_keyboard_alone(tab: OpenTab) -> None:
    page = tab().open("")
    for key in ("g", "u"):
        page.keyboard.press(key)
    expect(page.locator("[data-row-link]").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("state:partial ")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?state=partial")
    expect(page.locator("tr[data-row] .state").first).to_have_text("partial")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("main h1 .state")).to_have_text("partial")
    page.keyboard.press("/")
    page.keyboard.type("ring-003")
    expect(page.locator("tbody[data-ref]")).to_have_count(1)
