"""Which commits reach the disk by themselves, and what a machine that goes down takes with it."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from detent.errors import DetentError
from detent.model.clock import SystemClock
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.driver.write_connection import WriteConnection
from detent.store.sqlite.store import SqliteStore
from tests.contract.jobs.sample_jobs import claim_one, enqueue, finish, job

FULL, NORMAL = 2, 1


def opened(path: Path) -> SqliteStore:
    store = SqliteStore(str(path), clock=SystemClock())
    store.ready()
    return store


def copied(path: Path, to: Path) -> Path:
    """The file and its log as they are now: what a machine that went down now would find, had all of it been synced."""
    to.mkdir()
    for part in (path, Path(f"{path}-wal")):
        shutil.copy(part, to / part.name)
    return to / path.name


def test_each_transaction_is_synced_as_it_was_asked(tmp_path: Path) -> None:
    """A statement that is kept prepared must take effect each time; and what fails leaves the next one as it asks."""
    path = tmp_path / "shop.db"
    opened(path).close()
    levels: list[int] = []

    def level(connection: WriteConnection) -> None:
        levels.append(connection.execute("PRAGMA synchronous").fetchone()[0])

    def failing(connection: WriteConnection) -> None:
        level(connection)
        raise LookupError

    with closing(Database(str(path))) as database:
        for synced in (True, False, False, True, False, True):
            database.write(level, synced=synced)
        try:
            database.write(failing, synced=False)
        except LookupError:
            database.write(level)
        database.write(level, synced=False)
        with database.writing() as connection:
            level(connection)
    assert levels == [FULL, NORMAL, NORMAL, FULL, NORMAL, FULL, NORMAL, FULL, NORMAL, FULL]


def test_a_claim_that_was_lost_with_the_machine_was_never_made(tmp_path: Path) -> None:
    """J5: the attempt is handed out again, and nobody lives who knew of the first. The log before the claim is what is
    left where its tail was not synced."""
    path = tmp_path / "shop.db"
    with closing(opened(path)) as store:
        job_id = enqueue(store)
        left = copied(path, tmp_path / "after")
        first = claim_one(store)
    with closing(opened(left)) as store:
        assert store.verify() == []
        assert job(store, job_id).state == "pending"
        again = claim_one(store)
        assert (again.job_id, again.attempt) == (first.job_id, first.attempt)
        assert not isinstance(finish(store, again), DetentError)
        assert store.verify() == []


def test_whatever_is_synced_after_a_claim_has_the_claim_in_it(tmp_path: Path) -> None:
    """C5: a task that must not be repeated blindly is on record as begun, durably, before it is called; then so is the
    claim it was begun under."""
    path = tmp_path / "shop.db"
    with closing(opened(path)) as store:
        job_id = enqueue(store)
        held = claim_one(store)
        store.job_start([(held.job_id, held.attempt)])
        left = copied(path, tmp_path / "after")
    with closing(opened(left)) as store:
        assert store.verify() == []
        found = job(store, job_id)
        assert (found.state, found.attempt) == ("running", held.attempt)
        assert found.started_at is not None
