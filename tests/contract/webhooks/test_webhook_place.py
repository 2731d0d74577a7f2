"""webhook_place: how far a target has been told."""

from __future__ import annotations

from detent.store.contract import Store


def test_a_target_has_the_place_that_it_was_moved_to(store: Store) -> None:
    assert store.webhook_place("erp") is None
    store.webhook_move("erp", None, "17")
    store.webhook_move("crm", None, "5~3")
    assert (store.webhook_place("erp"), store.webhook_place("crm")) == ("17", "5~3")
