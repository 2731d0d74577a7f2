"""Stories that a person goes through in the console: U4."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from detent import Detent
from tests.console import shop as shop_module
from tests.console.conftest import ROOT, OpenTab
from tests.console.dialog import confirm
from tests.console.served import serve_api
from tests.deadlines import scaled, until

LATER = timedelta(days=3)


@pytest.mark.usefixtures("worker")
def test_jobs_die_and_are_retried_together(tab: OpenTab, shop: Detent) -> None:
    """Enqueue, watch them fail live, find them among the dead letters, retry them all after the count was shown."""
    page = tab().open("jobs?task=shop.fragile")
    expect(page.get_by_text("No job matches")).to_be_visible()
    sent = shop.enqueue_many(shop_module.fragile.call(number=number) for number in range(3))
    expect(page.locator("tr[data-row]").get_by_text("quarantined")).to_have_count(3)

    page.keyboard.press("g")
    page.keyboard.press("d")
    group = page.get_by_role("row").filter(has_text="shop.fragile").filter(has_text="RuntimeError").first
    group.get_by_role("button", name="Retry…").click()
    expect(page.get_by_role("heading", name="Retry 3 jobs?")).to_be_visible()
    confirm(page, "the glass was replaced", "Retry 3 jobs")
    expect(page.locator(".operation").get_by_text("Done: retry 3 of 3 jobs")).to_be_visible()
    until(lambda: {job.refresh().state for job in sent} == {"succeeded"}, "the retry of all three")
    retried = [line for line in sent[0].history() if line.trigger == "retry"]
    assert [(line.actor, line.reason) for line in retried] == [("ana", "the glass was replaced")]


@pytest.mark.usefixtures("worker")
def test_the_log_of_a_running_job_is_followed_and_the_job_cancelled(tab: OpenTab, shop: Detent) -> None:
    job = shop.enqueue(shop_module.watch.call(seconds=120))
    page = tab().open(f"jobs/{job.id}")
    lines = page.locator(".log-line")
    expect(page.get_by_text("tick 3", exact=True)).to_be_visible()
    expect(page.get_by_role("progressbar", name="Progress")).to_be_visible()

    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("button", name=re.compile(r"Continue \(\d+ new\)"))).to_be_visible()
    shown = lines.count()
    page.get_by_role("button", name=re.compile("Continue")).click()
    until(lambda: lines.count() > shown, "more lines after the pause")
    page.get_by_label("Search the log").fill("tick 1")
    expect(page.locator(".log-line mark").first).to_have_text("tick 1")
    page.get_by_label("Search the log").fill("")
    page.get_by_label("Lowest level").select_option("warning")
    expect(lines.filter(has_text="info")).to_have_count(0)

    page.get_by_role("button", name="Cancel").click()
    confirm(page, "seen enough", "Cancel the job")
    expect(page.locator(".job-title .state")).to_have_text("cancelled")
    expect(page.locator(".record-list")).to_contain_text("seen enough")


def test_a_paused_queue_is_the_reason_why_a_job_waits(tab: OpenTab, shop: Detent) -> None:
    page = tab().open("queues")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="reports", exact=True))
    row.get_by_role("button", name="Pause").click()
    confirm(page, "the printer burns", "Pause")
    expect(row).to_contain_text("by ana: the printer burns")
    job = shop.enqueue(shop_module.report.call(month="2026-10"))
    page = tab().open(f"jobs/{job.id}")
    expect(page.locator(".why")).to_contain_text("Its queue 'reports' is paused by ana: the printer burns")
    job.cancel()


def test_a_pause_can_be_undone(tab: OpenTab, shop: Detent) -> None:
    page = tab().open("queues")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="prices", exact=True))
    row.get_by_role("button", name="Pause").click()
    confirm(page, "", "Pause")
    expect(row.get_by_role("button", name="Resume")).to_be_visible()
    assert shop.queues.get("prices").paused
    page.get_by_role("button", name="Undo").click()
    expect(row.get_by_role("button", name="Pause")).to_be_visible()
    assert not shop.queues.get("prices").paused


def test_a_filter_is_in_the_address(tab: OpenTab, shop: Detent) -> None:
    """Typed with suggestions, shared, and there again after a reload."""
    page = tab().open("jobs")
    page.keyboard.press("/")
    page.keyboard.type("que")
    expect(page.get_by_role("option")).to_have_text(re.compile("queue:"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("payments tenant:acme")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs\?queue=payments&tenant=acme$"))
    page.get_by_role("navigation", name="States").get_by_role("link", name="Quarantined").click()
    expect(page).to_have_url(re.compile(r"queue=payments&tenant=acme&state=quarantined$"))
    dead = len(shop.jobs.list(queue="payments", tenant="acme", state="quarantined"))
    expect(page.locator("tr[data-row]")).to_have_count(dead)
    page.reload()
    expect(page.locator("tr[data-row]")).to_have_count(dead)
    expect(page.get_by_role("combobox")).to_have_value("queue:payments state:quarantined tenant:acme ")
    page.get_by_role("combobox").fill("17")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/17$"))


def test_everything_by_keyboard(tab: OpenTab) -> None:
    page = tab().open("")
    for key, text in (("j", "Jobs"), ("q", "Queues"), ("o", "Overview"), ("d", "Dead letters")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("main h1")).to_have_text(text)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next row")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_have_text("Jobs")


def test_a_change_that_is_not_legal_says_why(tab: OpenTab, shop: Detent) -> None:
    (done,) = shop.jobs.list(state="succeeded", limit=1)
    page = tab().open(f"jobs/{done.id}")
    retry = page.get_by_role("button", name="Retry", exact=True)
    expect(retry).to_have_attribute("aria-disabled", "true")
    expect(retry).to_have_attribute("data-hint", re.compile("only if it is failed, quarantined or cancelled"))
    retry.click(force=True)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_nothing_in_data_is_executed(tab: OpenTab, shop: Detent) -> None:
    """S1: script, direction and terminal codes in payload, tenant, metadata and log are shown, not obeyed. The tab
    fails if a dialog opens or the content policy had to step in."""
    nasty = next(job for job in shop.jobs.list(task="shop.welcome", state="succeeded") if "<script>" in job.tenant)
    page = tab().open(f"jobs/{nasty.id}")
    expect(page.locator("pre[aria-label=Payload]")).to_contain_text("<script>alert(1)</script>")
    for code in ("U+202E", "U+001B", "U+0007"):
        expect(page.locator(".control-character", has_text=code).first).to_be_visible()
    assert page.locator("main script, main img").count() == 0
    page.goto(f"{page.url.rpartition('/')[0]}?tenant=%3Csvg%2Fonload%3Dalert(3)%3E&error=%22%3E%3Cimg%20src%3Dx%3E")
    expect(page.get_by_text("No job matches")).to_be_visible()


def test_new_rows_are_announced_and_nothing_moves(tab: OpenTab, shop: Detent) -> None:
    page = tab().open("jobs")
    first = page.locator("tr[data-row]").first
    expect(first).to_be_visible()
    before = first.inner_text()
    page.evaluate(
        "() => { window.shift = 0; new PerformanceObserver(list => { for (const one of list.getEntries())"
        " window.shift += one.value }).observe({ type: 'layout-shift', buffered: false }) }"
    )
    due = datetime.now(UTC) + LATER
    sent = shop.enqueue_many([shop_module.welcome.call(user_id=number) for number in range(4)], due_at=due)
    bar = page.get_by_role("button", name="4 new jobs")
    expect(bar).to_be_visible()
    assert first.inner_text().split("\n")[:2] == before.split("\n")[:2], "the list stays as it was"
    assert page.evaluate("window.shift") < 0.001
    bar.click()
    expect(first).to_contain_text(str(sent[-1].id))
    for job in sent:
        job.cancel()


def test_a_job_that_is_not_there(tab: OpenTab) -> None:
    opened = tab()
    page = opened.open("jobs/999999999")
    expect(page.locator("main h1")).to_have_text("Job 999999999")
    expect(page.get_by_text("There is no job 999999999")).to_be_visible()
    opened.errors.clear()  # the browser reports the 404s


def test_the_server_is_started_again(tab: OpenTab, seeded: str, shop: Detent) -> None:
    """The page says that it has lost the server, and goes on by itself."""
    with serve_api(shop) as url:
        port = url.rpartition(":")[2]
        opened = tab(url=url)
        page = opened.open("jobs")
        expect(page.locator("tr[data-row]").first).to_be_visible()
    expect(page.get_by_text("The server does not answer")).to_be_visible()
    due = datetime.now(UTC) + LATER
    job = shop.enqueue(shop_module.welcome.call(user_id=5), due_at=due)
    program = [sys.executable, "-m", "detent.cli", "server", "--database", seeded, "--port", port]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            expect(page.get_by_role("button", name="1 new job")).to_be_visible(timeout=scaled(60) * 1000)
            expect(page.get_by_text("The server does not answer")).to_have_count(0)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(scaled(20))
    job.cancel()
    opened.errors.clear()  # the browser reports refused connections


def test_a_token_opens_the_console(tab: OpenTab, shop: Detent) -> None:
    """S4: a viewer sees everything and changes nothing; the cookie is out of reach of scripts."""
    token = shop.tokens.create(f"vera-{datetime.now(UTC).timestamp()}", role="viewer").token
    with serve_api(shop, tokens_required=True) as url:
        opened = tab(url=url)
        page = opened.page
        page.goto(f"{url}/queues")
        page.get_by_label("Token").fill("dtn_wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("unknown, expired or revoked")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("main h1")).to_have_text("Queues")
        pause = page.get_by_role("button", name="Pause").first
        expect(pause).to_have_attribute("data-hint", "Your token has the role viewer; this needs an operator.")
        assert page.evaluate("document.cookie") == ""
        opened.errors.clear()  # the browser reports the 401s


def test_under_a_prefix(tab: OpenTab, shop: Detent) -> None:
    """Mounted in an application of the user's own: pages, deep links, assets and the API are found."""
    with serve_api(shop, prefix="/in/side") as url:
        page = tab(url=url).open("dead")
        page.get_by_role("link", name="Jobs", exact=True).click()
        expect(page).to_have_url(re.compile(r"/in/side/jobs$"))
        expect(page.locator("main h1")).to_have_text("Jobs")
        expect(page.locator("tr[data-row]").first).to_be_visible()
        page.locator("[data-row-link]").first.click()
        expect(page).to_have_url(re.compile(r"/in/side/jobs/\d+$"))
        page.reload()
        expect(page.locator(".why")).not_to_have_text("…")


