"""alert_get: one alert, firing or resolved."""

from __future__ import annotations

from detent.store.contract import Store


def test_by_policy_and_scope(store: Store) -> None:
    """M2"""
    store.alert_raise("dead_letters", "queue:mail", "warning", "many")
    found = store.alert_get("dead_letters", "queue:mail")
    assert found is not None
    assert (found.state, found.message) == ("firing", "many")
    store.alert_resolve("dead_letters", "queue:mail", "few")
    assert store.alert_get("dead_letters", "queue:mail") == store.alert_list()[0]
    assert store.alert_get("dead_letters", "") is None
