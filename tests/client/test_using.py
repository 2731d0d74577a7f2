"""Inside the caller's own transaction: there after its commit, gone with its rollback, and a refusal spoils nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from detent import Context, WorkflowContext
from detent.client.job import JobSnapshot
from detent.errors import (
    DatabaseUnreachable,
    InvalidInput,
    InvalidTransition,
    KeyConflict,
    NotFound,
    ResultExpired,
    WrongPlace,
)
from detent.model.records import Finish
from detent.testing.stores import is_sqlite
from tests.app.shop import Shop, open_shop


class Hand:
    """A connection of the user's own, whichever library it comes from: the few words they share."""

    def __init__(self, connection: Any, run: Callable[[str], object]) -> None:
        self.connection = connection
        self.run = run

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()


def alchemy_url(url: str) -> str:
    return url if is_sqlite(url) else url.replace("postgresql://", "postgresql+psycopg://")


@contextmanager
def driver(url: str) -> Iterator[Hand]:
    path = url.removeprefix("sqlite:///")
    connection: Any = sqlite3.connect(path) if is_sqlite(url) else psycopg.connect(url)
    with closing(connection):
        yield Hand(connection, connection.execute)


@contextmanager
def alchemy(url: str, make: Callable[[Any], Any]) -> Iterator[Hand]:
    engine = sqlalchemy.create_engine(alchemy_url(url))
    with make(engine) as connection:
        yield Hand(connection, lambda sql: connection.execute(sqlalchemy.text(sql)))
    engine.dispose()


@contextmanager
def core(url: str) -> Iterator[Hand]:
    with alchemy(url, lambda engine: engine.connect()) as hand:
        yield hand


@contextmanager
def orm(url: str) -> Iterator[Hand]:
    with alchemy(url, Session) as hand:
        yield hand


KINDS = {"driver": driver, "core": core, "orm": orm}


@pytest.fixture(params=list(KINDS))
def hand(request: pytest.FixtureRequest, shop: Shop) -> Iterator[Hand]:
    with shop.connect() as connection:
        connection.execute("CREATE TABLE orders (id integer PRIMARY KEY)")
        connection.commit()
    with KINDS[request.param](shop.url) as hand:
        yield hand


def orders(shop: Shop) -> int:
    with shop.connect() as connection:
        return int(connection.execute("SELECT count(*) FROM orders").fetchone()[0])


def test_with_the_callers_commit(shop: Shop, hand: Hand) -> None:
    """J2: the order and its mail, or neither; nobody sees the job before the commit."""
    hand.run("INSERT INTO orders VALUES (1)")
    job = shop.app.using(hand.connection).enqueue(shop.welcome.call(user_id=7), tenant="acme")
    jobs = shop.app.using(hand.connection).enqueue_many(shop.welcome.call(user_id=n) for n in range(3))
    assert (orders(shop), shop.app.jobs.list()) == (0, [])
    with pytest.raises(NotFound):
        shop.app.jobs.get(job.id)
    hand.commit()
    assert (orders(shop), shop.app.jobs.list()) == (1, [*jobs[::-1], job])
    assert (job.created, job.refresh().state, job.tenant) == (True, "pending", "acme")
    shop.work()
    assert job.wait(timeout=1).result == "sent to 7"


def test_gone_with_the_callers_rollback(shop: Shop, hand: Hand) -> None:
    """J2"""
    hand.run("INSERT INTO orders VALUES (1)")
    job = shop.app.using(hand.connection).enqueue(shop.welcome.call(user_id=7), key="welcome:7")
    hand.rollback()
    assert (orders(shop), shop.app.jobs.list()) == (0, [])
    again = shop.app.enqueue(shop.welcome.call(user_id=8), key="welcome:7")
    assert again.created
    assert again.id != job.id or again.refresh().payload == {"user_id": 8}


def test_a_handle_from_before_a_rollback_means_no_other_job(shop: Shop, hand: Hand) -> None:
    """J2: where ids come from inside the transaction, the next one may be given the same. The handle of the job that
    never was used to show that one, task, state and result."""
    client = shop.app.using(hand.connection)
    lost = client.enqueue(shop.welcome.call(user_id=7))
    hand.rollback()
    kept = client.enqueue(shop.welcome.call(user_id=7))
    hand.commit()
    with pytest.raises(NotFound):
        lost.wait(timeout=1)
    assert kept.refresh().state == "pending"
    shop.work()
    assert kept.wait(timeout=1).result == "sent to 7"


