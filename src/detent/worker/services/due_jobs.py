"""Makes jobs claimable when they are due, wakes workflows, and cancels jobs that have expired."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from detent.model.records import BadRow, EachDone
from detent.store.contract import Store
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["build_expire_service", "build_promote_service", "build_wake_service"]

_BATCH = 500
_ROUNDS_MAX = 20


def build_promote_service(store: Store) -> Service:
    """Return the service that makes jobs claimable within a second after they are due.

    A job that was enqueued to run less than two seconds later may be up to two seconds late if nothing else happens:
    workers learn of it with their next heartbeat.
    """
    isolation = DamageIsolation("promote", store)

    def promoted(limit: int) -> tuple[int, Sequence[BadRow]]:
        return store.job_promote(limit), ()

    def run(now: float) -> None:
        _in_rounds(isolation, now, promoted, store.job_promote_each)

    return Service("promote", 0.2, run, at=lambda agenda: agenda.promote_at)


def build_wake_service(store: Store) -> Service:
    """Return the service that wakes workflows which could not be woken at once by what they wait for."""

    def run(now: float) -> None:
        for _ in range(_ROUNDS_MAX):
            if store.workflow_wake(_BATCH) < _BATCH:
                return

    return Service("wake", 0.2, run, at=lambda agenda: agenda.now if agenda.wake_requests else None)


def build_expire_service(store: Store) -> Service:
    """Return the service that cancels pending jobs whose expiry has passed."""
    isolation = DamageIsolation("expire", store)

    def expired(limit: int) -> tuple[int, Sequence[BadRow]]:
        return len(store.job_expire(limit)), ()

    def run(now: float) -> None:
        _in_rounds(isolation, now, expired, store.job_expire_each)

    return Service("expire", 1.0, run, at=lambda agenda: agenda.expire_at)


def _in_rounds(
    isolation: DamageIsolation,
    now: float,
    batch: Callable[[int], tuple[int, Sequence[BadRow]]],
    each: Callable[[int, Sequence[int]], EachDone],
) -> None:
    """Handle batches until one is not full, at most a bounded number of them."""

    def one_by_one(skip: Sequence[int]) -> tuple[int, Sequence[BadRow]]:
        done = each(_BATCH, skip)
        return len(done.done) + len(done.bad), done.bad

    for _ in range(_ROUNDS_MAX):
        looked, _bad = isolation.run(now, lambda: batch(_BATCH), one_by_one, lambda done: done[1])
        if looked < _BATCH:
            return
