"""The commit boundary on PostgreSQL: whom it stops, whom it does not, and what a lost COMMIT means."""

from __future__ import annotations

from contextlib import closing, nullcontext
from time import sleep
from typing import Literal

import psycopg
import pytest

from detent.errors import AlreadyCommitted, DatabaseError, DatabaseUnreachable, LeaseLost, OutcomeUnknown, WrongPlace
from detent.model.clock import TurnableClock
from detent.model.records import Cancelled, Enqueued
from detent.store.open import open_store
from detent.store.postgres.store import PostgresStore
from tests.contract.jobs.sample_jobs import LEASE, claim_one, enqueue, job, new_job
from tests.store.postgres.connections import behind_proxy, run_sql

ORDERS = "CREATE TABLE orders (id integer PRIMARY KEY)"


def effects(url: str) -> list[tuple[object, ...]]:
    return run_sql(url, "SELECT id FROM orders ORDER BY id")


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_lost_answer_is_looked_up(postgres_store_url: str, fault: Literal["before", "after"]) -> None:
    """C6: committed is what was wanted; not committed is a failure that may be tried again. Never twice."""
    run_sql(postgres_store_url, ORDERS)
    with behind_proxy(postgres_store_url, fault) as (url, armed), closing(open_store(url)) as store:
        job_id = enqueue(store)
        held = claim_one(store)

        def apply() -> None:
            with store.commit_block(job_id, held.attempt) as tx:
                tx.execute("INSERT INTO orders VALUES (:id)", {"id": 1})
                tx.result('"paid"')
                armed.set()

        if fault == "after":
            apply()
            assert job(store, job_id).committed_at is not None
            with pytest.raises(AlreadyCommitted):
                apply()
        else:
            with pytest.raises(DatabaseUnreachable, match="the commit did not happen"):
                apply()
            assert job(store, job_id).committed_at is None
            assert effects(postgres_store_url) == []
            apply_again = store.commit_block(job_id, held.attempt)
            with apply_again as tx:
                tx.execute("INSERT INTO orders VALUES (1)")
        assert effects(postgres_store_url) == [(1,)]


def test_where_nobody_can_look_the_outcome_stays_unknown(postgres_store_url: str) -> None:
    """C6, G7"""
    run_sql(postgres_store_url, ORDERS)
    clock = TurnableClock()
    with behind_proxy(postgres_store_url, "after") as (url, armed):
        store = PostgresStore(url, clock=clock, connections_max=1, wait_seconds_max=0.05)
        job_id = enqueue(store)
        held = claim_one(store)
        block = store.commit_block(job_id, held.attempt)
        tx = block.__enter__()
        tx.execute("INSERT INTO orders VALUES (1)")
        armed.set()
        database = postgres_store_url.rpartition("/")[2]
        run_sql(
            postgres_store_url.rpartition("/")[0] + "/postgres", f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS off'
        )
        with pytest.raises(OutcomeUnknown):
            block.__exit__(None, None, None)
        run_sql(
            postgres_store_url.rpartition("/")[0] + "/postgres", f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS on'
        )
        store.close()
    assert effects(postgres_store_url) == [(1,)]


def test_an_open_block_stops_nobody(postgres_store_url: str) -> None:
    """Renewal, the reaper and a cancel pass by; the mark then tells what became of the lease."""
    run_sql(postgres_store_url, ORDERS)
    with closing(open_store(postgres_store_url)) as store:
        job_id = enqueue(store)
        lease_id = store.ids_reserve(1)
        held = claim_one(store, lease_id=lease_id)
        with store.commit_block(job_id, held.attempt) as tx:
            tx.execute("INSERT INTO orders VALUES (1)")
            assert store.lease_renew([lease_id], LEASE, {job_id: 0.5})[0].held
            assert store.lease_reap(10).leases == 0
            assert store.job_cancel([job_id], "ana") == [Cancelled(job_id, "running")]
        assert job(store, job_id).committed_at is not None


