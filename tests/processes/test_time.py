"""Time-outs and cancels: of those who listen, those who do not, and those who hold the interpreter."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta

import pytest

from tests.deadlines import scaled
from tests.processes.worker_processes import Bench, is_alive, parent_of, until


def cut_short(bench: Bench, task: str, **arguments: object) -> int:
    """Run a job of one second into its time-out; the process it was in at first. If others were in that process, it
    is tried once more, apart from them, before it is charged."""
    gate = bench.gate()
    job = bench.send(task, gate=str(gate), **arguments)
    bench.rests(job, "quarantined")
    assert bench.outcomes(job) in (["timed_out"], ["released", "timed_out"])
    assert "time" in str(job.error)
    return gate.entered()[0]


@pytest.mark.parametrize("task", ["hold_async_1s", "listen_1s"])
def test_a_timed_out_function_that_listens_leaves_its_process_as_it_was(shop: Bench, task: str) -> None:
    """J12: time-outs per job. An async function is cancelled, a plain one is told."""
    process = cut_short(shop, task)
    assert shop.rests(shop.send("which_process"), "succeeded").result == process


@pytest.mark.parametrize("task", ["hold_1s", "hold_apart_1s"])
def test_a_timed_out_function_that_does_not_listen_goes_with_its_process(shop: Bench, task: str) -> None:
    """J12: a hung thread recycles its child, a process of its own is killed; the neighbours lose nothing."""
    gate = shop.gate()
    neighbour = shop.send("hold_async", gate=str(gate))
    gate.entered()
    process = cut_short(shop, task)
    gate.open()
    shop.rests(neighbour, "succeeded")
    assert "crashed" not in shop.outcomes(neighbour)
    until(lambda: not is_alive(process), "the end of the process")
    shop.rests(shop.send("add", a=1, b=1), "succeeded")


def test_a_child_that_is_about_to_be_killed_claims_nothing_more(sqlite_bench: Bench) -> None:
    """J12: what a deaf child claimed after its supervisor had decided to kill it was given back with the
    process, and ran later than it had to. Here the kill is delayed, so that the child has the time to claim."""
    bench = sqlite_bench
    gate = bench.gate()
    worker = bench.worker(grace=scaled(1.0))
    bench.send("block_loop_async_1s", gate=str(gate))
    guardian = parent_of(gate.entered()[0])
    os.kill(guardian, signal.SIGSTOP)
    until(lambda: "killing process" in worker.log, "the verdict")
    job = bench.send("add", a=1, b=1)
    sent_at = bench.app.store.now()
    until(
        lambda: bench.app.workers.list()[0].seen_at > sent_at + timedelta(seconds=2),
        "a worker that had the time to claim",
    )
    os.kill(guardian, signal.SIGCONT)
    assert bench.rests(job, "succeeded").attempt == 1, bench.outcomes(job)


@pytest.mark.parametrize(
    ("task", "arguments"),
    [("stubborn_async_1s", {}), ("block_loop_async_1s", {}), ("hold_interpreter_1s", {"seconds": 600})],
)
def test_a_function_that_deafens_its_process_is_cut_short_all_the_same(
    sqlite_bench: Bench, task: str, arguments: dict[str, int]
) -> None:
    """J12: the supervisor ends what the child cannot; a neighbour that had begun is handed back, not blamed."""
    bench = sqlite_bench
    gate = bench.gate()
    neighbour = bench.send("hold", gate=str(gate))
    worker = bench.worker(grace=scaled(1.0))
    gate.entered()
    process = cut_short(bench, task, **arguments)
    until(lambda: not is_alive(process), "the end of the process")
    gate.open()
    bench.rests(neighbour, "succeeded")
    assert bench.outcomes(neighbour) == ["released", "done"]
    # G6: the supervisor used to spin while the process died, and logged the same line every time.
    assert worker.log.count("did not stop; killing process") <= 1
    assert "left out" not in worker.log


def test_whoever_holds_the_interpreter_keeps_its_lease(bench: Bench) -> None:
    """J5: a handler that holds the interpreter for two leases is not taken over while its process lives."""
    gate = bench.gate()
    job = bench.send("hold_interpreter", gate=str(gate), seconds=int(scaled(10)))
    # A thread of its process may be in the middle of a write, which is another story.
    bench.worker(lease=scaled(5.0), held_up_max=scaled(60.0))
    gate.entered()
    bench.worker(lease=scaled(5.0))
    assert bench.rests(job, "succeeded").result == "awake"
    assert bench.outcomes(job) == ["done"]
    assert len(gate.entered()) == 1


def test_whoever_takes_the_interpreter_at_once_keeps_its_lease(bench: Bench) -> None:
    """J5: before its child could tell the supervisor of the lease, which has read it on the board."""
    bench.worker(lease=scaled(5.0))
    bench.worker(lease=scaled(5.0))
    bench.rests(bench.send("add", a=1, b=2), "succeeded")
    gate = bench.gate()
    job = bench.send("seize_interpreter", gate=str(gate), seconds=int(scaled(12)))
    bench.rests(job, "succeeded")
    assert bench.outcomes(job) == ["done"]
    assert len(gate.entered()) == 1


def test_a_worker_that_stood_still_takes_nothing_away_from_itself(bench: Bench) -> None:
    """J5, J7: as on a machine that was paused. Its leases have run out, and it renews them: one all alone had taken its
    own jobs away, and used up their attempts."""

    def leased_until() -> datetime | None:
        return job.executions()[-1].expires_at

    gate = bench.gate()
    job = bench.send("hold_once", gate=str(gate))
    worker = bench.worker(lease=scaled(1.0))
    gate.entered()
    for _ in range(4):
        worker.signal(signal.SIGSTOP)
        ends_at = leased_until()
        assert ends_at is not None
        until(lambda: bench.app.store.now() > ends_at, "the end of the lease")  # noqa: B023
        worker.signal(signal.SIGCONT)
        until(lambda: leased_until() != ends_at, "a new lease, or none")  # noqa: B023
    gate.open()
    bench.rests(job, "succeeded")
    assert bench.outcomes(job) == ["done"]


@pytest.mark.parametrize("task", ["listen", "listen_apart", "hold_async", "hold_apart"])
def test_a_running_job_is_cancelled(shop: Bench, task: str) -> None:
    """J8: told through the next heartbeat; cooperative, then hard after a grace period; on record."""
    gate = shop.gate()
    job = shop.send(task, gate=str(gate))
    (process,) = gate.entered()
    job.cancel(actor="ana", reason="no longer wanted")
    shop.rests(job, "cancelled")
    assert shop.outcomes(job) == ["cancelled"]
    row = job.row
    assert (row.cancel_requested_by, row.cancel_reason) == ("ana", "no longer wanted")
    if task == "hold_apart":
        until(lambda: not is_alive(process), "the end of its process")


@pytest.mark.parametrize(("task", "arguments"), [("hold", {}), ("hold_interpreter", {"seconds": 600})])
def test_a_job_that_hears_no_cancel_is_cancelled_with_its_process(
    postgres_bench: Bench, task: str, arguments: dict[str, int]
) -> None:
    """J8: hard after a grace period, whatever it does. (On SQLite it may hold the database too, and then goes for
    that.)"""
    bench = postgres_bench
    gate = bench.gate()
    job = bench.send(task, gate=str(gate), **arguments)
    bench.worker(lease=scaled(1.0), cancel_grace=scaled(0.3), grace=scaled(0.5))
    (process,) = gate.entered()
    job.cancel(actor="ana")
    bench.rests(job, "cancelled")
    assert bench.outcomes(job) == ["cancelled"]
    until(lambda: not is_alive(process), "the end of its process")
    bench.rests(bench.send("add", a=1, b=1), "succeeded")
