"""entity_counts: the rows of a user's own table by state, and never more rows read than allowed."""

from __future__ import annotations

from contextlib import closing

from detent.store.contract import Store
from detent.testing.stores import plain_connection


def test_rows_by_state_up_to_a_number(store: Store, store_url: str) -> None:
    """Rows are counted by state; beyond the allowed number none is read."""
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE orders (id integer PRIMARY KEY, state text NOT NULL)")
        connection.execute("INSERT INTO orders VALUES (1, 'placed'), (2, 'paid'), (3, 'placed')")
        connection.commit()
    assert store.entity_counts("orders", "state", 100) == {"paid": 1, "placed": 2}
    assert sum(store.entity_counts("orders", "state", 2).values()) == 2
