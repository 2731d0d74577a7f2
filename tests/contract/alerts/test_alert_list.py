"""alert_list: what is wrong now, and what was."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock


def test_those_that_fire_come_first_and_the_newest_of_them(store: Store, clock: StoreClock) -> None:
    """M2"""
    for scope in ("a", "b", "c"):
        store.alert_raise("dead_letters", scope, "warning", "many")
        clock.advance(1)
    store.alert_resolve("dead_letters", "c", "few")
    assert [row.scope for row in store.alert_list()] == ["b", "a", "c"]
    assert [row.scope for row in store.alert_list("firing")] == ["b", "a"]
    assert [row.scope for row in store.alert_list("resolved")] == ["c"]
    assert [row.scope for row in store.alert_list(limit=1)] == ["b"]
