"""recovery_set: whether silent jobs of a queue are stopped without asking."""

from __future__ import annotations

from detent.model.records import Moved
from detent.model.service_records import RecoveryRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.refusals import Untouched


def test_it_is_set_changed_and_taken_back_on_record(store: Store, clock: StoreClock) -> None:
    """R1, E4: per queue, with who, why and when."""
    assert store.recovery_set("mail", 300, 600.5, "ana", "it hangs") == Moved("mail", "automatic", True)
    (row,) = store.recovery_list()
    assert row == RecoveryRow(
        queue="mail",
        stale_after=300.0,
        stalled_after=600.5,
        changed_by="ana",
        reason="it hangs",
        changed_at=clock.now(),
    )
    clock.advance(1)
    assert store.recovery_set("mail", None, 60, "bob") == Moved("mail", "automatic", True)
    assert store.recovery_set("mail", None, None, "bob") == Moved("mail", "approval", True)
    assert store.recovery_list() == []
    lines = store.transitions("recovery", "mail")
    assert [(line.from_state, line.to_state, line.actor) for line in lines] == [
        ("approval", "automatic", "ana"),
        ("automatic", "automatic", "bob"),
        ("automatic", "approval", "bob"),
    ]


def test_the_same_again_changes_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3"""
    store.recovery_set("mail", 300, None, "ana")
    clock.advance(1)
    with untouched():
        assert store.recovery_set("mail", 300, None, "bob") == Moved("mail", "automatic", False)
        assert store.recovery_set("other", None, None, "bob") == Moved("other", "approval", False)
