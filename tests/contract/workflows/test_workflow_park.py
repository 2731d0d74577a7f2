"""workflow_park: a workflow waits without a worker, and what it waits for wakes it."""

from __future__ import annotations

from datetime import timedelta

from detent.errors import LeaseLost
from detent.model.workflow_records import NEVER, Park, Parked
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, enqueue, finish, job, state
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import (
    begin,
    children,
    load,
    park,
    parked_for_signal,
    record,
    send,
    signal,
    spawn,
)


def test_the_attempt_ends_as_parked_and_does_not_count(store: Store, clock: StoreClock) -> None:
    held = begin(store, expires_at=clock.now() + timedelta(seconds=60))
    clock.advance(1)
    assert park(store, held, signal()) == Parked(held.job_id, 1)
    row = job(store, held.job_id)
    assert (row.state, row.due_at, row.expires_at, row.spared, row.ended) == ("pending", NEVER, None, 1, 1)
    (execution,) = store.job_executions(held.job_id)
    assert (execution.outcome, execution.worker, execution.aborted_at) == ("parked", "ana", clock.now())
    assert (execution.next_state, execution.next_due_at, execution.counted) == ("pending", NEVER, False)
    (found,) = store.workflow_get([held.job_id])
    assert found is not None
    assert (found.version, found.parks, found.parked_at, found.due_at) == (1, 1, clock.now(), None)
    assert found.parked_for == "a test"


def test_what_it_waits_for_is_listed(store: Store, clock: StoreClock) -> None:
    held = begin(store, tenant="acme")
    until = clock.now() + timedelta(seconds=50)
    park(store, held, signal("a"), children("kids"), until=until, version=3)
    one, two = store.wait_list().rows
    assert (one.job_id, one.n, one.task, one.tenant) == (held.job_id, 0, "mail.send", "acme")
    assert (one.kind, one.name, one.since, one.due_at, one.version) == ("signal", "a", clock.now(), until, 3)
    assert (two.n, two.kind, two.name) == (1, "children", "kids")
    (found,) = store.workflow_get([held.job_id])
    assert found is not None
    assert found.due_at == until


