"""job_enqueue with keys, and inside the caller's own transaction."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

import pytest

from detent.errors import DetentError, IdConflict, KeyConflict
from detent.model.records import Abort, Enqueued, Finish
from detent.store.contract import Store
from detent.testing.stores import StoreClock, plain_connection
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, enqueue, finish, job, new_job
from tests.contract.refusals import Untouched, refused


def test_the_same_key_answers_the_same_job(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J3: in whatever state it is, and whatever else the second request asks for."""
    first = enqueue(store, key="welcome:7")
    with untouched():
        again = new_job(store, id=first + 1000, key="welcome:7")
        assert store.job_enqueue([again]) == [Enqueued(first, False)]
    finish(store, claim_one(store))
    urgent = new_job(store, key="welcome:7", priority=5, queue="other")
    assert store.job_enqueue([urgent]) == [Enqueued(first, False)]
    clock.advance(timedelta(days=365))
    assert store.job_enqueue([new_job(store, key="welcome:7")]) == [Enqueued(first, False)]
    assert claim(store) == []


def test_the_order_of_fields_makes_no_other_payload(store: Store) -> None:
    first = enqueue(store, key="k", payload='{"a":1,"b":2}')
    assert store.job_enqueue([new_job(store, key="k", payload='{"b":2,"a":1}')]) == [Enqueued(first, False)]


@pytest.mark.parametrize("other", [{"payload": '{"to":8}'}, {"task": "mail.other"}])
def test_another_payload_under_the_key_is_refused(store: Store, untouched: Untouched, other: dict[str, object]) -> None:
    """J3: a KeyConflict that names the first job, which is untouched."""
    first = enqueue(store, key="k", tenant="acme")
    enqueue(store, tenant="acme", **other)
    fresh = store.ids_reserve(1)
    with untouched():
        (answer,) = store.job_enqueue([new_job(store, id=fresh, key="k", tenant="acme", **other)])
    refused(answer, KeyConflict, key="k", tenant="acme", job_id=first)


def test_each_tenant_has_keys_of_its_own(store: Store) -> None:
    """J3: unique per tenant."""
    ids = {enqueue(store, key="k", tenant=tenant, payload=f'"{tenant}"') for tenant in ("", "acme", "bolt")}
    assert len(ids) == 3


def test_a_key_seen_earlier_in_the_call_counts_as_taken(store: Store) -> None:
    """J3"""
    first, same, other = new_job(store, key="k"), new_job(store, key="k"), new_job(store, key="k", payload="0")
    answers = store.job_enqueue([first, same, other])
    assert answers[:2] == [Enqueued(first.id, True), Enqueued(first.id, False)]
    refused(answers[2], KeyConflict, key="k", tenant="", job_id=first.id)
    assert len(claim(store)) == 1


def test_a_key_conflict_refuses_its_group(store: Store) -> None:
    taken = enqueue(store, key="k")
    friend, wrong = new_job(store, group=1, key="friend"), new_job(store, group=1, key="k", payload="0")
    for answer in store.job_enqueue([friend, wrong]):
        refused(answer, KeyConflict, key="k", tenant="", job_id=taken)
    assert store.job_get([friend.id]) == [None]
    assert store.job_enqueue([friend]) == [Enqueued(friend.id, True)]


def test_an_id_conflict_takes_no_key(store: Store, untouched: Untouched) -> None:
    taken = enqueue(store)
    wrong = new_job(store, id=taken, payload="0", key="k")
    with untouched():
        refused(store.job_enqueue([wrong])[0], IdConflict, job_id=taken)
    enqueue(store, key="k", payload="1")


def test_a_key_may_expire(store: Store, clock: StoreClock) -> None:
    """J3: kept for ever or for a while; an expired one counts as absent, for any payload."""
    first = enqueue(store, key="k", key_ttl=60.0)
    clock.advance(59.9)
    assert store.job_enqueue([new_job(store, key="k", key_ttl=60.0)]) == [Enqueued(first, False)]
    clock.advance(0.2)
    second = enqueue(store, key="k", payload='"other"')
    assert store.job_enqueue([new_job(store, key="k", payload='"other"')]) == [Enqueued(second, False)]
    refused(store.job_enqueue([new_job(store, key="k")])[0], KeyConflict, job_id=second)


