"""failure_report_put: ends that are to be told of, failures or not."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_failures import TASKS, given_up
from tests.contract.refusals import Untouched


def test_what_is_put_is_taken(store: Store) -> None:
    store.failure_report_put([(7, 2, TASKS[0]), (5, 1, TASKS[0])])
    store.failure_report_put([])
    assert store.failure_report_take(TASKS, 10, 60) == [(5, 1), (7, 2)]


def test_what_is_on_the_list_stays_as_it_is(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    made = given_up(store, clock)
    store.failure_report_take(TASKS, 10, 60)
    with untouched():
        store.failure_report_put([(*one, TASKS[0]) for one in made])
    assert store.failure_report_take(TASKS, 10, 60) == []