def test_selected_jobs_are_changed_and_no_others(tab: OpenTab, shop: Detent) -> None:
    """Select rows by checkbox and with the key x, read how many they are, and change just these."""
    due = datetime.now(UTC) + LATER
    sent = [
        shop.enqueue(shop_module.report.call(month=f"1999-0{n}"), due_at=due, tenant="selected") for n in range(1, 5)
    ]
    page = tab().open("jobs?tenant=selected")
    expect(page.locator("tr[data-row]")).to_have_count(4)
    page.get_by_label(f"Select job {sent[0].id}", exact=True).check()
    expect(page.get_by_role("status").get_by_text("1 job selected")).to_be_visible()
    page.keyboard.press("k")
    page.keyboard.press("x")
    expect(page.locator("tr.selected")).to_have_count(2)
    expect(page.get_by_label(f"Select job {sent[1].id}", exact=True)).to_be_checked()
    retry = page.get_by_role("button", name="Retry…")
    expect(retry).to_have_attribute("data-hint", re.compile("only if a job is failed, quarantined or cancelled"))
    page.get_by_role("button", name="Cancel…").click()
    expect(page.get_by_role("heading", name="Cancel 2 jobs?")).to_be_visible()
    confirm(page, "chosen by hand", "Cancel 2 jobs")
    expect(page.get_by_text("2 jobs cancelled.")).to_be_visible()
    assert [job.refresh().state for job in sent] == ["cancelled", "cancelled", "pending", "pending"]
    assert sent[1].history()[-1].reason == "chosen by hand"
    expect(page.locator("tr.selected")).to_have_count(0)

    page.get_by_label("Select all that are shown").check()
    page.get_by_role("button", name="Cancel…").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 selected jobs in another state are left alone")
    confirm(page, "", "Cancel 2 jobs")
    until(lambda: {job.refresh().state for job in sent} == {"cancelled"}, "the cancel of the other two")
    page.locator(".toast").last.get_by_role("button", name="Undo").click()
    until(lambda: [job.refresh().state for job in sent[2:]] == ["pending", "pending"], "the undo")
    assert sent[0].refresh().state == "cancelled"


def test_a_selected_job_that_has_moved_on_is_refused(tab: OpenTab, shop: Detent) -> None:
    opened = tab()
    page = opened.open("dead")
    boxes = page.get_by_label(re.compile(r"Select job \d+"))
    boxes.nth(0).check()
    boxes.nth(1).check()
    moved = shop.dead.list()[0]
    page.get_by_role("region", name="Newest").get_by_role("button", name="Discard…").click()
    expect(page.get_by_role("heading", name="Discard 2 jobs?")).to_be_visible()
    shop.queues.pause(moved.queue)  # so that no worker takes it
    moved.retry()
    confirm(page, "twins", "Discard 2 jobs")
    expect(page.get_by_text(f"1 job discarded, 1 refused. job {moved.id} cannot go from pending")).to_be_visible()
    shop.queues.resume(moved.queue)
    (refusal,) = opened.errors  # the browser reports every answer of this kind
    assert "409" in refusal
    opened.errors.clear()
