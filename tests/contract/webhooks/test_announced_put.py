"""announced_put: successes of announced tasks are put on the list when they are counted, and no others."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.alerts.sample_policies import rested
from tests.contract.refusals import Untouched

BOTH = ["noted", "plain"]


def test_successes_of_announced_tasks_are_on_the_list_once(store: Store) -> None:
    store.announced_put(["noted"], BOTH)
    made = rested(store, succeeded=3, task="noted")
    rested(store, succeeded=2, task="plain")
    assert store.failure_report_take(BOTH, 10, 60) == [], "not counted yet"
    while store.counts_fold(1):
        pass
    assert store.failure_report_take(BOTH, 10, 60) == [(job_id, 1) for job_id in sorted(made)]


def test_a_task_that_is_not_announced_any_more(store: Store, untouched: Untouched) -> None:
    """Tasks of other programs stay as they are."""
    store.announced_put(["noted", "plain"], BOTH)
    store.announced_put([], ["noted"])
    with untouched():
        store.announced_put([], ["noted", "nothing"])
        store.announced_put(["plain"], ["plain"])
    rested(store, succeeded=1, task="noted")
    (told,) = rested(store, succeeded=1, task="plain")
    while store.counts_fold(100):
        pass
    assert store.failure_report_take(BOTH, 10, 60) == [(told, 1)]
