"""job_enqueue: the way in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from detent.errors import IdConflict
from detent.model.records import Enqueued, JobRow
from detent.store.contract import Store, Verbs
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue, finish, job, new_job, state
from tests.contract.refusals import Untouched, refused


def test_a_job_is_kept_as_it_was_given(store: Store, clock: StoreClock) -> None:
    """J2: task, payload, queue, priority, due time, tenant, correlation id and metadata come back letter for letter."""
    item = new_job(
        store,
        payload='{"to": "Zoë", "n":1.0}',
        tenant="acme",
        queue="mail",
        priority=-3,
        due_at=clock.now() + timedelta(seconds=90, microseconds=1),
        expires_at=clock.now() + timedelta(hours=1),
        metadata='{"a":1}',
        correlation_id="c-1",
        traceparent="00-aa-bb-01",
        run_id=12,
        attempts_max=7,
        dead_letter=False,
        idempotent=False,
        limit_key="smtp",
    )
    assert store.job_enqueue([item]) == [Enqueued(item.id, True)]
    given = msgspec.structs.asdict(item)
    for name in ("fingerprint", "key", "key_ttl", "unique_pending", "group"):
        del given[name]
    made: dict[str, Any] = {
        "created_at": clock.now(),
        "state": "pending",
        "attempt": 0,
        "spared": 0,
        "ended": 0,
        "result": None,
        "error": None,
        "finished_at": None,
        "cancel_requested_at": None,
        "cancel_requested_by": None,
        "cancel_reason": None,
        "lease_id": None,
        "leased_at": None,
        "started_at": None,
        "committed_at": None,
    }
    assert job(store, item.id) == JobRow(**given, **made)


def test_due_now_unless_it_is_due_later(store: Store, clock: StoreClock) -> None:
    at_once = enqueue(store)
    in_the_past = enqueue(store, due_at=clock.now() - timedelta(days=1))
    later = enqueue(store, due_at=clock.now() + timedelta(seconds=1))
    assert job(store, at_once).due_at == job(store, in_the_past).due_at == clock.now()
    assert job(store, later).due_at == clock.now() + timedelta(seconds=1)
    assert [held.job_id for held in claim(store)] == [at_once, in_the_past]


def test_the_same_job_sent_twice_is_one_job(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J2: a retry after a lost connection cannot enqueue twice, whatever has become of the job since."""
    item = new_job(store, key="welcome:7")
    assert store.job_enqueue([item]) == [Enqueued(item.id, True)]
    clock.advance(5)
    with untouched():
        assert store.job_enqueue([item]) == [Enqueued(item.id, False)]
        assert store.job_enqueue([item, item]) == [Enqueued(item.id, False)] * 2
    finish(store, claim_one(store))
    with untouched():
        assert store.job_enqueue([item]) == [Enqueued(item.id, False)]
    assert state(store, item.id) == "succeeded"


def test_twice_in_one_call_is_one_job(store: Store) -> None:
    item = new_job(store)
    assert store.job_enqueue([item, item]) == [Enqueued(item.id, True), Enqueued(item.id, False)]
    assert len(claim(store)) == 1


@pytest.mark.parametrize("other", [{"task": "mail.other"}, {"payload": '{"to":8}'}, {"nonce": 2}])
def test_a_foreign_id_is_refused(store: Store, untouched: Untouched, other: dict[str, Any]) -> None:
    """J2: an id that belongs to another job is an IdConflict; that job is untouched."""
    job_id = enqueue(store)
    enqueue(store, task="mail.other")
    with untouched():
        (answer,) = store.job_enqueue([new_job(store, id=job_id, **other)])
    refused(answer, IdConflict, job_id=job_id)


def test_one_refusal_does_not_undo_a_strangers_work(store: Store) -> None:
    """Answers come item by item, in the order asked."""
    taken = enqueue(store)
    first, wrong, last = new_job(store), new_job(store, id=taken, payload="0"), new_job(store)
    answers = store.job_enqueue([first, wrong, last])
    assert answers[0] == Enqueued(first.id, True)
    refused(answers[1], IdConflict, job_id=taken)
    assert answers[2] == Enqueued(last.id, True)
    assert [held.job_id for held in claim(store)] == [taken, first.id, last.id]


def test_a_refused_item_refuses_its_group(store: Store) -> None:
    """Items of a group are accepted all or not at all, checked before any insert; others are not concerned."""
    taken = enqueue(store, key="k")
    before = new_job(store, group=1, key="fresh")
    wrong = new_job(store, id=taken, payload="0", group=1)
    after = new_job(store, group=1)
    other_group, alone = new_job(store, group=2), new_job(store)
    answers = store.job_enqueue([before, other_group, wrong, alone, after])
    for index in (0, 2, 4):
        refused(answers[index], IdConflict, job_id=taken)
    assert answers[1] == Enqueued(other_group.id, True)
    assert answers[3] == Enqueued(alone.id, True)
    assert store.job_get([before.id, after.id]) == [None, None]
    assert store.job_enqueue([new_job(store, id=before.id, key="fresh")]) == [Enqueued(before.id, True)]


def test_many_at_once(store: Store) -> None:
    first = store.ids_reserve(1000)
    items = [new_job(store, id=first + n, payload=str(n), priority=n % 3) for n in range(1000)]
    assert store.job_enqueue(items) == [Enqueued(item.id, True) for item in items]
    assert [row.payload for row in store.job_get([item.id for item in items]) if row] == [str(n) for n in range(1000)]
    assert len(claim(store, limit=2000)) == 1000


def test_none_at_all(store: Store, untouched: Untouched) -> None:
    with untouched():
        assert store.job_enqueue([]) == []


def test_together_is_all_or_nothing(store: Store, untouched: Untouched) -> None:
    """What `work` raises rolls everything back."""
    item = new_job(store)

    class ChangedMyMind(Exception):
        pass

    def work(verbs: Verbs) -> None:
        assert verbs.job_enqueue([item]) == [Enqueued(item.id, True)]
        raise ChangedMyMind

    with untouched(), pytest.raises(ChangedMyMind):
        store.together(work)
    assert store.together(lambda verbs: verbs.job_enqueue([item])) == [Enqueued(item.id, True)]
    assert state(store, item.id) == "pending"


def test_one_of_many_that_is_there_already_leaves_the_others_new(store: Store) -> None:
    """J2: however far the rest had come when it was met, each is enqueued once and can be claimed."""
    known = new_job(store)
    store.job_enqueue([known])
    many = [new_job(store) for _ in range(120)]
    many.insert(100, known)
    assert store.job_enqueue(many) == [Enqueued(item.id, item is not known) for item in many]
    assert {held.job_id for held in claim(store, limit=200)} == {item.id for item in many}
    assert store.verify() == []