def test_a_refusal_leaves_the_transaction_usable(shop: Shop, hand: Hand) -> None:
    first = shop.app.enqueue(shop.welcome.call(user_id=7), key="k")
    client = shop.app.using(hand.connection)
    hand.run("INSERT INTO orders VALUES (1)")
    with pytest.raises(KeyConflict) as conflict:
        client.enqueue(shop.welcome.call(user_id=8), key="k")
    assert conflict.value.job_id == first.id
    with pytest.raises(InvalidTransition):
        client.discard(first.id, actor="ana")
    with pytest.raises(NotFound):
        client.cancel(10**12, actor="ana")
    hand.run("INSERT INTO orders VALUES (2)")
    job = client.enqueue(shop.welcome.call(user_id=9))
    hand.commit()
    assert (orders(shop), shop.app.jobs.list()) == (2, [job, first])


def test_the_same_key_twice_in_one_transaction(shop: Shop, hand: Hand) -> None:
    """J3"""
    client = shop.app.using(hand.connection)
    first = client.enqueue(shop.welcome.call(user_id=7), key="k")
    assert client.enqueue(shop.welcome.call(user_id=7), key="k") == first
    with pytest.raises(KeyConflict):
        client.enqueue(shop.welcome.call(user_id=8), key="k")
    hand.commit()
    assert shop.app.jobs.list() == [first]


def test_moves_belong_to_the_transaction_too(shop: Shop, hand: Hand) -> None:
    dead, pending = shop.quarantined(), shop.welcome.enqueue(user_id=1)
    client = shop.app.using(hand.connection)
    assert client.cancel(str(pending.id), actor="ana", reason="wrong user").state == "cancelled"
    assert client.get(pending.id).state == "cancelled"
    assert client.retry(dead.id, actor="ana").changed
    assert (pending.refresh().state, dead.refresh().state) == ("pending", "quarantined")
    hand.rollback()
    assert (pending.refresh().state, dead.refresh().state) == ("pending", "quarantined")
    client.cancel(pending.id, actor="ana")
    client.force(dead.id, "succeeded", actor="ana", reason="done by hand")
    hand.commit()
    assert (pending.refresh().state, dead.refresh().state) == ("cancelled", "succeeded")


def test_a_signal_belongs_to_the_transaction_too(shop: Shop, hand: Hand) -> None:
    @shop.app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> None:
        ctx.wait_for("decision")

    job = expense.enqueue()
    client = shop.app.using(hand.connection)
    client.signal(job, "decision", {"approved": False}, actor="ann")
    hand.rollback()
    assert shop.app.store.signal_list(job.id) == []
    assert client.signal(job.id, "decision", {"approved": True}, dedupe="one", reason="she said so").created
    hand.commit()
    (kept,) = shop.app.store.signal_list(job.id)
    assert (kept.payload, kept.dedupe, kept.reason) == ('{"approved":true}', "one", "she said so")


def test_a_handle_outlives_the_connection(shop: Shop) -> None:
    with driver(shop.url) as hand:
        job = shop.app.using(hand.connection).enqueue(shop.welcome.call(user_id=7))
        hand.commit()
    shop.work()
    assert job.wait(timeout=1).result == "sent to 7"


def test_what_is_no_connection_is_refused(shop: Shop) -> None:
    with shop.untouched(), pytest.raises(WrongPlace) as refusal:
        shop.app.using(object()).enqueue(shop.welcome.call(user_id=7))
    assert "builtins.object" in str(refusal.value)
    assert "SQLAlchemy" in refusal.value.instead


# -- async connections ----------------------------------------------------------------------------------------


@pytest.fixture
def postgres_shop(postgres_store_url: str) -> Iterator[Shop]:
    with open_shop(postgres_store_url) as shop:
        yield shop


@pytest.fixture
def sqlite_shop(sqlite_store_url: str) -> Iterator[Shop]:
    with open_shop(sqlite_store_url) as shop:
        yield shop


