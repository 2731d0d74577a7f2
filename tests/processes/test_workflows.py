"""Workflows on real workers: one that stands still, programs of two versions, and a drain."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

from detent import Detent
from tests.deadlines import scaled
from tests.processes.worker_processes import Bench, Worker, until
from tests.processes.workflows import SUPPORTS, VERSION, make_app

APP = "tests.processes.workflows:app"
LEASE = scaled(1.0)


@pytest.fixture
def workflows(bench: Bench) -> Iterator[Detent]:
    with closing(make_app(bench.url)) as app:
        yield app


def everybody(worker: Worker, number: int) -> None:
    for pid in (worker.process.pid, *worker.descendants()):
        os.kill(pid, number)


@pytest.mark.timeout(240)
def test_a_worker_that_stood_still_in_a_step_is_powerless(bench: Bench, workflows: Detent) -> None:
    """F4: another attempt records the step; the late record is refused, and the job has one end."""
    gate = bench.gate()
    job = workflows.enqueue(workflows.find_task("stop").call(gate=str(gate)))
    zombie = bench.worker(app=APP, slots=1, lease=LEASE)
    gate.entered()
    everybody(zombie, signal.SIGSTOP)
    try:
        heir = bench.worker(app=APP, slots=1, lease=LEASE)
        bench.rests(job, "succeeded")
    finally:
        gate.open()
        everybody(zombie, signal.SIGCONT)
    for worker in (heir, zombie):
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0, worker.log
    assert job.refresh().result == "paid by attempt 2"
    assert [(row.path, row.attempt, row.value) for row in workflows.store.step_list(job.id).rows] == [
        ("charge", 2, "2")
    ]
    assert bench.outcomes(job) == ["expired", "done"]
    assert bench.is_healthy()


@pytest.mark.timeout(240)
def test_a_workflow_continues_under_the_version_that_it_began(bench: Bench, workflows: Detent) -> None:
    """F9, F12: no worker lives while it is parked; one that does not support its version leaves it alone, and `why`
    says so; one that does takes the old branch."""

    def program(version: int, supports: str, *, drain: bool = False) -> Worker:
        bench._environment |= {VERSION: str(version), SUPPORTS: supports}
        return bench.worker(app=APP, slots=2, drain=drain)

    expense = workflows.find_task("expense")
    old = workflows.enqueue(expense.call())
    assert program(1, "1", drain=True).ends() == 0
    old.signal("decision", "yes")
    new = workflows.enqueue(expense.call())
    new.signal("decision", "no")
    other = program(2, "2")
    bench.rests(new, "succeeded")
    assert new.result == "no under 2"
    assert old.refresh().state == "pending"
    until(lambda: "version 1" in str(old.why()), "why to name the version")
    other.signal(signal.SIGTERM)
    assert program(2, "1 2", drain=True).ends() == 0
    other.ends()
    assert old.refresh().result == "yes under 1"
    assert [row.path for row in workflows.store.step_list(old.id).rows] == ["ask", "signal decision"]


@pytest.mark.timeout(120)
def test_a_drain_ends_although_workflows_sleep(bench: Bench, workflows: Detent) -> None:
    """F27: they are parked, and nothing waits for them."""
    jobs = workflows.enqueue_many([workflows.find_task("nap").call() for _ in range(20)])
    assert bench.worker(app=APP, drain=True).ends() == 0
    assert {job.refresh().state for job in jobs} == {"pending"}
    until(lambda: {bench.outcomes(job)[-1] for job in jobs} == {"parked"}, "parks")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("holds", ["its thread", "its process"])
def test_a_cancel_undoes_steps_although_a_later_one_does_not_stop(bench: Bench, workflows: Detent, holds: str) -> None:
    """F11, F20: when its grace period was over, the worker ended the attempt, and the job was cancelled with its steps
    as they were."""
    gate = bench.gate()
    seconds = 0 if holds == "its thread" else round(scaled(60.0))
    job = workflows.enqueue(workflows.find_task("deaf").call(gate=str(gate), seconds=seconds))
    bench.worker(app=APP, slots=2, lease=LEASE, cancel_grace=scaled(0.3), held_up_max=scaled(1.0))
    gate.entered()
    job.cancel(actor="ana")
    bench.rests(job, "cancelled")
    gate.open()
    assert [row.path for row in workflows.store.step_list(job.id).rows] == ["reserve", "reserve~undo", "~undone"]
    assert bench.outcomes(job)[0] == "released"
    assert bench.is_healthy()
