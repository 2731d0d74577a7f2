"""What goes wrong with a server is said in Detent's words, and no secret with it."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import closing

import psycopg
import pytest

from detent.errors import (
    DatabaseBusy,
    DatabaseError,
    DatabaseReadOnly,
    DatabaseUnreachable,
    GuardViolation,
    InvalidInput,
    InvalidSetting,
    OutcomeUnknown,
)
from detent.model.clock import SystemClock
from detent.model.records import Enqueued
from detent.store.contract import Verbs
from detent.store.open import open_store
from detent.store.postgres.driver.connection_pool import ConnectionPool
from detent.store.postgres.driver.failures import translated
from detent.store.postgres.driver.session import PoolSession
from detent.store.postgres.statement import Statement
from detent.store.postgres.store import PostgresStore
from detent.testing.stores import plain_connection
from tests.contract.jobs.sample_jobs import claim, enqueue, job, new_job
from tests.deadlines import scaled
from tests.store.postgres.connections import as_user, behind_proxy, run_sql

SECRET = "open-sesame"


def test_no_server() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))  # nobody else gets this port, and nobody listens there
        port = door.getsockname()[1]
        with closing(open_store(f"postgresql://ana:{SECRET}@127.0.0.1:{port}/shop")) as store:
            assert store.name == f"postgresql://ana@127.0.0.1:{port}/shop"
            with pytest.raises(DatabaseUnreachable) as caught:
                store.ready()
    assert SECRET not in str(caught.value)
    assert store.name in str(caught.value)


def test_no_such_login_and_no_such_database(postgres_ready_url: str) -> None:
    for url in (as_user(postgres_ready_url, "nobody_at_all", SECRET), postgres_ready_url + "_nowhere"):
        with closing(open_store(url)) as store:
            with pytest.raises(DatabaseUnreachable) as caught:
                store.ids_reserve(1)
            assert SECRET not in str(caught.value)


def test_a_url_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(InvalidSetting) as caught:
        open_store(f"postgresql://ana:{SECRET}@host:port:99/x?nonsense={SECRET}")
    assert SECRET not in str(caught.value)


def test_what_libpq_itself_says_of_a_lost_connection(postgres_ready_url: str) -> None:
    """R4: it comes as a result without a code, and is no fault of whoever asked."""
    with closing(psycopg.connect(postgres_ready_url, autocommit=True)) as connection:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)
        error = psycopg.errors.error_from_result(connection.pgconn.exec_(b"SELECT 1"))
    assert error.sqlstate is None
    assert isinstance(translated(error, "shop"), DatabaseUnreachable)


def test_a_read_only_server_takes_no_writes_and_lets_one_look(postgres_store_url: str) -> None:
    with closing(open_store(postgres_store_url)) as writer:
        job_id = enqueue(writer)
    database = postgres_store_url.rpartition("/")[2]
    run_sql(postgres_store_url, f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    with closing(open_store(postgres_store_url)) as store:
        store.ready()
        assert job(store, job_id).state == "pending"
        with pytest.raises(DatabaseReadOnly):
            store.job_cancel([job_id], "ana")


def test_a_guard_that_says_no_is_quoted(postgres_store_url: str) -> None:
    with closing(open_store(postgres_store_url)) as store:
        with pytest.raises(GuardViolation, match="job_attempts_max_positive"):
            store.job_enqueue([new_job(store, attempts_max=0)])
        with pytest.raises(InvalidInput):
            store.job_enqueue([new_job(store, id=2**63)])
        with pytest.raises(InvalidInput):
            store.job_enqueue([new_job(store, metadata='"\x00"')])


def test_all_connections_in_use_is_busy(postgres_store_url: str) -> None:
    with closing(PostgresStore(postgres_store_url, connections_max=1, wait_seconds_max=0.05)) as store:

        def work(verbs: Verbs) -> None:
            with pytest.raises(DatabaseBusy, match="in use"):
                store.now()

        store.together(work)
        store.now()


def test_a_connection_that_died_idle_is_replaced_unnoticed(postgres_store_url: str) -> None:
    with closing(PostgresStore(postgres_store_url, connections_max=1)) as store:
        enqueue(store)
        with store._pool.connection() as connection:
            pid = connection.info.backend_pid
        assert run_sql(postgres_store_url, f"SELECT pg_terminate_backend({pid}, 60000)") == [(True,)]
        enqueue(store)


def test_deadlocks_are_repeated_and_never_seen(postgres_store_url: str) -> None:
    """R4: two pieces of work that lock crosswise both succeed; the database met a deadlock all the same."""
    with closing(open_store(postgres_store_url)) as store:
        run_sql(
            postgres_store_url,
            f"ALTER DATABASE \"{postgres_store_url.rpartition('/')[2]}\" SET deadlock_timeout = '10ms'",
        )
        first, second = enqueue(store), enqueue(store)
        both = threading.Barrier(2, timeout=scaled(30))
        tries: list[str] = []

        def cross(name: str, one: int, other: int) -> None:
            def work(verbs: Verbs) -> None:
                tries.append(name)
                verbs.job_cancel([one], name)
                if tries.count(name) == 1:
                    both.wait()
                verbs.job_cancel([other], name)

            store.together(work)

        threads = [
            threading.Thread(target=cross, args=("ana", first, second)),
            threading.Thread(target=cross, args=("bob", second, first)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(tries) >= 3
        assert [row.state for row in store.job_get([first, second]) if row] == ["cancelled"] * 2


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_lost_answer_of_a_transaction_is_unknown_and_asking_again_is_safe(
    postgres_store_url: str, fault: str
) -> None:
    """J2, G7: whether or not it was carried out, sending the same job again gives one job."""
    with behind_proxy(postgres_store_url, fault) as (url, armed), closing(open_store(url)) as store:  # type: ignore[arg-type]
        item = new_job(store)
        armed.set()
        with pytest.raises(OutcomeUnknown):
            store.together(lambda verbs: verbs.job_enqueue([item]))
        assert store.job_enqueue([item]) == [Enqueued(item.id, fault == "before")]


def test_a_fork_has_connections_of_its_own(postgres_store_url: str) -> None:
    with closing(open_store(postgres_store_url)) as store:
        before, inside, after = new_job(store), new_job(store), new_job(store)
        store.job_enqueue([before])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                store.job_enqueue([inside])
                store.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        store.job_enqueue([after])
        assert None not in store.job_get([before.id, inside.id, after.id])


def test_a_failed_statement_inside_a_transaction_is_no_commit(postgres_store_url: str) -> None:
    """PostgreSQL answers a COMMIT after an error with ROLLBACK; that is not success."""
    with closing(PostgresStore(postgres_store_url)) as store:
        item = new_job(store)

        def work(verbs: Verbs) -> None:
            verbs.job_enqueue([item])
            with pytest.raises(GuardViolation):
                verbs.job_enqueue([new_job(store, attempts_max=0)])

        with pytest.raises(Exception, match="rolled back"):
            store.together(work)
        assert store.job_get([item.id]) == [None]


def test_psycopg_is_never_seen(postgres_store_url: str) -> None:
    with closing(open_store(postgres_store_url)) as store, psycopg.connect(postgres_store_url) as connection:
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT no_such_thing")
        with pytest.raises(Exception, match="aborted") as caught:
            store.on(connection).job_get([1])
        assert not isinstance(caught.value, psycopg.Error)


class _FiveSecondsALook(SystemClock):
    """A clock by which five seconds pass between two looks at it."""

    def __init__(self) -> None:
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        return 5.0 * self._looks


_REFUSES = """
CREATE SEQUENCE tries;
CREATE FUNCTION refuses() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM nextval('tries');
  RAISE lock_not_available;