def test_a_sleep_ends_by_itself(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    until = clock.now() + timedelta(seconds=50)
    park(store, held, until=until)
    (row,) = store.wait_list(job_id=held.job_id).rows
    assert (row.n, row.kind, row.name, row.due_at) == (0, "time", None, until)
    clock.advance(49)
    assert (store.job_promote(10), claim(store)) == (0, [])
    clock.advance(1)
    assert store.job_promote(10) == 1
    assert store.wait_list().rows == []
    assert claim_one(store).attempt == 2


def test_a_wait_that_is_over_is_due_at_once(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    park(store, held, until=clock.now() - timedelta(seconds=1))
    assert job(store, held.job_id).due_at == clock.now()
    assert claim_one(store).attempt == 2


def test_what_has_arrived_wakes_it_at_once(store: Store) -> None:
    """F5: a signal is either seen by the park or wakes the job."""
    held = begin(store)
    send(store, held.job_id)
    park(store, held, signal("other"), signal())
    assert claim_one(store).attempt == 2


def test_children_that_have_ended_wake_it_at_once(store: Store) -> None:
    held = begin(store)
    spawn(store, held, 1)
    abort(store, claim_one(store, tasks=["mail.child"]), fatal=True)
    park(store, held, children(settled=True))
    assert claim(store) == []
    store.job_discard([store.child_list(held.job_id)[0]], "bob")
    assert claim_one(store).attempt == 2


def test_new_waits_replace_earlier_ones(store: Store) -> None:
    job_id = parked_for_signal(store, "a")
    send(store, job_id, "a")
    park(store, claim_one(store), signal("b"))
    assert [row.name for row in store.wait_list().rows] == ["b"]
    send(store, job_id, "a")
    assert claim(store) == []
    send(store, job_id, "b")
    assert claim_one(store).attempt == 3


def test_parks_without_a_new_record_are_counted(store: Store) -> None:
    """F22: a workflow that only sleeps is noticed, and one that gets on is not."""
    held = begin(store)
    for n in range(1, 4):
        record(store, held, f"sleep#{n}", kind="sleep")
        park(store, held, signal())
        (found,) = store.workflow_get([held.job_id])
        assert found is not None
        assert found.parks == n
        send(store, held.job_id)
        held = claim_one(store)
        assert load(store, held).parks == n
    record(store, held)
    park(store, held, signal("x"))
    (found,) = store.workflow_get([held.job_id])
    assert found is not None
    assert found.parks == 0


def test_a_park_after_progress_spares_all_attempts(store: Store) -> None:
    held = begin(store, attempts_max=2)
    abort(store, held)
    held = claim_one(store)
    record(store, held)
    park(store, held, signal())
    assert job(store, held.job_id).spared == 2
    send(store, held.job_id)
    abort(store, claim_one(store))
    assert state(store, held.job_id) == "pending"
    assert abort(store, claim_one(store)).state == "quarantined"


def test_a_park_without_progress_spares_itself_alone(store: Store) -> None:
    held = begin(store, attempts_max=2)
    abort(store, held)
    held = claim_one(store)
    park(store, held, signal())
    assert job(store, held.job_id).spared == 1
    send(store, held.job_id)
    assert abort(store, claim_one(store)).state == "quarantined"


def test_a_requested_cancel_takes_effect_instead(store: Store) -> None:
    held = begin(store)
    store.job_cancel([held.job_id], "bob")
    assert park(store, held, signal()) == Parked(held.job_id, 1)
    assert state(store, held.job_id) == "cancelled"
    assert store.wait_list().rows == []


def test_a_parked_workflow_is_cancelled_at_once(store: Store) -> None:
    """Rule 11 of workflows. A retry looks again what has arrived."""
    job_id = parked_for_signal(store)
    store.job_cancel([job_id], "bob")
    assert (state(store, job_id), store.wait_list().rows, claim(store)) == ("cancelled", [], [])
    store.job_retry([job_id], "bob")
    assert claim_one(store).job_id == job_id


def test_sent_twice_is_parked_once(store: Store) -> None:
    """A lost answer: the same park again."""
    held = begin(store)
    item = Park(job_id=held.job_id, attempt=1, version=1, generation=1, on=(signal(),))
    assert store.workflow_park([item], "ana") == [Parked(held.job_id, 1)]
    assert store.workflow_park([item], "ana") == [Parked(held.job_id, 1)]
    assert len(store.job_executions(held.job_id)) == 1


def test_a_workflow_that_failed_after_it_was_parked_is_not_parked(store: Store) -> None:
    job_id = parked_for_signal(store)
    send(store, job_id)
    abort(store, claim_one(store), delay=60)
    assert store.wait_list().rows == []
    (found,) = store.workflow_get([job_id])
    assert found is not None
    assert (found.parked_at, found.parked_for, found.due_at) == (None, None, None)
    send(store, job_id)
    assert claim(store) == []


def test_only_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    held = begin(store)
    abort(store, held)
    current = claim_one(store)
    with untouched():
        refused(park(store, held, signal()), LeaseLost, attempt=1)
    clock.advance(LEASE + 1)
    with untouched():
        refused(park(store, current, signal()), LeaseLost)


def test_a_refusal_harms_no_other_item(store: Store) -> None:
    enqueue(store)
    enqueue(store)
    one, two = claim(store)
    finish(store, one)
    items = [Park(job_id=held.job_id, attempt=1, version=1, generation=1, on=(signal(),)) for held in (one, two)]
    lost, parked = store.workflow_park(items, "ana")
    refused(lost, LeaseLost)
    assert parked == Parked(two.job_id, 1)
