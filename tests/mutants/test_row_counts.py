"""Zero rows, and two rows, are answers: a move that did not move exactly its row has not happened."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from detent.errors import TransitionRace
from detent.model.clock import TurnableClock
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.stores import START, dump, plain_connection
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue
from tests.lifecycle.orders import order

ORDER = order()


def test_two_rows_of_one_id_are_not_moved(store: Store, store_url: str) -> None:
    """L4: a user's table whose id is none: nobody can say which of the two was meant."""
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE orders (id text, state text)")
        connection.execute(f"INSERT INTO orders VALUES ('7', '{ORDER.initial}'), ('7', '{ORDER.initial}')")
        connection.commit()
        before = dump(store_url)
        with pytest.raises(TransitionRace):
            store.entity_move(ORDER, "orders", "id", "state", "7", "pay", "ana")
        assert connection.execute("SELECT state FROM orders").fetchall() == [(ORDER.initial,)] * 2
        connection.rollback()
    assert dump(store_url) == before


def test_a_place_in_the_queue_does_not_make_a_job_pending(tmp_path: Path) -> None:
    """L4: the claim asks the job itself, and where it answers otherwise nothing is claimed at all."""
    url = f"sqlite:///{tmp_path}/t.db"
    with closing(open_store(url, clock=TurnableClock(START))) as store:
        store.ready()
        taken = enqueue(store)
        claim_one(store)
        enqueue(store)
        with closing(plain_connection(url)) as connection:
            connection.execute(
                "INSERT INTO detent_ready (lane_id, ready_at, job_id) SELECT id, 0, ? FROM detent_lane", (taken,)
            )
            connection.commit()
        lease_id = store.ids_reserve(1)
        before = dump(url)
        with pytest.raises(TransitionRace):
            claim(store, lease_id=lease_id)
        assert dump(url) == before
