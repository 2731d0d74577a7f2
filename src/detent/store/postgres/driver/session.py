"""Run statements: on a connection of the pool, or on one that the caller passes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg.rows import tuple_row

from detent.errors import DatabaseError, DetentError, WrongPlace
from detent.model.clock import Clock
from detent.model.ids import SeededIds
from detent.store.postgres.driver.connection import Connection, OwnConnection
from detent.store.postgres.driver.connection_pool import ConnectionPool, Slot
from detent.store.postgres.driver.direct_statements import DirectStatements
from detent.store.postgres.driver.failures import is_transient, translating
from detent.store.postgres.statement import Row, Statement

__all__ = [
    "AlchemySession",
    "CheckedSession",
    "ConnectionSession",
    "PoolSession",
    "Session",
    "alchemy_dialect",
    "commit",
    "name_of",
    "roll_back",
    "session_over",
]

S = TypeVar("S")
T = TypeVar("T")

TRIES_MAX = 6
PAUSE_FIRST = 0.005
TRY_SECONDS_MAX = 5.0
"""Seconds from the start of a call within which it may be retried. Functions wait at least as long for a lock, so a
call that has waited in vain is not retried."""


class Session(Protocol):
    """Runs the statements of verbs."""

    def run(self, statement: Statement[T]) -> T:
        """Run one statement and return its decoded rows."""
        ...

    def together(self, work: Callable[[Session], T]) -> T:
        """Run several statements in one transaction."""
        ...


class PoolSession:
    """Runs each statement, and each piece of work, in a transaction of its own. Retries after a deadlock (R4)."""

    def __init__(self, pool: ConnectionPool, name: str, clock: Clock, *, seed: int) -> None:
        self._pool = pool
        self._name = name
        self._clock = clock
        self._jitter = SeededIds(seed)

    def run(self, statement: Statement[T]) -> T:
        """Run one statement. It is durable when this returns."""
        return self._retry(lambda connection: self._run_one(connection, statement))

    def send(self, statement: Statement[T]) -> Callable[[], T] | None:
        """Send a statement without waiting. The function returned waits for the answer and is called once. None if
        nothing was sent, or if it is not known: `run` then finds out."""
        slot = self._pool.idle_connection()
        if slot is None:
            return None
        rows, direct = None, slot.connection.direct
        try:
            if direct is not None:
                rows = direct.send(statement.sql, statement.params)
        except (psycopg.Error, UnicodeEncodeError):
            pass  # `run` reports what is wrong
        finally:
            if rows is None:
                self._pool.give_back(slot)
        return None if rows is None else lambda: self._receive(slot, rows, statement)

    def _receive(self, slot: Slot, rows: Callable[[], list[Row]], statement: Statement[T]) -> T:
        try:
            with slot, translating(self._name, committing=statement.writes):
                return statement.decode(rows())
        except DetentError as error:
            if error.__cause__ is None or not is_transient(error.__cause__):
                raise
        return self.run(statement)

    def together(self, work: Callable[[Session], T]) -> T:
        """Run several statements in one transaction."""
        return self.transact(lambda connection: work(ConnectionSession(connection, self._name, connection.direct)))

    def transact(self, work: Callable[[OwnConnection], T]) -> T:
        """Run work that needs the connection itself in one transaction."""
        return self._retry(lambda connection: self._run_transaction(connection, work))

    def _run_one(self, connection: OwnConnection, statement: Statement[T]) -> T:
        with translating(self._name, committing=statement.writes):
            rows = _rows(connection, connection.direct, statement)
        return statement.decode(rows)

    def _run_transaction(self, connection: OwnConnection, work: Callable[[OwnConnection], T]) -> T:
        with translating(self._name):
            connection.execute("BEGIN")
        try:
            with translating(self._name):
                answer = work(connection)
        except BaseException:
            roll_back(connection)
            raise
        commit(connection, self._name)
        return answer

    def _retry(self, attempt: Callable[[OwnConnection], T]) -> T:
        pause = PAUSE_FIRST
        until = self._clock.monotonic() + TRY_SECONDS_MAX
        for tries in range(1, TRIES_MAX + 1):
            try:
                with self._pool.connection() as connection:
                    return attempt(connection)
            except DetentError as error:
                if tries == TRIES_MAX or error.__cause__ is None or not is_transient(error.__cause__):
                    raise
                if self._clock.monotonic() + pause >= until:
                    raise
            self._clock.sleep(pause * (0.5 + self._jitter.random()))
            pause *= 2
        raise AssertionError("the last try returns or raises")


def commit(connection: Connection, name: str) -> None:
    """Commit. Raises `DatabaseError` if the server rolled back instead because an earlier statement had failed."""
    with translating(name, committing=True):
        tag = connection.execute("COMMIT").statusmessage
    _check_committed(tag, name)


def _check_committed(tag: str | None, name: str) -> None:
    if tag != "COMMIT":
        raise DatabaseError(name, "an earlier statement had failed, so the transaction was rolled back")


def roll_back(connection: Connection) -> None:
    """Roll back. If the connection is lost, the server rolls back by itself."""
    if not connection.closed:
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()


class ConnectionSession:
    """Runs statements on a psycopg connection, inside the transaction that its owner began.

    `direct` is given only if the user has no access to the connection and cannot have changed its mode.
    """

    def __init__(self, connection: psycopg.Connection[Any], name: str, direct: DirectStatements | None = None) -> None:
        self._connection = connection
        self._direct = direct
        self._name = name

    def begin_with(self, statement: Statement[T]) -> T:
        """Begin the transaction and run its first statement in one round trip."""
        with translating(self._name):
            if self._direct is not None:
                rows = self._direct.begin_with(statement.sql, statement.params)
            else:
                with psycopg.ClientCursor(self._connection, row_factory=tuple_row) as cursor:
                    cursor.execute(f"BEGIN; {statement.sql}", statement.params)
                    cursor.nextset()
                    rows = cursor.fetchall()
        return statement.decode(rows)

    def commit_with(self, last: Statement[None], refused: Callable[[Exception], DetentError | None]) -> None:
        """Run a last statement and COMMIT in one round trip. On an error, roll back and raise what `refused` makes of
        it."""
        try:
            if self._direct is not None:
                tag: str | None = self._direct.commit_with(last.sql, last.params)
            else:
                with psycopg.ClientCursor(self._connection) as cursor:
                    cursor.execute(f"{last.sql}; COMMIT", last.params)
                    while cursor.nextset():
                        pass
                    tag = cursor.statusmessage
        except (psycopg.Error, UnicodeEncodeError) as error:
            roll_back(self._connection)
            with translating(self._name, committing=True):
                raise (refused(error) or error) from error
        _check_committed(tag, self._name)

    def run(self, statement: Statement[T]) -> T:
        """Run one statement. It is durable when the owner commits."""
        with translating(self._name):
            rows = _rows(self._connection, self._direct, statement)
        return statement.decode(rows)

    def run_two(self, first: Statement[T], second: Statement[S]) -> tuple[T, S]:
        """Run two statements, in one round trip if possible."""
        if self._direct is None:
            return self.run(first), self.run(second)
        with translating(self._name):
            rows = self._direct.fetch_two((first.sql, first.params), (second.sql, second.params))
        return first.decode(rows[0]), second.decode(rows[1])

    def commit(self) -> None:
        """Commit. Raises `DatabaseError` if the server rolled back instead."""
        if self._direct is None:
            commit(self._connection, self._name)
            return
        with translating(self._name, committing=True):
            tag = self._direct.commit()
        _check_committed(tag, self._name)

    def together(self, work: Callable[[Session], T]) -> T:
        """Run the work in the owner's transaction."""
        return work(self)


