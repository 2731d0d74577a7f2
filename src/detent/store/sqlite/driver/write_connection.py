"""The write connection, and what the user's statements may not do on it while a commit block is open.

SQLite calls the authorizer when a statement is prepared, and Python caches prepared statements by their text. So the
user's statements get a prefix: they must not find a statement that was prepared for the engine.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from detent.errors import DetentError, WrongPlace
from detent.store.commit_block_rules import failed_inside

__all__ = ["WriteConnection"]

_PREFIX = "/* in a commit block */ "
_OURS = "detent_"
_NEVER = {
    sqlite3.SQLITE_TRANSACTION: "BEGIN, COMMIT or ROLLBACK",
    sqlite3.SQLITE_SAVEPOINT: "SAVEPOINT",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    # They would remain for the next user of the connection.
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "CREATE TEMP TABLE",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "CREATE TEMP VIEW",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "CREATE TEMP TRIGGER",
}
_READS = (sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_ROW_CHANGES = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
_INSTEAD = "a block ends by itself, and Detent's tables change by its verbs only"


class _Authorizer:
    """Whether the user has the connection, and what was refused last. `engine_thread` may do everything."""

    def __init__(self) -> None:
        self.in_user_code = False
        self.engine_thread: int | None = None
        self.refused: str | None = None

    @property
    def is_user(self) -> bool:
        return self.in_user_code and self.engine_thread != threading.get_ident()

    def authorize(
        self, action: int, first: str | None, second: str | None, _database: str | None, trigger: str | None
    ) -> int:
        """Answer SQLite's question about each action of a statement."""
        if not self.is_user or action in _READS:
            return sqlite3.SQLITE_OK
        if action in _NEVER:
            self.refused = _NEVER[action]
            return sqlite3.SQLITE_DENY
        # Guards on the user's tables write to a table of Detent's.
        names = (first,) if action in _ROW_CHANGES else (first, second)
        if any(_is_ours(name) for name in names) and not _is_ours(trigger):
            self.refused = "a change of Detent's tables"
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK


def _is_ours(name: str | None) -> bool:
    return name is not None and name.lower().startswith(_OURS)


class WriteConnection(sqlite3.Connection):
    """Belongs to the engine, and to the user's code between `lend` and `take_back`.

    - `lock` is held by every statement of the user, and by the engine while it decides on the transaction.
    - `lost` says why the transaction is gone. Every further statement of the user is refused with it: it would be
      committed by itself otherwise.
    - `failed` is the error of a user's statement in this block.
    - `synced` says whether each commit is synced; None before it is set.

    Cursors are made by `sqlite3.Connection.cursor`: only that method makes the connection forget those that are gone.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lock = threading.RLock()
        self.lost: DetentError | None = None
        self.failed: sqlite3.Error | None = None
        self.synced: bool | None = None
        self._authorizer = _Authorizer()
        self.set_authorizer(self._authorizer.authorize)

    def lend(self) -> None:
        """Give the connection to the user's code, with default factories."""
        self.take_back()
        self.failed = None
        self._authorizer.in_user_code = True

    def take_back(self) -> None:
        """Take the connection back from the user's code, with default factories."""
        self._authorizer.in_user_code = False
        self.row_factory = None
        self.text_factory = str

    def claim_for_engine(self) -> None:
        """Treat the statements of this thread as the engine's, even while the user has the connection."""
        self._authorizer.engine_thread = threading.get_ident()

    def execute_own(self, sql: str) -> None:
        """Execute a statement of the engine's, without the checks for the user's."""
        super().cursor().execute(sql)

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _CheckedCursor)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().cursor(_CheckedCursor).execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        return super().cursor(_CheckedCursor).executemany(sql, parameters)

    def executescript(self, script: str, /) -> sqlite3.Cursor:
        return super().cursor(_CheckedCursor).executescript(script)

    def commit(self) -> None:
        with self.statement("COMMIT"):
            super().commit()

    def rollback(self) -> None:
        with self.statement("ROLLBACK"):
            super().rollback()

    def close(self) -> None:
        if self._authorizer.is_user:
            raise _refusal("close")
        super().close()

    @contextmanager
    def statement(self, sql: str) -> Iterator[str]:
        """Check a step of a statement. Yields the text to prepare."""
        if not self._authorizer.is_user:
            yield sql
            return
        with self.lock:
            text = self.begin_statement(sql)
            try:
                yield text
            except sqlite3.DatabaseError as error:
                self.note_failure(error)
                raise
            finally:
                self.end_statement()

    @property
    def is_user(self) -> bool:
        """Whether the statements of this thread are the user's."""
        return self._authorizer.is_user

    def begin_statement(self, sql: str) -> str:
        """Return the text to prepare for a user's statement. The caller holds `lock` and calls `end_statement`
        afterwards; if the statement fails, `note_failure` first."""
        if self.lost is not None:
            raise self.lost
        self._authorizer.refused = None
        return _PREFIX + sql

    def note_failure(self, error: sqlite3.DatabaseError) -> None:
        """Remember the error. Raises `WrongPlace` if the authorizer refused the statement."""
        if self._authorizer.refused is not None:
            raise _refusal(self._authorizer.refused) from error
        self.failed = error

    def end_statement(self) -> None:
        """Notice that a user's statement has ended the transaction."""
        if not self.in_transaction and self.lost is None:
            self.lost = _refusal("a statement that rolls the transaction back")

    def check_lost(self) -> None:
        """Raise the reason if the transaction is gone."""
        if self.lost is not None:
            raise self.lost

    def check_failed(self) -> None:
        """Refuse to commit if a statement of the user's failed, even if the user's code caught the error."""
        if self.failed is not None:
            raise failed_inside(self.failed) from self.failed


class _CheckedCursor(sqlite3.Cursor):
    connection: WriteConnection

    def execute(self, sql: str, parameters: Any = (), /) -> _CheckedCursor:
        connection = self.connection
        if not connection.is_user:
            super().execute(sql, parameters)
            return self
        # The same as `statement`, without a generator: every block makes this call.
        with connection.lock:
            text = connection.begin_statement(sql)
            try:
                super().execute(text, parameters)
            except sqlite3.DatabaseError as error:
                connection.note_failure(error)
                raise
            finally:
                connection.end_statement()
        return self

    def executemany(self, sql: str, parameters: Any, /) -> _CheckedCursor:
        with self.connection.statement(sql) as text:
            super().executemany(text, parameters)
        return self

    def executescript(self, script: str, /) -> sqlite3.Cursor:
        # sqlite3 commits before it runs a script.
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
