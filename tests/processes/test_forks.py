"""Handlers that fork from several threads of one process at once."""

from __future__ import annotations

from tests.processes.worker_processes import Bench

JOBS, TIMES = 8, 4


def test_handlers_may_fork_from_several_threads_at_once(bench: Bench) -> None:
    """J1, W1: with os.fork and with multiprocessing. On SQLite the second of two threads that forked at once never gave
    the database back, so no job of the process could end; and every process of multiprocessing ended with 1."""
    jobs = bench.send_many("fork_often", JOBS, times=TIMES)
    bench.drain(slots=4)
    for job in jobs:
        assert bench.rests(job, "succeeded").result == [7, 0] * TIMES
        assert bench.outcomes(job) == ["done"]
    assert bench.is_healthy()
