"""Silent jobs under a living lease: where the queue allows it, they are stopped and run again."""

from __future__ import annotations

from tests.deadlines import scaled
from tests.processes.worker_processes import Bench, is_alive, until


def test_a_stalled_job_is_stopped_and_runs_again(bench: Bench) -> None:
    """R1: on the loop, on a thread and in a process of its own. It was cancelled and never ran again."""
    bench.app.queues.recovery("default", automatic=True, actor="ana", stalled_after=scaled(1.0))
    gates = {task: bench.gate() for task in ("hold_async", "hold", "hold_apart")}
    jobs = [bench.send(task, gate=str(gate)) for task, gate in gates.items()]
    worker = bench.worker()
    for gate in gates.values():
        gate.entered(2)
        gate.open()
    for job in jobs:
        bench.rests(job, "succeeded")
        assert bench.outcomes(job) == ["timed_out", "done"]
        assert "stalled" in (job.executions()[0].error or "")
    assert "no event" in worker.log
    assert bench.is_healthy()


def test_a_stalled_job_that_holds_the_interpreter_ends_with_its_process(postgres_bench: Bench) -> None:
    """R1: an attempt is used up, and here it was the last one."""
    bench = postgres_bench
    bench.app.queues.recovery("default", automatic=True, actor="ana", stalled_after=scaled(1.0))
    gate = bench.gate()
    job = bench.send("hold_interpreter", gate=str(gate), seconds=600)
    bench.worker()
    (process,) = gate.entered()
    bench.rests(job, "quarantined")
    assert bench.outcomes(job) == ["timed_out"]
    until(lambda: not is_alive(process), "the end of its process")