def test_the_users_own_commit_is_not_a_mark(postgres_store_url: str) -> None:
    """C2: it is refused before it is run, so nothing of the block stays. Where it hides behind other words, it ends the
    block's promise, and the job is not marked."""
    run_sql(postgres_store_url, ORDERS)
    with closing(open_store(postgres_store_url)) as store:
        job_id = enqueue(store)
        held = claim_one(store)
        for end in (
            "COMMIT",
            "-- so\n/* there */ commit and chain",
            "END",
            "ROLLBACK",
            "ABORT",
            "PREPARE TRANSACTION 'x'",
        ):
            ended = pytest.raises(WrongPlace, match="COMMIT or ROLLBACK")
            with ended, store.commit_block(job_id, held.attempt) as tx:
                tx.execute("INSERT INTO orders VALUES (1)")
                tx.execute(end)
        assert effects(postgres_store_url) == []
        with ended, store.commit_block(job_id, held.attempt) as tx:
            tx.execute("SELECT 1; ROLLBACK")
        assert job(store, job_id).committed_at is None
        with store.commit_block(job_id, held.attempt) as tx:
            tx.execute("SAVEPOINT mine")
            tx.execute("INSERT INTO orders VALUES (1)")
            tx.execute("ROLLBACK TO mine")
            tx.execute("ROLLBACK WORK TO SAVEPOINT mine")
        assert effects(postgres_store_url) == []
        assert job(store, job_id).committed_at is not None


def test_the_users_mistakes_are_the_users(postgres_store_url: str) -> None:
    """C2: they come out as the driver says them, and nothing of the block stays."""
    run_sql(postgres_store_url, ORDERS)
    with closing(open_store(postgres_store_url)) as store:
        job_id = enqueue(store)
        held = claim_one(store)
        with pytest.raises(psycopg.errors.UniqueViolation), store.commit_block(job_id, held.attempt) as tx:
            tx.execute("INSERT INTO orders VALUES (1), (1)")
        assert effects(postgres_store_url) == []
        with store.commit_block(job_id, held.attempt) as tx:
            assert tx.execute("INSERT INTO orders VALUES (:a), (:b) RETURNING id", {"a": 1, "b": 2}) == (
                [(1,), (2,)],
                2,
            )
            assert tx.execute("SELECT id FROM orders WHERE id % 2 = :odd", {"odd": 1}) == ([(1,)], 1)
            assert tx.connection.execute("SELECT count(*) FROM orders").fetchone() == (2,)


def test_a_block_may_idle_as_long_as_its_lease_has_left(postgres_store_url: str) -> None:
    """An open transaction never outlives its lease by idling, so it holds nothing back; the session is as before."""
    with closing(open_store(postgres_store_url)) as store:
        job_id = enqueue(store)
        held = claim_one(store)
        run_sql(postgres_store_url, "UPDATE detent.test_clock SET at = at + interval '4 seconds'")
        with store.commit_block(job_id, held.attempt) as tx:
            assert tx.execute("SHOW idle_in_transaction_session_timeout")[0] == [(f"{LEASE - 4:g}s",)]
        assert store.together(lambda verbs: verbs.now()) is not None


@pytest.mark.parametrize("then", ["a statement", "an intent", "the mark", "an error of its own"])
def test_a_block_that_idles_for_longer_is_ended_by_the_server(postgres_store_url: str, then: str) -> None:
    """C4, R4: it comes out as what the database did, whatever the block does next; nothing of it stays, and the job is
    still there for the next attempt."""
    run_sql(postgres_store_url, ORDERS)
    with closing(open_store(postgres_store_url)) as store:
        job_id = enqueue(store)
        held = claim_one(store)

        def too_slow() -> None:
            with store.commit_block(job_id, held.attempt) as tx:
                tx.execute("INSERT INTO orders VALUES (1)")
                # As if its lease had been nearly over: from here on, so that the machine may be slow until here.
                tx.execute("SET LOCAL idle_in_transaction_session_timeout = '50ms'")
                wait_until_ended(postgres_store_url)
                if then == "a statement":
                    tx.execute("INSERT INTO orders VALUES (2)")
                elif then == "an intent":
                    tx.intend(new_job(store))
                elif then == "an error of its own":
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError if then == "an error of its own" else DatabaseUnreachable) as raised:
            too_slow()
        assert isinstance(raised.value, ZeroDivisionError) or "idle for too long" in str(raised.value)
        assert effects(postgres_store_url) == []
        assert job(store, job_id).committed_at is None
        with store.commit_block(job_id, held.attempt) as tx:
            tx.execute("INSERT INTO orders VALUES (3)")
        assert effects(postgres_store_url) == [(3,)]