class CheckedSession(ConnectionSession):
    """Runs `check` together with its first statement, and `end_check` at the latest. `passed` gets the answer of the
    check, and raises if nothing of this transaction may stay: what the first statement has done is rolled back then."""

    def __init__(self, session: ConnectionSession, check: Statement[S], passed: Callable[[S], None]) -> None:
        super().__init__(session._connection, session._name, session._direct)
        self._check: Statement[Any] | None = check
        self._passed: Callable[[Any], None] = passed

    def run(self, statement: Statement[T]) -> T:
        """Run one statement, and the check before it if that was not done."""
        check, self._check = self._check, None
        if check is None:
            return super().run(statement)
        checked, answer = self.run_two(check, statement)
        self._passed(checked)
        return answer

    def end_check(self) -> None:
        """Run the check if no statement was run."""
        check, self._check = self._check, None
        if check is not None:
            self._passed(super().run(check))


def _rows(connection: psycopg.Connection[Any], direct: DirectStatements | None, statement: Statement[T]) -> list[Row]:
    if direct is not None:
        return direct.fetch(statement.sql, statement.params)
    with connection.cursor(row_factory=tuple_row) as cursor:
        return cursor.execute(statement.sql, statement.params).fetchall()


class AlchemySession:
    """Runs statements on a SQLAlchemy connection, whose own transaction begins with the first one."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self._name = name

    def run(self, statement: Statement[T]) -> T:
        """Run one statement. It is durable when the owner commits."""
        with translating(self._name):
            rows = self._connection.exec_driver_sql(statement.sql, statement.params).fetchall()
        return statement.decode([tuple(row) for row in rows])

    def together(self, work: Callable[[Session], T]) -> T:
        """Run the work in the owner's transaction."""
        return work(self)


def name_of(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], otherwise: str) -> str:
    """Return the database of the caller's connection, for messages; `otherwise` if the connection is closed."""
    if connection.closed:
        return otherwise
    info = connection.info
    return f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}"


def alchemy_dialect(connection: Any) -> Any:
    """Return the dialect of a SQLAlchemy connection or session; None if it is neither, or has no database yet."""
    engine = getattr(connection, "engine", None)
    if engine is None and callable(find := getattr(connection, "get_bind", None)):
        try:
            engine = find()
        except Exception:  # a session without a database reports that when it is used
            return None
    return getattr(engine, "dialect", None)


def session_over(connection: Any, name: str) -> Session:
    """Return a session on the caller's connection: of psycopg, or a Connection or Session of SQLAlchemy over psycopg.

    Raises `WrongPlace` for anything else.
    """
    if isinstance(connection, psycopg.Connection):
        return ConnectionSession(connection, name_of(connection, name))
    given = connection
    if isinstance(connection, psycopg.AsyncConnection) or hasattr(connection, "run_sync"):
        raise WrongPlace(
            "a verb on the caller's connection",
            f"with a {type(connection).__module__}.{type(connection).__qualname__}, which is awaited",
            "use app.aio.using",
        )
    if not hasattr(connection, "exec_driver_sql") and callable(getattr(connection, "connection", None)):
        connection = connection.connection()
    if hasattr(connection, "exec_driver_sql"):
        driver = getattr(getattr(connection, "connection", None), "driver_connection", None)
        if isinstance(driver, psycopg.Connection):
            return AlchemySession(connection, name_of(driver, name))
    dialect = alchemy_dialect(given)
    over = "" if dialect is None else f" over {dialect.name}+{dialect.driver}"
    raise WrongPlace(
        "a verb on the caller's connection",
        f"with a {type(given).__module__}.{type(given).__qualname__}{over}",
        "give a connection of psycopg 3, or a Connection or Session of SQLAlchemy over psycopg 3",
    )
