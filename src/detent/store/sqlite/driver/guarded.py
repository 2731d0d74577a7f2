"""The write connection, and what the user's statements may not do on it while a commit block is open.

The user's statements carry a prefix of their own: SQLite asks what a statement may do when it is prepared, and Python
keeps prepared statements by their text, so a text of the engine's must never be found by the user.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from detent.errors import DetentError, WrongPlace
from detent.store.intents import failed_inside

__all__ = ["GuardedConnection"]

_PREFIX = "/* in a commit block */ "
_OURS = "detent_"
_NEVER = {
    sqlite3.SQLITE_TRANSACTION: "BEGIN, COMMIT or ROLLBACK",
    sqlite3.SQLITE_SAVEPOINT: "SAVEPOINT",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    # They would stay for whoever uses the connection next.
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "CREATE TEMP TABLE",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "CREATE TEMP VIEW",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "CREATE TEMP TRIGGER",
}
_LOOKS = (sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_ROWS = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
_INSTEAD = "a block ends by itself, and Detent's tables change by its verbs only"


class _Refusals:
    """Whose statements are being prepared, and what was refused last. `engine` is the thread that is never asked."""

    def __init__(self) -> None:
        self.guarded = False
        self.engine: int | None = None
        self.refused: str | None = None

    @property
    def users(self) -> bool:
        return self.guarded and self.engine != threading.get_ident()

    def authorize(
        self, action: int, first: str | None, second: str | None, _database: str | None, trigger: str | None
    ) -> int:
        """SQLite's question about each thing a statement would do."""
        if not self.users or action in _LOOKS:
            return sqlite3.SQLITE_OK
        if action in _NEVER:
            self.refused = _NEVER[action]
            return sqlite3.SQLITE_DENY
        # The guards of the user's own tables keep their record in a table of Detent's.
        names = (first,) if action in _ROWS else (first, second)
        if any(_is_ours(name) for name in names) and not _is_ours(trigger):
            self.refused = "a change of Detent's tables"
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK


def _is_ours(name: str | None) -> bool:
    return name is not None and name.lower().startswith(_OURS)


class GuardedConnection(sqlite3.Connection):
    """The engine's own until `guard` is called: from then on it is in the user's hands.

    `hand` is held by every statement of the user's, and by the engine while it decides on the transaction. Where the
    transaction is gone, `lost` says why, and every further statement of the user's is refused with it: it would take
    effect by itself otherwise. `failed` is what was wrong with a statement of the user's in this block. `synced` is
    whether its commits are synced each by itself, None before that was said.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hand = threading.RLock()
        self.lost: DetentError | None = None
        self.failed: sqlite3.Error | None = None
        self.synced: bool | None = None
        self._refusals = _Refusals()
        self.set_authorizer(self._refusals.authorize)

    def guard(self, on: bool) -> None:
        """Give the connection into the user's hands, or take it back as it was."""
        self._refusals.guarded = on
        if on:
            self.failed = None
        self.row_factory = None
        self.text_factory = str

    def speak_for_engine(self) -> None:
        """This thread's statements are the engine's, though a block is open."""
        self._refusals.engine = threading.get_ident()

    def say(self, sql: str) -> None:
        """The engine's own word, which nobody need look at first."""
        sqlite3.Cursor(self).execute(sql)

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _GuardedCursor)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return _GuardedCursor(self).execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        return _GuardedCursor(self).executemany(sql, parameters)

    def executescript(self, script: str, /) -> sqlite3.Cursor:
        return _GuardedCursor(self).executescript(script)

    def commit(self) -> None:
        with self.statement("COMMIT"):
            super().commit()

    def rollback(self) -> None:
        with self.statement("ROLLBACK"):
            super().rollback()

    def close(self) -> None:
        if self._refusals.users:
            raise _refusal("close")
        super().close()

    @contextmanager
    def statement(self, sql: str) -> Iterator[str]:
        """Around each step of a statement: its text as it is to be prepared."""
        if not self._refusals.users:
            yield sql
            return
        with self.hand:
            text = self.beginning(sql)
            try:
                yield text
            except sqlite3.DatabaseError as error:
                self.failing(error)
                raise
            finally:
                self.ending()

    @property
    def is_users(self) -> bool:
        """Whether a statement of this thread's is the user's."""
        return self._refusals.users

    def beginning(self, sql: str) -> str:
        """A statement of the user's, as it is to be prepared. With `hand` held; `ending` follows, and `failing` before
        it where it fails."""
        if self.lost is not None:
            raise self.lost
        self._refusals.refused = None
        return _PREFIX + sql

    def failing(self, error: sqlite3.DatabaseError) -> None:
        """Remember it; `WrongPlace` where it was refused."""
        if self._refusals.refused is not None:
            raise _refusal(self._refusals.refused) from error
        self.failed = error

    def ending(self) -> None:
        """After every step of a statement of the user's."""
        if not self.in_transaction and self.lost is None:
            self.lost = _refusal("a statement that rolls the transaction back")

    def check_lost(self) -> None:
        """Raise why the transaction is gone, where it is."""
        if self.lost is not None:
            raise self.lost

    def check_failed(self) -> None:
        """Refuse to commit where a statement of the user's failed, and nobody but the user's function heard of it."""
        if self.failed is not None:
            raise failed_inside(self.failed) from self.failed


class _GuardedCursor(sqlite3.Cursor):
    connection: GuardedConnection

    def execute(self, sql: str, parameters: Any = (), /) -> _GuardedCursor:
        connection = self.connection
        if not connection.is_users:
            super().execute(sql, parameters)
            return self
        # What `statement` does, for the one call that every block makes.
        with connection.hand:
            text = connection.beginning(sql)
            try:
                super().execute(text, parameters)
            except sqlite3.DatabaseError as error:
                connection.failing(error)
                raise
            finally:
                connection.ending()
        return self

    def executemany(self, sql: str, parameters: Any, /) -> _GuardedCursor:
        with self.connection.statement(sql) as text:
            super().executemany(text, parameters)
        return self

    def executescript(self, script: str, /) -> sqlite3.Cursor:
        # The driver commits before a script.
        with self.connection.statement("COMMIT"):
            return super().executescript(script)

    def fetchone(self) -> Any:
        with self.connection.statement(""):
            return super().fetchone()

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        with self.connection.statement(""):
            return super().fetchmany(size)

    def fetchall(self) -> list[Any]:
        with self.connection.statement(""):
            return super().fetchall()

    def __next__(self) -> Any:
        with self.connection.statement(""):
            return super().__next__()


def _refusal(call: str) -> WrongPlace:
    return WrongPlace(call, "inside a commit block", _INSTEAD)
