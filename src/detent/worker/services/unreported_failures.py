"""Finds out that there are failed jobs that their application has not heard of. A child then tells it."""

from __future__ import annotations

from collections.abc import Callable

from detent.worker.services.service import Service

__all__ = ["failures"]

_EVERY = 2.0


def failures(found: Callable[[], None]) -> Service:
    """Call `found` every two seconds while there are failures on the list, in every worker."""
    return Service("failures", _EVERY, lambda _now: found(), at=lambda agenda: agenda.now if agenda.untold else None)
