"""What `migrate` would do can be read, checked and run by hand, and looking changes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from detent.errors import WrongPlace
from detent.store.migrate import names
from detent.store.open import open_store
from tests.migrations.schemas import known


def run_by_hand(url: str, script: str) -> None:
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(script)
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        server.execute(script.encode())


def test_a_script_run_by_hand_makes_the_schema(database_url: str) -> None:
    """L8: the steps taken by hand are the steps that migrate would have taken."""
    with closing(open_store(database_url)) as store:
        before = store.facts()
        assert (before.schema, before.missing) == (0, names(known(database_url)))
        run_by_hand(database_url, store.migration_sql())
        after = store.facts()
        assert (after.schema, after.missing) == (len(before.missing), ())
        assert store.migration_sql() == ""
        assert store.migrate() == []
        store.ready()
        assert store.verify() == []


def test_looking_creates_nothing(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path / 'not-yet.db'}")) as store:
        assert store.facts().durability == {}
        assert "CREATE TABLE detent_job" in store.migration_sql()
    assert list(tmp_path.iterdir()) == []


def test_what_is_acknowledged_is_synced(sqlite_url: str) -> None:
    """G8: as SQLite itself says it."""
    with closing(open_store(sqlite_url)) as store:
        store.ready()
        facts = store.facts()
    assert (facts.kind, facts.version) == ("SQLite", sqlite3.sqlite_version)
    assert facts.durability == {"journal_mode": "wal", "synchronous": "FULL"}
    assert facts.durability_caution is None
    assert (facts.version_caution is None) == (sqlite3.sqlite_version_info >= (3, 51, 3))


def test_a_weaker_server_is_a_caution(postgres_url: str) -> None:
    """G8: weaker only on request, and then shown."""
    mark = "&" if "?" in postgres_url else "?"
    with closing(open_store(f"{postgres_url}{mark}options=-csynchronous_commit%3Doff")) as store:
        facts = store.facts()
    assert facts.kind == "PostgreSQL"
    assert facts.durability["synchronous_commit"] == "off"
    assert "synchronous_commit = off" in (facts.durability_caution or "")


def test_a_file_has_no_roles(sqlite_url: str) -> None:
    with (
        closing(open_store(sqlite_url)) as store,
        pytest.raises(WrongPlace, match="install_roles cannot be called on SQLite"),
    ):
        store.install_roles()
