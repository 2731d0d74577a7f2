"""Limits under real workers."""

from __future__ import annotations

import signal

from detent import Limit
from tests.deadlines import scaled
from tests.processes.worker_processes import Bench


def test_two_workers_share_a_limit_and_one_that_is_killed_frees_it(bench: Bench) -> None:
    """J12: one at a time, whoever works; what a dead worker held is free when its lease is over."""
    bench.app.queues.limit("default", Limit(concurrency=1))
    gates = [bench.gate() for _ in range(3)]
    jobs = [bench.send("hold", gate=str(gate)) for gate in gates]
    workers = [bench.worker(lease=scaled(6.0)), bench.worker(lease=scaled(6.0))]
    gates[0].entered()
    assert jobs[1].why() == "its limit 'queue:default' is full: 1 of 1 are running"
    gates[0].open()
    gates[1].entered()
    assert bench.rests(jobs[0], "succeeded")
    (attempt,) = jobs[1].executions()
    holder = workers[0 if attempt.worker == "w1" else 1]
    holder.signal(signal.SIGKILL)
    # It is tried again after its lease, or the third comes first: either way one at a time, and none is lost.
    for gate in gates:
        gate.open()
    for job in jobs:
        bench.rests(job, "succeeded")
    assert [limit.running for limit in bench.app.limits.list()] == [0]
    assert bench.is_healthy()
