"""`ctx.commit(connection)`: on Detent's own database, and on another one, through every kind of connection."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from detent import Context, Detent, Fatal, Job, Retry, errors
from detent.testing.harness import Harness

AGAIN = Retry(1, base=0, jitter=0)
INSERT = "INSERT INTO ledger (line) VALUES (:line)"

Opened = Callable[[str], AbstractContextManager[Any]]
OpenedAsync = Callable[[str], AbstractAsyncContextManager[Any]]


def alchemy(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


@contextmanager
def engine_of(url: str) -> Iterator[Any]:
    engine = sqlalchemy.create_engine(alchemy(url))
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def alchemy_connection(url: str) -> Iterator[Any]:
    with engine_of(url) as engine, engine.connect() as connection:
        yield connection


@contextmanager
def alchemy_session(url: str) -> Iterator[Any]:
    with engine_of(url) as engine, Session(engine) as session:
        yield session


PLAIN: dict[str, tuple[str, Opened]] = {
    "sqlite3": ("sqlite", lambda url: closing(sqlite3.connect(path_of(url)))),
    "sqlite3 autocommit": ("sqlite", lambda url: closing(sqlite3.connect(path_of(url), isolation_level=None))),
    "sqlite connection": ("sqlite", alchemy_connection),
    "sqlite session": ("sqlite", alchemy_session),
    "psycopg": ("postgres", lambda url: closing(psycopg.connect(url))),
    "psycopg autocommit": ("postgres", lambda url: closing(psycopg.connect(url, autocommit=True))),
    "postgres connection": ("postgres", alchemy_connection),
    "postgres session": ("postgres", alchemy_session),
}


@asynccontextmanager
async def psycopg_async(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection


@asynccontextmanager
async def alchemy_async(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(alchemy(url))
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def alchemy_async_session(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(alchemy(url))
    try:
        async with AsyncSession(engine) as session:
            yield session
    finally:
        await engine.dispose()


ASYNC: dict[str, OpenedAsync] = {
    "psycopg": psycopg_async,
    "connection": alchemy_async,
    "session": alchemy_async_session,
}


def connect(url: str) -> Any:
    return sqlite3.connect(path_of(url)) if url.startswith("sqlite") else psycopg.connect(url)


class Place:
    """Detent on one database, a ledger in another or in the same."""

    def __init__(self, harness: Harness, data: str, *, marked: bool = True) -> None:
        self.harness = harness
        self.app: Detent = harness.app
        self.data = data
        with closing(connect(data)) as connection:
            connection.execute("CREATE TABLE ledger (line text NOT NULL)")
            connection.commit()
            if marked:
                self.app.prepare_foreign(connection)
                self.app.prepare_foreign(connection)

    def ledger(self) -> list[str]:
        with closing(connect(self.data)) as connection:
            return [row[0] for row in connection.execute("SELECT line FROM ledger ORDER BY line").fetchall()]

    def outcomes(self, job: Job[Any]) -> list[str | None]:
        return [execution.outcome for execution in job.executions()]

    def declare(self, body: Callable[[Context, str], Any], **options: Any) -> Any:
        def book(ctx: Context, line: str) -> Any:
            return body(ctx, line)

        chosen: dict[str, Any] = {"name": "book", "retry": AGAIN} | options
        return self.app.task(**chosen)(book)

    def done(self, task: Any, line: str = "one") -> Job[Any]:
        job: Job[Any] = task.enqueue(line=line)
        self.harness.work()
        return job.refresh()


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    kind = getattr(request, "param", "sqlite")
    with closing(Harness(request.getfixturevalue(f"{kind}_store_url"))) as one:
        yield one
        assert one.app.record.verify() == []


@pytest.fixture
def other(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/data.db"


BOTH = pytest.mark.parametrize("harness", ["sqlite", "postgres"], indirect=True)


def data_for(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of this kind, which is not Detent's."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/data.db"
    url: str = request.getfixturevalue("other_postgres_url")
    return url


@pytest.fixture
def other_postgres_url(postgres_cluster: Any) -> Iterator[str]:
    name = f"detent_data_{secrets.token_hex(4)}"
    yield postgres_cluster.create_database(name)
    postgres_cluster.drop_database(name)


@BOTH
@pytest.mark.parametrize("through", PLAIN)
def test_committed_once_in_another_database(
    harness: Harness, through: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """C7: found by its marker when the next attempt enters the block; result and intents are those of the first."""
    kind, opened = PLAIN[through]
    place = Place(harness, data_for(kind, request, tmp_path))
    ran: list[str] = []
    after: list[str] = []

    @place.app.task(name="follow")
    def follow(ctx: Context, line: str) -> None:
        after.append(line)

    def body(ctx: Context, line: str) -> None:
        with opened(place.data) as connection, ctx.commit(connection) as tx:
            ran.append(f"attempt {ctx.attempt}")
            assert tx.execute(INSERT, {"line": line}) == ([], 1)
            assert (line,) in tx.execute("SELECT line FROM ledger")[0]
            tx.intend(follow.call(line=line))
            tx.result(f"booked in attempt {ctx.attempt}")
            assert tx.connection is connection
        ran.append("after the block")

    book = place.declare(body)
    job = book.enqueue(line="one")
    lose_the_mark(place)
    place.harness.work()
    assert (job.refresh().state, job.result) == ("succeeded", "booked in attempt 1")
    assert place.outcomes(job) == ["released", "done"]
    assert (place.ledger(), list(ran), list(after)) == (["one"], ["attempt 1"], ["one"])
    messages = [line.message for line in job.events()]
    assert messages == ["attempt 1 has committed in the other database: nothing is left to do"]
    second = place.done(book, "two")
    assert (second.state, place.ledger()) == ("succeeded", ["one", "two"])


def lose_the_mark(place: Place) -> None:
    """A fault at the port: Detent's database is away once, after the commit elsewhere and before the mark here."""
    store: Any = place.harness.store

    def away(item: Any) -> Any:
        del store.job_commit
        raise errors.DatabaseUnreachable("detent", "gone at the worst moment")

    store.job_commit = away


