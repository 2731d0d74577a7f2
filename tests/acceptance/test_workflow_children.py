"""Children of workflows: a parent hears of every end, and a cancel takes the whole tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from detent import Context, Fatal, Retry
from detent.client.job import Job
from detent.declare.workflow_context import WorkflowContext
from detent.errors import ChildFailed
from detent.testing.harness import Harness


def test_a_parent_waits_until_a_person_has_repaired_its_child(detent: Harness) -> None:
    """F10: a day later the child succeeds, and the parent goes on by itself."""
    broken = [True]

    @detent.app.task(name="child", retry=Retry(0))
    def child(ctx: Context) -> str:
        if broken:
            raise Fatal("broken")
        return "mended"

    @detent.app.workflow(name="parent")
    def parent(ctx: WorkflowContext) -> str:
        return ctx.join(ctx.spawn(child.call()), wait=True)

    job = parent.enqueue()
    detent.work(skip=True)
    detent.clock.advance(86_400)
    detent.work()
    assert job.refresh().state == "pending"
    broken.clear()
    (child_id,) = detent.store.child_list(job.id)
    detent.app.jobs.get(child_id).retry(actor="ann")
    detent.work()
    assert job.refresh().result == "mended"


def discard(detent: Harness, child: Job[Any]) -> None:
    detent.crash(child, "started")
    detent.work()
    detent.clock.advance(31)
    detent.work()
    child.discard(actor="ann")


def reap(detent: Harness, child: Job[Any]) -> None:
    detent.crash(child, "started")
    detent.work(skip=True)


def cancel(_detent: Harness, child: Job[Any]) -> None:
    child.cancel(actor="ann")


@pytest.mark.parametrize("end", [discard, reap, cancel])
def test_a_parent_hears_of_every_end_of_its_child(detent: Harness, end: Callable[[Harness, Job[Any]], None]) -> None:
    """F10: also of one that no worker reported."""

    @detent.app.task(name="child", retry=Retry(0), queue="children")
    def child(ctx: Context) -> str:
        raise Fatal("unreachable")

    @detent.app.workflow(name="parent")
    def parent(ctx: WorkflowContext) -> str:
        try:
            return ctx.join(ctx.spawn(child.call(), name="one"), wait=end is discard)
        except ChildFailed as error:
            return error.state

    detent.app.queues.pause("children", actor="ann")
    job = parent.enqueue()
    detent.work()
    (child_id,) = detent.store.child_list(job.id)
    detent.app.queues.resume("children", actor="ann")
    end(detent, detent.app.jobs.get(child_id))
    detent.work(skip=True)
    assert job.refresh().result == ("quarantined" if end is reap else "cancelled")


def test_a_thousand_children_are_one_wake_up(detent: Harness, whole: bool) -> None:
    """F19: three in a hundred fail, five are tolerated; the failures are read in pages."""
    total = 1000 if whole else 100

    @detent.app.task(name="render", retry=Retry(0))
    def render(ctx: Context, n: int) -> int:
        if n % 33 == 32:
            raise Fatal("no such photo")
        return n

    @detent.app.workflow(name="album")
    def album(ctx: WorkflowContext) -> list[int]:
        done = ctx.spawn_many("render", (render.call(n) for n in range(total))).join(tolerate="5%")
        return [done.succeeded, done.failed, len(list(done.failures()))]

    job = album.enqueue()
    detent.work()
    failed = total // 33
    assert job.refresh().result == [total - failed, failed, failed]
    assert [one.outcome for one in job.executions()] == ["parked", "done"]
    assert [row.path for row in detent.store.step_list(job.id).rows] == ["render", "render~join"]
