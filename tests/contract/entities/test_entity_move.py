"""entity_move: a user's own entity, moved by the same rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from detent.errors import DetentError, InvalidInput, InvalidTransition, NotFound, UnknownState
from detent.lifecycle.definition import Lifecycle, Transition
from detent.lifecycle.library import OWN_NAMES
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock, plain_connection
from tests.contract.refusals import Untouched, refused

ORDER = Lifecycle(
    "order",
    states={"placed": "Ordered.", "paid": "Paid.", "sent": "On its way.", "dropped": "Given up."},
    initial="placed",
    final=frozenset({"sent", "dropped"}),
    transitions=(
        Transition("placed", "paid", "pay", "gateway", "The money has come."),
        Transition("paid", "sent", "send", "warehouse", "The parcel has left."),
        Transition("placed", "dropped", "drop", "customer", "The customer changed their mind."),
        Transition("paid", "dropped", "drop", "customer", "The money goes back."),
    ),
)


class Orders:
    """The user's own table, looked at with the user's own connection."""

    def __init__(self, store: Store, connection: Any) -> None:
        self.store = store
        self.connection = connection

    def state_of(self, order_id: int) -> str:
        row = self.connection.execute(f"SELECT state FROM orders WHERE id = {order_id}").fetchone()
        self.connection.rollback()
        return str(row[0])

    def move(self, order_id: int, trigger: str, actor: str = "ana", **more: Any) -> Moved | DetentError:
        return self.store.entity_move(ORDER, "orders", "id", "state", str(order_id), trigger, actor, **more)


@pytest.fixture
def orders(store: Store, store_url: str) -> Iterator[Orders]:
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE orders (id integer PRIMARY KEY, state text NOT NULL)")
        connection.execute("INSERT INTO orders VALUES (1, 'placed'), (2, 'paid'), (3, 'melted')")
        connection.commit()
        yield Orders(store, connection)


def test_a_declared_move_with_its_record(orders: Orders, clock: StoreClock) -> None:
    """L6, E4: enforced, and on record with actor, reason and metadata; the neighbour stays."""
    clock.advance(1)
    assert orders.move(1, "pay", "gateway", reason="paid in full", metadata='{"eur":5}') == Moved("1", "paid", True)
    assert (orders.state_of(1), orders.state_of(2)) == ("paid", "paid")
    (line,) = orders.store.transitions("order", "1")
    assert (line.from_state, line.to_state, line.trigger) == ("placed", "paid", "pay")
    assert (line.actor, line.reason, line.metadata, line.at) == ("gateway", "paid in full", '{"eur":5}', clock.now())


def test_an_undeclared_move_is_refused(orders: Orders) -> None:
    """L2: names the entity, from, and what would have been allowed; row and record are untouched."""
    answer = orders.move(1, "send")
    refused(
        answer,
        InvalidTransition,
        entity="order",
        entity_id="1",
        from_state="placed",
        to_state="sent",
        allowed=ORDER.allowed("placed"),
    )
    assert orders.state_of(1) == "placed"
    assert orders.store.transitions("order", "1") == []


def test_there_already_is_nothing_to_do(orders: Orders) -> None:
    """L3: no second audit entry."""
    assert orders.move(2, "pay") == Moved("2", "paid", False)
    assert orders.store.transitions("order", "2") == []
    assert orders.move(2, "drop") == Moved("2", "dropped", True)
    assert orders.move(2, "drop") == Moved("2", "dropped", False)
    assert len(orders.store.transitions("order", "2")) == 1


def test_no_such_row(orders: Orders) -> None:
    refused(orders.move(9, "pay"), NotFound, entity="order", entity_id="9")


def test_a_state_unknown_to_this_version_is_reported(orders: Orders) -> None:
    """L8: never guessed."""
    refused(orders.move(3, "pay"), UnknownState, entity="order", entity_id="3", state="melted")
    assert orders.state_of(3) == "melted"


def test_the_past_of_an_entity(orders: Orders, clock: StoreClock) -> None:
    """E5"""
    paid = clock.advance(5)
    orders.move(2, "send")
    orders.move(1, "pay")
    sent = clock.advance(5)
    orders.move(1, "send")
    store = orders.store
    assert store.state_as_of("order", "1", paid) == "paid"
    assert store.state_as_of("order", "1", sent) == "sent"
    assert store.state_as_of("order", "9", sent) is None


def test_a_lifecycle_under_a_name_of_detents_own_is_refused(orders: Orders, untouched: Untouched) -> None:
    """E1, E4: otherwise a caller could write lines into the record of queues, limits, alerts and so on."""
    assert len(OWN_NAMES) >= 15
    with untouched():
        for name in OWN_NAMES:
            forged = replace(ORDER, name=name)
            with pytest.raises(InvalidInput, match=f"the name '{name}', which is Detent's own"):
                orders.store.entity_move(forged, "orders", "id", "state", "1", "pay", "mallory")
    assert orders.state_of(1) == "placed"
