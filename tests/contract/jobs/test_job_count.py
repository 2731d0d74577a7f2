"""job_count: how many jobs fit."""

from __future__ import annotations

from detent.store.contract import Store
from detent.store.jobs.filters import JobFilter
from tests.contract.jobs.sample_jobs import enqueue, quarantined


def test_each_part_of_the_filter_counts(store: Store) -> None:
    """J14: first how many it would touch."""
    quarantined(store, queue="mail")
    enqueue(store, queue="mail", tenant="t")
    enqueue(store, task="other")
    counts = {
        JobFilter(): 3,
        JobFilter(state="quarantined"): 1,
        JobFilter(queue="mail"): 2,
        JobFilter(task="other"): 1,
        JobFilter(tenant="t"): 1,
        JobFilter(tenant=""): 2,
        JobFilter(state="pending", queue="mail", task="mail.send", tenant="t"): 1,
        JobFilter(state="running"): 0,
    }
    assert {chosen: store.job_count(chosen) for chosen in counts} == counts