def async_url(shop: Shop) -> str:
    return alchemy_url(shop.url).replace("sqlite:", "sqlite+aiosqlite:")


async def on_the_driver(shop: Shop, work: Callable[[Any], Any]) -> None:
    connection = await psycopg.AsyncConnection.connect(shop.url)
    try:
        await work(connection)
    finally:
        await connection.close()


async def on_the_core(shop: Shop, work: Callable[[Any], Any]) -> None:
    engine = create_async_engine(async_url(shop))
    async with engine.connect() as connection:
        await work(connection)
    await engine.dispose()


async def on_the_orm(shop: Shop, work: Callable[[Any], Any]) -> None:
    engine = create_async_engine(async_url(shop))
    async with AsyncSession(engine) as session:
        await work(session)
    await engine.dispose()


class Asyncpg:
    """A connection of asyncpg with a transaction open, in the words of the others."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def begin(self) -> None:
        self._transaction = self.connection.transaction()
        await self._transaction.start()

    async def commit(self) -> None:
        await self._transaction.commit()
        await self.begin()

    async def rollback(self) -> None:
        await self._transaction.rollback()
        await self.begin()


async def on_asyncpg(shop: Shop, work: Callable[[Any], Any]) -> None:
    connection = await asyncpg.connect(shop.url)
    try:
        hand = Asyncpg(connection)
        await hand.begin()
        await work(hand)
    finally:
        await connection.close()


async def on_a_pool_of_asyncpg(shop: Shop, work: Callable[[Any], Any]) -> None:
    async with asyncpg.create_pool(shop.url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        hand = Asyncpg(connection)
        await hand.begin()
        await work(hand)
        await hand._transaction.rollback()


async def on_the_core_over_asyncpg(shop: Shop, work: Callable[[Any], Any]) -> None:
    engine = create_async_engine(shop.url.replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.connect() as connection:
        await work(connection)
    await engine.dispose()


async def on_the_orm_over_asyncpg(shop: Shop, work: Callable[[Any], Any]) -> None:
    engine = create_async_engine(shop.url.replace("postgresql://", "postgresql+asyncpg://"))
    async with AsyncSession(engine) as session:
        await work(session)
    await engine.dispose()


OVER_ASYNCPG = [on_asyncpg, on_a_pool_of_asyncpg, on_the_core_over_asyncpg, on_the_orm_over_asyncpg]


@pytest.mark.parametrize("kind", [on_the_driver, on_the_core, on_the_orm, *OVER_ASYNCPG])
def test_on_an_async_connection(postgres_shop: Shop, kind: Callable[..., Any]) -> None:
    check_on_an_async_connection(postgres_shop, kind)


@pytest.mark.parametrize("kind", [on_the_core, on_the_orm])
def test_on_an_async_connection_over_aiosqlite(sqlite_shop: Shop, kind: Callable[..., Any]) -> None:
    """Ids are taken in the transaction itself: it was refused."""
    check_on_an_async_connection(sqlite_shop, kind)


def check_on_an_async_connection(shop: Shop, kind: Callable[..., Any]) -> None:
    """J2: the same promises, awaited."""
    dead, taken, pending = shop.quarantined(), shop.app.enqueue(shop.welcome.call(0), key="k"), shop.welcome.enqueue(1)

    async def work(connection: Any) -> None:
        client = shop.app.aio.using(connection.connection if isinstance(connection, Asyncpg) else connection)
        await client.enqueue(shop.welcome.call(user_id=7))
        await connection.rollback()
        assert len(shop.app.jobs.list()) == 3

        job = await client.enqueue(shop.welcome.call(user_id=8), priority=3)
        jobs = await client.enqueue_many(shop.welcome.call(user_id=n) for n in (9, 10))
        with pytest.raises(KeyConflict) as conflict:
            await client.enqueue(shop.welcome.call(user_id=9), key="k")
        assert conflict.value.job_id == taken.id
        assert (await client.cancel(pending.id, actor="ana")).state == "cancelled"
        assert (await client.retry(dead.id, actor="ana")).changed
        assert (await client.signal(job, "decision", [1])).created
        assert len(shop.app.jobs.list()) == 3
        await connection.commit()
        assert shop.app.jobs.list()[:-3] == [*jobs[::-1], job]
        assert (await job.refresh()).row.priority == 3
        assert [one.payload for one in shop.app.store.signal_list(job.id)] == ["[1]"]

    asyncio.run(kind(shop, work))
    assert (pending.refresh().state, dead.refresh().state) == ("cancelled", "pending")


def test_sqlite_has_no_async_connections(sqlite_url: str) -> None:
    with open_shop(sqlite_url) as shop, shop.untouched(), pytest.raises(WrongPlace, match=r"use app\.using"):
        shop.app.aio.using(object())


def test_an_async_connection_is_refused_by_the_sync_client(shop: Shop) -> None:
    """It died with "a builtins.coroutine", which was never awaited."""
    engine = create_async_engine(async_url(shop))
    for one in (AsyncSession(engine), engine.connect()):
        with pytest.raises(WrongPlace, match=r"which is awaited; use app\.aio\.using"):
            shop.app.using(one)


def test_what_is_no_async_connection_is_refused(postgres_shop: Shop) -> None:
    with pytest.raises(WrongPlace, match="AsyncConnection"):
        postgres_shop.app.aio.using(object())


@pytest.mark.parametrize("kind", OVER_ASYNCPG)
def test_what_asyncpg_raises_is_said_in_our_words(postgres_shop: Shop, kind: Callable[..., Any]) -> None:
    """N2: a connection that is gone is `DatabaseUnreachable`, whoever's driver says so."""

    async def work(hand: Any) -> None:
        connection = hand.connection if isinstance(hand, Asyncpg) else hand
        client = postgres_shop.app.aio.using(connection)
        if isinstance(connection, AsyncSession):
            await connection.connection()
        with postgres_shop.connect() as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(DatabaseUnreachable):
            await client.enqueue(postgres_shop.welcome.call(user_id=7))

    with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, sqlalchemy.exc.DBAPIError):
        asyncio.run(kind(postgres_shop, work))


