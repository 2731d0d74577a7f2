"""Alert policies and routes for tests, and many finished jobs at once."""

from __future__ import annotations

from typing import Any

from detent.model.alert_records import Policy, Route
from detent.model.records import Abort, Finish
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim, new_job

__all__ = ["ALL", "policy", "rested"]

ALL = Route("hook", ("info", "warning", "critical"))


def policy(**overrides: Any) -> Policy:
    """More than fifty dead letters of all together, and whatever is asked for."""
    fields: dict[str, Any] = {
        "name": "dead_letters",
        "measure": "dead_letters",
        "each": "whole",
        "severity": "warning",
        "threshold": 50.0,
        "window_seconds": 0.0,
        "count_min": 0,
        "calm_seconds": 300.0,
        "message": "{value} jobs are quarantined",
    }
    return Policy(**fields | overrides)


def rested(store: Store, *, succeeded: int = 0, failed: int = 0, **overrides: Any) -> list[int]:
    """Run jobs to their end with one attempt each, in a few transactions, and return their ids."""
    count = succeeded + failed
    first = store.ids_reserve(count)
    store.job_enqueue([new_job(store, id=first + n, attempts_max=1, **overrides) for n in range(count)])
    claimed = claim(store, limit=count, tasks=[overrides.get("task", "mail.send")])
    assert len(claimed) == count
    store.job_finish([Finish(one.job_id, one.attempt, None) for one in claimed[:succeeded]], "ana")
    store.job_abort(
        [Abort(job_id=one.job_id, attempt=one.attempt, outcome="error") for one in claimed[succeeded:]], "ana"
    )
    return [one.job_id for one in claimed]
