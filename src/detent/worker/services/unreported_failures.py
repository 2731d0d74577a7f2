"""Notices failed jobs for which the application's hooks were not called yet. A child then calls them."""

from __future__ import annotations

from collections.abc import Callable

from detent.worker.services.service import Service

__all__ = ["build_failure_service"]

_EVERY = 2.0


def build_failure_service(found: Callable[[], None]) -> Service:
    """Return the service that calls `found` every two seconds while there are failures on the list, in every worker."""
    return Service(
        "failures", _EVERY, lambda _now: found(), at=lambda agenda: agenda.now if agenda.failure_reports else None
    )
