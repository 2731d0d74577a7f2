"""A log that grows because a reader keeps its snapshot open: an alert says so, until the log is short again."""

from __future__ import annotations

import msgspec

from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["POLICY", "LogGrowth"]

POLICY = "log_growth"
_EVERY = 30.0
_FIRING_MAX = 10_000


class LogGrowth:
    """Looks at the length of the log, which costs no question to the database. The alert is raised at the second look
    that finds a long log: one long transaction makes a log long for a moment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._was_long = False
        self._fires: bool | None = None

    def service(self) -> Service:
        """By every worker: it is less work than to agree on one of them."""
        return Service("log_growth", _EVERY, self.run)

    def run(self, _now: float) -> None:
        """Look, and raise or resolve the alert."""
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
        """A worker before this one may have raised it."""
        if self._fires is None:
            self._fires = any(row.policy == POLICY for row in self._store.alert_list("firing", _FIRING_MAX))
        return self._fires
