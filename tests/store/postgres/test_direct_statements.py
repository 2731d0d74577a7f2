"""Statements straight through libpq: answers, errors and interrupts as over psycopg, and nothing left in the way."""

from __future__ import annotations

import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from detent.store.postgres.driver import direct_statements
from detent.store.postgres.driver.direct_statements import DirectStatements
from detent.testing.lossy_proxy import Proxy

PREPARED = "SELECT name, statement FROM pg_prepared_statements ORDER BY prepare_time"

ASLEEP = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"


Way = Callable[[DirectStatements, str, tuple[Any, ...]], object]
WAYS: list[Way] = [DirectStatements.fetch, DirectStatements.commit_with]
"""One statement in a trip, and two."""


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with closing(psycopg.connect(postgres_url, autocommit=True)) as connection:
        yield connection


@pytest.fixture
def direct(connection: psycopg.Connection[Any]) -> DirectStatements:
    return DirectStatements(connection)


def test_values_go_in_and_rows_come_out(direct: DirectStatements) -> None:
    sql = "SELECT %s::bigint, %s::text, %s::boolean, %s::timestamptz, %s::text[], %s::double precision"
    values = (5, "a'\\b", True, datetime(2026, 3, 29, 1, 30, tzinfo=UTC), None, 0.25)
    for _ in range(2):
        assert direct.fetch(sql, values) == [values]
    assert direct.fetch("SELECT n FROM generate_series(1, %s::integer) n", (3,)) == [(1,), (2,), (3,)]
    assert direct.fetch("SELECT 1 WHERE false") == []


def test_a_statement_is_prepared_once_under_the_name_of_its_verb(
    direct: DirectStatements, connection: psycopg.Connection[Any]
) -> None:
    """Whoever looks at the server, or at what goes over the wire, sees which verb it is."""
    connection.execute("CREATE SCHEMA detent")
    connection.execute("CREATE FUNCTION detent.twice_v1(a integer) RETURNS integer LANGUAGE sql RETURN 2 * a")
    for a in range(3):
        assert direct.fetch("SELECT detent.twice_v1(%s::integer)", (a,)) == [(2 * a,)]
    kept = [("1 detent.twice_v1(", "SELECT detent.twice_v1($1::integer)")]
    assert connection.execute(PREPARED).fetchall() == kept


