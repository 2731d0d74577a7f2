"""Cancels of running jobs: heard soon, by the attempt they were meant for, and by no other job."""

from __future__ import annotations

import pytest

from tests.deadlines import scaled
from tests.processes.kit import Bench


@pytest.mark.parametrize("task", ["hold_async", "listen"])
def test_a_retried_job_is_not_taken_for_cancelled(bench: Bench, task: str) -> None:
    """J8: a cancel is for the attempt that ran when it was requested. The supervisor used to remember it by the job:
    the retry was killed with its process and all neighbours, and recorded as cancelled."""
    gate, others = bench.gate(), bench.gate()
    worker = bench.worker(cancel_grace=scaled(0.3))
    neighbour = bench.send("hold", gate=str(others))
    job = bench.send(task, gate=str(gate))
    gate.entered()
    bench.app.cancel(job.id, actor="ana")
    bench.rests(job, "cancelled")
    bench.app.retry(job.id, actor="ana")
    gate.entered(2)
    # Other cancels, one after another, take longer than the retry lived under the old cancel.
    last = bench.gate()
    for n in range(5):
        later = bench.send("hold_async", gate=str(last))
        last.entered(n + 1)
        bench.app.cancel(later.id, actor="ana")
        bench.rests(later, "cancelled")
    gate.open()
    others.open()
    bench.rests(job, "succeeded")
    assert bench.outcomes(job) == ["cancelled", "done"]
    bench.rests(neighbour, "succeeded")
    assert bench.outcomes(neighbour) == ["done"]
    assert "killing" not in worker.log
    assert bench.is_healthy()
