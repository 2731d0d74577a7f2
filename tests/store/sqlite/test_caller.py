"""The verbs on the caller's own connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from detent.errors import DatabaseBusy, GuardViolation, SchemaMissing, WrongPlace
from detent.model.clock import SystemClock
from detent.model.records import Enqueued
from detent.store.sqlite.store import SqliteStore
from tests.store.sqlite.other_process import new_job


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(str(path), clock=SystemClock())) as store:
        store.ready()
        yield store


def is_there(store: SqliteStore, job_id: int = 1) -> bool:
    return store.job_get([job_id]) != [None]


def test_the_callers_commit_decides(store: SqliteStore, path: Path) -> None:
    """J2: inside the caller's own transaction."""
    with closing(sqlite3.connect(path)) as mine:
        for end, expected in ((mine.rollback, False), (mine.commit, True)):
            assert store.on(mine).job_enqueue([new_job(1)]) == [Enqueued(1, True)]
            assert mine.in_transaction
            assert not is_there(store)
            end()
            assert is_there(store) is expected


def test_a_connection_in_autocommit_mode_commits_the_verb(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as mine:
        store.on(mine).job_enqueue([new_job(1)])
        assert not mine.in_transaction
        assert is_there(store)
        mine.execute("BEGIN")
        store.on(mine).job_enqueue([new_job(2)])
        mine.execute("ROLLBACK")
        assert not is_there(store, 2)


def test_the_callers_factories_are_left_alone(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as mine:
        mine.row_factory = sqlite3.Row
        verbs = store.on(mine)
        assert verbs.job_enqueue([new_job(1, '{"a":1}')]) == [Enqueued(1, True)]
        (job,) = verbs.job_get([1])
        assert job is not None
        assert job.payload == '{"a":1}'
        assert isinstance(mine.execute("SELECT 1").fetchone(), sqlite3.Row)
        mine.rollback()


def test_what_the_database_refuses_leaves_the_callers_transaction_usable(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as mine:
        mine.execute("CREATE TABLE orders (id INTEGER)")
        mine.execute("INSERT INTO orders VALUES (7)")
        with pytest.raises(GuardViolation):
            store.on(mine).queue_pause("mail", actor="")
        store.on(mine).job_enqueue([new_job(1)])
        mine.commit()
        assert mine.execute("SELECT id FROM orders").fetchall() == [(7,)]
    assert is_there(store)
    assert store.transitions("queue", "mail") == []


def test_the_lock_of_another_connection_is_reported(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, timeout=0)) as mine, closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE orders (id INTEGER)")
        other.execute("INSERT INTO orders VALUES (7)")
        with pytest.raises(DatabaseBusy):
            store.on(mine).job_enqueue([new_job(1)])


def test_another_database_has_no_record(store: SqliteStore, tmp_path: Path) -> None:
    """It is the caller's database that is named, not ours, which has one."""
    for place, named in ((":memory:", "sqlite in memory"), (f"{tmp_path}/theirs.db", "theirs.db")):
        with closing(sqlite3.connect(place)) as mine:
            mine.row_factory = lambda cursor, row: {"first": row[0]}
            with pytest.raises(SchemaMissing, match=named):
                store.on(mine).job_enqueue([new_job(1)])


def test_a_closed_connection_and_one_of_another_thread(store: SqliteStore, path: Path) -> None:
    """Said at once, and what to give instead."""
    mine = sqlite3.connect(path)
    with ThreadPoolExecutor(1) as thread, pytest.raises(WrongPlace, match="in the thread that made it"):
        thread.submit(store.on, mine).result()
    mine.close()
    with pytest.raises(WrongPlace, match="with one that cannot be used: Cannot operate on a closed database"):
        store.on(mine)


def test_a_connection_and_a_session_of_sqlalchemy(store: SqliteStore, path: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    try:
        with engine.connect() as mine:
            store.on(mine).job_enqueue([new_job(1)])
            mine.rollback()
            assert not is_there(store)
            assert store.on(mine).job_enqueue([new_job(n) for n in range(1, 120)])[-1] == Enqueued(119, True)
            mine.commit()
            assert is_there(store, 119)
        with Session(engine) as session:
            store.on(session).job_enqueue([new_job(200)])
            session.rollback()
            assert not is_there(store, 200)
            store.on(session).job_enqueue([new_job(200)])
            session.commit()
            assert is_there(store, 200)
        with engine.connect() as mine, pytest.raises(GuardViolation):
            store.on(mine).queue_pause("mail", actor="")
    finally:
        engine.dispose()


@pytest.mark.parametrize("stranger", [None, "sqlite", object()])
def test_what_is_no_connection_is_refused(store: SqliteStore, stranger: object) -> None:
    with pytest.raises(WrongPlace, match="give a connection of sqlite3"):
        store.on(stranger)


def test_ids_that_are_taken_are_known_on_a_connection_of_sqlalchemy(store: SqliteStore, path: Path) -> None:
    """J2: sent again, a job meets itself; whatever the driver's errors are wrapped in."""
    first = store.ids_reserve(2)
    second = first + 1
    store.job_enqueue([new_job(first)])
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as mine:
        assert store.on(mine).job_enqueue([new_job(first)]) == [Enqueued(first, False)]
        answers = store.on(mine).job_enqueue([new_job(second), new_job(first), new_job(second)])
        assert answers == [Enqueued(second, True), Enqueued(first, False), Enqueued(second, False)]
        mine.commit()
    engine.dispose()
    assert is_there(store, second)
    assert store.verify() == []


def test_an_error_that_ends_the_transaction_is_told_as_it_is(store: SqliteStore, path: Path) -> None:
    """Of one job and of many: nothing is left of them, and no savepoint's loss stands in the way."""
    with closing(sqlite3.connect(path)) as other:
        other.execute(
            "CREATE TRIGGER mine BEFORE INSERT ON detent_job WHEN NEW.id = 55"
            " BEGIN SELECT RAISE(ROLLBACK, 'mine says no'); END"
        )
    for several in ([new_job(55)], [new_job(54), new_job(55)]):
        with pytest.raises(GuardViolation, match="mine says no"):
            store.job_enqueue(several)
        with closing(sqlite3.connect(path)) as mine, pytest.raises(GuardViolation, match="mine says no"):
            store.on(mine).job_enqueue(several)
    assert not is_there(store, 54)
