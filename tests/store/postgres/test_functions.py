"""What the database holds of the catalogue: one versioned function a verb, safe to call for whoever may."""

from __future__ import annotations

import re
from contextlib import closing

import psycopg
import pytest

import detent
from detent.errors import ReleaseTooOld, SchemaTooNew
from detent.model import database_facts
from detent.model.records import Enqueued
from detent.store.contract import CATALOGUE
from detent.store.open import open_store
from detent.store.postgres.installed_parts import functions
from detent.store.postgres.schema import KNOWN
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.store.postgres.connections import run_sql

VERBS = [name for name in functions() if re.search(r"_v\d+$", name)]
PROPERTIES = """
SELECT p.proname, p.prosecdef, coalesce(p.proconfig, '{}'), has_function_privilege('public', p.oid, 'EXECUTE')
  FROM pg_proc p WHERE p.pronamespace = 'detent'::regnamespace
"""


def test_every_verb_of_the_catalogue_is_a_function() -> None:
    """S2: nothing is done to the record but through a function of its name."""
    # `entity_counts` reads a table of the user, with the caller's own rights.
    assert {re.sub(r"_v\d+$", "", name) for name in VERBS} >= set(CATALOGUE) - {"entity_counts"}


@pytest.mark.parametrize(("name", "text"), [(name, one.ddl) for name, one in functions().items() if name in VERBS])
def test_every_verb_says_what_it_does(name: str, text: str) -> None:
    opening = [line for line in text.splitlines() if line.startswith("--")]
    said = [word for line in opening if (word := line.removeprefix("--").split(":")[0].strip())]
    assert said[0] == name.rpartition("_v")[0]
    assert [word for word in said if word in ("takes", "gives", "locks", "refuses")] == [
        "takes",
        "gives",
        "locks",
        "refuses",
    ]


def test_verbs_run_as_the_owner_with_a_fixed_path_and_are_nobodys_by_default(postgres_store_url: str) -> None:
    """S2: security definer, search_path fixed with pg_temp last, EXECUTE revoked from everybody."""
    with psycopg.connect(postgres_store_url) as connection:
        rows = connection.execute(PROPERTIES).fetchall()
    found = {name: (definer, settings) for name, definer, settings, _ in rows}
    assert set(VERBS) <= set(found)
    for name in VERBS:
        definer, settings = found[name]
        assert definer, name
        assert "search_path=pg_catalog, detent, pg_temp" in settings, name
        assert "jit=off" in settings, name
    assert [name for name, _, _, public in rows if public and name != "clock"] == []


def test_a_shadow_in_pg_temp_changes_nothing(postgres_store_url: str) -> None:
    """S2: tables, functions and operators of a caller's own, of the same names, are not what the verbs meet."""
    with closing(open_store(postgres_store_url)) as store, psycopg.connect(postgres_store_url) as connection:
        for statement in (
            "CREATE TEMP TABLE job (LIKE detent.job INCLUDING ALL)",
            "CREATE TEMP TABLE ready (LIKE detent.ready INCLUDING ALL)",
            "CREATE FUNCTION pg_temp.clock() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$",
            "CREATE FUNCTION pg_temp.never(a bigint, b bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$",
            "CREATE OPERATOR pg_temp.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = pg_temp.never)",
            "SET search_path = pg_temp, detent, pg_catalog",
        ):
            connection.execute(statement.encode())
        item = new_job(store, key="k")
        assert store.on(connection).job_enqueue([item]) == [Enqueued(item.id, True)]
        assert store.on(connection).job_enqueue([item]) == [Enqueued(item.id, False)]
        assert connection.execute("SELECT count(*) FROM pg_temp.job").fetchone() == (0,)
        connection.commit()
        assert [held.job_id for held in claim(store)] == [item.id]


def test_nothing_is_left_in_the_session(postgres_store_url: str) -> None:
    """Behind a transaction pooler the next caller gets the session: no settings, prepared statements or locks stay."""
    left = """
        SELECT (SELECT count(*) FROM pg_prepared_statements),
               (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
               (SELECT count(*) FROM pg_settings WHERE source = 'session' AND name <> 'application_name')
    """
    with (
        closing(open_store(postgres_store_url)) as store,
        psycopg.connect(postgres_store_url, autocommit=True, prepare_threshold=None) as connection,
    ):
        before = connection.execute(left).fetchone()
        for _ in range(10):
            store.on(connection).ids_reserve(3)
            store.on(connection).job_enqueue([new_job(store, key="k")])
            claim(store.on(connection))
        assert connection.execute(left).fetchone() == before


