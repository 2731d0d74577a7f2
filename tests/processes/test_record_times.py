"""The record says when a function was called and when it ended, whatever became of it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.processes.worker_processes import Bench, Gate, kill, until

LEASE = 600.0
"""Seconds: so long that no renewal puts a start on record first."""


def held_for_a_while(bench: Bench, gate: Gate) -> datetime:
    """A time at which the function has been called and goes on for half a second more."""
    gate.entered()
    called_by = bench.app.store.now()
    until(lambda: bench.app.store.now() > called_by + timedelta(seconds=0.5), "half a second of work")
    return called_by


@pytest.mark.parametrize("task", ["hold", "hold_async", "hold_apart"])
def test_a_job_that_succeeds_began_when_its_function_was_called(bench: Bench, task: str) -> None:
    """R2: 0.6 s of work was on record as begun when it had ended."""
    gate = bench.gate()
    job = bench.send(task, gate=str(gate))
    bench.worker(lease=LEASE)
    called_by = held_for_a_while(bench, gate)
    gate.open()
    bench.rests(job, "succeeded")
    (attempt,) = job.executions()
    assert attempt.started_at is not None
    assert attempt.done_at is not None
    assert attempt.leased_at <= attempt.started_at <= called_by < attempt.done_at
    assert bench.is_healthy()


@pytest.mark.parametrize("task", ["hold", "hold_async", "hold_apart"])
def test_a_job_whose_process_was_killed_began_when_its_function_was_called(bench: Bench, task: str) -> None:
    """R2: an attempt that was killed half a second into its function had no start on record at all."""
    gate = bench.gate()
    job = bench.send(task, gate=str(gate))
    bench.worker(lease=LEASE)
    called_by = held_for_a_while(bench, gate)
    kill(gate.entered()[0])
    gate.open()
    bench.rests(job, "succeeded")
    first, second = job.executions()
    assert first.started_at is not None
    assert first.aborted_at is not None
    assert first.leased_at <= first.started_at <= called_by < first.aborted_at <= second.leased_at
    assert bench.is_healthy()


def test_a_renewal_tells_of_the_start(bench: Bench) -> None:
    """R2: while it runs, a job has a start on record after the first renewal, and it is the true one."""
    gate = bench.gate()
    job = bench.send("hold", gate=str(gate))
    bench.worker(lease=3.0)
    gate.entered()
    called_by = bench.app.store.now()
    until(lambda: job.executions()[0].started_at, "a renewal")
    (attempt,) = job.executions()
    assert attempt.started_at is not None
    assert attempt.leased_at <= attempt.started_at <= called_by
    gate.open()
    bench.rests(job, "succeeded")
