"""The verbs on connections that belong to the caller, of every kind that is taken, and those that are not."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from detent.errors import DatabaseUnreachable, IdConflict, SchemaMissing, WrongPlace
from detent.model.records import Cancelled, Enqueued, Moved, NewEvent
from detent.store.contract import Store
from detent.store.open import open_store
from detent.store.postgres.store import PostgresStore
from tests.contract.jobs.sample_jobs import enqueue, job, new_job


def alchemy(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def test_psycopg_whatever_its_row_factory(postgres_store_url: str) -> None:
    """J2"""
    with closing(open_store(postgres_store_url)) as store:
        item = new_job(store)
        with psycopg.connect(postgres_store_url, row_factory=dict_row) as connection:
            assert store.on(connection).job_enqueue([item]) == [Enqueued(item.id, True)]
            assert store.job_get([item.id]) == [None]
        assert job(store, item.id).state == "pending"


def test_sqlalchemy_begins_its_own_transaction(postgres_store_url: str) -> None:
    """J2: on a Connection and on a Session; what is not committed was never there."""
    engine = sqlalchemy.create_engine(alchemy(postgres_store_url))
    with closing(open_store(postgres_store_url)) as store:
        kept, gone = new_job(store), new_job(store)
        with engine.connect() as connection:
            assert store.on(connection).job_enqueue([kept]) == [Enqueued(kept.id, True)]
            assert connection.in_transaction()
            connection.commit()
            store.on(connection).job_enqueue([gone])
            connection.rollback()
        assert store.job_get([gone.id]) == [None]
        with Session(engine) as session:
            verbs = store.on(session)
            assert verbs.job_cancel([kept.id], "ana") == [Cancelled(kept.id, "cancelled")]
            assert verbs.job_retry([kept.id], "ana") == [Moved(str(kept.id), "pending", True)]
            session.commit()
        assert job(store, kept.id).state == "pending"
    engine.dispose()


def test_async_connections(postgres_store_url: str) -> None:
    """J2: psycopg's and SQLAlchemy's; a refusal leaves the transaction usable."""
    with closing(PostgresStore(postgres_store_url)) as store:
        taken = enqueue(store)
        asyncio.run(_on_psycopg(store, postgres_store_url, taken))
        asyncio.run(_on_sqlalchemy(store, postgres_store_url))


async def _on_psycopg(store: Store, url: str, taken: int) -> None:
    item = new_job(store)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        verbs = store.on_async(connection)
        (refused,) = await verbs.job_enqueue([new_job(store, id=taken, payload="0")])
        assert isinstance(refused, IdConflict)
        assert await verbs.job_enqueue([item]) == [Enqueued(item.id, True)]
        (found,) = await verbs.job_get([item.id])
        assert found is not None
        assert await verbs.job_cancel([item.id], "ana") == [Cancelled(item.id, "cancelled")]
        assert await verbs.job_retry([item.id], "ana") == [Moved(str(item.id), "pending", True)]
        assert store.job_get([item.id]) == [None]
    assert job(store, item.id).state == "pending"


async def _on_sqlalchemy(store: PostgresStore, url: str) -> None:
    engine = create_async_engine(alchemy(url))
    first, second = new_job(store), new_job(store)
    async with engine.begin() as connection:
        assert await store.on_async(connection).job_enqueue([first]) == [Enqueued(first.id, True)]
    async with AsyncSession(engine) as session:
        verbs = store.on_async(session)
        assert await verbs.job_enqueue([second]) == [Enqueued(second.id, True)]
        note = NewEvent(job_id=first.id, attempt=None, level="info", message="seen")
        assert [answer.created for answer in await verbs.event_append([note])] == [True]  # type: ignore[attr-defined]
        await session.rollback()
    await engine.dispose()
    assert [row and row.id for row in store.job_get([first.id, second.id])] == [first.id, None]
    assert store.job_events(first.id) == []


def test_a_database_without_a_record_is_named_and_not_ours(postgres_store_url: str, postgres_url: str) -> None:
    """It used to name the one that has a record."""
    theirs = postgres_url.rpartition("/")[2]
    with closing(open_store(postgres_store_url)) as store, psycopg.connect(postgres_url) as mine:
        with pytest.raises(SchemaMissing, match=f"/{theirs}"):
            store.on(mine).job_get([1])
        mine.close()
        with pytest.raises(DatabaseUnreachable, match="closed"):
            store.on(mine).job_get([1])


def test_other_connections_are_refused(postgres_store_url: str) -> None:
    with closing(open_store(postgres_store_url)) as store, closing(sqlite3.connect(":memory:")) as stranger:
        engine = sqlalchemy.create_engine("sqlite://")
        with engine.connect() as wrapped:
            for connection in (stranger, wrapped, object()):
                with pytest.raises(WrongPlace, match="psycopg 3"):
                    store.on(connection)
        with pytest.raises(WrongPlace, match="psycopg 3"):
            store.on_async(stranger)
        engine.dispose()
