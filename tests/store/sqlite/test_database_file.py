"""Where a database cannot be: a typed error each, and nothing written."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from detent.errors import (
    DatabaseBusy,
    DatabaseError,
    DatabaseReadOnly,
    DatabaseUnreachable,
    NotADatabase,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
)
from detent.model.clock import SystemClock
from detent.store.sqlite import schema
from detent.store.sqlite.schema import KNOWN
from detent.store.sqlite.store import SqliteStore


def a_store(path: Path | str, **options: float) -> SqliteStore:
    return SqliteStore(str(path), clock=SystemClock(), **options)


def a_directory(place: Path) -> Path:
    (place / "t.db").mkdir()
    return place / "t.db"


def a_text(place: Path) -> Path:
    (place / "t.db").write_text("not a database at all, but long enough to be looked at as one\n" * 40)
    return place / "t.db"


def a_pipe(place: Path) -> Path:
    os.mkfifo(place / "t.db")
    return place / "t.db"


def nowhere(place: Path) -> Path:
    return place / "missing" / "t.db"


def below_a_file(place: Path) -> Path:
    (place / "file").write_text("")
    return place / "file" / "t.db"


def a_read_only_file(place: Path) -> Path:
    with closing(a_store(place / "t.db")) as store:
        store.ready()
    for leftover in place.glob("t.db-*"):
        leftover.unlink()
    (place / "t.db").chmod(0o444)
    return place / "t.db"


def in_a_read_only_directory(place: Path) -> Path:
    (place / "closed").mkdir(mode=0o555)
    return place / "closed" / "t.db"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (a_directory, NotADatabase),
        (a_text, NotADatabase),
        (a_pipe, NotADatabase),
        (nowhere, DatabaseUnreachable),
        (below_a_file, DatabaseUnreachable),
        (a_read_only_file, DatabaseReadOnly),
        (in_a_read_only_directory, DatabaseReadOnly),
    ],
)
def test_a_bad_place_is_named_and_left_as_it_was(tmp_path: Path, make: object, kind: type[DatabaseError]) -> None:
    assert callable(make)
    path = make(tmp_path)
    before = {found: found.stat().st_mtime_ns for found in tmp_path.rglob("*")}
    with closing(a_store(path)) as store:
        with pytest.raises(kind) as refused:
            store.ready()
        with pytest.raises(kind):
            store.migrate()
    assert str(path) in str(refused.value)
    assert {found: found.stat().st_mtime_ns for found in tmp_path.rglob("*")} == before


def test_a_verb_makes_no_file(tmp_path: Path) -> None:
    with closing(a_store(tmp_path / "t.db")) as store:
        with pytest.raises(DatabaseUnreachable, match="no such file"):
            store.ids_reserve(1)
        with pytest.raises(DatabaseUnreachable):
            store.job_get([1])
    assert list(tmp_path.iterdir()) == []


def test_a_verb_on_a_database_without_the_record(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as mine:
        mine.execute("CREATE TABLE orders (id INTEGER)")
    with closing(a_store(tmp_path / "t.db")) as store, pytest.raises(SchemaMissing):
        store.ids_reserve(1)


def test_the_users_own_tables_are_in_the_same_file(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as mine:
        mine.execute("CREATE TABLE orders (id INTEGER)")
        with closing(a_store(tmp_path / "t.db")) as store:
            store.ready()
            assert store.ids_reserve(1) == 1
        assert mine.execute("SELECT count(*) FROM orders").fetchall() == [(0,)]


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    with closing(a_store(tmp_path / "t.db")) as store:
        store.ready()
        store.ids_reserve(1)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"t.db", "t.db-detent-next", "t.db-detent-write", "t.db-wal"} <= set(modes)


def test_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(a_store(path)) as store:
        store.ready()
    with closing(sqlite3.connect(path)) as mine, mine:
        mine.execute("INSERT INTO detent_migration VALUES (999, 'later', '-', 999, 0)")
    with closing(a_store(path)) as store:
        for call in (store.ready, store.migrate):
            with pytest.raises(SchemaTooNew) as refused:
                call()
            assert refused.value.found == 999


def test_a_newer_schema_that_allows_this_code_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(a_store(path)) as store:
        store.ready()
    with closing(sqlite3.connect(path)) as mine, mine:
        mine.execute("INSERT INTO detent_migration VALUES (999, 'later', '-', 1, 0)")
    with closing(a_store(path)) as store:
        store.ready()
        with pytest.raises(SchemaTooNew, match="nothing was changed"):
            store.migrate()


def test_an_older_schema_waits_for_its_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as mine, mine:
        mine.execute(
            "CREATE TABLE detent_migration"
            " (version INTEGER, name TEXT, checksum TEXT, oldest_code INTEGER, applied_at INTEGER)"
        )
        mine.execute("INSERT INTO detent_migration VALUES (1, 'tables', ?, 1, 0)", (KNOWN[0].checksum,))
    monkeypatch.setattr(schema, "KNOWN", (*KNOWN, replace(KNOWN[0], version=2)))
    with closing(a_store(path)) as store, pytest.raises(SchemaTooOld):
        store.ready()


def test_a_lock_held_by_a_stranger_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    """R4: a connection that knows nothing of the write lock."""
    path = tmp_path / "t.db"
    with closing(a_store(path, wait_seconds_max=0.05)) as store:
        store.ready()
        with closing(sqlite3.connect(path, isolation_level=None)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            with pytest.raises(DatabaseBusy):
                store.ids_reserve(1)
            assert store.job_get([1]) == [None]
            stranger.execute("ROLLBACK")
        assert store.ids_reserve(1) == 1


def test_in_memory() -> None:
    with closing(a_store(":memory:")) as store:
        store.ready()
        assert store.ids_reserve(3) == 1
        assert store.ids_reserve(1) == 4
        assert store.job_get([1]) == [None]
