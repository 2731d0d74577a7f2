"""What real workers do besides jobs, together: schedules, operations, and who is alive."""

from __future__ import annotations

import signal
from datetime import timedelta

from detent.model.service_records import NewSchedule
from detent.store.jobs.filters import JobFilter
from tests.processes.worker_processes import Bench, until

ONCE_A_YEAR = "0 0 1 1 *"


def due_once(bench: Bench, name: str) -> None:
    """A schedule whose tick has just come, and whose next is far away."""
    now = bench.app.store.now()
    bench.app.store.schedule_put(
        NewSchedule(
            name=name,
            cron=ONCE_A_YEAR,
            zone="UTC",
            catch_up="latest",
            task="add",
            payload='{"a":1,"b":2}',
            queue="default",
            attempts_max=3,
            next_at=now - timedelta(seconds=1),
        )
    )


def test_workers_of_one_name_on_one_host_fire_each_tick_once(bench: Bench) -> None:
    """J11, W3, U-05 of other systems: some come, one is killed, one is told to go, while ticks come."""
    workers = [bench.worker(name="same") for _ in range(3)]
    until(lambda: len(bench.app.workers.list()) == 3, "three workers on the list")
    assert {row.name for row in bench.app.workers.list()} == {"same"}
    for number in range(3):
        due_once(bench, f"tick {number}")
    workers[0].signal(signal.SIGKILL)
    workers[1].signal(signal.SIGTERM)
    workers.append(bench.worker(name="same"))
    until(lambda: bench.app.store.job_count(JobFilter(state="succeeded")) == 3, "a job for each tick")
    assert workers[1].ends() == 0
    assert bench.app.store.job_count(JobFilter()) == 3
    until(lambda: len(bench.app.workers.list(within=5)) == 2, "the two that live on the list")
    assert bench.app.record.verify() == []


def test_an_operation_goes_on_when_nobody_waits_for_it(bench: Bench) -> None:
    """J14: a worker carries it on."""
    for _ in range(3):
        bench.app.enqueue_named("add", '{"a":1,"b":2}', queue="nobody serves it")
    operation = bench.app.jobs.where(queue="nobody serves it").cancel(actor="ana")
    bench.worker(queues=("default",))
    until(lambda: operation.refresh().state == "done", "the end of the operation")
    assert operation.changed == 3
