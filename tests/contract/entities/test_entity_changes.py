"""entity_changes: explicit changes of one entity after a line, in order."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.refusals import Untouched


def test_after_a_line(store: Store, untouched: Untouched) -> None:
    store.queue_pause("mail", "ana", "down")
    store.queue_pause("other", "ana")
    store.queue_resume("mail", "ben")
    store.queue_pause("mail", "eve")
    with untouched():
        first, second, third = store.entity_changes("queue", "mail")
        assert [row.actor for row in (first, second, third)] == ["ana", "ben", "eve"]
        assert store.entity_changes("queue", "mail", first.n) == [second, third]
        assert store.entity_changes("queue", "mail", first.n, 1) == [second]
        assert store.entity_changes("queue", "mail", third.n) == store.entity_changes("queue", "none") == []
