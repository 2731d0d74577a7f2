"""reconcile_due: when it is time to look at the world."""

from __future__ import annotations

from datetime import timedelta

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import LOOK, act, applied_run, drive, run, work
from tests.contract.jobs.sample_jobs import claim, finish, new_job

DAY = 86_400


def test_after_five_minutes_an_hour_and_daily_for_thirty_days(store: Store, clock: StoreClock) -> None:
    """B6: by plan, each once; then no more."""
    made = applied_run(store)
    assert made.finished_at is not None
    looked = []
    while (at := run(store, made.id).reconcile_at) is not None:
        clock.set(at - timedelta(microseconds=1))
        assert store.reconcile_due(10) == []
        clock.set(at)
        (due,) = store.reconcile_due(10)
        looked.append((due.reconcile_no, (at - made.finished_at).total_seconds()))
        store.reconcile_begin(due.id, due.reconcile_no, new_job(store, task=LOOK, run_id=due.id), "system")
        for one in claim(store, tasks=[LOOK]):
            store.reconcile_record((one.job_id, one.attempt), due.id, len(looked), 0, due.total, 3, [], True)
            finish(store, one)
    assert looked == [(0, 300), (1, 3600), *((n + 1, n * DAY) for n in range(1, 31))]


def test_what_was_missed_is_made_up_for_once(store: Store, clock: StoreClock) -> None:
    """B6: after days without a worker there is one look, and then the next day's."""
    made = applied_run(store)
    clock.advance(3.5 * DAY)
    (due,) = store.reconcile_due(10)
    store.reconcile_begin(due.id, due.reconcile_no, new_job(store, task=LOOK, run_id=due.id), "system")
    assert store.reconcile_due(10) == []
    row = run(store, made.id)
    assert row.reconcile_at is not None
    assert made.finished_at is not None
    assert row.reconcile_at - made.finished_at == timedelta(days=4)


def test_a_new_end_begins_anew_and_a_rollback_ends_it(store: Store, clock: StoreClock) -> None:
    made = applied_run(store, fails=["a"])
    assert made.state == "partial"
    clock.advance(400)
    assert [row.id for row in store.reconcile_due(10)] == [made.id]
    act(store, made.id, "retry_failed")
    assert store.reconcile_due(10) == []
    drive(store)
    work(store)
    clock.advance(299)
    assert store.reconcile_due(10) == []
    clock.advance(1)
    assert [row.id for row in store.reconcile_due(10)] == [made.id]
    act(store, made.id, "roll_back")
    assert store.reconcile_due(10) == []