def test_functions_that_were_changed_under_their_names_are_found_and_put_right(postgres_url: str) -> None:
    """L8: the steps are all there, and yet it is not this version's database; `migrate` says what it did."""
    with closing(open_store(postgres_url)) as store:
        store.ready()
        assert store.facts().differs == ()
        body = run_sql(postgres_url, "SELECT pg_get_functiondef('detent.now_v1()'::regprocedure)")[0][0]
        run_sql(postgres_url, str(body).replace("BEGIN", "BEGIN -- by hand\n"))
        assert store.facts().differs == ("function now_v1",)
        assert "FUNCTION detent.now_v1" in store.migration_sql()
        assert store.migrate() == ["function now_v1"]
        assert (store.facts().differs, store.migrate(), store.migration_sql()) == ((), [], "")


def test_the_functions_of_another_version_are_warned_of_at_the_start(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """L8: called by the same names, they may not do the same. Of a newer schema they are meant to be others."""

    def warned() -> str:
        # What threads of other tests log meanwhile is caught too.
        return "\n".join(record.getMessage() for record in caplog.records if record.name == "detent.store")

    with closing(open_store(postgres_url)) as store:
        store.ready()
        store.ready()
        assert warned() == ""
        run_sql(postgres_url, "UPDATE detent.installed SET fingerprint = 'of another build'")
        store.ready()
        assert "differ from those of this Detent: run `detent migrate`" in warned()
        assert store.facts().differs == ("function declarations",)
        assert store.migrate() == ["function declarations"]
        run_sql(
            postgres_url,
            "UPDATE detent.installed SET fingerprint = 'of another build'",
            f"INSERT INTO detent.migration VALUES ({KNOWN[-1].version + 1}, 'later', 'x', 1, now())",
        )
        caplog.clear()
        store.ready()
        assert (warned(), store.facts().differs) == ("", ())
        with pytest.raises(SchemaTooNew, match="nothing was changed"):
            store.migrate()


def test_an_older_release_leaves_newer_functions_alone(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """L8: in a rolling deploy the old release migrates after the new one; it says so, refuses and changes nothing."""
    body = "SELECT prosrc FROM pg_proc WHERE oid = 'detent.now_v1()'::regprocedure"
    with closing(open_store(postgres_url)) as store:
        monkeypatch.setattr(database_facts, "RELEASE", (999, 0, 0))
        store.ready()
        text = run_sql(postgres_url, "SELECT pg_get_functiondef('detent.now_v1()'::regprocedure)")[0][0]
        run_sql(postgres_url, str(text).replace("BEGIN", "BEGIN -- by the newer release\n"))
        newer = run_sql(postgres_url, body)
        monkeypatch.undo()
        caplog.clear()
        for call in (store.migrate, store.migration_sql):
            with pytest.raises(
                ReleaseTooOld, match=r"Detent 999\.0\.0 has installed .*: nothing was changed"
            ) as refused:
                call()
            assert (refused.value.found, refused.value.known) == ("999.0.0", detent.__version__)
        assert run_sql(postgres_url, body) == newer
        store.ready()
        assert store.facts().differs == ()
        assert [record.getMessage() for record in caplog.records if record.name == "detent.store"] == []
        monkeypatch.setattr(database_facts, "RELEASE", (999, 0, 1))
        assert store.migrate() == ["function now_v1"]


def test_the_number_counts_also_without_its_function(postgres_url: str) -> None:
    """L8: an older release could take a dropped function for a database in which nothing is installed."""
    with closing(open_store(postgres_url)) as store:
        store.ready()
        run_sql(postgres_url, "UPDATE detent.installed SET release = '999.0.0'", "DROP FUNCTION detent.installed_v1()")
        with pytest.raises(ReleaseTooOld):
            store.migrate()
        assert run_sql(postgres_url, "SELECT to_regprocedure('detent.installed_v1()')") == [(None,)]


def test_the_release_number_is_the_version_of_the_package() -> None:
    """L8: each release has a number of its own, and with it the functions of that release."""
    assert ".".join(map(str, database_facts.RELEASE)) == detent.__version__
