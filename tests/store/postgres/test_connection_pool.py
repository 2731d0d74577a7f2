"""The pool of connections: what it lends comes back, or is made good."""

from __future__ import annotations

import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest

from detent.errors import DatabaseBusy, DatabaseReadOnly, DatabaseUnreachable
from detent.model.clock import SystemClock
from detent.store.postgres.driver.connection import KEEPALIVE_OPTIONS, READ_ONLY_SECONDS_MAX, OwnConnection
from detent.store.postgres.driver.connection_pool import ConnectionPool
from detent.testing.lossy_proxy import Proxy
from tests.deadlines import scaled
from tests.store.postgres.connections import run_sql

SIZE = 2
SECONDS_MAX = scaled(30.0)

Make = Callable[..., OwnConnection]


@pytest.fixture
def pool(postgres_ready_url: str) -> Iterator[ConnectionPool]:
    with closing(ConnectionPool(postgres_ready_url, "shop", size_max=SIZE, wait_seconds_max=0.3)) as pool:
        yield pool


@pytest.fixture
def patient(postgres_ready_url: str) -> Iterator[ConnectionPool]:
    with closing(ConnectionPool(postgres_ready_url, "shop", size_max=SIZE, wait_seconds_max=600.0)) as pool:
        yield pool


def number_of(pool: ConnectionPool) -> int:
    """Of the server's process behind whatever is lent."""
    with pool.connection() as connection:
        return connection.info.backend_pid


def test_connections_that_were_lost_are_made_good(pool: ConnectionPool) -> None:
    """An interrupt between two steps of lending loses a connection; after as many as there are, nobody got any.
    Where nothing goes on, nothing looks for circles either: it must be gone at once, and without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(SIZE):
            pool.connection()
    for _ in range(SIZE + 1):
        with pool.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_one_that_is_lost_while_others_stand_in_line_is_made_good(patient: ConnectionPool) -> None:
    lost = [patient.connection() for _ in range(SIZE)]
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(number_of, patient)
        while not patient._waiters:
            pass
        lost.pop()
        assert waits.result(SECONDS_MAX) not in {one.connection.info.backend_pid for one in lost}
    patient.give_back(lost.pop())


def test_an_interrupt_while_connecting_leaves_the_room_it_took(
    pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> OwnConnection:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(OwnConnection, "connect", interrupted)
        for _ in range(SIZE):
            with pytest.raises(KeyboardInterrupt):
                pool.connection()
    held = [pool.connection() for _ in range(SIZE)]
    assert all(one.connection.execute("SELECT 1").fetchone() == (1,) for one in held)


def test_there_is_a_short_way_where_nobody_stands_between(pool: ConnectionPool) -> None:
    """`test_direct_statements.py` has the way, `faults/test_pgbouncer.py` a pooler in between."""
    with pool.connection() as connection:
        assert connection.direct is not None
        assert connection.direct.fetch("SELECT 1") == [(1,)]


def test_the_one_that_was_used_last_is_used_next(pool: ConnectionPool) -> None:
    """So that others grow old, and can be let go."""
    first, second = pool.connection(), pool.connection()
    for one in (first, second):
        pool.give_back(one)
    assert [number_of(pool) for _ in range(3)] == [second.connection.info.backend_pid] * 3


def test_what_rests_too_long_or_is_too_old_is_let_go(pool: ConnectionPool) -> None:
    first, second = pool.connection(), pool.connection()
    for one in (first, second):
        pool.give_back(one)
    first.idle_since -= 601
    last = number_of(pool)
    assert (first.connection.closed, second.connection.closed) == (True, False)
    second.connection.opened_at -= 3601
    assert number_of(pool) == last
    assert second.connection.closed
    assert number_of(pool) != last


def test_connections_that_are_in_use_stay_so(pool: ConnectionPool) -> None:
    """Being busy is no loss: whoever comes too many is refused, and those who hold one keep it."""
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
    assert not pool._waiters


def test_those_in_line_are_served_in_their_order(patient: ConnectionPool) -> None:
    """Nobody who comes later, or comes back at once, is served before: else a thread in a tight loop starves all
    others."""
    served: list[int] = []
    held = [patient.connection() for _ in range(SIZE)]

    def wait_for(turn: int) -> None:
        with patient.connection():
            served.append(turn)

    threads = []
    for turn in range(6):
        threads.append(threading.Thread(target=wait_for, args=(turn,)))
        threads[-1].start()
        while len(patient._waiters) <= turn:
            pass
    patient.give_back(held.pop())
    # Back at once, and behind all six.
    patient.give_back(patient.connection())
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert served == [0, 1, 2, 3, 4, 5]
    patient.give_back(held.pop())


def test_who_gives_up_in_line_leaves_what_has_come_back(
    patient: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt may come after a connection has come back for a waiter, before the waiter has taken it."""
    held = [patient.connection() for _ in range(SIZE)]
    came_back = held[-1]

    def interrupted(pool: ConnectionPool) -> Any:
        if pool._waiters and came_back in held:
            held.remove(came_back)
            pool._lock.release()
            pool.give_back(came_back)
            pool._lock.acquire()
            raise KeyboardInterrupt
        return next(iter(pool._waiters), None)

    with monkeypatch.context() as patched:
        patched.setattr(ConnectionPool, "_first_waiter", interrupted)
        with pytest.raises(KeyboardInterrupt):
            patient.connection()
    assert not patient._waiters
    assert number_of(patient) == came_back.connection.info.backend_pid
    patient.give_back(held.pop())


