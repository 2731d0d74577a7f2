"""Several connections at once take up, end and fail the targets of two runs while a driver still moves others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

from detent.model.batch_records import BatchRunRow
from detent.model.records import Abort, Finish
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store, deadlocks
from tests.contract.batches.sample_batch_runs import APPLY, act, drive, previewed_run, run, states
from tests.contract.concurrent_callers import PATIENCE
from tests.contract.jobs.sample_jobs import claim

WORKERS = 3
TARGETS = 90


def test_counters_are_right_whoever_comes_last(store: Store, store_url: str, clock: StoreClock) -> None:
    """B3, B8: every run ends once, by the last of its targets, with the counts of its rows; nobody waits crosswise."""
    before = deadlocks(store_url)
    runs = [previewed_run(store, [f"{name}{n}" for n in range(TARGETS)]).id for name in "ab"]
    for run_id in runs:
        assert isinstance(act(store, run_id), BatchRunRow)
        drive(store, limit=7)
    start = Barrier(WORKERS)

    def work(_: int) -> int:
        done = 0
        with closing(another_store(store_url, clock)) as mine:
            start.wait(PATIENCE)
            while batch := claim(mine, tasks=[APPLY], limit=7):
                good = [one for one in batch if one.job_id % 10]
                bad = [one for one in batch if not one.job_id % 10]
                mine.job_finish([Finish(one.job_id, one.attempt) for one in good], "ana")
                failed = [Abort(job_id=o.job_id, attempt=o.attempt, outcome="error", fatal=True) for o in bad]
                mine.job_abort(failed, "ana")
                done += len(batch)
        return done

    with ThreadPoolExecutor(WORKERS) as pool:
        assert sum(pool.map(work, range(WORKERS))) == len(runs) * TARGETS
    for run_id in runs:
        row, found = run(store, run_id), list(states(store, run_id).values())
        assert (row.applied, row.failed) == (found.count("applied"), found.count("failed"))
        assert (row.applied + row.failed, row.state) == (TARGETS, "partial")
        lines = [line.to_state for line in store.transitions("batch_run", str(run_id))]
        assert lines == ["preview", "queued", "applying", "partial"]
    assert deadlocks(store_url) == before