def test_unique_while_pending(store: Store, clock: StoreClock) -> None:
    """J12: the key is given back at the first claim, and a job that returns to pending does not take it again."""
    first = enqueue(store, key="sync", unique_pending=True)
    assert store.job_enqueue([new_job(store, key="sync", unique_pending=True)]) == [Enqueued(first, False)]
    held = claim_one(store)
    second = enqueue(store, key="sync", unique_pending=True)
    abort(store, held, "released")
    assert job(store, first).state == job(store, second).state == "pending"
    assert store.job_enqueue([new_job(store, key="sync", unique_pending=True)]) == [Enqueued(second, False)]
    assert {held.job_id for held in claim(store)} == {first, second}
    enqueue(store, key="sync", unique_pending=True)


def test_unique_while_pending_ends_with_any_way_out_of_pending(store: Store, clock: StoreClock) -> None:
    """J12: cancelled, expired or forced away, the key is free again."""
    cancelled = enqueue(store, key="sync", unique_pending=True)
    store.job_cancel([cancelled], "ana")
    expiring = enqueue(store, key="sync", unique_pending=True, expires_at=clock.now() + timedelta(seconds=1))
    clock.advance(2)
    assert store.job_expire(10) == [expiring]
    forced = enqueue(store, key="sync", unique_pending=True, due_at=clock.now() + timedelta(hours=1))
    store.job_force(forced, "quarantined", "ana", "not today")
    enqueue(store, key="sync", unique_pending=True)


def test_an_ordinary_key_is_not_given_back_by_a_claim(store: Store, clock: StoreClock) -> None:
    first = enqueue(store, key="k")
    claim_one(store)
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    assert store.job_enqueue([new_job(store, key="k")]) == [Enqueued(first, False)]


def test_in_the_callers_own_transaction(store: Store, store_url: str) -> None:
    """J2: what the caller rolls back was never there; what it commits is there with the caller's own rows."""
    gone, kept = new_job(store, key="gone"), new_job(store, key="kept")
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE orders (id integer)")
        connection.commit()
        connection.execute("INSERT INTO orders VALUES (1)")
        assert store.on(connection).job_enqueue([gone]) == [Enqueued(gone.id, True)]
        connection.rollback()
        connection.execute("INSERT INTO orders VALUES (2)")
        assert store.on(connection).job_enqueue([kept]) == [Enqueued(kept.id, True)]
        connection.commit()
        assert connection.execute("SELECT id FROM orders").fetchall() == [(2,)]
    assert store.job_get([gone.id]) == [None]
    assert [held.job_id for held in claim(store)] == [kept.id]
    enqueue(store, key="gone", payload='"its key was never taken"')


def test_a_refusal_leaves_the_callers_transaction_usable(store: Store, store_url: str) -> None:
    taken = enqueue(store, key="k")
    after = new_job(store)
    with closing(plain_connection(store_url)) as connection:
        verbs = store.on(connection)
        refused(verbs.job_enqueue([new_job(store, key="k", payload="0")])[0], KeyConflict, job_id=taken)
        refused(verbs.job_enqueue([new_job(store, id=taken, payload="0")])[0], IdConflict, job_id=taken)
        assert verbs.job_enqueue([after]) == [Enqueued(after.id, True)]
        connection.commit()
    assert job(store, after.id).state == "pending"


ACTIVE = "detent:active:sync"
"""A key of a task that is unique while active; `declare/enqueue.py` makes such keys."""


def test_unique_while_active(store: Store, clock: StoreClock) -> None:
    """J3: pending or running, also between two attempts; free as soon as the job rests, however it came to rest."""

    def ask() -> Enqueued | DetentError:
        return store.job_enqueue([new_job(store, key=ACTIVE, key_ttl=3600.0)])[0]

    first = enqueue(store, key=ACTIVE, key_ttl=3600.0)
    assert ask() == Enqueued(first, False)
    held = claim_one(store)
    assert ask() == Enqueued(first, False)
    store.job_abort([Abort(job_id=first, attempt=held.attempt, outcome="error", error="no", delay=5.0)], "ana")
    assert ask() == Enqueued(first, False)
    clock.advance(5)
    store.job_promote(10)
    held = claim_one(store)
    store.job_finish([Finish(first, held.attempt)], "ana")
    second = ask()
    assert isinstance(second, Enqueued)
    assert second.created
    assert ask() == Enqueued(second.job_id, False)
    store.job_cancel([second.job_id], "ana")
    third = ask()
    assert isinstance(third, Enqueued)
    assert third.created
    assert store.verify() == []


def test_unique_while_active_in_one_call(store: Store) -> None:
    """The first of the call holds the key already."""
    first, second = (new_job(store, key=ACTIVE, key_ttl=3600.0) for _ in range(2))
    assert store.job_enqueue([first, second]) == [Enqueued(first.id, True), Enqueued(first.id, False)]
