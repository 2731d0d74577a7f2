"""The first touch: who may create the record, and what is refused. Many at once are in tests/migrations."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from detent.errors import DatabaseReadOnly, NotADatabase, SchemaMissing, SchemaTooNew, SchemaTooOld
from detent.store.open import open_store
from detent.store.postgres import schema
from detent.store.postgres.schema import KNOWN
from tests.contract.jobs.sample_jobs import enqueue
from tests.store.postgres.connections import as_user, run_sql


@pytest.fixture
def plain_user(postgres_url: str) -> Iterator[str]:
    """A login without any right beyond connecting; its name."""
    name = f"t_plain_{secrets.token_hex(4)}"
    run_sql(postgres_url, f"CREATE ROLE {name} LOGIN")
    yield name
    run_sql(postgres_url, f"REASSIGN OWNED BY {name} TO CURRENT_USER", f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_plain_owner_needs_no_superuser(postgres_url: str, plain_user: str) -> None:
    database = postgres_url.rpartition("/")[2]
    run_sql(postgres_url, f'ALTER DATABASE "{database}" OWNER TO {plain_user}')
    with closing(open_store(as_user(postgres_url, plain_user))) as store:
        assert store.migrate() == [f"{step.version:04}_{step.name}" for step in KNOWN]
        assert store.migrate() == []
        store.ready()
        enqueue(store)


def test_whoever_may_not_create_is_told_what_is_missing(postgres_url: str, plain_user: str) -> None:
    with closing(open_store(as_user(postgres_url, plain_user))) as store:
        with pytest.raises(SchemaMissing, match="permission denied for database"):
            store.ready()
        with pytest.raises(SchemaMissing):
            enqueue(store)
    assert run_sql(postgres_url, "SELECT 1 FROM pg_namespace WHERE nspname = 'detent'") == []


def test_a_read_only_database_is_refused(postgres_url: str) -> None:
    database = postgres_url.rpartition("/")[2]
    run_sql(postgres_url, f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    with closing(open_store(postgres_url)) as store, pytest.raises(DatabaseReadOnly):
        store.ready()


def test_a_schema_that_is_somebody_elses_is_left_alone(postgres_url: str) -> None:
    run_sql(postgres_url, "CREATE SCHEMA detent", "CREATE TABLE detent.catches (id integer)")
    with closing(open_store(postgres_url)) as store:
        with pytest.raises(NotADatabase, match="holds something else"):
            store.ready()
        with pytest.raises(NotADatabase, match="holds something else"):
            store.migrate()
    assert run_sql(postgres_url, "SELECT count(*) FROM pg_class WHERE relnamespace = 'detent'::regnamespace") == [(1,)]


def test_versions_are_compared(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """L8: an older schema waits for `migrate`; a newer one that demands newer code is refused, others are not."""
    newest = KNOWN[-1].version
    with closing(open_store(postgres_url)) as store:
        store.ready()
        add = "INSERT INTO detent.migration VALUES ({}, 'later', 'x', {}, now())"
        run_sql(postgres_url, add.format(newest + 1, newest))
        store.ready()
        with pytest.raises(SchemaTooNew, match="nothing was changed"):
            store.migrate()
        run_sql(postgres_url, add.format(newest + 2, newest + 2))
        with pytest.raises(SchemaTooNew) as new:
            store.ready()
        assert (new.value.found, new.value.known) == (newest + 2, newest)
        with pytest.raises(SchemaTooNew):
            store.migrate()
        run_sql(
            postgres_url,
            "ALTER TABLE detent.migration DISABLE TRIGGER USER",
            f"DELETE FROM detent.migration WHERE version > {newest}",
        )
        monkeypatch.setattr(schema, "KNOWN", (*KNOWN, replace(KNOWN[-1], version=newest + 1)))
        with pytest.raises(SchemaTooOld) as old:
            store.ready()
        assert (old.value.found, old.value.known) == (newest, newest + 1)
