"""Changes that a person makes in the console: on schedules, limits, alerts, workers, and the mismatches of a run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from detent import Detent
from tests.console import shop as shop_module
from tests.console.conftest import ROOT, OpenTab
from tests.console.dialog import confirm
from tests.deadlines import scaled


def test_a_schedule_is_run_now(tab: OpenTab, shop: Detent) -> None:
    """Its next tick stays, and the job is on record with actor and reason. A paused schedule can be run too."""
    before = shop.schedules.get("newsletter")
    page = tab().open("schedules")
    page.locator("[data-schedule=newsletter]").get_by_role("button", name="Run now").click()
    confirm(page, "ben asked for it", "Run now")
    message = page.locator(".toast", has_text="was enqueued").inner_text()
    job = shop.jobs.get(next(word for word in message.split() if word.isdigit()))
    assert (job.task, job.queue) == ("shop.welcome", "mail")
    assert shop.schedules.get("newsletter").next_at == before.next_at
    (line,) = shop.record.search(entity="schedule", entity_id="newsletter", limit=1)
    assert (line.actor, line.reason) == ("ana", "ben asked for it")


def test_a_limit_is_edited_and_the_change_undone(tab: OpenTab, shop: Detent) -> None:
    page = tab().open("queues")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="web", exact=True))
    expect(row).to_contain_text("20 a second")
    row.get_by_role("button", name="Limit").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Jobs that may start per period")).to_have_value("20")
    dialog.get_by_label("Jobs at once").fill("7")
    dialog.get_by_label("Period in seconds").fill("2")
    confirm(page, "the supplier is slow", "Limit")
    expect(row).to_contain_text("7 at once")
    found = shop.limits.get("queue:web")
    assert (found.concurrency_max, found.rate, found.per) == (7, 20, 2)
    page.get_by_role("button", name="Undo").click()
    expect(row).not_to_contain_text("7 at once")
    assert shop.limits.get("queue:web").concurrency_max is None


def test_an_alert_is_acknowledged(tab: OpenTab, shop: Detent) -> None:
    page = tab().open("alerts")
    row = page.get_by_role("row").filter(has_text="The disk of db-1 is 92 % full.")
    row.get_by_role("button", name="Acknowledge").click()
    confirm(page, "a larger disk is ordered", "Acknowledge")
    again = row.get_by_role("button", name="Acknowledge")
    expect(again).to_have_attribute("data-hint", "ana has acknowledged it already.")
    assert shop.alerts.get("disk_full").acknowledged_by == "ana"


@pytest.mark.usefixtures("worker")
def test_a_mismatch_is_corrected_by_a_new_run(tab: OpenTab, shop: Detent) -> None:
    """Another person changes ring 7 again and again. A comparison finds it, and a new run leads back from its value now
    to what was applied."""
    run = shop.runs.preview(shop_module.Reprice(percent=10, many=8)).wait(scaled(60), until=["previewed"])
    run.apply(overwrite=True).wait(scaled(60))
    page = tab().open(f"runs/{run.id}?tab=mismatches")
    card = page.get_by_role("region", name="Mismatches")
    expect(card).to_contain_text("Not compared yet")
    card.get_by_role("button", name="Reconcile").click()
    confirm(page, "", "Reconcile")
    expect(card.get_by_role("row").filter(has_text="ring-007")).to_contain_text("price")
    card.get_by_role("button", name="Correct").click()
    confirm(page, "back to the list price", "Correct")
    expect(page).not_to_have_url(re.compile(f"/runs/{run.id}"))
    target = page.locator("tbody[data-ref=ring-007]")
    expect(target.locator("del")).to_have_text("1")
    expect(target.locator("ins")).to_have_text(str((900 + 37 * 7) * 90 // 100))
    expect(page.locator("main h1 .state")).to_have_text("preview")
    expect(page.locator(".page-head")).to_contain_text("back to the list price")


def test_a_difference_is_exported(tab: OpenTab, shop: Detent, tmp_path: Path) -> None:
    """Only what the filter shows; one JSON object in each line."""
    run = next(one for one in shop.runs.list(kind="batch", state="preview") if one.row.reason == "a smaller one")
    page = tab().open(f"runs/{run.id}")
    with page.expect_download() as begun:
        page.get_by_role("button", name="Export").click()
    begun.value.save_as(tmp_path / "saved")
    lines = [json.loads(line) for line in (tmp_path / "saved").read_text().splitlines()]
    assert begun.value.suggested_filename == f"run-{run.id}.ndjson"
    assert [line["ref"] for line in lines] == [change.ref for change in run.changes(changed=True)]
    assert lines[0]["before"]["price"] > lines[0]["after"]["price"]
    expect(page.get_by_text(f"24 targets saved as run-{run.id}.ndjson.")).to_be_visible()


def test_a_worker_is_drained(tab: OpenTab, seeded: str) -> None:
    """It ends by itself, and the page says so."""
    command = [sys.executable, "-m", "detent.cli", "worker", "tests.console.shop:app", "--name", "spare"]
    command += ["--queues", "nothing"]
    environment = os.environ | {"DETENT_DATABASE_URL": seeded}
    with subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            page = tab().open("workers")
            row = page.get_by_role("row").filter(has_text="spare")
            row.get_by_role("button", name="Drain").click()
            confirm(page, "the machine is replaced", "Drain")
            assert process.wait(scaled(30)) == 0
        finally:
            process.kill()
    expect(row).to_have_count(0)