END $$
"""


@pytest.mark.parametrize(("clock", "tries"), [(SystemClock(), 6), (_FiveSecondsALook(), 1)])
def test_a_lock_that_was_waited_for_in_vain_is_not_waited_for_again(
    postgres_ready_url: str, clock: SystemClock, tries: int
) -> None:
    """R4: a call that waits 5 s for a lock took 30 s, since it was tried six times. What is refused at once is still
    tried again."""
    run_sql(postgres_ready_url, _REFUSES)
    with closing(ConnectionPool(postgres_ready_url, "shop", size_max=1, wait_seconds_max=60.0)) as pool:
        session = PoolSession(pool, "shop", clock, seed=0)
        with pytest.raises(DatabaseBusy):
            session.run(Statement("SELECT refuses()", (), lambda rows: None))
    assert run_sql(postgres_ready_url, "SELECT last_value FROM tries") == [(tries,)]


def test_a_lost_commit_is_looked_up_for_a_bounded_time(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C6: six looks that were tried six times each took up to 6 minutes. Here the transaction that may have committed
    keeps its lock for ever."""
    monkeypatch.setattr("detent.store.postgres.store.SETTLE_SECONDS_MAX", 0.5)
    with closing(open_store(postgres_store_url)) as store, closing(plain_connection(postgres_store_url)) as stuck:
        assert isinstance(store, PostgresStore)
        job_id = enqueue(store)
        claim(store)
        stuck.execute("SELECT 1 FROM detent.job WHERE id = %s FOR UPDATE", (job_id,))
        with pytest.raises(DatabaseError):
            store._settle(job_id, 1)
        stuck.rollback()
        assert store._settle(job_id, 1) is None
