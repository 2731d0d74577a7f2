"""Good jobs that share processes with jobs that hold the interpreter."""

from __future__ import annotations

from detent import Job
from tests.deadlines import scaled
from tests.processes.worker_processes import Bench

GOOD = ("breathe_2s", "breathe_async_2s", "breathe_2s", "breathe_async_2s", "breathe_apart_2s")


def test_nobody_is_charged_for_a_job_that_holds_the_interpreter(bench: Bench, whole: bool) -> None:
    """J7, J12: while one job holds the interpreter, the time of the others does not count, and if the process has to be
    killed for it, they are released. Good jobs used to be recorded as timed out, and quarantined."""
    gate = str(bench.gate())
    good: list[Job[object]] = []
    short: list[Job[object]] = []
    endless: list[Job[object]] = []
    for n in range(12 if whole else 2):
        after = scaled(0.3)
        if n % 3 == 1:
            endless.append(bench.send("hold_interpreter_late_2s", gate=gate, after=after, seconds=600))
        else:
            seconds = int(scaled(3.0))
            short.append(bench.send("hold_interpreter_late", gate=gate, after=after, seconds=seconds))
        good += [bench.send(task, seconds=scaled(0.8)) for task in GOOD]
    bench.worker(slots=6, processes=2 if whole else 1, cancel_grace=scaled(5.0), held_up_max=scaled(10.0))
    for job in good:
        bench.rests(job, "succeeded")
        assert set(bench.outcomes(job)) <= {"released", "done"}, bench.outcomes(job)
    for job in short:
        bench.rests(job, "succeeded")
    for job in endless:
        bench.rests(job, "quarantined")
        assert [outcome for outcome in bench.outcomes(job) if outcome != "released"] == ["timed_out"]
    assert bench.is_healthy()
