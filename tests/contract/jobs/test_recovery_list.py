"""recovery_list: the queues that need no approval."""

from __future__ import annotations

from detent.store.contract import Store


def test_by_name(store: Store) -> None:
    """R1"""
    for queue in ("b", "ä", "B"):
        store.recovery_set(queue, 300, 600, "ana")
    assert [row.queue for row in store.recovery_list()] == ["B", "b", "ä"]
