"""The commit boundary in the hand: what a block leaves behind, and what it does not."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, cast

import pytest

from detent import Context, Job, Retry
from detent.errors import SchemaMissing, WrongPlace
from detent.testing.harness import Harness
from detent.testing.stores import row_violations
from detent.worker.attempt.commit_boundary import Boundary
from detent.worker.attempt.context import AttemptContext
from tests.deadlines import scaled

ONCE = Retry(0)


class Place:
    """A shop with a ledger in Detent's own database."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.app = harness.app
        self._names = 0
        self.run(lambda ctx, tx: tx.execute("CREATE TABLE ledger (line text NOT NULL)"))

    def run(self, inside: Callable[[Context, Any], object]) -> Job[Any]:
        """A job whose block does this."""

        def body(ctx: Context) -> None:
            with ctx.commit() as tx:
                inside(ctx, tx)

        return self.call(body)

    def call(self, body: Callable[[Context], Any]) -> Job[Any]:
        self._names += 1

        def one(ctx: Context) -> Any:
            return body(ctx)

        job: Job[Any] = self.app.task(name=f"task {self._names}", retry=ONCE)(one).enqueue()
        self.harness.work()
        return job.refresh()

    def ledger(self) -> list[str]:
        lines: list[str] = []
        self.run(lambda ctx, tx: lines.extend(row[0] for row in tx.execute("SELECT line FROM ledger")[0]))
        return lines


@pytest.fixture
def place(store_url: str) -> Iterator[Place]:
    with closing(Harness(store_url)) as harness:
        yield Place(harness)
        assert row_violations(harness.store, store_url) == []


def _execute(sql: str, ctx: Context, tx: Any) -> None:
    tx.execute(sql)


def write(tx: Any, line: str) -> None:
    tx.execute("INSERT INTO ledger (line) VALUES (:line)", {"line": line})


def test_a_block_within_a_block_is_refused(place: Place) -> None:
    """C1: the inner one would commit, and what the outer one wrote would be lost without a word."""

    def inside(ctx: Context, tx: Any) -> None:
        write(tx, "outer")
        with ctx.commit() as inner:
            write(inner, "inner")

    job = place.run(inside)
    assert (job.state, place.ledger()) == ("quarantined", [])
    assert "inside a commit block of the same attempt" in (job.error or "")


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_said_in_a_block_is_kept_whatever_becomes_of_it(place: Place, fails: bool) -> None:
    """E1: on SQLite nobody else can write while the block is open, so the lines follow it."""

    def inside(ctx: Context, tx: Any) -> None:
        ctx.event("counting")
        write(tx, "one")
        if fails:
            raise ValueError("miscounted")

    job = place.run(inside)
    assert job.state == ("quarantined" if fails else "succeeded")
    assert [line.message for line in job.events()] == ["counting"]
    assert place.ledger() == ([] if fails else ["one"])


def test_a_result_that_cannot_be_stored_undoes_the_block(place: Place) -> None:
    """C2, S3: said inside it, it is an error of the block; returned after it, the commit stands."""

    def inside(ctx: Context, tx: Any) -> None:
        write(tx, "one")
        tx.result("x" * 10_000_000)

    assert place.run(inside).state == "quarantined"
    assert place.ledger() == []

    def after(ctx: Context) -> object:
        with ctx.commit() as tx:
            write(tx, "two")
        return object()

    job = place.call(after)
    assert (job.state, place.ledger()) == ("succeeded", ["two"])
    assert "error after the commit" in next(iter(job.events())).message


