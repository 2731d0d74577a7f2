"""Databases that cannot be used: a typed error that says so, no password in it, and nothing touched."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from detent import Context, Detent
from detent.errors import (
    DatabaseBusy,
    DatabaseInaccessible,
    DatabaseReadOnly,
    DatabaseUnreachable,
    DetentError,
    InvalidSetting,
    NotADatabase,
    SchemaTooNew,
    UnknownState,
    WrongPlace,
)
from detent.store.sqlite.store import SqliteStore
from detent.testing.stores import dump, plain_connection, table
from tests.app.shop import Shop, open_shop, until


def enqueue_on(url: str) -> DetentError:
    """The refusal that a user of this database gets."""
    with Detent(url) as app:

        @app.task(name="welcome")
        def welcome(ctx: Context, user_id: int) -> None: ...

        with pytest.raises(DetentError) as refusal:
            welcome.enqueue(user_id=7)
        with pytest.raises(type(refusal.value)):
            app.jobs.list()
    return refusal.value


def files_in(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


# -- addresses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("mysql://ana:secret@db/shop", "scheme 'mysql'"),
        ("shop.db", "no scheme"),
        ("ana:secret@db", "no scheme"),
        ("sqlite://", "sqlite without a path"),
        ("sqlite:///", "sqlite without a path"),
        ("sqlite://shop.db", "sqlite without a path"),
        ("sqlite:///:memory:", "sqlite in memory, which no other process could see"),
        ("sqlite:///shop.db?mode=ro", "sqlite with options after a ?"),
        ("postgresql://ana:secret@db/shop?colour=red", "one that cannot be read"),
    ],
)
def test_an_address_that_is_none(url: str, found: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Detent(url).jobs.list()
    assert (refusal.value.field, refusal.value.found) == ("database url", found)
    assert "secret" not in "".join(traceback.format_exception(refusal.value))


def test_nobody_there(nobody: int) -> None:
    """And the password appears nowhere, however deep one looks."""
    error = enqueue_on(f"postgresql://ana:secret@127.0.0.1:{nobody}/shop")
    assert type(error) is DatabaseUnreachable
    assert str(error).startswith(f"the database cannot be reached (postgresql://ana@127.0.0.1:{nobody}/shop): ")
    assert "secret" not in repr(error) + "".join(traceback.format_exception(error))


def test_no_such_database(postgres_url: str) -> None:
    error = enqueue_on(f"{postgres_url}_not")
    assert type(error) is DatabaseInaccessible
    assert "does not exist" in str(error)


def test_a_database_that_takes_no_writes(postgres_url: str) -> None:
    error = enqueue_on(f"{postgres_url}?options=-cdefault_transaction_read_only%3Don")
    assert type(error) is DatabaseReadOnly


def test_a_schema_that_is_somebody_elses(postgres_url: str) -> None:
    with closing(plain_connection(postgres_url)) as connection:
        connection.execute("CREATE SCHEMA detent CREATE TABLE theirs (id int)")
        connection.commit()
    error = enqueue_on(postgres_url)
    assert str(error).startswith("this is not a database Detent can use (")
    assert str(error).endswith("its schema detent holds something else")


# -- files ----------------------------------------------------------------------------------------------------


def test_a_directory_instead_of_a_file(tmp_path: Path) -> None:
    error = enqueue_on(f"sqlite:///{tmp_path}")
    assert str(error) == (
        f"this is not a database Detent can use (sqlite:///{tmp_path}): "
        "found a directory; allowed: a SQLite file, or a path where one can be made"
    )
    assert type(error) is NotADatabase
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_leads_nowhere(tmp_path: Path) -> None:
    error = enqueue_on(f"sqlite:///{tmp_path}/not/there.db")
    assert type(error) is DatabaseInaccessible
    assert "No such file or directory" in str(error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"Dear diary,\n" * 500, b"\0" * 4096])
def test_a_file_that_is_something_else(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "diary.txt").write_bytes(content)
    error = enqueue_on(f"sqlite:///{tmp_path}/diary.txt")
    assert type(error) is NotADatabase
    assert files_in(tmp_path) == {"diary.txt": content}


def test_a_read_only_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    with open_shop(url) as shop:
        shop.welcome.enqueue(user_id=1)
    before = dump(url)
    os.chmod(tmp_path / "shop.db", 0o444)
    error = enqueue_on(url)
    assert str(error) == f"the database takes no writes ({url}): the file is read-only"
    assert type(error) is DatabaseReadOnly
    os.chmod(tmp_path / "shop.db", 0o644)
    assert dump(url) == before


def test_a_read_only_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        error = enqueue_on(f"sqlite:///{tmp_path}/shop.db")
    finally:
        tmp_path.chmod(0o755)
    assert type(error) is DatabaseReadOnly
    assert list(tmp_path.iterdir()) == []


# -- versions -------------------------------------------------------------------------------------------------


def test_a_newer_schema(store_url: str) -> None:
    """L8: migrated by a newer version that demands newer code: refused, and nothing is touched."""
    with open_shop(store_url) as shop:
        shop.welcome.enqueue(user_id=1)
    with closing(plain_connection(store_url)) as connection:
        connection.execute(
            f"INSERT INTO {table(store_url, 'migration')} (version, name, checksum, oldest_code, applied_at) "
            f"SELECT 99, 'future', 'x', 99, max(applied_at) FROM {table(store_url, 'migration')}"
        )
        connection.commit()
    before = dump(store_url)
    error = enqueue_on(store_url)
    assert isinstance(error, SchemaTooNew)
    assert (error.found, error.database) == (99, store_url.partition("?")[0])
    assert str(error).startswith("schema 99 is newer than this version of Detent, which knows up to ")
    assert dump(store_url) == before


@pytest.fixture
def unhealthy(store_url: str) -> Iterator[Shop]:
    with closing(Shop(store_url)) as shop:
        yield shop


def test_a_state_unknown_to_this_version(unhealthy: Shop) -> None:
    """L8: reported, never guessed; the others go on."""
    shop = unhealthy
    job, other = shop.welcome.enqueue(user_id=1), shop.welcome.enqueue(user_id=2)
    with shop.connect() as connection:
        for statement in plant(shop.url, job.id):
            connection.execute(statement)
        connection.commit()
    with shop.untouched():
        assert {one.id: one.state for one in shop.app.jobs.list()} == {job.id: "melted", other.id: "pending"}
        for look in (lambda: shop.app.jobs.get(job.id), lambda: job.refresh(), lambda: job.why()):
            with pytest.raises(UnknownState) as refusal:
                look()
            assert (refusal.value.entity_id, refusal.value.state) == (str(job.id), "melted")
        assert str(refusal.value).startswith(
            f"job {job.id} is in state 'melted', which this version does not know "
            "(known: pending, running, succeeded, failed, quarantined, cancelled)"
        )
        with pytest.raises(DetentError, match="melted"):
            job.cancel(actor="ana")
    assert shop.work() == [other]
    assert "states_are_known" in {violation.invariant for violation in shop.app.record.verify()}


def plant(url: str, job_id: int) -> list[str]:
    """Statements by somebody who got past every guard."""
    if url.startswith("sqlite:"):
        free = ["DROP TRIGGER detent_job_guard", "PRAGMA ignore_check_constraints = ON"]
    else:
        checks = ("job_state_known", "job_finished_has_time")
        free = ["ALTER TABLE detent.job DISABLE TRIGGER USER"]
        free += [f"ALTER TABLE detent.job DROP CONSTRAINT {check}" for check in checks]
    return [
        *free,
        f"UPDATE {table(url, 'job')} SET state = 'melted' WHERE id = {job_id}",
        f"DELETE FROM {table(url, 'ready')} WHERE job_id = {job_id}",
    ]


# -- SQLite's one writer ----------------------------------------------------------------------------------------


def test_enqueue_inside_a_commit_block_fails_at_once(sqlite_url: str) -> None:
    """It would wait for itself; the message says what to do instead."""
    with open_shop(sqlite_url) as shop:
        said: list[str] = []

        @shop.app.task(name="charge")
        def charge(ctx: Context) -> None:
            with ctx.commit() as tx:
                with pytest.raises(WrongPlace) as refusal:
                    shop.welcome.enqueue(user_id=1)
                said.append(str(refusal.value))
                tx.intend(shop.welcome.call(user_id=2))

        job = charge.enqueue()
        worked = shop.work()
        assert [one.state for one in worked] == ["succeeded", "succeeded"]
        assert worked[0] == job
        assert worked[1].payload == {"user_id": 2}
        assert "tx.intend" in said[0]


def test_it_fails_at_once_even_while_others_stand_in_line(sqlite_url: str) -> None:
    """Another thread leads the writer and waits for this block: to line up behind it would be to wait for itself."""
    with open_shop(sqlite_url) as shop, ThreadPoolExecutor(max_workers=1) as crowd:
        theirs: list[Future[Any]] = []

        @shop.app.task(name="charge")
        def charge(ctx: Context) -> None:
            with ctx.commit():
                theirs.append(crowd.submit(shop.welcome.enqueue, user_id=2))
                until(lambda: shop.app._engine.client.plain._alone)
                with pytest.raises(WrongPlace):
                    shop.welcome.enqueue(user_id=1)

        charge.enqueue()
        (job, *_) = shop.work()
        assert job.state == "succeeded"
        assert theirs[0].result(60).created


def test_a_lock_held_by_the_users_own_connection_names_the_way_out(sqlite_url: str) -> None:
    with open_shop(sqlite_url) as shop:
        path = sqlite_url.removeprefix("sqlite:///")
        with closing(SqliteStore(path, clock=shop.clock, wait_seconds_max=0.05)) as impatient, shop.connect() as mine:
            mine.execute("BEGIN IMMEDIATE")
            with pytest.raises(DatabaseBusy, match=r"app\.using\(connection\)"):
                impatient.ids_reserve(1)
            mine.rollback()
