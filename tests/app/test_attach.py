"""A lifecycle of the user's own: the same enforcement, the same record (L6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from detent import Lifecycle, Transition
from detent.errors import InvalidInput, InvalidTransition, NotFound, UnknownState
from tests.app.shop import Shop

ORDER = Lifecycle(
    "order",
    states={"placed": "Ordered.", "paid": "Paid.", "sent": "On its way.", "dropped": "Given up."},
    initial="placed",
    final=frozenset({"sent", "dropped"}),
    transitions=(
        Transition("placed", "paid", "pay", "gateway", "The money has come."),
        Transition("paid", "sent", "send", "warehouse", "The parcel has left."),
        Transition("placed", "dropped", "drop", "customer", "The customer changed their mind."),
    ),
)


@pytest.fixture
def orders(shop: Shop) -> Iterator[Any]:
    """The user's own table, attached and guarded, with one order in it; a connection of the user's own."""
    shop.app.lifecycles.attach(ORDER, table="orders", id="id", state="state")
    with shop.connect() as connection:
        connection.execute("CREATE TABLE orders (id integer PRIMARY KEY, state text NOT NULL)")
        connection.commit()
        shop.app.migrate()
        connection.execute("INSERT INTO orders VALUES (1, 'placed')")
        connection.commit()
        yield connection
    assert shop.app.record.verify() == [], "the guards of the table are definitions too"


def test_a_declared_move_and_its_history(shop: Shop, orders: Any) -> None:
    """L6, E4: actor, reason and metadata are on record; the beginning too."""
    moved = shop.app.lifecycles.move(ORDER, 1, "pay", actor="gateway", reason="card", metadata={"sum": 5})
    assert (moved.state, moved.changed) == ("paid", True)
    assert not shop.app.lifecycles.move(ORDER, 1, "pay", actor="gateway").changed
    assert shop.app.lifecycles.move(ORDER, "1", "send", actor="dhl").state == "sent"
    lines = shop.app.lifecycles.history(ORDER, 1)
    assert [(line.from_state, line.to_state, line.trigger, line.actor) for line in lines] == [
        (None, "placed", "create", "database"),
        ("placed", "paid", "pay", "gateway"),
        ("paid", "sent", "send", "dhl"),
    ]
    assert (lines[1].reason, lines[1].metadata) == ("card", '{"sum":5}')


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE orders SET state = 'sent' WHERE id = 1",
        "UPDATE orders SET state = 'paid' WHERE id = 1",
        "UPDATE orders SET state = 'melted' WHERE id = 1",
        "INSERT INTO orders VALUES (2, 'paid')",
    ],
)
def test_by_hand_the_database_refuses(shop: Shop, orders: Any, statement: str) -> None:
    """L2, L6: undeclared, or declared but without its record."""
    with shop.untouched(), pytest.raises(Exception, match=r"DT0|cannot go|begin|transition_log") as refusal:
        orders.execute(statement)
    orders.rollback()
    assert type(refusal.value).__module__.partition(".")[0] in ("sqlite3", "psycopg")
    assert orders.execute("SELECT id, state FROM orders").fetchall() == [(1, "placed")]
    orders.rollback()


def test_an_undeclared_move_is_refused(shop: Shop, orders: Any) -> None:
    """L2"""
    with shop.untouched(), pytest.raises(InvalidTransition) as refusal:
        shop.app.lifecycles.move(ORDER, 1, "send", actor="dhl")
    assert str(refusal.value) == "order 1 cannot go from placed to sent; allowed from placed: paid, dropped"


def test_what_is_not_there(shop: Shop, orders: Any) -> None:
    with shop.untouched():
        with pytest.raises(NotFound, match="there is no order 9"):
            shop.app.lifecycles.move(ORDER, 9, "pay", actor="ana")
        with pytest.raises(InvalidInput, match="trigger: found 'melt'; allowed: pay, send, drop"):
            shop.app.lifecycles.move(ORDER, 1, "melt", actor="ana")
        with pytest.raises(InvalidInput, match="entity id: found NUL at character 1"):
            shop.app.lifecycles.move(ORDER, "1\0", "pay", actor="ana")
        with pytest.raises(InvalidInput, match="metadata: found a value of type list; allowed: a mapping"):
            shop.app.lifecycles.move(ORDER, 1, "pay", actor="ana", metadata=[1])  # type: ignore[arg-type]


def test_rows_in_states_that_are_not_declared(shop: Shop) -> None:
    """L6, L7: they are counted and named, and no guard is installed that would hold them there for ever."""
    shop.app.lifecycles.attach(ORDER, table="orders")
    with shop.connect() as connection:
        connection.execute("CREATE TABLE orders (id integer PRIMARY KEY, state text)")
        connection.execute("INSERT INTO orders VALUES (1, 'placed'), (2, 'lost'), (3, 'lost'), (4, NULL)")
        connection.commit()
        with pytest.raises(UnknownState) as refusal:
            shop.app.migrate()
        assert refusal.value.detail == (
            "3 rows are in states that are not declared: 'lost' (2), None (1); nothing was changed"
        )
        assert (refusal.value.entity, refusal.value.entity_id, refusal.value.state) == ("order", "2", "lost")
        connection.execute("UPDATE orders SET state = 'dropped' WHERE id > 1")
        connection.commit()
        shop.app.migrate()
        with pytest.raises(Exception, match=r"cannot go|DT002"):
            connection.execute("UPDATE orders SET state = 'lost' WHERE id = 1")
        connection.rollback()


def test_a_table_that_is_not_there(shop: Shop) -> None:
    shop.app.lifecycles.attach(ORDER, table="orders")
    with pytest.raises(NotFound, match="there is no table orders"):
        shop.app.migrate()


def test_what_is_not_attached_is_not_moved(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match="lifecycle: found 'order', which is not attached; allowed: none yet"):
        shop.app.lifecycles.move(ORDER, 1, "pay", actor="ana")


@pytest.mark.parametrize("name", ["", "a b", "orders; DROP TABLE x", 'o"rders', "a.b.c", 7, "é"])
def test_names_are_plain(shop: Shop, name: Any) -> None:
    for field in ("table", "id", "state"):
        with pytest.raises(InvalidInput) as refusal:
            shop.app.lifecycles.attach(ORDER, **({"table": "orders"} | {field: name}))
        assert refusal.value.field == field
    assert shop.app.lifecycles.list() == []


def test_attaching_twice_or_over_our_own(shop: Shop) -> None:
    shop.app.lifecycles.attach(ORDER, table="orders")
    with pytest.raises(InvalidInput, match="lifecycle: found 'order' attached twice"):
        shop.app.lifecycles.attach(ORDER, table="orders")
    job = Lifecycle("job", states=ORDER.states, initial="placed", final=ORDER.final, transitions=ORDER.transitions)
    with pytest.raises(InvalidInput, match="the name 'job', which is Detent's own"):
        shop.app.lifecycles.attach(job, table="jobs")
