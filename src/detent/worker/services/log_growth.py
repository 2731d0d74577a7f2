"""Raises an alert while the write-ahead log grows because a reader keeps its snapshot open."""

from __future__ import annotations

import msgspec

from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["POLICY", "LogGrowth"]

POLICY = "log_growth"
_EVERY = 30.0
_FIRING_MAX = 10_000


class LogGrowth:
    """Checks the size of the log, which needs no query. The alert is raised by the second check in a row that finds a
    long log, because a single long transaction makes the log long for a moment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._was_long = False
        self._fires: bool | None = None

    def service(self) -> Service:
        """Return the service: by every worker, which is less work than agreeing on one of them."""
        return Service("log_growth", _EVERY, self.run)

    def run(self, _now: float) -> None:
        """Check the log, and raise or resolve the alert."""
        found = self._store.log_growth()
        if found is None:
            return
        was_long, self._was_long = self._was_long, found.is_long
        if found.is_long and was_long:
            facts = {"bytes": found.bytes, "readers": found.readers}
            text = msgspec.json.encode(facts).decode()
            self._store.alert_raise(POLICY, "", "warning", found.message, text, float(found.bytes))
            self._fires = True
        elif not found.is_long and self._may_fire():
            self._store.alert_resolve(POLICY, "", "the write-ahead log is short again")
            self._fires = False

    def _may_fire(self) -> bool:
        """Return whether the alert may be firing. An earlier worker may have raised it."""
        if self._fires is None:
            self._fires = any(row.policy == POLICY for row in self._store.alert_list("firing", _FIRING_MAX))
        return self._fires
