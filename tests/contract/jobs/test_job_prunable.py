"""job_prunable: the jobs that job_prune would delete."""

from __future__ import annotations

from datetime import timedelta

from detent.model.records import JobPlace, Prunable
from detent.store.contract import Store, Verbs
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim_one, enqueue, job, quarantined, succeeded
from tests.contract.refusals import Untouched


def test_it_names_what_would_go_and_touches_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J16: finished before the horizon, of these states; in portions."""
    old, dead = succeeded(store), quarantined(store)
    enqueue(store)
    claim_one(store)
    clock.advance(10)
    succeeded(store)
    before = clock.now() - timedelta(seconds=1)
    with untouched():
        assert store.job_prunable(before, None, 10) == Prunable((old, dead), None)
        assert store.job_prunable(before, None, 10, ["succeeded"]) == Prunable((old,), None)
        first, second = (JobPlace(job(store, one).created_at, one) for one in (old, dead))
        assert store.job_prunable(before, None, 1) == Prunable((old,), first)
        assert store.job_prunable(before, first, 1, ["succeeded"]) == Prunable((), second)
    assert store.job_prune(before, None, 10, "ana").jobs == 2


def test_in_one_transaction_what_was_named_goes(store: Store, clock: StoreClock) -> None:
    """J16: with whatever was read between, and nothing else."""
    old = [succeeded(store) for _ in range(2)]
    clock.advance(10)

    def away(verbs: Verbs) -> int:
        found = verbs.job_prunable(clock.now(), None, 10)
        assert [row.id for row in verbs.job_get(found.ids) if row is not None] == old
        return verbs.job_drop(found.ids, clock.now(), "ana")

    assert store.together(away) == 2
    assert store.job_prunable(clock.now(), None, 10) == Prunable((), None)