@BOTH
@pytest.mark.parametrize("through", ASYNC)
def test_the_same_from_a_coroutine(
    harness: Harness, through: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """C7"""
    place = Place(harness, data_for("postgres", request, tmp_path))
    opened = ASYNC[through]

    async def body(ctx: Context, line: str) -> None:
        async with opened(place.data) as connection, ctx.commit(connection) as tx:
            rows, _ = await tx.execute("SELECT :line::text", {"line": line})
            assert rows == [(line,)]
            await tx.execute(INSERT, {"line": line})
            tx.result("booked")

    job = place.declare(body).enqueue(line="one")
    lose_the_mark(place)
    place.harness.work()
    assert (job.refresh().state, job.result, place.ledger()) == ("succeeded", "booked", ["one"])
    assert place.outcomes(job) == ["released", "done"]


@BOTH
@pytest.mark.parametrize("through", PLAIN)
def test_in_our_own_database_it_is_one_transaction(harness: Harness, through: str) -> None:
    """C2: no marker is needed, and what the block wrote is gone with an error in it."""
    kind, opened = PLAIN[through]
    if not harness.url.startswith(kind):
        kind, opened = next(one for one in PLAIN.values() if harness.url.startswith(one[0]))
    place = Place(harness, harness.url, marked=False)

    def body(ctx: Context, line: str) -> None:
        with opened(place.data) as connection, ctx.commit(connection) as tx:
            tx.execute(INSERT, {"line": f"{line} in attempt {ctx.attempt}"})
            tx.intend(follow.call())
            tx.result("booked")
            if ctx.attempt == 1:
                raise ValueError("not yet")

    @place.app.task(name="follow")
    def follow(ctx: Context) -> None:
        pass

    job = place.done(place.declare(body))
    assert (job.state, job.result, place.outcomes(job)) == ("succeeded", "booked", ["error", "done"])
    assert place.ledger() == ["one in attempt 2"]
    assert [one.state for one in place.app.jobs.list(task="follow")] == ["succeeded"]


def test_in_our_own_database_from_a_coroutine(postgres_store_url: str) -> None:
    """C2"""
    with closing(Harness(postgres_store_url)) as harness:
        place = Place(harness, postgres_store_url, marked=False)

        async def body(ctx: Context, line: str) -> None:
            async with psycopg_async(place.data) as connection, ctx.commit(connection) as tx:
                await tx.execute(INSERT, {"line": line})
                if ctx.attempt == 1:
                    await asyncio.sleep(0)
                    raise ValueError("not yet")

        job = place.done(place.declare(body))
        assert (job.state, place.ledger()) == ("succeeded", ["one"])


@BOTH
def test_a_statement_that_failed_and_was_forgiven(harness: Harness, other: str) -> None:
    """C7: nothing is committed there, unless what failed was undone by going back to a savepoint."""
    place = Place(harness, other)

    def body(ctx: Context, line: str) -> None:
        with closing(connect(place.data)) as connection, ctx.commit(connection) as tx:
            if ctx.attempt == 2:
                tx.execute("SAVEPOINT mine")
            with pytest.raises((sqlite3.Error, psycopg.Error), match="nowhere"):
                tx.execute("SELECT * FROM nowhere")
            if ctx.attempt == 2:
                tx.execute("ROLLBACK TO mine")
                tx.execute(INSERT, {"line": f"{line} {ctx.attempt}"})

    job = place.done(place.declare(body))
    assert (job.state, place.ledger(), place.outcomes(job)) == ("succeeded", ["one 2"], ["error", "done"])
    said = job.executions()[0].error or ""
    assert "COMMIT cannot be called after a statement of the block has failed" in said


@BOTH
def test_what_is_raised_in_the_block_leaves_nothing_there(harness: Harness, other: str) -> None:
    """C7: neither the statements nor the marker; the next attempt runs the block."""
    place = Place(harness, other)

    def body(ctx: Context, line: str) -> None:
        with closing(connect(place.data)) as connection, ctx.commit(connection) as tx:
            tx.execute(INSERT, {"line": f"{line} {ctx.attempt}"})
            if ctx.attempt == 1:
                raise ValueError("not yet")

    job = place.done(place.declare(body))
    assert (job.state, place.ledger(), place.outcomes(job)) == ("succeeded", ["one 2"], ["error", "done"])


@BOTH
@pytest.mark.parametrize("error", [ValueError, Fatal])
def test_used_up_after_the_block_was_entered_is_unknown(harness: Harness, other: str, error: type[Exception]) -> None:
    """C7: a person looks, and settles it."""
    place = Place(harness, other)

    def body(ctx: Context, line: str) -> None:
        with closing(connect(place.data)) as connection, ctx.commit(connection):
            raise error("never")

    job = place.done(place.declare(body))
    assert (job.state, place.outcomes(job)[-1]) == ("quarantined", "unknown")
    job.settle(done=True, actor="ana", reason="it is in the books")
    assert job.refresh().state == "succeeded"


@BOTH
def test_a_lease_lost_in_the_block_leaves_nothing_there(harness: Harness, other: str) -> None:
    """C4, C7: the zombie's transaction is rolled back, and the next attempt's stays."""
    place = Place(harness, other)

    def body(ctx: Context, line: str) -> None:
        with closing(connect(place.data)) as connection, ctx.commit(connection) as tx:
            tx.execute(INSERT, {"line": f"{line} {ctx.attempt}"})
            if ctx.attempt == 1:
                place.harness.clock.advance(31)

    job = place.done(place.declare(body))
    assert (job.state, place.ledger(), place.outcomes(job)) == ("succeeded", ["one 2"], ["expired", "done"])


def test_without_the_table_nothing_is_run_and_the_statement_is_told(
    harness: Harness, other: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """C7: and the job is not held to have been there."""
    for kind, name in (("sqlite", "detent_marker"), ("postgres", "detent_foreign.marker")):
        place = Place(harness, data_for(kind, request, tmp_path), marked=False)

        def body(ctx: Context, line: str, place: Place = place) -> None:
            with closing(connect(place.data)) as connection, ctx.commit(connection):
                raise AssertionError("entered")

        job = place.done(place.declare(body, name=f"book in {kind}", retry=Retry(0)))
        assert (job.state, place.outcomes(job)) == ("quarantined", ["error"])
        assert "app.prepare_foreign(connection)" in (job.error or "")
        ddl = (job.error or "").partition("or with:\n")[2]
        assert f"CREATE TABLE IF NOT EXISTS {name} (" in ddl
        with closing(connect(place.data)) as connection:
            for statement in filter(str.strip, ddl.split(";\n")):
                connection.execute(statement)
            connection.commit()
            place.app.prepare_foreign(connection)


def test_the_block_is_entered_once(harness: Harness, other: str) -> None:
    """C1: a second commit is refused, in whichever database; the job has succeeded all the same."""
    place = Place(harness, other)

    def body(ctx: Context, line: str) -> None:
        with closing(connect(place.data)) as connection:
            with ctx.commit(connection) as tx:
                tx.execute(INSERT, {"line": line})
            with ctx.commit(connection) as tx:
                tx.execute(INSERT, {"line": "again"})

    job = place.done(place.declare(body))
    assert (job.state, place.ledger()) == ("succeeded", ["one"])
    assert "AlreadyCommitted" in next(iter(job.events())).message


def test_a_transaction_that_the_block_did_not_end_itself_is_refused(harness: Harness, other: str) -> None:
    """C7: rolled back in between, there is no marker any more, and so no commit."""
    place = Place(harness, other)

    def body(ctx: Context, line: str) -> None:
        with closing(connect(place.data)) as connection, ctx.commit(connection) as tx:
            connection.rollback()
            tx.execute(INSERT, {"line": line})

    job = place.done(place.declare(body))
    assert (job.state, place.ledger()) == ("quarantined", [])
    assert "the block ends its transaction by itself" in (job.error or "")


def test_one_job_of_two_detents_is_two_jobs(tmp_path: Path, other: str) -> None:
    """C7: the same number in another Detent, or in one that was restored from a copy, is another job."""
    for number in (1, 2):
        with closing(Harness(f"sqlite:///{tmp_path}/detent{number}.db")) as harness:
            if number == 1:
                place = Place(harness, other)
            place.harness, place.app = harness, harness.app

            def body(ctx: Context, line: str) -> None:
                with closing(connect(other)) as connection, ctx.commit(connection) as tx:
                    tx.execute(INSERT, {"line": f"{line} of job {ctx.job_id}"})

            assert place.done(place.declare(body), f"detent {number}").state == "succeeded"
    assert place.ledger() == ["detent 1 of job 1", "detent 2 of job 1"]


def test_connections_that_are_not_taken(harness: Harness, other: str, postgres_url: str) -> None:
    place = Place(harness, other)

    def with_nothing(ctx: Context, line: str) -> None:
        ctx.commit(object())

    async def plain_in_async(ctx: Context, line: str) -> None:
        async with ctx.commit(sqlite3.connect(":memory:")):
            pass

    async def async_in_plain(ctx: Context, line: str) -> None:
        async with psycopg_async(postgres_url) as connection:
            with ctx.commit(connection):
                pass

    for body, says in (
        (with_nothing, "give a connection of psycopg 3 or sqlite3"),
        (plain_in_async, "enter the block by `with`"),
        (async_in_plain, "enter the block by `async with`"),
    ):
        job = place.done(place.declare(body, name=body.__name__, retry=Retry(0)))
        assert says in (job.error or "")
        assert place.outcomes(job) == ["error"]
