"""ops_get: runs as they stand."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import enqueue
from tests.contract.ops.sample_ops_runs import ops_run, run_in


def test_in_the_order_asked_and_none_for_what_is_no_run(store: Store) -> None:
    """O1"""
    one, two, plain = run_in(store, "success").job_id, run_in(store, "queued").job_id, enqueue(store)
    rows = store.ops_get([two, 999_999, one, plain])
    assert [row and (row.job_id, row.state) for row in rows] == [(two, "queued"), None, (one, "success"), None]
    assert store.ops_get([]) == []


def test_a_run_that_went_stale_or_silent_keeps_who_had_it(store: Store, clock: StoreClock) -> None:
    """O4, R1: cancelled where it never began, failed where it fell silent; nothing is written over."""
    stale, silent = run_in(store, "claimed").job_id, run_in(store, "running").job_id
    claimed_at = clock.now()
    clock.advance(600)
    assert set(store.lease_reap(100).aborted) == {stale, silent}
    for job_id, state in ((stale, "cancelled"), (silent, "failed")):
        row = ops_run(store, job_id)
        assert (row.state, row.outcome, row.claimed_by) == (state, "expired", "ana")
        assert (row.started_at, row.finished_at, row.cancelled_by) == (claimed_at, clock.now(), None)
    assert store.failure_report_take(["ops.run"], 10, 60) == []


def test_a_pruned_run_is_gone_whole(store: Store, clock: StoreClock) -> None:
    """J16"""
    job_id = run_in(store, "success").job_id
    clock.advance(1)
    assert store.job_prune(clock.now(), None, 100, "ana").jobs == 1
    assert store.ops_get([job_id]) == [None]
    assert store.ops_list() == []
