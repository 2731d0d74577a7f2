"""The record is checked while it is in use (R2)."""

from __future__ import annotations

import logging

from detent.model.records import Violation
from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["Invariants"]

log = logging.getLogger("detent.worker")

_EVERY = 600.0
_REMEMBERED_MAX = 10_000


class Invariants:
    """Says each violation once; one that was mended and comes back is said again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[Violation] = set()

    def service(self) -> Service:
        """Every ten minutes, by one worker."""
        return Service("invariants", _EVERY, self.run, alone=True)

    def run(self, _now: float) -> None:
        """Check all of them."""
        found = set(self._store.verify()[:_REMEMBERED_MAX])
        for violation in sorted(found - self._known, key=lambda one: (one.invariant, one.entity, one.entity_id)):
            log.error(
                "invariant %s does not hold for %s %s: %s",
                *(violation.invariant, violation.entity, violation.entity_id, violation.detail),
            )
        self._known = found
