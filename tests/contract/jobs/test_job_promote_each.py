"""job_promote_each: a row that cannot be moved keeps no other job from coming due."""

from __future__ import annotations

from datetime import timedelta

from detent.model.records import EachDone
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.damaged_rows import queued_twice
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.contract.refusals import Untouched


def test_due_jobs_become_claimable(store: Store, clock: StoreClock) -> None:
    """J11"""
    due = enqueue(store, due_at=clock.now() + timedelta(seconds=5))
    enqueue(store, due_at=clock.now() + timedelta(hours=1))
    clock.advance(10)
    assert store.job_promote_each(10, []) == EachDone((due,))
    assert [held.job_id for held in claim(store)] == [due]


def test_a_row_that_cannot_be_moved_harms_itself_only(store: Store, store_url: str, clock: StoreClock) -> None:
    """J11, R3: it stays and is reported; left out, nothing is reported."""
    ids = [enqueue(store, due_at=clock.now() + timedelta(seconds=5)) for _ in range(3)]
    clock.advance(10)
    with queued_twice(store_url, ids[1]):
        promoted = store.job_promote_each(10, [])
        assert promoted.done == (ids[0], ids[2])
        (bad,) = promoted.bad
        assert (bad.entity, bad.entity_id, bad.skip_id) == ("job", str(ids[1]), ids[1])
        assert store.job_promote_each(10, [ids[1]]) == EachDone()
    assert store.job_promote_each(10, []) == EachDone((ids[1],))


def test_what_is_not_due_is_left_alone(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J11"""
    enqueue(store, due_at=clock.now() + timedelta(hours=1))
    with untouched():
        assert store.job_promote_each(10, []) == EachDone()
