"""Statements in, answers out, over our own pool or over whatever connection the caller has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg.rows import tuple_row

from detent.errors import DatabaseError, DetentError, WrongPlace
from detent.model.clock import Clock
from detent.model.ids import SeededIds
from detent.store.postgres.driver.failures import is_passing, translating
from detent.store.postgres.driver.line import Line
from detent.store.postgres.driver.pool import Connection, Pool, PooledConnection, Slot
from detent.store.postgres.statement import Row, Statement

__all__ = [
    "AlchemySession",
    "ConnectionSession",
    "PoolSession",
    "Session",
    "alchemy_dialect",
    "commit",
    "name_of",
    "roll_back",
    "session_over",
]

T = TypeVar("T")

TRIES_MAX = 6
PAUSE_FIRST = 0.005
TRY_SECONDS_MAX = 5.0
"""Seconds from the start of a call in which it may be tried again. Functions wait for a lock at least as long: a call
that has waited in vain is not repeated."""


class Session(Protocol):
    """Where a verb runs."""

    def run(self, statement: Statement[T]) -> T:
        """Run one statement and give its answer."""
        ...

    def together(self, work: Callable[[Session], T]) -> T:
        """Run several statements in one transaction."""
        ...


class PoolSession:
    """Each statement, and each piece of work, is a transaction of its own, repeated after a deadlock (R4)."""

    def __init__(self, pool: Pool, name: str, clock: Clock, *, seed: int) -> None:
        self._pool = pool
        self._name = name
        self._clock = clock
        self._chance = SeededIds(seed)

    def run(self, statement: Statement[T]) -> T:
        """Durable when it returns."""
        return self._again_and_again(lambda connection: self._one(connection, statement))

    def sent(self, statement: Statement[T]) -> Callable[[], T] | None:
        """The same, sent now, by one who may not wait: to call what comes back, once, is to wait for the answer. None
        where nothing was sent, or nobody knows: to run it finds out."""
        slot = self._pool.connection_at_rest()
        if slot is None:
            return None
        rows, line = None, slot.connection.line
        try:
            if line is not None:
                rows = line.sent(statement.sql, statement.params)
        except (psycopg.Error, UnicodeEncodeError):
            pass  # to run it says what is wrong
        finally:
            if rows is None:
                self._pool.give_back(slot)
        return None if rows is None else lambda: self._received(slot, rows, statement)

    def _received(self, slot: Slot, rows: Callable[[], list[Row]], statement: Statement[T]) -> T:
        try:
            with slot, translating(self._name, committing=statement.writes):
                return statement.decode(rows())
        except DetentError as error:
            if error.__cause__ is None or not is_passing(error.__cause__):
                raise
        return self.run(statement)

    def together(self, work: Callable[[Session], T]) -> T:
        """All or nothing."""
        return self.transact(lambda connection: work(ConnectionSession(connection, self._name, connection.line)))

    def transact(self, work: Callable[[PooledConnection], T]) -> T:
        """The same, for what needs the connection itself."""
        return self._again_and_again(lambda connection: self._many(connection, work))

    def _one(self, connection: PooledConnection, statement: Statement[T]) -> T:
        with translating(self._name, committing=statement.writes):
            rows = _rows(connection, connection.line, statement)
        return statement.decode(rows)

    def _many(self, connection: PooledConnection, work: Callable[[PooledConnection], T]) -> T:
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

    def _again_and_again(self, attempt: Callable[[PooledConnection], T]) -> T:
        pause = PAUSE_FIRST
        until = self._clock.monotonic() + TRY_SECONDS_MAX
        for tries in range(1, TRIES_MAX + 1):
            try:
                with self._pool.connection() as connection:
                    return attempt(connection)
            except DetentError as error:
                if tries == TRIES_MAX or error.__cause__ is None or not is_passing(error.__cause__):
                    raise
                if self._clock.monotonic() + pause >= until:
                    raise
            self._clock.sleep(pause * (0.5 + self._chance.random()))
            pause *= 2
        raise AssertionError("the last try returns or raises")


def commit(connection: Connection, name: str) -> None:
    """COMMIT, and make sure that it was one: PostgreSQL answers ROLLBACK where a statement before had failed."""
    with translating(name, committing=True):
        said = connection.execute("COMMIT").statusmessage
    _check_committed(said, name)


def _check_committed(said: str | None, name: str) -> None:
    if said != "COMMIT":
        raise DatabaseError(name, "a statement before had failed, so the transaction was rolled back")


def roll_back(connection: Connection) -> None:
    """ROLLBACK; where the connection is gone the server does it by itself."""
    if not connection.closed:
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()


class ConnectionSession:
    """On a psycopg connection, inside the transaction that its owner began; on its line where nobody else has it in
    hand, who may have put it into a mode of psycopg's."""

    def __init__(self, connection: psycopg.Connection[Any], name: str, line: Line | None = None) -> None:
        self._connection = connection
        self._line = line
        self._name = name

    def begin_with(self, statement: Statement[T]) -> T:
        """Begin the transaction with its first statement, in one trip."""
        with translating(self._name):
            if self._line is not None:
                rows = self._line.begin_with(statement.sql, statement.params)
            else:
                with psycopg.ClientCursor(self._connection, row_factory=tuple_row) as cursor:
                    cursor.execute(f"BEGIN; {statement.sql}", statement.params)
                    cursor.nextset()
                    rows = cursor.fetchall()
        return statement.decode(rows)

    def commit_with(self, last: Statement[None], refused: Callable[[Exception], DetentError | None]) -> None:
        """A last statement and the COMMIT, in one trip. Raises what `refused` makes of an error; rolled back then."""
        try:
            if self._line is not None:
                said: str | None = self._line.commit_with(last.sql, last.params)
            else:
                with psycopg.ClientCursor(self._connection) as cursor:
                    cursor.execute(f"{last.sql}; COMMIT", last.params)
                    while cursor.nextset():
                        pass
                    said = cursor.statusmessage
        except (psycopg.Error, UnicodeEncodeError) as error:
            roll_back(self._connection)
            with translating(self._name, committing=True):
                raise (refused(error) or error) from error
        _check_committed(said, self._name)

    def run(self, statement: Statement[T]) -> T:
        """Durable when the owner commits."""
        with translating(self._name):
            rows = _rows(self._connection, self._line, statement)
        return statement.decode(rows)

    def together(self, work: Callable[[Session], T]) -> T:
        """The owner's transaction holds it together."""
        return work(self)


