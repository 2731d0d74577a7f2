"""Cancels of running jobs: heard soon, by the attempt they were meant for, and by no other job."""

from __future__ import annotations

import time

import pytest

from tests.deadlines import scaled
from tests.processes.worker_processes import Bench, until


def test_a_retried_job_is_not_taken_for_cancelled(bench: Bench) -> None:
    """J8: a cancel is for the attempt that ran when it was requested. The supervisor used to remember it by the job:
    the retry was killed with its process and all neighbours, and recorded as cancelled."""
    gate, others = bench.gate(), bench.gate()
    worker = bench.worker(cancel_grace=scaled(0.3))
    neighbour = bench.send("hold", gate=str(others))
    job = bench.send("hold_async", gate=str(gate))
    gate.entered()
    job.cancel(actor="ana")
    bench.rests(job, "cancelled")
    job.retry(actor="ana")
    gate.entered(2)
    # Other cancels, one after another, take longer than the retry lived under the old cancel.
    last = bench.gate()
    for n in range(4):
        later = bench.send("hold_async", gate=str(last))
        last.entered(n + 1)
        later.cancel(actor="ana")
        bench.rests(later, "cancelled")
    gate.open()
    others.open()
    bench.rests(job, "succeeded")
    assert bench.outcomes(job) == ["cancelled", "done"]
    bench.rests(neighbour, "succeeded")
    assert bench.outcomes(neighbour) == ["done"]
    assert "killing" not in worker.log
    assert bench.is_healthy()


def test_a_cancel_is_heard_long_before_the_next_renewal(bench: Bench) -> None:
    """J8: a running job used to hear of a cancel only when its lease was renewed, ten seconds later or more."""
    gate = bench.gate()
    bench.worker(lease=scaled(300.0))
    jobs = [bench.send(task, gate=str(gate)) for task in ("listen", "listen_async", "listen_apart")]
    gate.entered(3)
    for job in jobs:
        job.cancel(actor="ana", reason="no longer wanted")
    for job in jobs:
        until(lambda: bench.app.jobs.get(job.id).state == "cancelled", "the end of the job", seconds=20.0)  # noqa: B023
        assert bench.outcomes(job) == ["cancelled"]
        assert job.why() == "it was cancelled while attempt 1 ran (cancel by ana: no longer wanted)"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["listens", "is deaf"])
def test_neighbours_do_not_feel_cancels_and_retries(bench: Bench, kind: str, whole: bool) -> None:
    """J8, G6: jobs that listen, that are cancelled on the loop, killed in a process of their own, or hold a thread or
    the loop, are cancelled and retried again and again. Each ends as it should; no neighbour is charged; where no
    process has to go, no neighbour is even touched; and the log stays short."""
    began_at = time.monotonic()
    rounds = 20 if whole else 2
    tasks = {
        "listens": ["listen", "listen_async", "listen_apart", "hold_async", "hold_apart"],
        "is deaf": ["hold", "block_loop_async"] if whole else ["hold"],
    }[kind]
    others = bench.gate()
    neighbours = bench.send_many("hold_async", 50, gate=str(others))
    worker = bench.worker(slots=60, lease=scaled(5.0), cancel_grace=scaled(0.5), grace=scaled(1.0))
    others.entered(50)
    gates = [bench.gate() for _ in tasks]
    jobs = [bench.send(task, gate=str(gate)) for task, gate in zip(tasks, gates, strict=True)]
    for n in range(rounds):
        for job, gate in zip(jobs, gates, strict=True):
            gate.entered(n + 1)
            job.cancel(actor="ana")
        for job in jobs:
            bench.rests(job, "cancelled")
            job.retry(actor="ana")
    for gate in (*gates, others):
        gate.open()
    for job in jobs:
        bench.rests(job, "succeeded")
        # An attempt that is given back, since its process has to go, is cancelled before it begins again.
        outcomes = bench.outcomes(job)
        assert outcomes[-1] == "done"
        assert set(outcomes) <= {"cancelled", "released", "done"}
        assert "released" in outcomes or outcomes == [*["cancelled"] * rounds, "done"]
        moves = [row.to_state for row in bench.app.store.transitions("job", str(job.id))]
        assert moves.count("cancelled") == rounds
        assert moves.count("succeeded") == 1
    for job in neighbours:
        bench.rests(job, "succeeded")
        assert set(bench.outcomes(job)) <= {"released", "done"}
        assert kind == "is deaf" or bench.outcomes(job) == ["done"]
    assert len(worker.log.splitlines()) <= 10 + 2 * (time.monotonic() - began_at)
    assert bench.is_healthy()
