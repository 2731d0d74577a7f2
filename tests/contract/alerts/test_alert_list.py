"""alert_list: what is wrong now, and what was."""

from __future__ import annotations

from detent.model.alert_records import AlertPlace, AlertRow
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


def place(row: AlertRow) -> AlertPlace:
    return AlertPlace(row.state, row.since, row.policy, row.scope)


def test_pages_after_a_place(store: Store, clock: StoreClock) -> None:
    """M2: each alert once, over both states, also those that began at the same moment."""
    for scope in ("a", "b", "c", "d", "e"):
        store.alert_raise("dead_letters", scope, "warning", "many")
    for scope in ("b", "d"):
        store.alert_resolve("dead_letters", scope, "few")
    clock.advance(1)
    store.alert_raise("dead_letters", "f", "warning", "many")
    whole = store.alert_list()
    assert [row.scope for row in whole] == ["f", "e", "c", "a", "d", "b"]
    found: list[AlertRow] = []
    while page := store.alert_list(None, 2, place(found[-1]) if found else None):
        assert len(page) <= 2
        found += page
    assert found == whole
    assert store.alert_list("firing", 10, place(whole[3])) == []
    assert store.alert_list("resolved", 10, place(whole[1])) == whole[4:]