def wait_until_ended(url: str) -> None:
    """Until nobody idles inside a transaction there."""
    while run_sql(
        url, "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()"
    ):
        sleep(0.05)


def test_the_mark_refuses_whoever_lost_the_lease_meanwhile(postgres_store_url: str) -> None:
    """C4: the check at the beginning is not enough."""
    run_sql(postgres_store_url, ORDERS)
    with closing(open_store(postgres_store_url)) as store:
        job_id = enqueue(store)
        held = claim_one(store)
        block = store.commit_block(job_id, held.attempt)
        block.__enter__().execute("INSERT INTO orders VALUES (1)")
        run_sql(postgres_store_url, f"UPDATE detent.test_clock SET at = at + interval '{LEASE} seconds'")
        with pytest.raises(LeaseLost, match="its lease has expired"):
            block.__exit__(None, None, None)
        assert effects(postgres_store_url) == []


def test_of_two_blocks_of_one_attempt_the_first_to_end_is_the_commit(postgres_store_url: str) -> None:
    """C1: the second found no commit when it began, and finds one at its end."""
    run_sql(postgres_store_url, ORDERS)
    with closing(open_store(postgres_store_url)) as store:
        job_id = enqueue(store)
        held = claim_one(store)
        late = store.commit_block(job_id, held.attempt)
        late.__enter__().execute("INSERT INTO orders VALUES (1)")
        with store.commit_block(job_id, held.attempt) as tx:
            tx.execute("INSERT INTO orders VALUES (2)")
        with pytest.raises(AlreadyCommitted):
            late.__exit__(None, None, None)
        assert effects(postgres_store_url) == [(2,)]


@pytest.mark.parametrize("piped", [False, True])
def test_a_verb_on_the_connection_of_a_block_goes_the_way_of_its_user(postgres_store_url: str, piped: bool) -> None:
    """Who has the connection in hand may have thrown away what was prepared, or pile up what he sends: the verb found
    nothing prepared, or waited for ever."""
    with closing(open_store(postgres_store_url)) as store:
        for _ in range(2):
            job_id, second = enqueue(store), new_job(store)
            held = claim_one(store)
            with store.commit_block(job_id, held.attempt) as tx:
                tx.connection.execute("DEALLOCATE ALL")
                with tx.connection.pipeline() if piped else nullcontext():
                    assert store.on(tx.connection).job_enqueue([second]) == [Enqueued(second.id, True)]
            assert job(store, job_id).committed_at is not None
            assert claim_one(store).job_id == second.id


def test_what_stands_behind_another_statement_leaves_no_trace_either(postgres_store_url: str) -> None:
    """Of several statements in one text only the first was looked at: what the second did to the session stayed."""
    with closing(PostgresStore(postgres_store_url, connections_max=1)) as store:
        for sql in ("SELECT 1; DEALLOCATE ALL", "SELECT 1; SET search_path = pg_catalog"):
            job_id = enqueue(store)
            with store.commit_block(job_id, claim_one(store).attempt) as tx:
                tx.execute(sql)
        job_id = enqueue(store)
        with store.commit_block(job_id, claim_one(store).attempt) as tx:
            assert tx.execute("SHOW search_path") == ([('"$user", public',)], 1)


def test_what_a_function_throws_away_fails_once(postgres_store_url: str) -> None:
    """Nobody here sees what a function of the user's does to the session. Whatever it was, the connection goes on: it
    was asked for what was gone as long as it lived."""
    throws = "CREATE FUNCTION throw_away() RETURNS void LANGUAGE plpgsql AS $$ BEGIN DEALLOCATE ALL; END $$"
    run_sql(postgres_store_url, throws)
    with closing(PostgresStore(postgres_store_url, connections_max=1)) as store:
        job_id = enqueue(store)
        with store.commit_block(job_id, claim_one(store).attempt) as tx:
            tx.execute("SELECT throw_away()")
        with pytest.raises(DatabaseError, match="does not exist"):
            store.ids_reserve(1)
        assert store.ids_reserve(1)
