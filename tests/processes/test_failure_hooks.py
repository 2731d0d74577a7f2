"""Failed jobs: their application hears of each failure, whoever ended the attempt and whoever died meanwhile."""

from __future__ import annotations

import signal
from contextlib import closing

from detent.testing.stores import plain_connection, table
from tests.processes.worker_processes import Bench, until


def test_the_hook_hears_of_what_the_reaper_gave_up_once(bench: Bench) -> None:
    """W6, J10: nobody was left to tell; another worker does, and no two of them do."""
    told = bench.directory / "told"
    gate = bench.gate()
    task = bench.app.find_task("hold_once")
    job = bench.app.enqueue(task.call(gate=str(gate)), metadata={"tell": str(told)})
    first = bench.worker()
    gate.entered()
    first.signal(signal.SIGKILL)
    first.ends()
    for _ in range(2):
        bench.worker()
    bench.rests(job, "quarantined")
    until(told.exists, "the hook")
    until(lambda: not on_the_list(bench), "told, and struck out")
    assert until(told.read_text) == f"{job.id} quarantined\n"
    assert bench.is_healthy()


def test_the_hook_hears_of_a_job_that_took_its_process_down_once(bench: Bench) -> None:
    """The supervisor wrote this ending. It kept the failure in memory, where two threads could lose or double it."""
    told = bench.directory / "told"
    task = bench.app.find_task("exit_process_once")
    job = bench.app.enqueue(task.call(), metadata={"tell": str(told)})
    bench.drain()
    assert (job.refresh().state, told.read_text()) == ("quarantined", f"{job.id} quarantined\n")
    assert not on_the_list(bench)


def test_a_worker_that_dies_while_a_hook_runs_loses_no_failure(bench: Bench) -> None:
    """The child had ended the job itself and kept the failure in memory, so nobody else knew of it."""
    told = bench.directory / "told"
    gate = bench.gate()
    task = bench.app.find_task("fail")
    job = bench.app.enqueue(task.call(how="fatal"), metadata={"tell": str(told), "tell_slowly": str(gate)})
    first = bench.worker()
    gate.entered()
    first.signal(signal.SIGKILL)
    first.ends()
    assert on_the_list(bench)
    # The term of the dead worker is over.
    bench.app.store.failure_report_keep([(job.id, 1)], 0)
    gate.open()
    bench.worker()
    until(told.exists, "the hook")
    until(lambda: not on_the_list(bench), "told, and struck out")
    assert until(told.read_text) == f"{job.id} quarantined\n"


def on_the_list(bench: Bench) -> bool:
    """Whether a failure is not told yet."""
    with closing(plain_connection(bench.url)) as connection:
        return connection.execute(f"SELECT 1 FROM {table(bench.url, 'failure_report')}").fetchone() is not None