def test_one_who_was_interrupted_on_its_way_out_of_the_line_stands_in_nobodys_way(patient: ConnectionPool) -> None:
    """Nobody can promise that it is out of it: so its time counts, and whoever looks at the line takes it out."""
    held = [patient.connection() for _ in range(SIZE)]
    patient._waiters[threading.Lock()] = SystemClock().monotonic() - 3
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(number_of, patient)
        lost = held.pop()
        lost.connection.close()
        patient.give_back(lost)
        assert waits.result(SECONDS_MAX) > 0
    assert not patient._waiters


def test_one_who_is_woken_for_nothing_keeps_its_place(patient: ConnectionPool) -> None:
    """Whoever woke it was interrupted, or the connection was lost in between."""
    held = [patient.connection() for _ in range(SIZE)]
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(number_of, patient)
        while not patient._waiters:
            pass
        with patient._lock:
            (waiter,) = patient._waiters
            patient._wake_first()
        while not waiter.locked():
            pass
        assert list(patient._waiters) == [waiter]
        patient.give_back(held.pop())
        assert waits.result(SECONDS_MAX) > 0


def test_who_makes_one_does_not_stand_in_the_way_of_those_behind(
    patient: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow server must not keep what comes back from those who could use it."""
    first, second = patient.connection(), patient.connection()
    make, connecting, go = OwnConnection.connect, threading.Event(), threading.Event()

    def slowly(*args: Any, **options: Any) -> OwnConnection:
        connecting.set()
        assert go.wait(SECONDS_MAX)
        return make(*args, **options)

    with ThreadPoolExecutor(2) as threads:
        makes = threads.submit(number_of, patient)
        while len(patient._waiters) < 1:
            pass
        waits = threads.submit(number_of, patient)
        while len(patient._waiters) < 2:
            pass
        with monkeypatch.context() as patched:
            patched.setattr(OwnConnection, "connect", slowly)
            first.connection.close()
            patient.give_back(first)
            assert connecting.wait(SECONDS_MAX)
            patient.give_back(second)
            assert waits.result(SECONDS_MAX) == second.connection.info.backend_pid
            go.set()
            assert makes.result(SECONDS_MAX) > 0


def test_interrupts_at_any_moment_lose_nothing(postgres_ready_url: str) -> None:
    """A signal that raises, again and again, in one of four threads that share two connections."""

    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    errors: list[BaseException] = []
    over = threading.Event()
    with closing(ConnectionPool(postgres_ready_url, "shop", size_max=SIZE, wait_seconds_max=20.0)) as pool:

        def use() -> None:
            try:
                while not over.is_set():
                    number_of(pool)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=use) for _ in range(3)]
        before = signal.signal(signal.SIGALRM, interrupt)
        for thread in threads:
            thread.start()
        try:
            for nth in range(1500):
                with suppress(Interrupted):
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0.00002 + nth % 60 * 0.00001)
                        number_of(pool)
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.signal(signal.SIGALRM, before)
            over.set()
            for thread in threads:
                thread.join(SECONDS_MAX)
        assert errors == []
        held = [pool.connection() for _ in range(SIZE)]
        assert all(one.connection.execute("SELECT 1").fetchone() == (1,) for one in held)


def test_one_that_cannot_be_made_waits_for_one_of_the_others(
    patient: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has no room for one more connection is no reason to fail while there are some."""

    def refused(*_: Any, **__: Any) -> OwnConnection:
        raise psycopg.OperationalError("FATAL: sorry, too many clients already")

    held = patient.connection()
    monkeypatch.setattr(OwnConnection, "connect", refused)
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(number_of, patient)
        while not patient._waiters:
            pass
        patient.give_back(held)
        assert waits.result(SECONDS_MAX) == held.connection.info.backend_pid
    with patient.connection(), pytest.raises(DatabaseUnreachable, match="too many clients"):
        patient.connection()


def test_all_in_line_hear_that_the_server_is_gone(patient: ConnectionPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, each by its own try, and at once."""

    def gone(*_: Any, **__: Any) -> OwnConnection:
        raise psycopg.OperationalError("connection refused")

    held = [patient.connection() for _ in range(SIZE)]
    monkeypatch.setattr(OwnConnection, "connect", gone)
    with ThreadPoolExecutor(4) as threads:
        waits = [threads.submit(number_of, patient) for _ in range(4)]
        while len(patient._waiters) < 4:
            pass
        for one in held:
            one.connection.close()
            patient.give_back(one)
        for waiting in waits:
            with pytest.raises(DatabaseUnreachable):
                waiting.result(SECONDS_MAX)


def test_an_open_transaction_is_not_handed_on(pool: ConnectionPool) -> None:
    with pool.connection() as connection:
        connection.execute("BEGIN")
    assert number_of(pool) == connection.info.backend_pid
    with pool.connection() as connection:
        connection.execute("BEGIN")
        with suppress(psycopg.Error):
            connection.execute("SELECT 1 / 0")
    with pool.connection() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_one_whose_server_takes_no_writes_is_let_go(pool: ConnectionPool) -> None:
    """A new one may lead to the successor."""
    before = number_of(pool)
    with pytest.raises(DatabaseReadOnly), pool.connection():
        raise DatabaseReadOnly("shop", "it is a standby now")
    assert number_of(pool) != before


def test_one_whose_server_turned_read_only_is_let_go_with_those_at_rest(pool: ConnectionPool) -> None:
    """W4: an idle worker mostly reads, so no statement failed, and its connections stayed on the old primary."""
    with pool.connection() as first, pool.connection() as second:
        for one in (first, second):
            one.opened_at -= READ_ONLY_SECONDS_MAX
    with pool.connection() as used:
        assert used is second or used is first
        used.execute("SET default_transaction_read_only = on")
    assert first.closed
    assert second.closed
    with pool.connection() as fresh:
        fresh.execute("SET default_transaction_read_only = on")
    assert not fresh.closed, "a reader of a standby would have to connect for each statement"


def test_what_is_lent_when_the_pool_closes_is_closed_when_it_comes_back(pool: ConnectionPool) -> None:
    with pool.connection() as connection:
        pool.close()
        assert connection.execute("SELECT 1").fetchone() == (1,)
        others = [pool.connection() for _ in range(SIZE)]
    assert connection.closed
    for one in others:
        pool.give_back(one)


def test_one_that_was_cut_off_at_rest_is_not_lent(pool: ConnectionPool, postgres_ready_url: str) -> None:
    before = number_of(pool)
    assert run_sql(postgres_ready_url, f"SELECT pg_terminate_backend({before}, 10000)") == [(True,)]
    assert number_of(pool) != before


def test_a_child_begins_with_none(pool: ConnectionPool) -> None:
    """And does not end what is its parent's."""
    before = number_of(pool)
    child = os.fork()
    if not child:
        os._exit(0 if number_of(pool) != before and len(pool._slots) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert number_of(pool) == before


def test_a_server_that_is_gone_is_said_at_once_and_found_again(postgres_ready_url: str) -> None:
    """W4"""
    with Proxy(postgres_ready_url, lambda _: None) as proxy:
        port = int(proxy.url.rpartition(":")[2].partition("/")[0])
        pool = ConnectionPool(proxy.url, "shop", size_max=SIZE, wait_seconds_max=600.0)
        with pool.connection() as connection:
            connection.execute("SELECT 1")
    with closing(pool):
        with pytest.raises(DatabaseUnreachable), pool.connection():
            pass
        with Proxy(postgres_ready_url, lambda _: None, port), pool.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_silent_server_is_given_up_unless_the_url_says_otherwise(postgres_ready_url: str) -> None:
    """W4"""
    for url, patience in (
        (postgres_ready_url, KEEPALIVE_OPTIONS["tcp_user_timeout"]),
        (f"{postgres_ready_url}?tcp_user_timeout=99000", 99000),
    ):
        with (
            closing(ConnectionPool(url, "shop", size_max=SIZE, wait_seconds_max=5.0)) as pool,
            pool.connection() as connection,
        ):
            given = connection.info.get_parameters()
            assert given["tcp_user_timeout"] == str(patience)
            assert {name: int(given[name]) for name in KEEPALIVE_OPTIONS} == {
                **KEEPALIVE_OPTIONS,
                "tcp_user_timeout": patience,
            }
            with socket.socket(fileno=os.dup(connection.fileno())) as way:
                assert way.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == patience
                assert way.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                assert way.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == KEEPALIVE_OPTIONS["keepalives_idle"]
