"""job_drop: delete these finished jobs."""

from __future__ import annotations

from datetime import timedelta

from detent.store.contract import Store
from detent.store.jobs.filters import RecordSearch
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim_one, enqueue, finish, quarantined, succeeded
from tests.contract.refusals import Untouched


def test_those_that_may_go_go_with_all_their_records(store: Store, clock: StoreClock) -> None:
    """J16: below the horizon, which is on record; keys survive."""
    keyed = enqueue(store, key="k")
    finish(store, claim_one(store))
    dead, spared = quarantined(store), succeeded(store)
    pending = enqueue(store)
    clock.advance(10)
    late = enqueue(store, priority=1)
    finish(store, claim_one(store, limit=1))
    before = clock.now() - timedelta(seconds=1)
    assert store.job_drop([keyed, dead, pending, late, 999_999], before, "ana") == 2
    left = [row.id for row in store.job_get([keyed, dead, spared, pending, late]) if row is not None]
    assert left == [spared, pending, late]
    assert (store.job_executions(dead), store.transitions("job", str(dead))) == ([], [])
    assert store.dead_report(None, None, None, 10) == []
    assert store.verify() == []


def test_with_a_reason_the_deletion_is_on_record(store: Store, clock: StoreClock) -> None:
    """J16: who deleted how many jobs, and why; nothing is on record if no job was deleted."""
    done = [succeeded(store) for _ in range(2)]
    clock.advance(1)
    assert store.job_drop(done, clock.now(), "ana", "archived") == 2
    assert store.job_drop(done, clock.now(), "ana", "archived") == 0
    (line,) = store.record_search(RecordSearch(entity="database", entity_id="retention")).rows
    assert (line.actor, line.reason, line.trigger, line.metadata) == ("ana", "archived", "drop", '{"jobs":2}')
    assert store.verify() == []


def test_nothing_changes_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    with untouched():
        assert store.job_drop([], clock.now(), "ana") == 0
