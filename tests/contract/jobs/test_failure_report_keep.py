"""failure_report_keep: a caller that is still telling keeps what it took."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_failures import TASKS, given_up
from tests.contract.refusals import Untouched


def test_nobody_else_gets_it_for_longer(store: Store, clock: StoreClock) -> None:
    """A hook that takes longer than the first term is not called for the same failure elsewhere meanwhile."""
    made = given_up(store, clock, 2)
    store.failure_report_take(TASKS, 10, 60)
    clock.advance(50)
    store.failure_report_keep(made[:1], 60)
    clock.advance(50)
    assert store.failure_report_take(TASKS, 10, 60) == made[1:]
    clock.advance(10)
    assert store.failure_report_take(TASKS, 10, 60) == made[:1]


def test_what_was_told_does_not_come_back(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    made = given_up(store, clock)
    store.failure_report_done(made)
    with untouched():
        store.failure_report_keep(made, 60)
    assert store.failure_report_take(TASKS, 10, 60) == []
