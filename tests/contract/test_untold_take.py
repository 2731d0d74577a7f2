"""untold_take: what the reaper gave up is told by somebody, and by one at a time."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.kit import LEASE, abort, claim, claim_one, enqueue, state

TASKS = ("mail.send",)


def given_up(store: Store, clock: StoreClock, count: int = 1, **overrides: object) -> list[int]:
    """Jobs whose last attempt died with its worker."""
    made = [enqueue(store, attempts_max=1, **overrides) for _ in range(count)]
    claim(store)
    clock.advance(LEASE + 1)
    store.lease_reap(100)
    return made


def test_what_the_reaper_gave_up_is_told_once(store: Store, clock: StoreClock) -> None:
    """W6: nobody else gets it meanwhile; where the one who has it dies, somebody else does."""
    made = given_up(store, clock, 3)
    assert store.untold_take(TASKS, 2, 60) == made[:2]
    assert store.untold_take(TASKS, 10, 60) == made[2:]
    assert store.untold_take(TASKS, 10, 60) == []
    clock.advance(60)
    assert store.untold_take(TASKS, 10, 60) == made


def test_a_job_without_dead_letters_too(store: Store, clock: StoreClock) -> None:
    (made,) = given_up(store, clock, dead_letter=False)
    assert (state(store, made), store.untold_take(TASKS, 10, 60)) == ("failed", [made])


def test_only_tasks_that_the_caller_knows(store: Store, clock: StoreClock) -> None:
    (made,) = given_up(store, clock)
    assert store.untold_take(["other"], 10, 60) == []
    assert store.untold_take(["other", *TASKS], 10, 60) == [made]


def test_what_is_tried_again_or_was_ended_by_its_holder_is_not_there(store: Store, clock: StoreClock) -> None:
    """Its holder tells of what it gave up itself."""
    enqueue(store)
    claim(store)
    clock.advance(LEASE + 1)
    store.lease_reap(100)
    abort(store, claim_one(store), fatal=True)
    assert store.untold_take(TASKS, 10, 60) == []