def test_the_connection_comes_back_as_it_was(place: Place) -> None:
    """G3: what one block does to the session does not reach the engine, nor the next block."""
    if place.harness.url.startswith("sqlite"):

        def spoil(ctx: Context, tx: Any) -> None:
            tx.connection.row_factory = lambda cursor, row: {}
            tx.connection.text_factory = bytes

        assert place.run(spoil).state == "succeeded"
        assert place.run(lambda ctx, tx: write(tx, "one")).state == "succeeded"
        assert place.run(lambda ctx, tx: write(tx, "two")).state == "succeeded"
        assert place.ledger() == ["one", "two"]
        refused = place.run(lambda ctx, tx: tx.execute("CREATE TEMP TABLE mine (a int)"))
        assert "CREATE TEMP TABLE cannot be called inside a commit block" in (refused.error or "")
        return
    spoils = (
        "SET statement_timeout = '12345ms'",
        "SELECT set_config('search_path', 'pg_catalog', false)",
        "CREATE TEMP TABLE mine (a int)",
        "SELECT pg_advisory_lock(7)",
        "DEALLOCATE ALL",
    )
    look = """SELECT current_setting('statement_timeout'), current_setting('search_path'),
                     to_regclass('pg_temp.mine')::text,
                     (SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                       WHERE l.locktype = 'advisory' AND l.objid = 7 AND d.datname = current_database())"""
    found: list[Any] = []
    for sql in spoils:
        assert place.run(partial(_execute, sql)).state == "succeeded"
        place.run(lambda ctx, tx: found.extend(tx.execute(look)[0]))
    assert place.run(lambda ctx, tx: tx.connection.execute("SET statement_timeout = '9s'")).state == "succeeded"
    place.run(lambda ctx, tx: found.extend(tx.execute(look)[0]))
    assert set(found) == {("0", '"$user", public', None, 0)}


def test_parameters_of_every_sort(place: Place) -> None:
    """C2: the same words on both databases."""
    rows: list[Any] = []

    def inside(ctx: Context, tx: Any) -> None:
        rows.extend(
            tx.execute(
                "SELECT :a, ':b', 7 % 4, '50%' /* :c */ -- :d\n, :a",
                {"a": "it's 5% :b", "unused": None},
            )[0]
        )

    assert place.run(inside).state == "succeeded"
    assert rows == [("it's 5% :b", ":b", 3, "50%", "it's 5% :b")]


def test_a_statement_that_failed_and_was_forgiven(place: Place) -> None:
    """C2: one database would have committed the rest and the other not; now neither does, and the job says why."""

    def inside(ctx: Context, tx: Any) -> None:
        write(tx, "one")
        with pytest.raises((sqlite3.Error, Exception), match="nowhere"):
            tx.execute("SELECT * FROM nowhere")

    def through_the_connection(ctx: Context, tx: Any) -> None:
        write(tx, "one")
        with pytest.raises((sqlite3.Error, Exception), match="nowhere"):
            tx.connection.execute("SELECT * FROM nowhere")

    def without_its_value(ctx: Context, tx: Any) -> None:
        write(tx, "one")
        with pytest.raises((sqlite3.Error, Exception), match="line"):
            tx.execute("INSERT INTO ledger VALUES (:line)", {})

    def with_a_value_of_no_type(ctx: Context, tx: Any) -> None:
        write(tx, "one")
        with pytest.raises((sqlite3.Error, Exception), match="object"):
            tx.execute("INSERT INTO ledger VALUES (:line)", {"line": object()})

    for body in (inside, through_the_connection, without_its_value, with_a_value_of_no_type):
        job = place.run(body)
        assert (job.state, place.ledger()) == ("quarantined", [])
        assert "WrongPlace: COMMIT cannot be called after a statement of the block has failed" in (job.error or "")
    assert "nowhere" in (place.run(inside).error or "").rpartition("WrongPlace")[2]


def test_what_was_refused_before_it_was_run_has_not_failed(place: Place) -> None:
    """C2: the transaction is as it was."""

    def inside(ctx: Context, tx: Any) -> None:
        write(tx, "one")
        with pytest.raises(WrongPlace):
            tx.execute("COMMIT")

    assert (place.run(inside).state, place.ledger()) == ("succeeded", ["one"])


