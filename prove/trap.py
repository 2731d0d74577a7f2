"""A process in which something happens at a statement: before, or after, the k-th that it sends to its database.

It kills itself (`killed_at`), or the server ends the connection (`cut_at`). `statements_of` only counts.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg

from detent.errors import DatabaseUnreachable, OutcomeUnknown
from detent.store.postgres.driver.direct_statements import DirectStatements
from detent.store.sqlite.driver.write_connection import _CheckedCursor
from prove.coverage import error_points

__all__ = ["cut_at", "killed_at", "statements_of"]

_CUT_SECONDS_MAX = 60_000
"""In milliseconds, as the server wants it."""
_BROKE_DOWN = 1


class Trap:
    """Counts statements, and strikes at the chosen one. Calls within a strike do not count."""

    def __init__(self, k: int, *, after: bool, strike: Callable[[Any], None]) -> None:
        self.count = 0
        self.points: Counter[str] = Counter()
        """The errors that the process has met."""
        self._k = k
        self._after = after
        self._strike = strike

    @property
    def has_struck(self) -> bool:
        return 0 < self._k <= self.count

    def around(self, send: Callable[[], Any], connection: Any = None) -> Any:
        self.count += 1
        now = self.count == self._k
        if now and not self._after:
            self._strike(connection)
        answer = send()
        if now and self._after:
            self._strike(connection)
        return answer


class _Ended(NamedTuple):
    code: int
    said: str
    sent: int
    points: Counter[str]


def killed_at(k: int, act: Callable[[], object], *, after: bool, round_trips: bool = False) -> bool:
    """Do it in a process that dies at its k-th statement. False where it was done with fewer.

    The process is a copy of this one; its connections are its own, opened behind the trap. With `round_trips`, all that
    waits for a PostgreSQL server counts instead of its statements: COPY and COMMIT too.
    """
    ended = _apart(Trap(k, after=after, strike=_kill_self), act, round_trips)
    if ended.code not in (0, -signal.SIGKILL):
        raise AssertionError(f"ended with {ended.code} at statement {k}\n{ended.said}")
    return ended.code != 0


def cut_at(k: int, act: Callable[[], object], *, after: bool, points: Counter[str] | None = None) -> bool:
    """Do it in a process whose connection the PostgreSQL server ends at its k-th statement. False where it was done
    with fewer. It may say that the database was unreachable or that an outcome is unknown, and nothing else. `points`
    gets the errors that it met."""
    trap = Trap(k, after=after, strike=_end_backend)

    def act_until_told() -> None:
        try:
            act()
        except (DatabaseUnreachable, OutcomeUnknown) as error:
            trap.points.update(error_points(error))
            if not trap.has_struck:
                raise

    ended = _apart(trap, act_until_told, round_trips=False)
    if ended.code != 0:
        raise AssertionError(f"ended with {ended.code} after its connection was cut at statement {k}\n{ended.said}")
    if points is not None:
        points.update(ended.points)
    return ended.sent >= k


def statements_of(act: Callable[[], object]) -> int:
    """Do it in a process of its own, and return how many statements it sent."""
    ended = _apart(Trap(0, after=False, strike=_kill_self), act, round_trips=False)
    if ended.code != 0:
        raise AssertionError(f"ended with {ended.code} without a fault\n{ended.said}")
    return ended.sent


def _kill_self(_connection: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _end_backend(connection: Any) -> None:
    """Return when the server process is gone."""
    info = connection.info
    with psycopg.Connection.connect(
        host=info.host, port=info.port, user=info.user, dbname=info.dbname, autocommit=True
    ) as other:
        other.pgconn.exec_(f"SELECT pg_terminate_backend({info.backend_pid}, {_CUT_SECONDS_MAX})".encode())


def _apart(trap: Trap, act: Callable[[], object], round_trips: bool) -> _Ended:
    """Do it in a copy of this process. It says how it broke down, or how many statements it sent and what it met."""
    ear, mouth = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code, said = _BROKE_DOWN, ""
        try:
            os.close(ear)
            _set(trap, round_trips)
            act()
            code, said = 0, json.dumps([trap.count, trap.points])
        except BaseException:
            said = traceback.format_exc()
        finally:
            os.write(mouth, said.encode())
            os._exit(code)
    os.close(mouth)
    with os.fdopen(ear, errors="replace") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    sent, points = json.loads(said) if code == 0 else (0, {})
    return _Ended(code, said, sent, Counter(points))


def _set(trap: Trap, round_trips: bool) -> None:
    """From now on every statement of this process goes through the trap: of readers, of the engine's own cursor on the
    write connection, of the user's on that connection, and of everybody on PostgreSQL."""
    plain_cursor, plain_connection, send = sqlite3.Cursor, sqlite3.Connection, psycopg.Cursor.execute

    class Cursor(plain_cursor):  # type: ignore[valid-type, misc]
        def execute(self, *args: Any) -> Any:
            return trap.around(lambda: plain_cursor.execute(self, *args))

        def executemany(self, *args: Any) -> Any:
            return trap.around(lambda: plain_cursor.executemany(self, *args))

    class Connection(plain_connection):  # type: ignore[valid-type, misc]
        def cursor(self, *args: Any, **named: Any) -> Any:
            return plain_connection.cursor(self, Cursor)

        def execute(self, *args: Any) -> Any:
            return self.cursor().execute(*args)

        def executemany(self, *args: Any) -> Any:
            return self.cursor().executemany(*args)

    for name in ("execute", "executemany"):
        _trap_method(trap, _CheckedCursor, name, lambda _: None)

    def trapped_send(self: Any, *args: Any, **named: Any) -> Any:
        return trap.around(lambda: send(self, *args, **named), self.connection)

    sqlite3.Cursor = Cursor  # type: ignore[misc]
    sqlite3.Connection = Connection  # type: ignore[misc]
    if round_trips:
        _trap_method(trap, psycopg.Connection, "wait", lambda connection: connection)
        return
    psycopg.Cursor.execute = trapped_send  # type: ignore[method-assign]
    _trap_method(trap, DirectStatements, "_round_trip", lambda direct: direct._connection)


def _trap_method(trap: Trap, kind: type, name: str, connection_of: Callable[[Any], Any]) -> None:
    plain = getattr(kind, name)
    setattr(kind, name, lambda self, *args: trap.around(lambda: plain(self, *args), connection_of(self)))
