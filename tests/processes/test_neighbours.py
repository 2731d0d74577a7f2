"""Good jobs that share processes with jobs that hold the interpreter."""

from __future__ import annotations

from typing import Any

from detent.client.job import Job
from tests.deadlines import scaled
from tests.processes.kit import Bench

GOOD = ("breathe_1s", "breathe_async_1s", "breathe_1s", "breathe_async_1s", "breathe_1s", "breathe_apart_1s")


def test_nobody_is_charged_for_a_job_that_holds_the_interpreter(bench: Bench, whole: bool) -> None:
    """J7, J12: while one job holds the interpreter, the time of the others does not count, and if the process has to be
    killed for it, they are released. Good jobs used to be recorded as timed out, and quarantined."""
    many, holders = (60, 6) if whole else (18, 2)
    gate = bench.gate()
    good: list[Job[Any]] = []
    short: list[Job[Any]] = []
    endless: list[Job[Any]] = []
    for n in range(holders):
        endless.append(bench.send("hold_interpreter_1s", gate=str(gate), seconds=600))
        for task in (GOOD * 2)[: many // holders]:
            good.append(bench.send(task, seconds=scaled(0.3)))
            if n % 2 == 0 and len(good) % 4 == 0:
                short.append(bench.send("hold_interpreter", gate=str(gate), seconds=int(scaled(2.0))))
    bench.worker(slots=6, processes=2, cancel_grace=scaled(5.0))
    for job in good:
        bench.rests(job, "succeeded")
        assert set(bench.outcomes(job)) <= {"released", "done"}, bench.outcomes(job)
    for job in short:
        bench.rests(job, "succeeded")
    for job in endless:
        bench.rests(job, "quarantined")
        assert [outcome for outcome in bench.outcomes(job) if outcome != "released"] == ["timed_out"]
    assert bench.is_healthy()