def test_a_block_that_is_never_entered_is_warned_of(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """C2: `ctx.commit()` without `with` does nothing at all, and the job succeeds: somebody should hear of it."""
    job = place.call(lambda ctx: ctx.commit() and None)
    assert job.state == "succeeded"
    (line,) = job.events()
    assert (line.level, line.message.partition(":")[0]) == (
        "warning",
        "ctx.commit() was called, but its block was never entered",
    )
    assert "never entered" in caplog.text
    assert [one.level for one in place.run(lambda ctx, tx: None).events()] == []


def test_what_comes_after_the_block_is_refused(place: Place) -> None:
    """C1: its connection is somebody else's by then, and what it would intend nobody would enqueue."""
    refused: list[str] = []

    def body(ctx: Context) -> None:
        with ctx.commit() as tx:
            write(tx, "in time")
        for late in (
            lambda: write(tx, "late"),
            lambda: tx.intend(later.call()),
            lambda: tx.result(1),
            lambda: tx.connection,
        ):
            with pytest.raises(WrongPlace, match="after its transaction has ended") as refusal:
                late()
            refused.append(refusal.value.call)

    @place.app.task(name="later")
    def later(ctx: Context) -> None: ...

    assert place.call(body).state == "succeeded"
    assert place.ledger() == ["in time"]
    assert refused == ["tx.execute", "tx.intend", "tx.result", "tx.connection"]


def test_a_statement_that_nobody_awaited_is_not_lost_without_a_word(place: Place) -> None:
    """C1: the function asked for it, so the block is not committed without it."""

    forgotten: list[Any] = []

    async def body(ctx: Context) -> None:
        async with ctx.commit() as tx:
            await tx.execute("INSERT INTO ledger VALUES ('one')")
            forgotten.append(tx.execute("INSERT INTO ledger VALUES ('two')"))

    job = place.call(body)
    forgotten[0].close()
    assert (job.state, place.ledger()) == ("quarantined", [])
    assert "without await in async code" in (job.error or "")


def test_what_is_no_call_cannot_be_intended(place: Place) -> None:
    """C3: said in a sentence."""
    job = place.run(lambda ctx, tx: tx.intend("welcome"))
    assert "call: found a value of type str; allowed: task.call(...), a described call" in (job.error or "")


def test_functions_that_the_database_lacks_use_up_no_attempt(place: Place) -> None:
    """J7: a worker newer than what was migrated put every job it met into quarantine."""

    def body(ctx: Context) -> None:
        raise SchemaMissing("the database", "function detent.job_commit_v2 does not exist")

    job = place.call(body)
    assert (job.state, job.row.spared) == ("pending", 1)


class Gated:
    """The store, whose commit blocks wait at a gate, and tell when they are left."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.waits, self.gate, self.left = threading.Event(), threading.Event(), threading.Event()

    @contextmanager
    def commit_block(self, job_id: int, attempt: int) -> Iterator[Any]:
        self.waits.set()
        assert self.gate.wait(scaled(30))
        try:
            with self._store.commit_block(job_id, attempt) as tx:
                yield tx
        finally:
            self.left.set()


def test_a_cancel_while_a_block_waits_for_its_turn_leaves_nothing_open(place: Place) -> None:
    """C1, C3: the turn came when nobody was there any more, and the block stayed open: on SQLite everybody waited until
    it was cut off, on PostgreSQL its connection never came back."""
    gated = Gated(place.harness.store)

    async def body(ctx: Context) -> None:
        boundary = Boundary(cast(AttemptContext, ctx), cast(Any, gated))
        entering = asyncio.ensure_future(boundary.__aenter__())
        await asyncio.to_thread(gated.waits.wait, 30)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        gated.gate.set()
        assert await asyncio.to_thread(gated.left.wait, 30)

    async def one(ctx: Context) -> None:
        await body(ctx)

    job = place.app.task(name="cancelled", retry=ONCE)(one).enqueue()
    place.harness.work()
    assert (job.refresh().state, job.error) == ("succeeded", None)
    assert place.run(lambda ctx, tx: write(tx, "one")).state == "succeeded"
    assert place.ledger() == ["one"]
