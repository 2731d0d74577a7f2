"""Failures that an application has not been told of."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, claim, enqueue

__all__ = ["TASKS", "given_up"]

TASKS = ("mail.send",)


def given_up(store: Store, clock: StoreClock, count: int = 1, **overrides: object) -> list[tuple[int, int]]:
    """Jobs whose last attempt died with its worker, each with that attempt."""
    made = [enqueue(store, attempts_max=1, **overrides) for _ in range(count)]
    claim(store)
    clock.advance(LEASE + 1)
    store.lease_reap(100)
    return [(job_id, 1) for job_id in made]
