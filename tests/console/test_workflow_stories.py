"""A story about a workflow in the console: what it waits for, the signal, its end, and its steps."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from detent import Detent
from tests.console import shop as shop_module
from tests.console.conftest import OpenTab
from tests.console.dialog import confirm
from tests.deadlines import until


@pytest.mark.usefixtures("worker")
def test_a_parked_workflow_gets_its_signal_and_ends(tab: OpenTab, shop: Detent) -> None:
    """Find it among the waits, read what it waits for, send the decision, watch it end, and look at its steps."""
    job = shop.enqueue(shop_module.expense.call(report=91))
    until(lambda: any(one.job_id == job.id for one in shop.workflows.waits(signal="decision", limit=1000)))
    page = tab().open("workflows?tab=parked")
    row = page.get_by_role("row").filter(has_text=str(job.id))
    expect(row.locator(".state")).to_have_text("parked")
    expect(row).to_contain_text("signal decision, time limit in 2 d")
    page.get_by_role("link", name="Waits").click()
    page.get_by_role("row").filter(has_text=str(job.id)).locator("[data-row-link]").click()

    state = page.locator("main h1 .state")
    expect(state).to_have_text("parked")
    card = page.locator("section[aria-labelledby=card-workflow]")
    expect(page.locator(".why")).to_contain_text("for signal 'decision', until")
    expect(card).to_contain_text("the boss")
    expect(page.locator("[data-step=parked]")).to_contain_text("waits for signal decision")
    steps = page.locator("section[aria-labelledby=card-steps]")
    steps.get_by_role("button", name="password").click()
    expect(steps.locator(".step-value")).to_contain_text('"[redacted]"')

    page.get_by_role("button", name="Send a signal").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Name")).to_have_value("decision")
    dialog.get_by_label("Payload").fill("{approved}")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The payload is not JSON")
    dialog.get_by_label("Payload").fill('"approved"')
    dialog.get_by_label("Reason").fill("she said so")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog).to_have_count(0)

    expect(state).to_have_text("succeeded")
    expect(page.locator("[data-step=parked]")).to_have_count(0)
    steps.get_by_role("button", name="book").click()
    expect(steps.locator(".step-value")).to_contain_text("report 91: approved")
    expect(page.get_by_role("button", name="Send a signal")).to_have_attribute("data-hint", "The workflow has ended.")
    (sent,) = shop.store.signal_list(job.id)
    assert (sent.actor, sent.reason) == ("ana", "she said so")

    steps.get_by_label("As of").fill("2020-01-01T00:00:00")
    expect(steps).to_contain_text("No step was on record then.")
    steps.get_by_role("button", name="Now").click()
    expect(steps.get_by_role("button", name="book")).to_be_visible()


@pytest.mark.usefixtures("worker")
def test_a_workflow_that_succeeded_is_undone(tab: OpenTab, shop: Detent) -> None:
    """F20: look at the preview, give a reason, and follow the job that undoes the steps."""
    job = shop.enqueue(shop_module.gift.call(order=7))
    until(lambda: job.refresh().state == "succeeded")
    page = tab().open(f"jobs/{job.id}")
    page.get_by_role("button", name="Undo…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Steps to undo").get_by_role("listitem")).to_contain_text(["wrap", "reserve"])
    assert shop.workflows.get(job.id).undone_by is None
    dialog.get_by_label("Reason").fill("ordered by mistake")
    dialog.get_by_role("button", name="Undo").click()
    expect(dialog).to_have_count(0)

    card = page.locator("section[aria-labelledby=card-workflow]")
    until(lambda: shop.workflows.get(job.id).undone_at is not None)
    undo = shop.workflows.get(job.id).undone_by
    assert undo is not None
    expect(card).to_contain_text("Undone by")
    expect(page.get_by_role("button", name="Undo…")).to_have_attribute("data-hint", "Its steps were undone.")
    card.get_by_role("link", name=str(undo)).click()
    expect(card).to_contain_text("requested by ana: ordered by mistake")
    steps = page.locator("section[aria-labelledby=card-steps]")
    expect(steps.get_by_role("button", name="reserve~undo")).to_be_visible()


@pytest.mark.usefixtures("worker")
def test_a_workflow_is_rewound_and_forked_from_a_step(tab: OpenTab, shop: Detent) -> None:
    """F17, F28: what would be repeated is listed first; the fork has another value, and no secret is shown."""
    job = shop.enqueue(shop_module.expense.call(report=92))
    until(lambda: any(one.job_id == job.id for one in shop.workflows.waits(signal="decision", limit=1000)))
    page = tab().open(f"jobs/{job.id}")
    steps = page.locator("section[aria-labelledby=card-steps]")
    steps.get_by_role("button", name="password").click()
    steps.get_by_role("button", name="Rewind…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Steps to repeat").get_by_role("listitem")).to_have_text(["password"])
    dialog.get_by_label("Reason").fill("a new password")
    dialog.get_by_role("button", name="Rewind").click()
    expect(dialog).to_have_count(0)
    card = page.locator("section[aria-labelledby=card-workflow]")
    expect(card).to_contain_text("generation 2")
    until(lambda: len(shop.jobs.get(job.id).steps()) == 3)
    line = shop.jobs.get(job.id).history()[-3:]
    assert ("ana", "a new password") in [(one.actor, one.reason) for one in line]

    job.signal("decision", "approved")
    until(lambda: job.refresh().state == "succeeded")
    expect(page.locator("main h1 .state")).to_have_text("succeeded")
    steps.get_by_role("button", name="book").click()
    expect(steps.get_by_role("button", name="Rewind…")).to_have_attribute("data-hint", re.compile("Fork it"))
    steps.get_by_role("button", name="Fork…").click()
    expect(dialog.get_by_label("Steps to repeat").get_by_role("listitem")).to_have_text(["book"])
    values = dialog.get_by_label("Other values")
    values.fill('["refused"]')
    dialog.get_by_role("button", name="Fork").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not an object")
    values.fill('{"signal decision": "refused", "password": "hunter2 too"}')
    dialog.get_by_label("Reason").fill("what if")
    dialog.get_by_role("button", name="Fork").click()
    expect(dialog).to_have_count(0)
    (fork,) = [one.id for one in shop.workflows.list(task="shop.expense") if one.forked_from == job.id]
    until(lambda: shop.jobs.get(fork).state == "succeeded")
    assert (shop.jobs.get(fork).result, job.refresh().result) == ("report 92: refused", "report 92: approved")
    page = tab().open(f"jobs/{fork}")
    expect(page.locator("section[aria-labelledby=card-workflow]")).to_contain_text("Forked from")
    steps = page.locator("section[aria-labelledby=card-steps]")
    expect(steps.locator("[data-step=password]")).to_contain_text("copy")
    steps.get_by_role("button", name="password").click()
    expect(steps.locator(".step-value")).to_contain_text("[redacted]")
    assert "hunter2" not in page.content()


@pytest.mark.usefixtures("worker")
def test_a_cancel_shows_what_it_undoes_first(tab: OpenTab, shop: Detent) -> None:
    """F21: it said that the job was cancelled, although its steps were still to be undone."""
    undone, kept = (shop.enqueue(shop_module.trip.call(time=time)) for time in ("noon", "dusk"))
    for job in (undone, kept):
        until(lambda job=job: shop.workflows.get(job.id).state == "parked")  # type: ignore[misc]
    page = tab().open(f"jobs/{undone.id}")
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Steps to undo").get_by_role("listitem")).to_contain_text(["room"])
    confirm(page, "sold out", "Cancel the workflow")
    expect(page.get_by_text("Its steps are undone first.")).to_be_visible()
    expect(page.locator("main h1 .state")).to_have_text("cancelled")
    card = page.locator("section[aria-labelledby=card-workflow]")
    expect(card).to_contain_text("Undone")
    expect(card).not_to_contain_text("since")
    assert [one.path for one in shop.jobs.get(undone.id).steps()][1:] == ["room~undo", "~undone"]

    page = tab().open(f"jobs/{kept.id}")
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Undo nothing").check()
    dialog.get_by_role("button", name="Cancel the workflow").click()
    expect(dialog.get_by_role("alert")).to_contain_text("reason")
    confirm(page, "it was a test", "Cancel the workflow")
    expect(page.locator("main h1 .state")).to_have_text("cancelled")
    assert [one.path for one in shop.jobs.get(kept.id).steps()] == ["room"]


@pytest.mark.usefixtures("worker")
def test_a_step_that_is_unknown_is_settled(tab: OpenTab, shop: Detent) -> None:
    """The dialog asked about the whole job, and every answer that it did happen was refused."""
    job = shop.enqueue(shop_module.taxi.call())
    until(lambda: job.refresh().state == "quarantined")
    page = tab().open(f"jobs/{job.id}")
    page.get_by_role("button", name="Settle").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Step", exact=True)).to_have_value("call")
    dialog.get_by_label("Yes").check()
    dialog.get_by_label("Its value").fill("taxi 7")
    dialog.get_by_label("Reason").fill("they called back")
    dialog.get_by_role("button", name="Settle").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The value is not JSON")
    dialog.get_by_label("Its value").fill('"taxi 7"')
    dialog.get_by_role("button", name="Settle").click()
    expect(dialog).to_have_count(0)
    expect(page.locator("main h1 .state")).to_have_text("succeeded")
    assert job.refresh().result == "taxi 7"


@pytest.mark.usefixtures("worker")
def test_an_undo_that_failed_is_settled(tab: OpenTab, shop: Detent) -> None:
    """And why the steps are undone is one line, not a traceback."""
    job = shop.enqueue(shop_module.trip.call(time="night"))
    until(lambda: job.refresh().state == "quarantined")
    page = tab().open(f"jobs/{job.id}")
    card = page.locator("section[aria-labelledby=card-workflow]")
    expect(card).to_contain_text("ValueError: nobody pays at night")
    expect(card).not_to_contain_text("Traceback")
    expect(card).to_contain_text("Undoing")
    expect(page.get_by_role("button", name="Undo…")).to_have_attribute("data-hint", re.compile("settle the step"))
    page.get_by_role("button", name="Settle").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Step", exact=True)).to_have_value("room")
    expect(dialog.get_by_label("Its value")).to_have_count(0)
    dialog.get_by_label("Yes").check()
    confirm(page, "handed back at eight", "Settle")
    until(lambda: shop.workflows.get(job.id).undone_at is not None)
    expect(card).to_contain_text("Undone")


def test_the_page_of_a_graph_lists_its_nodes(tab: OpenTab, shop: Detent) -> None:
    """Each with its name and its state, and a link to its job."""
    graph = shop.graph("nightly", key="console")
    first = graph.add(shop_module.welcome.call(user_id=7), name="orders")
    graph.add(shop_module.welcome.call(user_id=7), after=[first], name="facts")
    job = graph.start()
    nodes = tab().open(f"jobs/{job.id}").locator("section[aria-labelledby=card-nodes]")
    expect(nodes.get_by_role("listitem")).to_have_count(2)
    expect(nodes.get_by_role("listitem").first).to_contain_text("orders")
    expect(nodes.get_by_role("link").first).to_have_attribute("href", re.compile(rf"jobs/{first.id}$"))
