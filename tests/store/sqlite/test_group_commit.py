"""Commit blocks on one SQLite file: what a block may not do, how long it may be open, and how blocks share a sync."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from detent.errors import DatabaseBusy, WrongPlace
from detent.lifecycle.library import JOB
from detent.model.clock import SystemClock, TurnableClock
from detent.model.records import Claimed, Commit, Finish, Finished
from detent.store.sqlite.driver import group_commit
from detent.store.sqlite.store import SqliteStore
from tests.store.sqlite.other_process import new_job

PATIENCE = 30.0
APPLY = "INSERT INTO effect VALUES (:job)"
REFUSED = [
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "END",
    "SAVEPOINT mine",
    "RELEASE detent_block",
    "ROLLBACK TO detent_block",
    "PRAGMA synchronous = OFF",
    "SELECT * FROM pragma_table_info('effect')",
    "ATTACH ':memory:' AS other",
    "UPDATE detent_job SET priority = 9",
    "DELETE FROM Detent_Event",
    "INSERT INTO detent_job_key (tenant) VALUES ('x')",
    "DROP TABLE detent_dead",
    "DROP TRIGGER detent_job_guard",
    "CREATE TRIGGER mine AFTER UPDATE ON detent_job BEGIN SELECT 1; END",
    "CREATE TEMP TRIGGER mine AFTER UPDATE ON detent_job BEGIN DELETE FROM effect; END",
    "ALTER TABLE detent_job ADD COLUMN mine",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """No lease is over before its test turns the clock; how long a block may be open is told by the real time."""
    with closing(SqliteStore(str(path), clock=TurnableClock())) as store:
        store.ready()
        with closing(sqlite3.connect(path)) as mine:
            mine.execute("CREATE TABLE effect (job INTEGER NOT NULL UNIQUE)")
        yield store


def held(store: SqliteStore, count: int = 1, *, lease: float = 60.0) -> list[Claimed]:
    first = store.ids_reserve(count + 1)
    store.job_enqueue([new_job(first + n) for n in range(count)])
    tasks = [new_job(1).task]
    claimed = store.job_claim(lease_id=first + count, worker="w", queues=None, tasks=tasks, limit=count, lease=lease)
    assert len(claimed) == count
    return claimed


def effects(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as mine:
        return [row[0] for row in mine.execute("SELECT job FROM effect ORDER BY job")]


def is_committed(store: SqliteStore, claimed: Claimed) -> bool:
    (found,) = store.job_get([claimed.job_id])
    return found is not None and found.committed_at is not None


def apply(store: SqliteStore, claimed: Claimed) -> None:
    with store.commit_block(claimed.job_id, claimed.attempt) as tx:
        tx.execute(APPLY, {"job": claimed.job_id})


@pytest.mark.parametrize("raw", [False, True], ids=["execute", "connection"])
@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_block_may_not_do(store: SqliteStore, path: Path, sql: str, raw: bool) -> None:
    """C2: the transaction is the block's own, Detent's tables are Detent's; refused, the block can go on."""
    (one,) = held(store)
    with store.commit_block(one.job_id, one.attempt) as tx:
        tx.execute(APPLY, {"job": 1})
        with pytest.raises(WrongPlace, match="inside a commit block"):
            tx.connection.execute(sql) if raw else tx.execute(sql)
        tx.execute(APPLY, {"job": 2})
    assert effects(path) == [1, 2]
    assert is_committed(store, one)


def test_the_drivers_own_ways_out_are_closed(store: SqliteStore, path: Path) -> None:
    """C2: commit, rollback and close of the driver's connection are refused as their statements are."""
    (one,) = held(store)
    with store.commit_block(one.job_id, one.attempt) as tx:
        tx.execute(APPLY, {"job": 1})
        for way in (tx.connection.commit, tx.connection.rollback, tx.connection.close):
            with pytest.raises(WrongPlace):
                way()
        with pytest.raises(WrongPlace):
            tx.connection.executescript("DELETE FROM effect")
        with pytest.raises(WrongPlace, match=r"tx\.intend"):
            store.on(tx.connection)
    assert effects(path) == [1]


def test_a_guarded_table_of_the_users_keeps_its_record(store: SqliteStore, path: Path) -> None:
    """L8: its guards write to Detent's record, inside a block as anywhere."""
    with closing(sqlite3.connect(path)) as mine:
        mine.execute("CREATE TABLE parcel (id TEXT PRIMARY KEY, state TEXT NOT NULL)")
    store.guard_entity(JOB, "parcel", "id", "state")
    (one,) = held(store)
    with store.commit_block(one.job_id, one.attempt) as tx:
        tx.execute("INSERT INTO parcel VALUES ('p', :state)", {"state": JOB.initial})
    assert is_committed(store, one)


