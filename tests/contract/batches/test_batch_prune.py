"""batch_prune: old runs go with their targets."""

from __future__ import annotations

from detent.model.records import Pruned
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import REVERT, act, applied_run, begun, drive, previewed_run, run, work

YEAR = 365 * 86_400


def rolled_back(store: Store) -> int:
    """A run about which nothing is left to say."""
    made = applied_run(store)
    holder, no = begun(store, made.id)
    store.reconcile_record(holder, made.id, no, 0, 3, 3, [], True)
    act(store, made.id, "roll_back")
    drive(store)
    work(store, REVERT)
    assert run(store, made.id).state == "rolled_back"
    return made.id


def test_an_old_run_goes_and_then_its_jobs(store: Store, clock: StoreClock) -> None:
    """J16: what a run that is there was made by stays with it."""
    gone = rolled_back(store)
    clock.advance(YEAR)
    young = previewed_run(store)
    before = clock.now()
    clock.advance(1)
    store.lease_reap(100)
    kept = len(store.job_list(JobSearch()).rows)
    assert store.job_prune(before, None, 1000, "retention").jobs == 0
    assert len(store.job_list(JobSearch()).rows) == kept
    assert store.batch_prune(before, 0, 100, "retention") == Pruned(1, None)
    assert store.batch_get(gone) is None
    assert store.target_list(gone) == []
    assert store.reconciliation_list(gone) == []
    assert store.batch_get(young.id) is not None
    store.job_prune(before, None, 1000, "retention")
    assert {job.run_id for job in store.job_list(JobSearch()).rows if job.state == "succeeded"} == {young.id}


def test_what_is_young_at_work_or_to_be_looked_at_stays(store: Store, clock: StoreClock) -> None:
    watched = applied_run(store)
    queued = previewed_run(store)
    act(store, queued.id)
    clock.advance(YEAR)
    assert store.batch_prune(clock.now(), 0, 1, "retention") == Pruned(0, watched.id)
    assert store.batch_prune(clock.now(), watched.id, 10, "retention") == Pruned(0, None)
    assert {run(store, watched.id).state, run(store, queued.id).state} == {"applied", "queued"}