def test_the_oldest_is_let_go(
    direct: DirectStatements, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is written by what it says, so there may be many; a server keeps what it is given for ever."""
    monkeypatch.setattr(direct_statements, "PREPARED_MAX", 2)
    for n in (1, 2, 3, 1):
        assert direct.fetch(f"SELECT {n}") == [(n,)]
    assert connection.execute(PREPARED).fetchall() == [("3 SELECT 3", "SELECT 3"), ("4 SELECT 1", "SELECT 1")]


def test_what_somebody_else_has_thrown_away_is_prepared_anew(
    direct: DirectStatements, connection: psycopg.Connection[Any]
) -> None:
    assert direct.fetch("SELECT 1") == [(1,)]
    connection.execute("DISCARD ALL")
    direct.forget_prepared()
    assert direct.fetch("SELECT 1") == [(1,)]


def test_an_error_is_the_one_that_psycopg_raises_and_the_line_goes_on(direct: DirectStatements) -> None:
    for sql, params in (("SELECT 1 / %s::integer", (0,)), ("SELECT nonsense", ()), ("SELECT %s::integer", ("x",))):
        with pytest.raises(psycopg.Error) as over_psycopg:
            direct._connection.execute(sql.encode(), params)
        with pytest.raises(psycopg.Error) as raised:
            direct.fetch(sql, params)
        assert type(raised.value) is type(over_psycopg.value)
        assert str(raised.value).splitlines()[0] == str(over_psycopg.value).splitlines()[0]
        assert direct.fetch("SELECT 1") == [(1,)]


def test_a_transaction_begins_and_ends_with_a_statement(
    direct: DirectStatements, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("CREATE TEMP TABLE t (a integer)")
    assert direct.begin_with("SELECT %s::integer", (1,)) == [(1,)]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    assert direct.fetch("INSERT INTO t VALUES (%s::integer)", (7,)) == []
    assert direct.commit_with("SELECT a FROM t", ()) == "COMMIT"
    assert connection.execute("SELECT a FROM t").fetchall() == [(7,)]


def test_after_an_error_there_is_no_commit(direct: DirectStatements, connection: psycopg.Connection[Any]) -> None:
    """A mark that is refused is not followed by its COMMIT."""
    connection.execute("CREATE TEMP TABLE t (a integer)")
    direct.begin_with("INSERT INTO t VALUES (1)", ())
    with pytest.raises(psycopg.errors.DivisionByZero):
        direct.commit_with("SELECT 1 / 0 FROM t", ())
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    direct.fetch("ROLLBACK")
    assert direct.fetch("SELECT count(*) FROM t") == [(0,)]
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_statement_of_somebody_else_is_sent_as_psycopg_sends_it(
    direct: DirectStatements, connection: psycopg.Connection[Any]
) -> None:
    """Kinds that are told by the value, such as the sizes of integers, come out as they do there."""
    sql = "SELECT pg_typeof(%s), pg_typeof(%s), pg_typeof(%s), %s, %s"
    values = (1, 1 << 40, datetime.now(UTC), "text", [1, 2])
    assert (
        connection.execute(sql.encode(), values).fetchall()
        == direct.execute(b"SELECT pg_typeof($1), pg_typeof($2), pg_typeof($3), $4, $5", values)[0]
    )
    connection.execute("CREATE TEMP TABLE t (a integer)")
    assert direct.execute(b"INSERT INTO t SELECT generate_series(1, $1)", (4,)) == ([], 4, "INSERT 0 4")
    assert direct.execute(b"UPDATE t SET a = $1 WHERE a > 2 RETURNING a", (9,)) == ([(9,), (9,)], 2, "UPDATE 2")


def test_more_than_the_socket_takes_at_once(direct: DirectStatements) -> None:
    """Both sides have to give way: the server answers with what it has not read to the end."""
    text = "é" * 12_000_000
    [(answer,)] = direct.fetch("SELECT %s::text", (text,))
    assert answer == text


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_ends_the_wait_and_the_statement(postgres_url: str, direct: DirectStatements, way: Way) -> None:
    """Ctrl-C: nobody else may meet the answer, and the server does not go on alone."""
    main = threading.main_thread().ident
    assert main is not None

    def until_asleep(wanted: int) -> None:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            while other.execute(ASLEEP).fetchone() != (wanted,):
                pass

    def interrupt() -> None:
        until_asleep(1)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        way(direct, "SELECT pg_sleep(600)", ())
    thread.join()
    assert direct._connection.closed
    until_asleep(0)


@pytest.mark.parametrize("way", WAYS)
def test_why_the_server_ended_the_connection_is_said(
    direct: DirectStatements, connection: psycopg.Connection[Any], way: Way
) -> None:
    """Its last words come before the end of the connection, which is noticed right after them."""
    direct.fetch("SELECT 1")
    direct.begin_with("SELECT set_config('idle_in_transaction_session_timeout', '1ms', true)", ())
    select.select([connection], [], [])
    with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
        way(direct, "SELECT 1", ())
    assert connection.closed


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_goes_away_while_it_is_asked(postgres_url: str, way: Way) -> None:
    """As over psycopg: an error of operation, and a connection that says that it is closed."""
    with (
        Proxy(postgres_url, lambda request: "answer" if b"123456" in request.data else None) as proxy,
        closing(psycopg.connect(proxy.url, autocommit=True)) as connection,
    ):
        direct = DirectStatements(connection)
        with pytest.raises(psycopg.OperationalError):
            way(direct, "SELECT %s::integer", (123456,))
        assert connection.closed
