"""The client's verbs on an async connection of the caller, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from detent.errors import DetentError, WrongPlace
from detent.model.records import Appended, Cancelled, Commit, Committed, Enqueued, JobRow, Moved, NewEvent, NewJob
from detent.model.uniform_jobs import as_uniform, representatives
from detent.model.workflow_records import NewSignal, SignalSent
from detent.store.jobs.postgres_attempts import event_append, job_commit
from detent.store.jobs.postgres_enqueue import ids_reserve, job_enqueue
from detent.store.jobs.postgres_lists import job_get
from detent.store.jobs.postgres_moves import job_cancel, job_retry
from detent.store.postgres.driver import asyncpg_adapter
from detent.store.postgres.driver.failures import translating
from detent.store.postgres.driver.lane_memory import KnownLanes
from detent.store.postgres.driver.session import alchemy_dialect, name_of
from detent.store.postgres.statement import Statement
from detent.store.workflows.postgres_signals import signal_send

__all__ = ["AsyncPostgresVerbs"]

T = TypeVar("T")


class AsyncPostgresVerbs:
    """The same statements as everywhere, awaited. Nothing is durable until the caller commits.

    Takes an AsyncConnection of psycopg 3, a connection of asyncpg, or an AsyncConnection or AsyncSession of SQLAlchemy
    over one of them; refuses the rest with `WrongPlace`.
    """

    def __init__(self, connection: Any, name: str, lanes: KnownLanes) -> None:
        is_driver = isinstance(connection, psycopg.AsyncConnection) or asyncpg_adapter.is_connection(connection)
        if not is_driver and not (hasattr(connection, "sync_connection") or hasattr(connection, "sync_session")):
            raise _refusal(f"{type(connection).__module__}.{type(connection).__qualname__}")
        if not is_driver:
            check_alchemy(connection)
        self._connection = connection
        self._name = name_of(connection, name) if isinstance(connection, psycopg.AsyncConnection) else name
        self._lanes = lanes

    async def ids_reserve(self, count: int) -> int:
        return await self._run(ids_reserve(count))

    async def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        if not items:
            return []
        items = as_uniform(items)
        await self._lanes.ensure_async(representatives(items))
        return await self._run(job_enqueue(items, notify=True))

    async def job_cancel(
        self, ids: Sequence[int], actor: str, reason: str | None = None, *, undo: bool = True
    ) -> list[Cancelled | DetentError]:
        return await self._run(job_cancel(ids, actor, reason, undo=undo)) if ids else []

    async def job_retry(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Moved | DetentError]:
        return await self._run(job_retry(ids, actor, reason, notify=True)) if ids else []

    async def signal_send(self, items: Sequence[NewSignal], *, apart: bool = False) -> list[SignalSent | DetentError]:
        return (await self._run(signal_send(items, apart=apart, notify=True)))[0] if items else []

    async def job_get(self, ids: Sequence[int]) -> list[JobRow | None]:
        return await self._run(job_get(ids, self._name)) if ids else []

    async def job_commit(self, item: Commit) -> Committed | DetentError:
        return await self._run(job_commit(item))

    async def event_append(self, items: Sequence[NewEvent]) -> list[Appended | DetentError]:
        return await self._run(event_append(items)) if items else []

    async def _run(self, statement: Statement[T]) -> T:
        with translating(self._name):
            try:
                rows = await self._rows(statement)
            except Exception as error:
                if (same := asyncpg_adapter.as_psycopg(error)) is None:
                    raise
                raise same from error
            return statement.decode(rows)

    async def _rows(self, statement: Statement[T]) -> list[tuple[Any, ...]]:
        connection = self._connection
        if isinstance(connection, psycopg.AsyncConnection):
            async with connection.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(statement.sql, statement.params)
                return await cursor.fetchall()
        if asyncpg_adapter.is_connection(connection):
            sql, params = asyncpg_adapter.adapt(statement.sql, statement.params)
            return [tuple(row) for row in await connection.fetch(sql, *params)]
        if not hasattr(connection, "exec_driver_sql"):
            connection = await connection.connection()
        sql, params = statement.sql, statement.params
        if check_alchemy(connection) == "asyncpg":
            sql, params = asyncpg_adapter.adapt(sql, params)
        result = await connection.exec_driver_sql(sql, params)
        return [tuple(row) for row in result.fetchall()]


def check_alchemy(connection: Any) -> str | None:
    """Return the driver under a connection or session of SQLAlchemy; None while a session has no database yet. Raises
    `WrongPlace` for a driver that Detent does not speak."""
    dialect = alchemy_dialect(connection)
    if dialect is None:
        return None
    if dialect.name != "postgresql" or dialect.driver not in ("psycopg", "psycopg_async", "asyncpg"):
        raise _refusal(f"connection of SQLAlchemy over {dialect.name}+{dialect.driver}")
    return str(dialect.driver)


def _refusal(found: str) -> WrongPlace:
    return WrongPlace(
        "an async verb on the caller's connection",
        f"with a {found}",
        "give an AsyncConnection of psycopg 3, a connection of asyncpg, or an AsyncConnection or AsyncSession of "
        "SQLAlchemy over one of them",
    )