def test_a_statement_that_rolls_back_ends_the_block(store: SqliteStore, path: Path) -> None:
    """C2: what follows it would take effect by itself, so it is refused."""
    (one,) = held(store)
    apply_twice = "INSERT OR ROLLBACK INTO effect VALUES (:job)"
    with (  # noqa: PT012
        pytest.raises(WrongPlace, match="rolls the transaction back"),
        store.commit_block(one.job_id, one.attempt) as tx,
    ):
        tx.execute(APPLY, {"job": 1})
        with pytest.raises(sqlite3.IntegrityError):
            tx.execute(apply_twice, {"job": 1})
        for execute in (tx.execute, tx.connection.execute):
            with pytest.raises(WrongPlace):
                execute(APPLY, {"job": 2})
    assert effects(path) == []
    apply(store, one)
    assert effects(path) == [one.job_id]


def test_the_users_own_mistake_stays_what_it_is(store: SqliteStore, path: Path) -> None:
    """C2: an error of the user's statement is the user's to catch, inside the block and outside."""
    (one,) = held(store)
    with (  # noqa: PT012
        pytest.raises(sqlite3.IntegrityError),
        store.commit_block(one.job_id, one.attempt) as tx,
    ):
        tx.execute(APPLY, {"job": 1})
        tx.execute(APPLY, {"job": 1})
    assert effects(path) == []


def test_a_block_that_is_open_too_long_is_cut_off(store: SqliteStore, path: Path) -> None:
    """C4: it keeps nobody from writing for longer than a third of its lease, and leaves nothing."""
    (slow,) = held(store, lease=1.0)
    with (  # noqa: PT012
        closing(SqliteStore(str(path), clock=SystemClock())) as other,
        pytest.raises(WrongPlace, match="do slow work before the block"),
        store.commit_block(slow.job_id, slow.attempt) as tx,
    ):
        with suppress(WrongPlace):  # where the machine is slow, its time is over already
            tx.execute(APPLY, {"job": 1})
        other.ids_reserve(1)
        for execute in (tx.execute, tx.connection.execute):
            with pytest.raises(WrongPlace, match="do slow work before the block"):
                execute(APPLY, {"job": 2})
        # The same process goes on as well, on another connection.
        with ThreadPoolExecutor(1) as thread:
            (next_one,) = thread.submit(held, store).result(PATIENCE)
            thread.submit(apply, store, next_one).result(PATIENCE)
    assert effects(path) == [next_one.job_id]


def test_a_statement_that_takes_too_long_is_cut_off(store: SqliteStore, path: Path) -> None:
    """C4: also while SQLite itself is busy."""
    (slow,) = held(store, lease=1.0)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with (  # noqa: PT012
        pytest.raises(WrongPlace, match="open for more than"),
        store.commit_block(slow.job_id, slow.attempt) as tx,
    ):
        tx.execute(APPLY, {"job": 1})
        tx.execute(endless)
    assert effects(path) == []
    assert store.ids_reserve(1) > 0


def crowd(store: SqliteStore, jobs: list[Claimed], threads: ThreadPoolExecutor) -> list[BaseException | None]:
    """Blocks that all stand in line before the first of them begins."""
    with store._file.writing():
        results = [threads.submit(apply, store, one) for one in jobs]
        _until(lambda: store._file.group_commit._queue.waiting == len(jobs) - 1)
    return [result.exception(PATIENCE) for result in results]


def _until(condition: Callable[[], bool], *, ticks: int = 30_000) -> None:
    pause = threading.Event()
    for _ in range(ticks):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it did not come about in time")


