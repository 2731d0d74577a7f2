"""reconcile_record: what was found of the world."""

from __future__ import annotations

from detent.errors import LeaseLost, NotFound, TransitionRace
from detent.model.batch_records import Observed, ReconciliationRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import act, applied_run, begun, run
from tests.contract.jobs.sample_jobs import LEASE
from tests.contract.refusals import Untouched, refused


def test_a_drift_is_found_counted_and_resolved(store: Store, clock: StoreClock) -> None:
    """B6: open until a later look finds it right."""
    made = applied_run(store)
    holder, no = begun(store, made.id)
    drift = Observed(2, '{"p":2}', '{"p":9}')
    look = store.reconcile_record(holder, made.id, no, 0, 2, 2, [drift], False)
    assert isinstance(look, ReconciliationRow)
    assert (look.cursor, look.checked, look.mismatched, look.done_at) == (2, 2, 1, None)
    assert (run(store, made.id).mismatches, run(store, made.id).reconciled_at) == (1, None)
    look = store.reconcile_record(holder, made.id, no, 2, 3, 1, [], True)
    assert isinstance(look, ReconciliationRow)
    assert (look.checked, look.done_at) == (3, clock.now())
    assert run(store, made.id).reconciled_at == clock.now()
    clock.advance(1)
    again, no = begun(store, made.id)
    store.reconcile_record(
        again, made.id, no, 0, 3, 3, [Observed(2, '{"p":2}', '{"p":8}'), Observed(3, "1", None)], True
    )
    assert [(m.n, m.no, m.actual) for m in store.mismatch_list(made.id)] == [(2, 1, '{"p":8}'), (3, 2, None)]
    last, no = begun(store, made.id)
    store.reconcile_record(last, made.id, no, 0, 3, 3, [], True)
    assert store.mismatch_list(made.id) == []
    assert run(store, made.id).mismatches == 0


def test_said_twice_it_is_counted_once(store: Store, untouched: Untouched) -> None:
    made = applied_run(store)
    holder, no = begun(store, made.id)
    drift = [Observed(1, "1", "2")]
    store.reconcile_record(holder, made.id, no, 0, 1, 1, drift, False)
    with untouched():
        look = store.reconcile_record(holder, made.id, no, 0, 1, 1, drift, False)
        assert isinstance(look, ReconciliationRow)
        assert look.checked == 1
        refused(store.reconcile_record(holder, made.id, no, 2, 3, 1, drift, False), TransitionRace)
    store.reconcile_record(holder, made.id, no, 1, 3, 2, [], True)
    with untouched():
        store.reconcile_record(holder, made.id, no, 1, 3, 2, [], True)


def test_only_by_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """G3: a look that lost its lease says nothing."""
    made = applied_run(store)
    holder, no = begun(store, made.id)
    with untouched():
        refused(store.reconcile_record((holder[0], 5), made.id, no, 0, 3, 3, [], True), LeaseLost)
        refused(store.reconcile_record(holder, made.id, no + 1, 0, 3, 3, [], True), NotFound)
        refused(store.reconcile_record(holder, made.id + 999, no, 0, 3, 3, [], True), NotFound)
    clock.advance(LEASE + 1)
    with untouched():
        refused(store.reconcile_record(holder, made.id, no, 0, 3, 3, [], True), LeaseLost)


def test_a_rollback_resolves_them(store: Store) -> None:
    made = applied_run(store)
    holder, no = begun(store, made.id)
    store.reconcile_record(holder, made.id, no, 0, 3, 3, [Observed(1, "1", "2")], True)
    assert act(store, made.id, "roll_back").mismatches == 0
    assert [m.resolved_at is None for m in store.mismatch_list(made.id, open_only=False)] == [False]
