"""alert_sweep: people are reminded, and what is long over goes."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_policies import ALL
from tests.contract.refusals import Untouched

DAY = 86_400.0


def test_what_still_fires_is_said_again_in_good_time(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """M2: at most once in that time, and not of what somebody looks after."""
    store.alert_raise("low", "a", "warning", "low")
    store.alert_raise("low", "b", "warning", "low")
    store.alert_raise("low", "c", "warning", "low")
    store.alert_ack("low", "b", "ana")
    store.alert_resolve("low", "c", "well")
    store.alert_spread([ALL])
    clock.advance(3599)
    with untouched():
        assert store.alert_sweep(3600, 30 * DAY) == 0
    clock.advance(1)
    assert store.alert_sweep(3600, 30 * DAY) == 1
    assert store.alert_sweep(3600, 30 * DAY) == 0
    assert store.alert_spread([ALL]) == 1
    assert [row.kind for row in store.alert_deliveries("low", "a")] == ["still", "firing"]


def test_what_is_long_over_goes(store: Store, clock: StoreClock) -> None:
    """M2, G6: what fires stays, and what comes again is an alert like any other."""
    store.alert_raise("low", "a", "warning", "low")
    store.alert_raise("low", "b", "warning", "low")
    store.alert_resolve("low", "a", "well")
    store.alert_spread([ALL])
    clock.advance(30 * DAY)
    store.alert_sweep(100 * DAY, 30 * DAY)
    assert len(store.alert_list()) == 2
    clock.advance(1)
    store.alert_sweep(100 * DAY, 30 * DAY)
    assert [row.scope for row in store.alert_list()] == ["b"]
    assert store.alert_deliveries("low", "a") == []
    assert store.alert_raise("low", "a", "warning", "low").changed
    assert store.alert_spread([ALL]) == 1
