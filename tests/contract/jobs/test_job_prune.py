"""job_prune: finished jobs go below a recorded horizon, in small portions; keys stay."""

from __future__ import annotations

from datetime import timedelta

from detent.model.limit_records import NewLimit
from detent.model.records import Enqueued, JobPlace, JobsPruned, NewEvent
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock, dump
from tests.contract.jobs.sample_jobs import (
    abort,
    claim,
    claim_one,
    enqueue,
    event,
    finish,
    new_job,
    quarantined,
    state,
    succeeded,
)

RECORDS = ("job", "job_span", "execution", "event", "transition_log", "dead", "unsuccessful", "ready", "waiting")


def test_old_finished_jobs_go_with_all_their_records(store: Store, store_url: str, clock: StoreClock) -> None:
    """J16: of whichever resting state."""
    enqueue(store)
    held = claim_one(store)
    store.event_append([event(held)])
    finish(store, held)
    quarantined(store)
    failed = enqueue(store, dead_letter=False)
    abort(store, claim_one(store), fatal=True)
    store.job_retry([failed], "ana")
    store.job_cancel([failed], "ana")
    store.event_append([NewEvent(job_id=failed, attempt=None, level="info", message="a note")])
    clock.advance(10)
    assert store.job_prune(clock.now(), None, 100, "ana") == JobsPruned(3, None)
    tables = dump(store_url)
    assert {name: tables[name] for name in RECORDS} == {name: [] for name in RECORDS}
    assert len(tables["horizon"]) == 1


def test_what_is_young_or_not_finished_stays(store: Store, clock: StoreClock) -> None:
    """J16: pending and running jobs stay however old they are."""
    old = succeeded(store)
    pending = enqueue(store)
    running = claim_one(store, lease=1e6).job_id
    assert running == pending
    waiting = enqueue(store, due_at=clock.now() + timedelta(days=9))
    horizon = clock.advance(timedelta(days=1))
    young = enqueue(store)
    finish(store, claim_one(store))
    clock.advance(1)
    assert store.job_prune(horizon, None, 100, "ana") == JobsPruned(1, None)
    assert store.job_get([old]) == [None]
    assert [state(store, job_id) for job_id in (running, waiting, young)] == ["running", "pending", "succeeded"]


def test_in_small_portions(store: Store, clock: StoreClock) -> None:
    """J16: each call looks at a bounded number of jobs and says where to go on."""
    ids = []
    for n in range(7):
        job_id = enqueue(store)
        ids.append(job_id)
        if n % 2:
            store.job_cancel([job_id], "ana")
    clock.advance(1)
    after: JobPlace | None = None
    gone, calls = 0, 0
    while True:
        pruned = store.job_prune(clock.now(), after, 3, "ana")
        gone, calls = gone + pruned.jobs, calls + 1
        if pruned.next is None:
            break
        assert after is None or pruned.next > after
        after = pruned.next
    assert gone == 3
    assert 3 <= calls <= 4
    assert [row is None for row in store.job_get(ids)] == [False, True, False, True, False, True, False]
    assert [row.id for row in store.job_list(JobSearch()).rows] == [ids[6], ids[4], ids[2], ids[0]]


def test_the_horizon_only_moves_forward(store: Store, store_url: str, clock: StoreClock) -> None:
    """J16: each new horizon is on record with its actor; an older one adds nothing."""
    succeeded(store)
    first = clock.advance(10)
    second = clock.advance(10)
    store.job_prune(first, None, 100, "ana")
    store.job_prune(second, None, 100, "ana")
    assert len(dump(store_url)["horizon"]) == 2
    store.job_prune(first, None, 100, "bob")
    store.job_prune(second, None, 100, "bob")
    assert len(dump(store_url)["horizon"]) == 2


def test_keys_survive(store: Store, store_url: str, clock: StoreClock) -> None:
    """J3: a key kept for ever answers its job even after that is gone; other verbs deal with keys."""
    kept = succeeded(store, key="for ever")
    succeeded(store, key="for a day", key_ttl=86400.0)
    clock.advance(timedelta(days=2))
    assert store.job_prune(clock.now(), None, 100, "ana").jobs == 2
    assert store.job_enqueue([new_job(store, key="for ever")]) == [Enqueued(kept, False)]
    assert len(dump(store_url)["job_key"]) == 2
    assert claim(store) == []


def test_only_of_the_states_that_were_named(store: Store, clock: StoreClock) -> None:
    """J16: what succeeded may go sooner than what a person still wants to look at."""
    done, dead = succeeded(store), quarantined(store)
    clock.advance(1)
    assert store.job_prune(clock.now(), None, 100, "ana", ("succeeded",)) == JobsPruned(1, None)
    assert [row is None for row in store.job_get([done, dead])] == [True, False]
    assert store.job_prune(clock.now(), None, 100, "ana", ("failed", "quarantined")) == JobsPruned(1, None)


def test_slots_under_limits_go_with_their_jobs(store: Store, store_url: str, clock: StoreClock) -> None:
    """J12, R3: a slot of a job that is gone is damage, so retention leaves none behind."""
    store.limit_put(NewLimit(key="all mail", concurrency_max=9, tasks=("mail.send",)))
    store.limit_put(NewLimit(key="all", concurrency_max=9, queues=("default",)))
    enqueue(store)
    enqueue(store, limit_key="shop:0")
    for held in claim(store):
        finish(store, held)
    clock.advance(1)
    assert len(dump(store_url)["limit_slot"]) == 4
    assert store.job_prune(clock.now(), None, 100, "ana").jobs == 2
    assert dump(store_url)["limit_slot"] == []
    assert store.verify() == []
