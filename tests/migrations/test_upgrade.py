"""From a schema to this one: refused if that cannot be, whole or not at all."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from detent.errors import SchemaDiffers, SchemaTooNew, SchemaTooOld, SchemaUnreleased
from detent.model.records import Enqueued
from detent.store.migrate import Applied, Migration, check_wording
from detent.store.open import open_store
from detent.store.postgres import schema as postgres_schema
from detent.store.sqlite import schema as sqlite_schema
from detent.testing.stores import dump, is_sqlite, plain_connection
from prove.upgrades.described_schema import described
from tests.contract.jobs.sample_jobs import new_job
from tests.contract.workers.sample_workers import worker
from tests.migrations.schemas import known, taken, write_step
from tests.store.invariants.owner import Owner


def fresh(url: str) -> dict[str, list[str]]:
    with closing(open_store(url)) as store:
        store.ready()
    return described(url)


def step_from_the_future(url: str, *, oldest_code: int) -> None:
    """Write the row that a newer Detent's migration leaves."""
    with closing(plain_connection(url)) as connection:
        write_step(url, connection, known(url)[-1].version + 1, "future", "x" * 32, oldest_code)
        connection.commit()


def know(monkeypatch: pytest.MonkeyPatch, url: str, *more: Migration) -> None:
    """Let this release know further migrations."""
    module = sqlite_schema if is_sqlite(url) else postgres_schema
    monkeypatch.setattr(module, "KNOWN", (*known(url), *more))


def test_an_empty_database_is_made_ready_at_first_touch(database_url: str) -> None:
    with closing(open_store(database_url)) as store:
        store.ready()
        store.ready()
        assert store.migrate() == []
        assert store.verify() == []
    assert taken(database_url) == [step.version for step in known(database_url)]


def test_the_users_own_tables_stay_as_they_are(database_url: str) -> None:
    with closing(plain_connection(database_url)) as connection:
        connection.execute("CREATE TABLE job (name text)")
        connection.execute("INSERT INTO job VALUES ('ours')")
        connection.commit()
    with closing(open_store(database_url)) as store:
        store.ready()
    with closing(plain_connection(database_url)) as connection:
        assert connection.execute("SELECT name FROM job").fetchall() == [("ours",)]


def test_an_older_schema_waits_for_an_explicit_migration(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fresh(database_url)
    newest = known(database_url)[-1]
    know(monkeypatch, database_url, replace(newest, version=newest.version + 1, name="later"))
    with closing(open_store(database_url)) as store, pytest.raises(SchemaTooOld) as refused:
        store.ready()
    assert (refused.value.found, refused.value.known) == (newest.version, newest.version + 1)
    assert described(database_url) == before


def test_a_newer_schema_that_demands_newer_code_is_refused(database_url: str) -> None:
    """L8: old code does not guess at what it cannot know."""
    fresh(database_url)
    newest = known(database_url)[-1].version
    step_from_the_future(database_url, oldest_code=newest + 1)
    before = described(database_url)
    with closing(open_store(database_url)) as store:
        for call in (store.ready, store.migrate, store.migration_sql):
            with pytest.raises(SchemaTooNew) as refused:
                call()
            assert (refused.value.found, refused.value.known) == (newest + 1, newest)
    assert described(database_url) == before


def test_a_newer_schema_that_allows_this_code_is_worked_with_and_not_migrated(database_url: str) -> None:
    """L8: a migration says which code may still run with it, and that code goes on. It cannot migrate, and says so."""
    fresh(database_url)
    step_from_the_future(database_url, oldest_code=known(database_url)[-1].version)
    before = described(database_url)
    with closing(open_store(database_url)) as store:
        store.ready()
        for call in (store.migrate, store.migration_sql):
            with pytest.raises(SchemaTooNew, match=r"upgrade Detent.*: nothing was changed"):
                call()
        assert described(database_url) == before
        job = new_job(store)
        assert store.job_enqueue([job]) == [Enqueued(job.id, True)]


def test_a_worker_hears_of_a_migration_that_demands_newer_code(database_url: str) -> None:
    """F25, L8: it has started before the migration, and learns of it with its next heartbeat."""
    fresh(database_url)
    with closing(open_store(database_url)) as store:
        store.ready()
        known = store.schema_known
        assert store.worker_seen(worker()).schema_demanded == known
        step_from_the_future(database_url, oldest_code=known)
        assert store.worker_seen(worker()).schema_demanded == known
    with closing(open_store(database_url)) as store:
        store.ready()
        with closing(plain_connection(database_url)) as connection:
            write_step(database_url, connection, known + 2, "later", "x" * 32, known + 2)
            connection.commit()
        assert store.worker_seen(worker()).schema_demanded == known + 2


def test_a_database_of_an_unreleased_version_is_refused(database_url: str) -> None:
    """L8: one clear sentence from every call, and nothing is written."""
    fresh(database_url)
    with closing(Owner(database_url)) as owner:
        owner.plant(
            "UPDATE {migration} SET name = 'record', checksum = 'of the first migration then' WHERE version = 1"
        )
    with closing(plain_connection(database_url)) as connection:
        for version in range(2, 33):
            write_step(database_url, connection, version, "then", "x" * 32, 17)
        connection.commit()
    before = described(database_url), dump(database_url)
    with closing(open_store(database_url)) as store:
        for call in (store.ready, store.migrate, store.migration_sql):
            with pytest.raises(
                SchemaUnreleased, match=r"schema 32 was created by an unreleased version.*: nothing was changed"
            ):
                call()
        assert (store.facts().schema, store.facts().differs) == (32, ())
    assert (described(database_url), dump(database_url)) == before


def test_a_later_step_in_another_wording_is_refused(database_url: str) -> None:
    """L8: an applied migration that was edited afterwards: the contents of such a database are unknown."""
    first = known(database_url)[-1]
    steps = (first, replace(first, version=2, name="later", checksum="a" * 32))
    applied = {1: Applied(1, first.checksum, 1), 2: Applied(2, "b" * 32, 2)}
    with pytest.raises(SchemaDiffers, match="0002_later were applied with another text") as refused:
        check_wording("a database", steps, applied)
    assert refused.value.migrations == ("0002_later",)


def test_a_hole_in_the_list_of_migrations_is_refused(database_url: str) -> None:
    """L8: nothing is written: neither the missing migration, nor a repair, nor a job."""
    (first,) = known(database_url)
    fresh(database_url)
    step_from_the_future(database_url, oldest_code=1)
    with closing(Owner(database_url)) as owner:
        owner.plant("DELETE FROM {migration} WHERE version = 1")
    before = described(database_url)
    hole = f"{first.version:04}_{first.name}"
    with closing(open_store(database_url)) as store:
        for call in (store.ready, store.migrate):
            with pytest.raises(SchemaDiffers, match=f"{hole} is not in its list of migrations") as refused:
                call()
            assert refused.value.migrations == (hole,)
    assert described(database_url) == before
    assert taken(database_url) == [2]
