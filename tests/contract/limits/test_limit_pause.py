"""limit_pause: nobody begins under a limit until somebody says so."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.limit_records import NewLimit
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue, finish
from tests.contract.refusals import Untouched, refused

TASK = "mail.send"


def test_nothing_begins_and_what_runs_goes_on(store: Store, clock: StoreClock) -> None:
    """J12, E4: by hand, on record, and for as long as it takes."""
    store.limit_put(NewLimit(key="shop", concurrency_max=3, tasks=(TASK,)))
    for _ in range(2):
        enqueue(store)
    held = claim_one(store, limit=1)
    assert store.limit_pause("shop", "ana", "their sale") == Moved("shop", "paused", True)
    clock.advance(20)
    assert claim(store) == []
    finish(store, held)
    (row,) = store.limit_list()
    assert row.held_at is not None
    _made, line = store.transitions("limit", "shop")
    assert (line.from_state, line.to_state, line.actor, line.reason) == ("closed", "paused", "ana", "their sale")


def test_pausing_again_changes_nothing(store: Store, untouched: Untouched) -> None:
    store.limit_put(NewLimit(key="shop", tasks=(TASK,)))
    store.limit_pause("shop", "ana")
    with untouched():
        assert store.limit_pause("shop", "bob", "me too") == Moved("shop", "paused", False)


def test_a_reset_ends_it(store: Store) -> None:
    store.limit_put(NewLimit(key="shop", tasks=(TASK,)))
    store.limit_pause("shop", "ana")
    enqueue(store)
    assert store.limit_reset("shop", "bob") == Moved("shop", "closed", True)
    assert claim_one(store)
    assert [line.trigger for line in store.transitions("limit", "shop")] == ["create", "pause", "reset"]


def test_a_limit_put_again_stays_paused(store: Store) -> None:
    """Workers say their limits when they start; a start does not undo what a person did."""
    store.limit_put(NewLimit(key="shop", tasks=(TASK,)))
    store.limit_pause("shop", "ana")
    store.limit_put(NewLimit(key="shop", tasks=(TASK,)))
    enqueue(store)
    assert claim(store) == []


def test_a_key_is_paused_before_anybody_has_claimed_under_it(store: Store) -> None:
    store.limit_put(NewLimit(key=TASK, concurrency_max=3, tasks=(TASK,)))
    enqueue(store, limit_key="shop:1")
    other = enqueue(store, limit_key="shop:2")
    assert store.limit_pause("shop:1", "ana") == Moved("shop:1", "paused", True)
    assert [one.job_id for one in claim(store)] == [other]


def test_a_limit_that_is_not_there(store: Store, untouched: Untouched) -> None:
    with untouched():
        refused(store.limit_pause("nobody", "ana"), NotFound, entity_id="nobody")
        refused(store.limit_pause("", "ana"), NotFound, entity_id="")
