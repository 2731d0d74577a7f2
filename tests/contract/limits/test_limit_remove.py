"""limit_remove: a limit that no code declares any more is taken away."""

from __future__ import annotations

from datetime import timedelta

from detent.errors import InUse, NotFound
from detent.model.limit_records import NewLimit
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue, finish
from tests.contract.refusals import Untouched, refused

LIMIT = NewLimit(key="shop", concurrency_max=1, tasks=("mail.send",))


def test_a_limit_that_nobody_needs_goes_with_its_keys_on_record(store: Store) -> None:
    """J12, E4: afterwards its tasks are bounded no more."""
    store.limit_put(LIMIT)
    enqueue(store, limit_key="shop:7")
    finish(store, claim_one(store))
    assert [one.key for one in store.limit_list()] == ["shop", "shop:7"]
    assert store.limit_remove("shop", "ana", "moved") == Moved("shop", "removed", True)
    assert store.limit_list() == []
    last = store.transitions("limit", "shop")[-1]
    assert (last.to_state, last.trigger, last.actor, last.reason) == ("removed", "remove", "ana", "moved")
    for _ in range(2):
        enqueue(store)
    assert len(claim(store)) == 2


def test_it_stays_while_jobs_wait_or_run_under_it(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J12: ready, waiting for their time, and running ones, by task, by queue and by key."""
    store.limit_put(LIMIT)
    store.limit_put(NewLimit(key="queue:slow", concurrency_max=5, queues=("slow",)))
    enqueue(store)
    enqueue(store, queue="slow", task="mail.drop", due_at=clock.now() + timedelta(hours=1))
    with untouched():
        refused(store.limit_remove("shop", "ana"), InUse, entity="limit", entity_id="shop", jobs=1)
        refused(store.limit_remove("queue:slow", "ana"), InUse, jobs=1)
    held = claim_one(store)
    with untouched():
        refused(store.limit_remove("shop", "ana"), InUse, jobs=1)
    finish(store, held)
    assert store.limit_remove("shop", "ana") == Moved("shop", "removed", True)


def test_one_key_of_many_goes_alone(store: Store, untouched: Untouched) -> None:
    store.limit_put(LIMIT)
    for key in ("shop:7", "shop:8"):
        enqueue(store, limit_key=key)
    seven, _eight = claim(store)
    with untouched():
        refused(store.limit_remove("shop:7", "ana"), InUse, jobs=1)
        refused(store.limit_remove("shop", "ana"), InUse, jobs=2)
    finish(store, seven)
    assert store.limit_remove("shop:7", "ana") == Moved("shop:7", "removed", True)
    assert [one.key for one in store.limit_list()] == ["shop", "shop:8"]


def test_what_is_not_there(store: Store, untouched: Untouched) -> None:
    with untouched():
        refused(store.limit_remove("nobody", "ana"), NotFound, entity="limit", entity_id="nobody")
