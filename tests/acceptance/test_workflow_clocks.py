"""Workflows and the clock of the database: it is set back, it jumps ahead, local time changes."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from detent import Context, Retry
from detent.declare.workflow import Local, Step
from detent.declare.workflow_context import WorkflowContext
from detent.errors import WaitTimeout
from detent.testing.harness import Harness
from detent.testing.stores import START, TableClock, row_violations

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def set_back(harness: Harness, by: timedelta) -> None:
    """Set the clock of the database back. The seconds that processes count for themselves go on."""
    clock: Any = harness.clock
    turnable = clock._clock if isinstance(clock, TableClock) else clock
    turnable._now -= by
    turnable._origin -= by
    clock.advance(0)


def check_order(harness: Harness, job: Any) -> None:
    """The times on record are in order, and no invariant is broken."""
    executions = job.executions()
    for one in executions:
        times = [one.leased_at, one.started_at, one.done_at or one.aborted_at]
        known = [time for time in times if time is not None]
        assert known == sorted(known), one
    assert [one.leased_at for one in executions] == sorted(one.leased_at for one in executions)
    for step in job.steps():
        assert step.began_at <= step.done_at
    assert row_violations(harness.store, harness.url) == []


def test_a_clock_that_is_set_back_while_a_workflow_sleeps(detent: Harness) -> None:
    """F15: the sleep ends at the time that is on record, once, and the next one begins there."""

    @detent.app.workflow(name="nap")
    def nap(ctx: WorkflowContext) -> list[datetime]:
        ctx.sleep(600)
        first = ctx.now()
        ctx.sleep(600)
        return [first, ctx.now()]

    job = nap.enqueue()
    detent.clock.advance(7200)
    detent.work()
    due_at = START + timedelta(seconds=7200 + 600)
    assert job.refresh().due_at == due_at
    set_back(detent, HOUR)
    detent.work()
    assert (job.refresh().due_at, len(job.executions())) == (due_at, 1), "it is not that late yet"
    detent.clock.set(due_at)
    detent.work()
    set_back(detent, HOUR)
    detent.work(skip=True)
    assert detent.clock.now() == due_at + timedelta(seconds=600)
    assert [one.outcome for one in job.refresh().executions()] == ["parked", "parked", "done"]
    first, last = job.result or []
    assert due_at <= first <= last
    check_order(detent, job)


def test_a_signal_wakes_a_workflow_although_the_clock_was_set_back(detent: Harness) -> None:
    """F15, F5: at once, and not when the clock has come to the old time again. The signal does not precede the park."""

    @detent.app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[str]:
        return [ctx.wait_for("decision", str, timeout=7200) for _ in range(2)]

    job = expense.enqueue()
    detent.clock.advance(7200)
    detent.work()
    for word in ("yes", "no"):
        set_back(detent, HOUR)
        job.signal("decision", word)
        detent.work()
    assert job.refresh().result == ["yes", "no"]
    assert [one.outcome for one in job.executions()] == ["parked", "parked", "done"]
    check_order(detent, job)


def test_a_clock_that_is_set_back_inside_a_step(detent: Harness) -> None:
    """F15: steps, a wait and a time-out after it have times that follow one another for the function."""

    @detent.app.workflow(name="order")
    def order(ctx: WorkflowContext) -> list[datetime]:
        seen = []
        for n in range(3):
            ctx.step(f"s{n}", lambda n=n: set_back(detent, HOUR) if n == 1 else None)  # type: ignore[misc]
            seen.append(ctx.now())
        try:
            ctx.wait_for("never", timeout=60)
        except WaitTimeout:
            seen.append(ctx.now())
        return seen

    job = order.enqueue()
    detent.clock.advance(7200)
    detent.work(skip=True)
    seen = job.refresh().result or []
    assert len(seen) == 4
    assert seen == sorted(seen)
    assert [one.outcome for one in job.executions()] == ["parked", "done"]
    check_order(detent, job)


def test_a_clock_that_jumps_ahead_inside_a_step(detent: Harness) -> None:
    """F15: the lease is over then. The record of that attempt is refused, and the next one calls the step again; the
    step before it is not repeated, and no sleep is cut short."""
    called: list[str] = []

    @detent.app.workflow(name="order", retry=Retry(3, base=1))
    def order(ctx: WorkflowContext) -> datetime:
        def act(word: str) -> str:
            called.append(word)
            if word == "b" and ctx.attempt == 1:
                detent.clock.advance(DAY)
            return word

        for word in "ab":
            ctx.step(word, act, word)
        ctx.sleep(60)
        return ctx.now()

    job = order.enqueue()
    detent.work(skip=True)
    assert called == ["a", "b", "b"]
    assert [one.outcome for one in job.refresh().executions()] == ["expired", "parked", "done"]
    assert [(step.path, step.attempt) for step in job.steps()] == [("a", 1), ("b", 2), ("sleep", 2)]
    assert detent.clock.now() >= START + DAY + timedelta(seconds=60)
    check_order(detent, job)


def test_a_clock_that_jumps_ahead_while_workflows_are_parked(detent: Harness) -> None:
    """F15: every deadline that has passed by then has passed, once; a signal that came before it is not lost."""

    @detent.app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[str]:
        found = []
        for _ in range(2):
            try:
                found.append(ctx.wait_for("decision", str, timeout=3600))
            except WaitTimeout:
                found.append("timed out")
        return found

    late, told = expense.enqueue(), expense.enqueue()
    detent.work()
    told.signal("decision", "yes")
    detent.clock.advance(DAY)
    detent.work()
    assert late.refresh().due_at == told.refresh().due_at == START + DAY + HOUR
    detent.work(skip=True)
    assert late.refresh().result == ["timed out", "timed out"]
    assert told.refresh().result == ["yes", "timed out"]
    for job in (late, told):
        assert [one.outcome for one in job.executions()] == ["parked", "parked", "done"]
        check_order(detent, job)


def test_the_time_that_a_function_sees_is_the_same_in_every_attempt(detent: Harness) -> None:
    """F2, F15: after every kind of record, whatever the clock says while it is replayed, and never before a sleep that
    has ended."""
    seen: list[list[datetime]] = []

    @detent.app.task(name="child")
    def child(ctx: Context) -> None: ...

    def tick() -> None:
        detent.clock.advance(1)

    def fail() -> None:
        raise OSError("no")

    @detent.app.workflow(name="watch", linger=0.01)
    def watch(ctx: WorkflowContext) -> None:
        mine: list[datetime] = []
        seen.append(mine)

        def look(after: object = None) -> None:
            detent.clock.advance(1)
            mine.append(ctx.now())

        look(ctx.step(Step("lazy", lazy=True), tick))
        kid = ctx.spawn(child.call())
        look()
        look(ctx.step("a", tick))
        try:
            ctx.step("b", fail)
        except OSError:
            look()
        look(ctx.step(Step("lazy", lazy=True), tick))
        ctx.sleep(0.01)
        look()
        ctx.sleep_until(START)
        look()
        look(ctx.transact("t", lambda tx: tick()))
        ctx.join(kid)
        look()
        look(ctx.scope("part", lambda part: part.step("c", tick)))
        with suppress(WaitTimeout):
            ctx.wait_for("never", timeout=60)
        look()
        ctx.sleep(60)
        look()
        look(ctx.wait_for("go"))

    job = watch.enqueue()
    detent.work(skip=True)
    job.signal("go")
    detent.work(skip=True)
    assert job.refresh().state == "succeeded", job.error
    assert [len(mine) for mine in seen] == [8, 10, 11, 12, 13]
    for mine in seen:
        assert mine == seen[-1][: len(mine)]
        assert mine == sorted(mine)


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        (datetime(2026, 3, 28, 1, 30, tzinfo=UTC), datetime(2026, 3, 29, 1, 0, tzinfo=UTC)),
        (datetime(2026, 10, 24, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    ],
    ids=["spring", "autumn"],
)
def test_a_sleep_across_a_change_of_local_time(detent: Harness, starts: datetime, ends: datetime) -> None:
    """F15: until half past two in Berlin it lasts 23 and a half hours in spring, since that time is skipped, and 24 in
    autumn, to the first of both. A sleep of a day lasts 24 hours on both days."""

    @detent.app.workflow(name="alarm")
    def alarm(ctx: WorkflowContext) -> list[datetime]:
        berlin = ctx.now().date() + timedelta(days=1)
        ctx.sleep_until(Local(f"{berlin:%Y-%m-%d} 02:30", "Europe/Berlin"))
        return [ctx.now()]

    @detent.app.workflow(name="day")
    def day(ctx: WorkflowContext) -> list[datetime]:
        ctx.sleep(DAY)
        return [ctx.now()]

    detent.clock.set(starts)
    by_wall, by_hours = alarm.enqueue(), day.enqueue()
    detent.work(skip=True)
    assert by_wall.refresh().result == [ends]
    assert by_hours.refresh().result == [starts + DAY]


@pytest.mark.parametrize(
    ("local", "moment"),
    [
        (Local("2028-02-29 23:59:59", "Pacific/Auckland"), datetime(2028, 2, 29, 10, 59, 59, tzinfo=UTC)),
        (Local("2028-03-01 00:00", "Pacific/Auckland"), datetime(2028, 2, 29, 11, 0, tzinfo=UTC)),
        (datetime(2028, 2, 29, 12, tzinfo=UTC), datetime(2028, 2, 29, 12, tzinfo=UTC)),
    ],
    ids=["last second of it", "the day after", "in UTC"],
)
def test_a_sleep_until_the_29th_of_february(detent: Harness, local: Local | datetime, moment: datetime) -> None:
    """F15: a day that most years do not have."""

    @detent.app.workflow(name="alarm")
    def alarm(ctx: WorkflowContext) -> datetime:
        ctx.sleep_until(local)
        return ctx.now()

    job = alarm.enqueue()
    detent.work(skip=True)
    assert detent.clock.now() == moment
    assert job.refresh().result == moment
