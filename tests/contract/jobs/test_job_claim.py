"""job_claim: first in, first out within priority, tenants in turn, each job to one caller."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, enqueue, job, new_job, state
from tests.contract.refusals import Untouched


def claimed_ids(store: Store, **options: Any) -> list[int]:
    return [held.job_id for held in claim(store, **options)]


def test_the_claimer_holds_the_job(store: Store, clock: StoreClock) -> None:
    """J5: an attempt that only grows, a lease by the database's clock, and everything a worker needs to know."""
    job_id = enqueue(
        store, tenant="acme", queue="mail", metadata='{"a":1}', correlation_id="c", traceparent="t", run_id=3
    )
    clock.advance(5)
    lease_id = store.ids_reserve(1)
    assert claim(store, lease_id=lease_id) == [
        Claimed(job_id, 1, "mail.send", '{"to":7}', "acme", "mail", '{"a":1}', "c", "t", 3, 0, 4)
    ]
    row = job(store, job_id)
    assert (row.state, row.attempt, row.ended, row.spared) == ("running", 1, 0, 0)
    assert (row.lease_id, row.leased_at, row.started_at, row.committed_at) == (lease_id, clock.now(), None, None)
    (execution,) = store.job_executions(job_id)
    assert (execution.state, execution.worker, execution.lease_id) == ("leased", "ana", lease_id)
    assert execution.expires_at == clock.now() + timedelta(seconds=LEASE)


def test_a_claimed_job_is_not_handed_out_again(store: Store) -> None:
    """J4"""
    enqueue(store)
    assert len(claim(store)) == 1
    assert claim(store) == []


def test_nothing_to_claim_writes_nothing(store: Store, untouched: Untouched) -> None:
    lease_id = store.ids_reserve(1)
    with untouched():
        assert claim(store, lease_id=lease_id) == []
    enqueue(store)
    with untouched():
        assert claim(store, lease_id=lease_id, tasks=[]) == []
        assert claim(store, lease_id=lease_id, limit=0) == []


def test_higher_priority_first_then_first_in_first_out(store: Store, clock: StoreClock) -> None:
    """J4"""
    plain = enqueue(store)
    low = enqueue(store, priority=-1)
    clock.advance(1)
    high = enqueue(store, priority=9)
    high_too = enqueue(store, priority=9)
    plain_later = enqueue(store)
    assert claimed_ids(store) == [high, high_too, plain, plain_later, low]


def test_first_in_is_first_due(store: Store, clock: StoreClock) -> None:
    """A job that becomes due later stands behind what is due already, whatever its id."""
    first, second = new_job(store, due_at=clock.now() + timedelta(seconds=5)), new_job(store)
    store.job_enqueue([first, second])
    clock.advance(5)
    assert store.job_promote(10) == 1
    assert claimed_ids(store) == [second.id, first.id]


def test_the_order_holds_over_tasks_and_queues(store: Store, clock: StoreClock) -> None:
    """J4: several tasks and queues are one line to the worker that knows them all."""
    expected = []
    for n in range(12):
        expected.append(enqueue(store, task=f"task.{n % 3}", queue=f"queue.{n % 2}"))
        clock.advance(1)
    assert claimed_ids(store, tasks=["task.0", "task.1", "task.2"]) == expected


def test_in_portions(store: Store) -> None:
    ids = [enqueue(store, priority=n % 2) for n in range(10)]
    taken = [claimed_ids(store, limit=3) for _ in range(5)]
    assert [len(portion) for portion in taken] == [3, 3, 3, 1, 0]
    assert [job_id for portion in taken for job_id in portion] == ids[1::2] + ids[0::2]


def test_tenants_take_turns(store: Store) -> None:
    """J4: a greedy tenant delays nobody; turns are alphabetical and go on after the one served last."""
    greedy = [enqueue(store, tenant="a") for _ in range(5)]
    modest = [enqueue(store, tenant="b") for _ in range(2)]
    late = enqueue(store, tenant="c", priority=5)
    assert claimed_ids(store, limit=4) == [greedy[0], modest[0], late, greedy[1]]
    assert claimed_ids(store, limit=2, after_tenant="a") == [modest[1], greedy[2]]
    assert claimed_ids(store, limit=9, after_tenant="zzz") == greedy[3:]


def test_priority_holds_within_a_tenant_only(store: Store) -> None:
    """First in, first out within priority is each tenant's own: a tenant's high priority does not starve another's."""
    a_low, a_high = enqueue(store, tenant="a"), enqueue(store, tenant="a", priority=9)
    b_low, b_high = enqueue(store, tenant="b", priority=-9), enqueue(store, tenant="b", priority=-8)
    assert claimed_ids(store) == [a_high, b_high, a_low, b_low]


def test_only_what_the_worker_asks_for(store: Store) -> None:
    """J4: an optional filter by queue and tenant; tasks that a worker does not know stay for others."""
    mail = enqueue(store, queue="mail")
    acme = enqueue(store, tenant="acme")
    other = enqueue(store, task="report")
    assert claimed_ids(store, tasks=["nobody knows"]) == []
    assert claimed_ids(store, queues=[]) == []
    assert claimed_ids(store, tenants=[]) == []
    assert claimed_ids(store, queues=["mail"]) == [mail]
    assert claimed_ids(store, tenants=["acme", "bolt"]) == [acme]
    assert claimed_ids(store, tasks=["report", "mail.send"]) == [other]


def test_a_paused_queue_is_not_entered(store: Store) -> None:
    """J12"""
    stuck = enqueue(store, queue="mail", priority=9)
    free = enqueue(store)
    store.queue_pause("mail", "ana")
    assert claimed_ids(store) == [free]
    assert claimed_ids(store, queues=["mail"]) == []
    store.queue_resume("mail", "ana")
    assert claimed_ids(store) == [stuck]


def test_each_claim_is_a_new_attempt(store: Store, clock: StoreClock) -> None:
    """J7: attempts only grow, also those that do not count."""
    job_id = enqueue(store)
    for attempt in (1, 2, 3):
        held = claim_one(store)
        assert (held.job_id, held.attempt, held.spared) == (job_id, attempt, attempt - 1)
        store.job_start([(held.job_id, held.attempt)])
        clock.advance(1)
        abort(store, held, "released")
    held = claim_one(store)
    assert held.attempt == 4
    assert job(store, job_id).started_at is None
    assert state(store, job_id) == "running"


def test_many_jobs_under_one_lease(store: Store) -> None:
    lease_id = store.ids_reserve(1)
    ids = [enqueue(store) for _ in range(20)]
    assert claimed_ids(store, lease_id=lease_id) == ids
    assert {row.lease_id for row in store.job_get(ids) if row} == {lease_id}
