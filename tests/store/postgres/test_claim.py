"""What only PostgreSQL's claim has: locked rows, bounds, and dead rows under somebody's snapshot."""

from __future__ import annotations

import time
from contextlib import closing

import psycopg
import pytest

from detent.model.clock import TurnableClock
from detent.model.records import NewEvent
from detent.store.open import open_store
from detent.store.postgres.driver.lane_memory import SECONDS_MAX, ClaimBounds
from detent.store.postgres.store import PostgresStore
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, new_job
from tests.deadlines import scaled

TOUCHED = """
SELECT coalesce(idx_tup_read, 0) FROM pg_stat_user_indexes WHERE indexrelname = 'ready_pkey'
"""

SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'detent'"


@pytest.mark.parametrize("lanes", [1, 2])
def test_what_others_hold_is_passed_over(postgres_store_url: str, lanes: int) -> None:
    """J4: neither a note nor a cancel in an open transaction makes a claim wait; what they held is claimed later."""
    with closing(open_store(postgres_store_url)) as store, psycopg.connect(postgres_store_url) as connection:
        noted, cancelled, free = (enqueue(store, priority=n % lanes) for n in range(3))
        verbs = store.on(connection)
        verbs.event_append([NewEvent(job_id=noted, attempt=None, level="info", message="wait for me")])
        verbs.job_cancel([cancelled], "ana")
        assert [held.job_id for held in claim(store)] == [free]
        connection.rollback()
        assert sorted(held.job_id for held in claim(store)) == sorted([noted, cancelled])


def test_bounds_are_kept_for_a_second_at_most() -> None:
    clock = TurnableClock()
    bounds = ClaimBounds(clock)
    bounds.reach({1: (clock.now(), 7)})
    assert bounds.known() == {1: (clock.now(), 7)}
    clock.advance(SECONDS_MAX)
    assert bounds.known() == {}
    bounds.reach({1: (clock.now(), 7)})
    bounds.admit([8, 9])
    assert set(bounds.known()) == {1}
    bounds.admit([9, 7])
    assert bounds.known() == {}
    bounds.reach({1: (clock.now(), 7)})
    bounds.forget()
    assert bounds.known() == {}


def test_what_comes_in_below_a_bound_is_not_lost(postgres_store_url: str) -> None:
    """J4: no job is starved. Put back by this process: next. By another: when a claim comes back short, or within a
    second of this process's time."""
    clock = TurnableClock()
    with (
        closing(PostgresStore(postgres_store_url, clock=clock)) as store,
        closing(PostgresStore(postgres_store_url)) as other,
    ):
        ids = [enqueue(store) for _ in range(6)]
        first, second = claim(store, limit=2)
        abort(store, first, "released")
        assert claim_one(store, limit=1).job_id == ids[0]
        assert claim_one(store, limit=1).job_id == ids[2]
        abort(other, second, "released")
        assert claim_one(store, limit=1).job_id == ids[3]
        clock.advance(SECONDS_MAX)
        second = claim_one(store, limit=1)
        assert second.job_id == ids[1]
        assert claim_one(store, limit=1).job_id == ids[4]
        abort(other, second, "released")
        assert [held.job_id for held in claim(store, limit=10)] == [ids[1], ids[5]]


@pytest.mark.parametrize("lanes", [1, 3])
def test_dead_rows_under_a_held_snapshot_are_not_walked_again(postgres_store_url: str, lanes: int) -> None:
    """A snapshot that somebody holds keeps every claimed row in the index; a claim begins behind them."""
    clock = TurnableClock()
    with closing(PostgresStore(postgres_store_url, clock=clock, connections_max=1)) as store:
        first = store.ids_reserve(3000)
        store.job_enqueue([new_job(store, id=first + n, priority=n % lanes) for n in range(3000)])
        with (
            psycopg.connect(postgres_store_url) as holder,
            psycopg.connect(postgres_store_url, autocommit=True) as look,
        ):
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM detent.ready")

            def rows_read() -> int:
                store.close()  # a session that ends hands in its figures
                until = time.monotonic() + scaled(30)
                while look.execute(SESSIONS).fetchone() != (0,):
                    assert time.monotonic() < until
                row = look.execute(TOUCHED).fetchone()
                assert row is not None
                return int(row[0])

            claim(store, limit=2500)
            before = rows_read()
            claim(store, limit=10)
            touched = rows_read() - before
            # A step along the lanes reads up to a hundred ready rows; the 2,500 dead ones are not read again.
            assert touched < 100 + 10 * 10 * lanes
            clock.advance(SECONDS_MAX)
            claim(store, limit=10)
            assert rows_read() - before - touched > 1000
