"""alert_ack: somebody looks after it."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.refusals import Untouched


def test_who_and_why_are_on_record(store: Store, clock: StoreClock) -> None:
    """M2, E4"""
    store.alert_raise("dead_letters", "queue:mail", "critical", "101 dead letters")
    clock.advance(5)
    assert store.alert_ack("dead_letters", "queue:mail", "ana", "on it") == Moved(
        "dead_letters/queue:mail", "firing", True
    )
    (row,) = store.alert_list("firing")
    assert (row.acknowledged_at, row.acknowledged_by, row.acknowledged_reason) == (clock.now(), "ana", "on it")
    line = store.transitions("alert", "dead_letters/queue:mail")[-1]
    assert (line.trigger, line.actor, line.reason) == ("acknowledge", "ana", "on it")


def test_the_first_one_stands(store: Store, untouched: Untouched) -> None:
    """L3"""
    store.alert_raise("dead_letters", "", "critical", "101 dead letters")
    store.alert_ack("dead_letters", "", "ana")
    with untouched():
        assert store.alert_ack("dead_letters", "", "bob") == Moved("dead_letters", "firing", False)
    store.alert_resolve("dead_letters", "", "none")
    with untouched():
        assert store.alert_ack("dead_letters", "", "bob") == Moved("dead_letters", "resolved", False)


def test_what_is_not_there_is_not_found(store: Store, untouched: Untouched) -> None:
    with untouched():
        refused = store.alert_ack("dead_letters", "queue:mail", "ana")
    assert isinstance(refused, NotFound)
    assert "dead_letters/queue:mail" in str(refused)
