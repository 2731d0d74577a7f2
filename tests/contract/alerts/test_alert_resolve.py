"""alert_resolve: it is well again."""

from __future__ import annotations

from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_notices import notices
from tests.contract.refusals import Untouched


def test_it_is_resolved_on_record_and_to_be_told(store: Store, clock: StoreClock, store_url: str) -> None:
    """M2, E4"""
    store.alert_raise("run_partial", "run:7", "warning", "20 of 200 failed", '{"failed":20}')
    clock.advance(60)
    assert store.alert_resolve("run_partial", "run:7", "all are applied", actor="ana") == Moved(
        "run_partial/run:7", "resolved", True
    )
    (row,) = store.alert_list("resolved")
    assert row.resolved_at == row.notified_at == clock.now()
    line = store.transitions("alert", "run_partial/run:7")[-1]
    assert (line.from_state, line.to_state, line.trigger, line.actor, line.reason) == (
        *("firing", "resolved", "resolve", "ana", "all are applied"),
    )
    assert notices(store_url)[-1] == ("run_partial", "run:7", 1, "resolved")


def test_what_comes_and_goes_stays_until_it_is_calm(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """M2: flapping is told once."""
    store.alert_raise("throttled", "", "warning", "4 in 5 minutes")
    clock.advance(200)
    store.alert_raise("throttled", "", "warning", "5 in 5 minutes")
    clock.advance(299.9)
    with untouched():
        assert store.alert_resolve("throttled", "", "none", calm=300) == Moved("throttled", "firing", False)
    clock.advance(0.1)
    assert store.alert_resolve("throttled", "", "none", calm=300) == Moved("throttled", "resolved", True)


def test_what_does_not_fire_stays_as_it_is(store: Store, untouched: Untouched) -> None:
    """L3"""
    store.alert_raise("throttled", "", "warning", "4 in 5 minutes")
    store.alert_resolve("throttled", "", "none")
    with untouched():
        assert store.alert_resolve("throttled", "", "none") == Moved("throttled", "resolved", False)
        assert store.alert_resolve("throttled", "queue:mail", "none") == Moved(
            "throttled/queue:mail", "resolved", False
        )
