"""Jobs that have come due, and jobs whose time has passed."""

from __future__ import annotations

from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["expire", "promote"]

_BATCH = 500
_ROUNDS_MAX = 20


def promote(store: Store) -> Service:
    """Whatever waits for its time becomes claimable within a second of it. What was enqueued for less than two seconds
    later may be up to two late where nothing else happens: workers hear of it with their next sign of life."""

    def run(_now: float) -> None:
        for _ in range(_ROUNDS_MAX):
            if store.job_promote(_BATCH) < _BATCH:
                return

    return Service("promote", 0.2, run, at=lambda agenda: agenda.promote_at)


def expire(store: Store) -> Service:
    """Pending jobs whose expiry has passed are cancelled."""

    def run(_now: float) -> None:
        for _ in range(_ROUNDS_MAX):
            if len(store.job_expire(_BATCH)) < _BATCH:
                return

    return Service("expire", 1.0, run, at=lambda agenda: agenda.expire_at)
