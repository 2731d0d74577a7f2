"""The pool of connections: what it lends comes back, or is made good."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from detent.errors import DatabaseBusy, DatabaseUnreachable
from detent.store.postgres.driver.pool import SILENCE, Pool, PooledConnection
from detent.testing.proxy import Proxy

SIZE = 2
SECONDS_MAX = 30.0


@pytest.fixture
def pool(postgres_url: str) -> Iterator[Pool]:
    with closing(Pool(postgres_url, "shop", size_max=SIZE, wait_seconds_max=0.3)) as pool:
        yield pool


def test_connections_that_were_lost_are_made_good(pool: Pool) -> None:
    """An interrupt between two steps of lending loses a connection; after as many as there are, nobody got any.
    Where nothing goes on, nothing looks for circles either: it must be gone at once."""
    for _ in range(SIZE):
        pool._opened().getconn(SECONDS_MAX)
    for _ in range(SIZE + 1):
        with pool.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_there_is_a_short_way_where_nobody_stands_between(pool: Pool) -> None:
    """`test_line.py` has the way, `faults/test_pgbouncer.py` a pooler in between."""
    with pool.connection() as connection:
        assert connection.line is not None
        assert connection.line.ask("SELECT 1") == [(1,)]


def test_connections_that_are_in_use_stay_so(pool: Pool) -> None:
    """Being busy is no loss: whoever comes too many is refused, and those who hold one keep it."""
    opened = pool._opened()
    for connection in [opened.getconn(SECONDS_MAX) for _ in range(SIZE)]:
        opened.putconn(connection)  # made by now, however long that takes
    busy, done = threading.Barrier(SIZE + 1), threading.Event()

    def hold() -> object:
        with pool.connection() as connection:
            busy.wait(SECONDS_MAX)
            done.wait(SECONDS_MAX)
            return connection.execute("SELECT 1").fetchone()

    with ThreadPoolExecutor(SIZE) as threads:
        held = [threads.submit(hold) for _ in range(SIZE)]
        busy.wait(SECONDS_MAX)
        with pytest.raises(DatabaseBusy, match="all 2 connections"), pool.connection():
            pass
        done.set()
        assert [one.result() for one in held] == [(1,), (1,)]


def test_a_connection_that_is_slow_to_come_is_not_lost(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool was given up for a new one, which asked the slow server for more connections than there may be."""
    make, go = PooledConnection.connect, threading.Event()

    def slowly(*args: Any, **options: Any) -> PooledConnection:
        assert go.wait(SECONDS_MAX)
        return make(*args, **options)

    with pool.connection():
        opened = pool._opened()
        monkeypatch.setattr(PooledConnection, "connect", slowly)
        with pytest.raises(DatabaseBusy), pool.connection():
            pass
        assert pool._opened() is opened
        go.set()
        opened.putconn(opened.getconn(SECONDS_MAX))


def test_a_server_that_is_gone_is_said_at_once_and_found_again(postgres_url: str) -> None:
    """W4: the pool gives up looking for its server, and who waited for it then, a renewal for instance, waited for as
    long as for a connection that is in use."""
    with Proxy(postgres_url, lambda _: None) as proxy:
        port = int(proxy.url.rpartition(":")[2].partition("/")[0])
        pool = Pool(proxy.url, "shop", size_max=SIZE, wait_seconds_max=600.0)
        with pool.connection() as connection:
            connection.execute("SELECT 1")
    with closing(pool):
        with pytest.raises(DatabaseUnreachable), pool.connection():
            pass
        with Proxy(postgres_url, lambda _: None, port), pool.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_silent_server_is_given_up_unless_the_url_says_otherwise(postgres_url: str) -> None:
    """W4"""
    for url, patience in (
        (postgres_url, SILENCE["tcp_user_timeout"]),
        (f"{postgres_url}?tcp_user_timeout=99000", 99000),
    ):
        with (
            closing(Pool(url, "shop", size_max=SIZE, wait_seconds_max=5.0)) as pool,
            pool.connection() as connection,
        ):
            assert connection.info.get_parameters()["tcp_user_timeout"] == str(patience)
