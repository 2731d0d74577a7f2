"""Waits of workflows: signals, deadlines, times, and parks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from detent.declare.workflow import Local
from detent.declare.workflow_context import WorkflowContext
from detent.errors import KeyConflict, WaitTimeout
from detent.testing.harness import Harness
from detent.testing.stores import START


def test_a_signal_is_taken_whenever_it_comes(detent: Harness) -> None:
    """F5: an hour before the wait, between two waits, while a worker that dies takes it; each once, in order."""

    @detent.app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[int]:
        ctx.sleep(3600)
        return [ctx.wait_for("decision", int) for _ in range(3)]

    job = expense.enqueue()
    detent.work()
    job.signal("decision", 1)
    detent.clock.advance(3601)
    detent.crash(job, "recorded signal decision")
    detent.work(skip=True)
    job.signal("decision", 2)
    detent.crash(job, "parking")
    detent.work()
    job.signal("decision", 3)  # the worker has died on its way to the park
    detent.work(skip=True)
    assert job.refresh().result == [1, 2, 3]


def test_the_same_dedupe_is_the_same_signal(detent: Harness) -> None:
    """F6: without it there are two, and the second waits for the next wait."""

    @detent.app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[int]:
        return [ctx.wait_for("decision", int) for _ in range(3)]

    job = expense.enqueue()
    for dedupe in ("mail-1", "mail-1", None, None):
        job.signal("decision", 5, dedupe=dedupe)
    with pytest.raises(KeyConflict):
        job.signal("decision", 6, dedupe="mail-1")
    assert len(detent.store.signal_list(job.id)) == 3
    detent.work()
    assert job.refresh().result == [5, 5, 5]


def test_many_senders_at_once(detent: Harness, whole: bool) -> None:
    """F7: none is lost, and they are taken in the order of their numbers, by two waits each a different one."""
    senders = 200 if whole else 60

    @detent.app.workflow(name="counter")
    def counter(ctx: WorkflowContext) -> list[int]:
        return [ctx.wait_for("count", int) for _ in range(senders)]

    job = counter.enqueue()
    detent.work()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: job.signal("count", n), range(senders)))
    sent = [int(row.payload) for row in detent.store.signal_list(job.id)]
    assert sorted(sent) == list(range(senders))
    detent.work()
    assert job.refresh().result == sent


@pytest.mark.parametrize("signal_first", [True, False])
def test_a_signal_and_a_deadline_at_the_same_time(detent: Harness, signal_first: bool, whole: bool) -> None:
    """F8: one outcome is recorded, and every replay has the same. A late signal stays for the next wait."""
    replays = 100 if whole else 5

    @detent.app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[str]:
        try:
            found = ctx.wait_for("decision", str, timeout=60)
        except WaitTimeout:
            found = "timed out"
        for n in range(replays):
            ctx.step(f"think {n}", int)
            ctx.sleep(1)
        return [found, found if signal_first else ctx.wait_for("decision", str)]

    job = expense.enqueue()
    detent.work()
    if signal_first:
        job.signal("decision", "yes")
        detent.clock.advance(60)
    else:
        detent.clock.advance(60)
        detent.work()
        job.signal("decision", "yes")
    detent.work(skip=True)
    assert job.refresh().result == (["yes", "yes"] if signal_first else ["timed out", "yes"])


def test_a_deadline_passes_while_no_worker_is_alive(detent: Harness) -> None:
    """F9: the first attempt after it times out, once; a crash after that does not wait again."""
    caught: list[datetime] = []

    @detent.app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> str:
        try:
            ctx.wait_for("decision", timeout=60)
        except WaitTimeout:
            caught.append(ctx.now())
        return ctx.step("escalate", lambda: "escalated")

    job = expense.enqueue()
    detent.work()
    detent.clock.advance(7200)
    detent.crash(job, "called escalate")
    detent.work()
    detent.clock.advance(31)
    detent.work()
    assert job.refresh().result == "escalated"
    assert caught == [START + timedelta(hours=2)] * 2
    assert [one.outcome for one in job.executions()] == ["parked", "expired", "done"]


@pytest.mark.parametrize(
    ("local", "moment"),
    [
        (Local("2026-03-29 02:30", "Europe/Berlin"), datetime(2026, 3, 29, 1, tzinfo=UTC)),
        (Local("2026-10-25 02:30", "Europe/Berlin"), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        (Local("2028-02-29 12:00", "America/New_York"), datetime(2028, 2, 29, 17, tzinfo=UTC)),
        (datetime(2020, 1, 1, tzinfo=UTC), START),
    ],
    ids=["gap", "overlap", "leap day", "past"],
)
def test_a_sleep_ends_at_its_local_time(detent: Harness, local: Local | datetime, moment: datetime) -> None:
    """F15: in a gap at the first moment after it, in an overlap at the first of both; in the past at once."""

    @detent.app.workflow(name="alarm")
    def alarm(ctx: WorkflowContext) -> str:
        ctx.sleep_until(local)
        return "awake"

    job = alarm.enqueue()
    detent.work(skip=True)
    assert job.refresh().result == "awake"
    assert detent.clock.now() == moment


def test_a_time_without_a_zone_is_refused(detent: Harness) -> None:
    """F15: nothing waits for a time that is not one."""

    @detent.app.workflow(name="alarm", undo="on_request")
    def alarm(ctx: WorkflowContext) -> None:
        ctx.sleep_until(datetime(2030, 1, 1))  # noqa: DTZ001

    job = alarm.enqueue()
    detent.work()
    assert "zone" in (job.executions()[0].error or "")


def test_a_machine_that_was_suspended_wakes_its_workflows_once(detent: Harness) -> None:
    """F15: the clock jumps by a day, and every sleep that has ended by then has ended."""

    @detent.app.workflow(name="nap")
    def nap(ctx: WorkflowContext) -> str:
        ctx.sleep(3600)
        ctx.sleep(60)
        return "awake"

    job = nap.enqueue()
    detent.work()
    detent.clock.advance(86_400)
    detent.work()
    assert job.refresh().due_at == START + timedelta(days=1, seconds=60)
    detent.work(skip=True)
    assert job.refresh().result == "awake"