def test_a_text_that_cannot_be_stored_is_refused_over_asyncpg(postgres_shop: Shop) -> None:
    async def work(hand: Asyncpg) -> None:
        client = postgres_shop.app.aio.using(hand.connection)
        with pytest.raises(InvalidInput):
            await client.retry(2**63 - 1, actor="a\0b")

    asyncio.run(on_asyncpg(postgres_shop, work))


@pytest.mark.parametrize(
    ("url", "found"),
    [("sqlite+pysqlite://", r"sqlite\+pysqlite"), ("postgresql+psycopg2://", r"postgresql\+psycopg2")],
)
def test_another_driver_is_refused_by_its_name(postgres_shop: Shop, url: str, found: str) -> None:
    """J2: SQLAlchemy over a driver that Detent does not speak died with a syntax error at the first statement."""
    dialect = sqlalchemy.make_url(url).get_dialect()()

    class Bound(AsyncSession):
        def get_bind(self, *args: Any, **options: Any) -> Any:
            return SimpleNamespace(dialect=dialect)

    with postgres_shop.untouched(), pytest.raises(WrongPlace, match=found):
        postgres_shop.app.aio.using(Bound())


@dataclass
class Answer:
    number: int


@pytest.mark.parametrize("kind", ["get", "using", "aio"])
def test_a_handle_reads_the_result_as_its_task_does(shop: Shop, kind: str) -> None:
    """J13: it was raw JSON, and was kept for ever, where the handle did not come from `app.get`."""

    @shop.app.task(result_ttl=60.0)
    def ask(ctx: Context) -> Answer:
        return Answer(42)

    job = ask.enqueue()
    (claimed,) = shop.store.job_claim(
        lease_id=shop.store.ids_reserve(1), worker="w", queues=None, tasks=[ask.name], limit=1, lease=30.0
    )
    shop.store.job_finish([Finish(claimed.job_id, claimed.attempt, '{"number":42}')], "w")
    with shop.connect() as connection:
        found: JobSnapshot[Any]
        match kind:
            case "get":
                found = shop.app.jobs.get(job.id)
            case "using":
                found = shop.app.using(connection).get(job.id)
            case _:
                found = asyncio.run(shop.app.aio.jobs.get(job.id))
        assert found.result == Answer(42)
        shop.clock.advance(61)
        with pytest.raises(ResultExpired):
            _ = found.result
