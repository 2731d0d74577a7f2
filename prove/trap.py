"""A process that kills itself at a statement: SIGKILL before, or after, the k-th that it sends to its database."""

from __future__ import annotations

import os
import signal
import sqlite3
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import psycopg

from detent.store.postgres.driver.direct_statements import DirectStatements
from detent.store.sqlite.driver.write_connection import _CheckedCursor

__all__ = ["killed_at"]


class Trap:
    """Counts statements; at the chosen one this process dies."""

    def __init__(self, k: int, *, after: bool) -> None:
        self._left = k
        self._after = after

    def around(self, send: Callable[[], Any]) -> Any:
        self._left -= 1
        if self._left == 0 and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = send()
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def killed_at(k: int, act: Callable[[], object], *, after: bool, round_trips: bool = False) -> bool:
    """Do it in a process that dies at its k-th statement. False where it was done with fewer.

    The process is a copy of this one; its connections are its own, opened behind the trap. With `round_trips`, all that
    waits for a PostgreSQL server counts instead of its statements: COPY and COMMIT too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            _set(Trap(k, after=after), round_trips)
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), f"ended with {code} at statement {k}"
    return code != 0


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
        _trap_method(trap, _CheckedCursor, name)

    def trapped_send(self: Any, *args: Any, **named: Any) -> Any:
        return trap.around(lambda: send(self, *args, **named))

    sqlite3.Cursor = Cursor  # type: ignore[misc]
    sqlite3.Connection = Connection  # type: ignore[misc]
    if round_trips:
        _trap_method(trap, psycopg.Connection, "wait")
        return
    psycopg.Cursor.execute = trapped_send  # type: ignore[method-assign]
    _trap_method(trap, DirectStatements, "_round_trip")


def _trap_method(trap: Trap, kind: type, name: str) -> None:
    plain = getattr(kind, name)
    setattr(kind, name, lambda self, *args: trap.around(lambda: plain(self, *args)))