def test_blocks_share_a_sync(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C2: those that stand in line are committed together, and each is durable when it returns."""
    monkeypatch.setattr(group_commit, "_JOIN_SECONDS_MAX", PATIENCE)
    jobs = held(store, 8)
    said: list[str] = []
    with ThreadPoolExecutor(8) as threads:
        with store._file.writing() as connection:
            connection.set_trace_callback(said.append)
        assert crowd(store, jobs, threads) == [None] * 8
    assert effects(path) == sorted(one.job_id for one in jobs)
    assert all(is_committed(store, one) for one in jobs)
    assert said.count("SAVEPOINT detent_block") == 8
    # The first two are the test's own: the one that sets the trace, and the one behind which they stood in line.
    assert said.count("COMMIT") - 2 == 1
    # Said again for every trigger that it sets off.
    marks = {one for one in said if one.lstrip().startswith("UPDATE detent_job SET started_at")}
    assert len(marks) == 1


def test_a_refused_block_takes_nobody_with_it(store: SqliteStore, path: Path) -> None:
    """C2: a group of blocks is one sync, not one fate: a block that fails is undone alone."""
    jobs = held(store, 4)
    store.job_commit(Commit(job_id=jobs[1].job_id, attempt=jobs[1].attempt))
    with ThreadPoolExecutor(4) as threads:
        ends = crowd(store, jobs, threads)
    assert [type(end).__name__ for end in ends] == ["NoneType", "AlreadyCommitted", "NoneType", "NoneType"]
    assert effects(path) == sorted(jobs[n].job_id for n in (0, 2, 3))


def test_a_job_is_committed_once_by_blocks_of_one_group(store: SqliteStore, path: Path) -> None:
    """C1: marks are written together, so the second block of a job must not go by what the row says."""
    one, other = held(store, 2)

    def again(number: int) -> None:
        with store.commit_block(one.job_id, one.attempt) as tx:
            tx.execute(APPLY, {"job": -number})

    with ThreadPoolExecutor(4) as threads:
        with store._file.writing():
            results = [threads.submit(again, n) for n in range(3)]
            results.append(threads.submit(apply, store, other))
            _until(lambda: store._file.group_commit._queue.waiting == 3)
        ends = [result.exception(PATIENCE) for result in results]
    assert sorted(type(end).__name__ for end in ends) == [
        "AlreadyCommitted",
        "AlreadyCommitted",
        "NoneType",
        "NoneType",
    ]
    assert ends[3] is None
    assert len(effects(path)) == 2


@pytest.mark.parametrize("clumsy", [False, True], ids=["in their sync", "by itself where one brings them down"])
def test_a_finish_joins_the_blocks_at_work(store: SqliteStore, path: Path, clumsy: bool) -> None:
    """C2: it sees the marks of those before it, and no block of the user's takes it along when it fails."""
    done, first, second = held(store, 3)
    apply(store, done)
    verb = "INSERT OR ROLLBACK INTO" if clumsy else "INSERT OR IGNORE INTO"

    def block() -> None:
        with store.commit_block(second.job_id, second.attempt) as tx:
            tx.execute(f"{verb} effect VALUES (:job)", {"job": done.job_id})

    with ThreadPoolExecutor(3) as threads:
        with store._file.writing():
            good = threads.submit(apply, store, first)
            _until(lambda: store._file._threads.waiting == 1)
            finish = threads.submit(store.job_finish, [Finish(done.job_id, done.attempt)], "w")
            _until(lambda: store._file.group_commit._queue.waiting == 1)
            last = threads.submit(block)
            _until(lambda: store._file.group_commit._queue.waiting == 2)
        assert finish.result(PATIENCE) == [Finished(done.job_id, done.attempt)]
        ends = [good.exception(PATIENCE), last.exception(PATIENCE)]
    assert isinstance(ends[1], sqlite3.IntegrityError if clumsy else type(None))
    (found,) = store.job_get([done.job_id])
    assert found is not None
    assert found.state == "succeeded"
    kept = [one for one, end in zip((first, second), ends, strict=True) if end is None]
    assert [one for one in (first, second) if is_committed(store, one)] == kept
    assert store.verify() == []


def test_without_its_mark_nothing_of_a_group_stays(store: SqliteStore, path: Path) -> None:
    """C2, G2: where the database refuses a mark, the effects are gone too; everybody is spared and may come again."""
    jobs = held(store, 4)
    with closing(sqlite3.connect(path)) as mine:
        mine.execute(
            "CREATE TRIGGER mine BEFORE UPDATE OF committed_at ON detent_job "
            f"WHEN NEW.id = {jobs[2].job_id} BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
    with ThreadPoolExecutor(4) as threads:
        ends = crowd(store, jobs, threads)
        failed = [one for one, end in zip(jobs, ends, strict=True) if end is not None]
        assert jobs[2] in failed
        assert all(isinstance(end, DatabaseBusy) for end in ends if end is not None)
        kept = [one.job_id for one in jobs if one not in failed]
        assert effects(path) == sorted(kept)
        assert [is_committed(store, one) for one in jobs] == [one.job_id in kept for one in jobs]
        with closing(sqlite3.connect(path)) as mine:
            mine.execute("DROP TRIGGER mine")
        assert crowd(store, failed, threads) == [None] * len(failed)
    assert effects(path) == sorted(one.job_id for one in jobs)


def test_who_ends_the_transaction_fails_the_group(store: SqliteStore, path: Path) -> None:
    """C2: blocks that had ended already have not happened either; they are told `DatabaseBusy`, which spares them."""
    first, second = held(store, 2)

    def clumsy() -> None:
        with store.commit_block(second.job_id, second.attempt) as tx:
            tx.execute("INSERT OR ROLLBACK INTO effect VALUES (:job)", {"job": first.job_id})

    with ThreadPoolExecutor(2) as threads:
        with store._file.writing():
            good = threads.submit(apply, store, first)
            _until(lambda: store._file._threads.waiting == 1)
            bad = threads.submit(clumsy)
            _until(lambda: store._file.group_commit._queue.waiting == 1)
        assert isinstance(bad.exception(PATIENCE), sqlite3.IntegrityError)
        end = good.exception(PATIENCE)
    assert isinstance(end, DatabaseBusy | None)
    assert effects(path) == ([first.job_id] if end is None else [])
    assert is_committed(store, first) is (end is None)