def _rows(connection: psycopg.Connection[Any], line: Line | None, statement: Statement[T]) -> list[Row]:
    if line is not None:
        return line.ask(statement.sql, statement.params)
    with connection.cursor(row_factory=tuple_row) as cursor:
        return cursor.execute(statement.sql, statement.params).fetchall()


class AlchemySession:
    """On a SQLAlchemy connection, so that its own transaction begins with the first statement."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self._name = name

    def run(self, statement: Statement[T]) -> T:
        """Durable when the owner commits."""
        with translating(self._name):
            rows = self._connection.exec_driver_sql(statement.sql, statement.params).fetchall()
        return statement.decode([tuple(row) for row in rows])

    def together(self, work: Callable[[Session], T]) -> T:
        """The owner's transaction holds it together."""
        return work(self)


def name_of(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], otherwise: str) -> str:
    """The caller's own database, for messages: it may be another than ours. One that is closed says nothing."""
    if connection.closed:
        return otherwise
    info = connection.info
    return f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}"


def alchemy_dialect(connection: Any) -> Any:
    """The dialect of a connection or session of SQLAlchemy; None if it is neither, or has no database yet."""
    engine = getattr(connection, "engine", None)
    if engine is None and callable(find := getattr(connection, "get_bind", None)):
        try:
            engine = find()
        except Exception:  # a session without a database of its own says so in its own words when it is used
            return None
    return getattr(engine, "dialect", None)


def session_over(connection: Any, name: str) -> Session:
    """A session on what the caller gave: a psycopg connection, or a Connection or Session of SQLAlchemy over psycopg.

    Refuses the rest with `WrongPlace`.
    """
    if isinstance(connection, psycopg.Connection):
        return ConnectionSession(connection, name_of(connection, name))
    given = connection
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
