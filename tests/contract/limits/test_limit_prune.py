"""limit_prune: limits that a template made go when they say nothing that the template does not."""

from __future__ import annotations

from detent.model.limit_records import NewLimit
from detent.model.service_records import LimitsPruned
from detent.store.contract import Store
from detent.testing.stores import StoreClock, dump
from tests.contract.jobs.sample_jobs import claim, enqueue, finish

TASK = "mail.send"


def keys(store: Store) -> list[str]:
    return sorted(row.key for row in store.limit_list() if row.template is not None)


def test_idle_ones_go_in_small_portions_and_the_template_stays(store: Store, clock: StoreClock) -> None:
    """J12: one that something runs under stays, and one whose bucket is not full."""
    store.limit_put(NewLimit(key=TASK, rate=1, burst=2, tasks=(TASK,)))
    made = [enqueue(store, limit_key=f"shop:{n}") for n in range(6)]
    held = {one.job_id: one for one in claim(store, limit=100)}
    assert sorted(held) == made
    assert store.limit_prune("", 100) == LimitsPruned(0, None)
    for job_id in made[1:]:
        finish(store, held[job_id])
    assert store.limit_prune("", 100) == LimitsPruned(0, None)
    clock.advance(5)
    after, gone = "", []
    while True:
        went = store.limit_prune(after, 2)
        gone.append(went.limits)
        if went.next is None:
            break
        assert went.next > after
        after = went.next
    assert sum(gone) == 5
    assert max(gone) <= 2
    assert keys(store) == ["shop:0"]
    assert TASK in {row.key for row in store.limit_list()}


def test_a_bucket_that_no_longer_fills_is_not_waited_for(store: Store) -> None:
    """J12: the limits of a template that lost its rate were kept, since their buckets never filled again."""
    store.limit_put(NewLimit(key=TASK, rate=1, burst=2, tasks=(TASK,)))
    enqueue(store, limit_key="shop:0")
    (held,) = claim(store, limit=100)
    finish(store, held)
    store.limit_put(NewLimit(key=TASK, rate=None, burst=2, concurrency_max=3, tasks=(TASK,)))
    assert store.limit_prune("", 100) == LimitsPruned(1, None)
    assert keys(store) == []


def test_slots_of_attempts_that_have_ended_go(store: Store, store_url: str) -> None:
    """J12, R3: nothing else deletes them if no job is claimed under the limit any more."""
    store.limit_put(NewLimit(key=TASK, concurrency_max=3, tasks=(TASK,)))
    running, done = enqueue(store), enqueue(store)
    held = {one.job_id: one for one in claim(store)}
    finish(store, held[done])
    assert len(dump(store_url)["limit_slot"]) == 2
    assert store.limit_prune("", 100) == LimitsPruned(0, None)
    ((key, job_id, *_),) = dump(store_url)["limit_slot"]
    assert (key, job_id) == (TASK, running)


def test_slots_of_keys_that_ran_before_their_limit_go(store: Store, store_url: str) -> None:
    """J12: a slot that limit_put made had no limit of its own, so no walk along the limits met it."""
    enqueue(store, limit_key="shop:0")
    (held,) = claim(store)
    store.limit_put(NewLimit(key=TASK, concurrency_max=3, tasks=(TASK,)))
    assert keys(store) == ["shop:0"]
    finish(store, held)
    assert store.limit_prune("", 100) == LimitsPruned(1, None)
    assert dump(store_url)["limit_slot"] == []
