"""The alert about a log that grows behind a reader."""

from __future__ import annotations

from typing import Any, cast

from detent.model.database_facts import LogGrowth as Growth
from detent.store.contract import Store
from detent.worker.services.log_growth import LogGrowth

LONG = Growth(bytes=70 << 20, is_long=True, readers=(4242,))
SHORT = Growth(bytes=1 << 20, is_long=False)


class DeliveryOutcome:
    """A real store with a log of any length: to write a long one takes too long for both databases."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.found: Growth | None = SHORT

    def log_growth(self) -> Growth | None:
        return self.found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def firing(store: Store) -> list[str]:
    return [row.message for row in store.alert_list("firing", 100) if row.policy == "log_growth"]


def test_a_log_that_stays_long_raises_an_alert_until_it_is_short(store: Store) -> None:
    """M2: also if the worker that raised it is gone."""
    told = DeliveryOutcome(store)
    service = LogGrowth(cast(Store, told))
    told.found = LONG
    service.run(0.0)
    assert firing(store) == [], "one long transaction is no reason"
    service.run(30.0)
    (message,) = firing(store)
    assert message.startswith("the write-ahead log holds 70 MB")
    assert "a reader (process 4242)" in message
    told.found = SHORT
    LogGrowth(cast(Store, told)).run(0.0)
    assert firing(store) == []


def test_where_the_server_looks_after_its_log_nothing_is_asked(store: Store) -> None:
    told = DeliveryOutcome(store)
    told.found = None
    service = LogGrowth(cast(Store, told))
    service.run(0.0)
    service.run(30.0)
    assert firing(store) == []
