"""A copy of a SQLite file that is in use."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from detent.errors import DatabaseInaccessible, InvalidInput
from detent.model.clock import SystemClock
from detent.store.sqlite.store import SqliteStore
from tests.contract.jobs.sample_jobs import enqueue, job, succeeded


@pytest.fixture
def store(sqlite_store_url: str) -> Iterator[SqliteStore]:
    with closing(opened(Path(sqlite_store_url.removeprefix("sqlite:///")))) as one:
        yield one


def opened(path: Path) -> SqliteStore:
    return SqliteStore(str(path), clock=SystemClock())


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups"


def test_a_copy_is_a_snapshot(store: SqliteStore, place: Path) -> None:
    """J15: it has what was committed when it began, also if another program writes meanwhile, page after page."""
    for _ in range(60):  # many pages, so that the copy takes several steps
        enqueue(store, task="other", payload=f'{{"to":"{"x" * 100_000}"}}')
    before = store.counts()
    steps: list[int] = []

    def write(done: int, _total: int) -> None:
        steps.append(done)
        succeeded(store)

    assert store.back_up(str(place / "copy.db"), watch=write) == []
    assert len(steps) > 1
    assert files(place) == {"copy.db"}
    assert stat.S_IMODE(os.stat(place / "copy.db").st_mode) == 0o600
    with closing(opened(place / "copy.db")) as copy:
        copy.ready(create=False)
        assert copy.counts() == before
        new = enqueue(copy)
        assert job(copy, new).state == "pending"
        assert copy.verify() == []


@pytest.mark.parametrize("kind", ["file", "link", "link to nothing", "directory"])
def test_nothing_is_replaced(store: SqliteStore, place: Path, kind: str) -> None:
    """J15: neither a file nor a link nor what it leads to."""
    target = place / "copy.db"
    match kind:
        case "file":
            target.write_text("mine")
        case "link":
            (place / "other").write_text("mine")
            target.symlink_to(place / "other")
        case "link to nothing":
            target.symlink_to(place / "other")
        case _:
            target.mkdir()
    before = files(place)
    with pytest.raises(InvalidInput, match="a path where there is nothing yet"):
        store.back_up(str(target))
    assert files(place) == before
    assert not (place / "other").exists() or (place / "other").read_text() == "mine"


def test_a_file_that_appears_meanwhile_is_not_replaced(store: SqliteStore, place: Path) -> None:
    def appear(_done: int, _total: int) -> None:
        (place / "copy.db").write_text("mine")

    with pytest.raises(InvalidInput, match="which exists"):
        store.back_up(str(place / "copy.db"), watch=appear)
    assert files(place) == {"copy.db"}
    assert (place / "copy.db").read_text() == "mine"


def test_a_copy_with_violations_is_kept_only_on_request(store: SqliteStore, place: Path, sqlite_store_url: str) -> None:
    """R3: the copy is checked, not the source."""
    done = succeeded(store)
    with closing(sqlite3.connect(sqlite_store_url.removeprefix("sqlite:///"))) as file:
        file.execute("DROP TRIGGER detent_execution_goes")
        file.execute("DELETE FROM detent_execution WHERE job_id = ?", (done,))
        file.commit()
    assert store.back_up(str(place / "copy.db"))
    assert files(place) == set()
    assert store.back_up(str(place / "copy.db"), force=True)
    assert files(place) == {"copy.db"}


def test_a_directory_that_is_not_there(store: SqliteStore, place: Path) -> None:
    with pytest.raises(DatabaseInaccessible, match="No such file or directory"):
        store.back_up(str(place / "nowhere" / "copy.db"))
