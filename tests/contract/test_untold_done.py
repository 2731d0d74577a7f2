"""untold_done: told is told."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.kit import LEASE, Untouched, claim
from tests.contract.test_untold_take import TASKS, given_up


def test_nobody_is_told_again(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    made = given_up(store, clock, 2)
    store.untold_take(TASKS, 10, 60)
    store.untold_done(made[:1])
    with untouched():
        store.untold_done(made[:1])
    clock.advance(60)
    assert store.untold_take(TASKS, 10, 60) == made[1:]


def test_given_up_again_is_told_again(store: Store, clock: StoreClock) -> None:
    """A person sent it through once more, and its worker died once more."""
    made = given_up(store, clock)
    store.untold_done(store.untold_take(TASKS, 10, 60))
    store.job_retry(made, "ana")
    claim(store)
    clock.advance(LEASE + 1)
    store.lease_reap(100)
    assert store.untold_take(TASKS, 10, 60) == made
