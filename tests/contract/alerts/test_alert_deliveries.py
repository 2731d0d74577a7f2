"""alert_deliveries: what was told of an alert."""

from __future__ import annotations

from detent.model.alert_records import DeliveryRow, Route
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_policies import ALL


def test_the_newest_first_at_each_sink(store: Store, clock: StoreClock) -> None:
    """M2"""
    store.alert_raise("low", "queue:mail", "warning", "low")
    clock.advance(1)
    store.alert_resolve("low", "queue:mail", "well")
    store.alert_raise("low", "queue:other", "warning", "low")
    clock.advance(1)
    store.alert_spread([Route("mail", ALL.severities), ALL])
    rows = store.alert_deliveries("low", "queue:mail")
    assert [(row.kind, row.sink) for row in rows] == [
        ("resolved", "hook"),
        ("resolved", "mail"),
        ("firing", "hook"),
        ("firing", "mail"),
    ]
    assert rows[0] == DeliveryRow(
        sink="hook",
        kind="resolved",
        episode=1,
        message="well",
        at=rows[0].at,
        state="pending",
        tries=0,
        due_at=clock.now(),
        sent_at=None,
        error=None,
    )
    assert len(store.alert_deliveries("low", "queue:mail", limit=1)) == 1
