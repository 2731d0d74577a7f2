"""From any schema to this one: the same place by every way, refused where it cannot be, whole or not at all."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from detent.errors import SchemaDiffers, SchemaTooNew, SchemaTooOld
from detent.model.records import Enqueued
from detent.store.open import open_store
from detent.testing.stores import plain_connection
from tests.contract.kit import new_job
from tests.invariants.owner import Owner
from tests.migrations.schemas import begin_with, described, known, taken, write_step


def fresh(url: str) -> dict[str, list[str]]:
    with closing(open_store(url)) as store:
        store.ready()
    return described(url)


def step_from_the_future(url: str, *, oldest_code: int) -> None:
    """The line that a newer Detent's migration leaves."""
    with closing(plain_connection(url)) as connection:
        write_step(url, connection, known(url)[-1].version + 1, "future", "x" * 32, oldest_code)
        connection.commit()


def test_a_migrated_schema_equals_a_fresh_one(database_url: str, another_url: str) -> None:
    """L8: stopped after any step and gone on later, it is the same schema."""
    steps = known(database_url)
    begin_with(database_url, steps[:1])
    with closing(open_store(database_url)) as store:
        assert store.migrate() == [f"{step.version:04}_{step.name}" for step in steps[1:]]
        assert store.migrate() == []
        store.ready()
        assert store.verify() == []
    assert described(database_url) == fresh(another_url)


def test_an_empty_database_is_made_ready_at_first_touch(database_url: str) -> None:
    with closing(open_store(database_url)) as store:
        store.ready()
        store.ready()
        assert store.migrate() == []
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


def test_an_older_schema_waits_for_an_explicit_migration(database_url: str) -> None:
    steps = known(database_url)
    begin_with(database_url, steps[:1])
    before = described(database_url)
    with closing(open_store(database_url)) as store, pytest.raises(SchemaTooOld) as refused:
        store.ready()
    assert (refused.value.found, refused.value.known) == (1, len(steps))
    assert described(database_url) == before


def test_a_newer_schema_that_demands_newer_code_is_refused(database_url: str) -> None:
    """L8: old code does not guess at what it cannot know."""
    with closing(open_store(database_url)) as store:
        store.ready()
    newest = known(database_url)[-1].version
    step_from_the_future(database_url, oldest_code=newest + 1)
    before = described(database_url)
    with closing(open_store(database_url)) as store:
        for call in (store.ready, store.migrate):
            with pytest.raises(SchemaTooNew) as refused:
                call()
            assert (refused.value.found, refused.value.known) == (newest + 1, newest)
    assert described(database_url) == before


def test_a_newer_schema_that_allows_this_code_is_worked_with(database_url: str) -> None:
    """L8: a migration says which code may still run with it, and that code goes on."""
    with closing(open_store(database_url)) as store:
        store.ready()
    step_from_the_future(database_url, oldest_code=known(database_url)[-1].version)
    with closing(open_store(database_url)) as store:
        store.ready()
        assert store.migrate() == []
        job = new_job(store)
        assert store.job_enqueue([job]) == [Enqueued(job.id, True)]


def test_a_step_that_was_taken_in_other_words_is_refused(database_url: str) -> None:
    """L8: an applied migration that was edited afterwards: nobody knows what is in such a database."""
    first, *others = known(database_url)
    begin_with(database_url, (replace(first, checksum="0" * 32), *others))
    before = described(database_url)
    with closing(open_store(database_url)) as store:
        for call in (store.ready, store.migrate):
            with pytest.raises(SchemaDiffers, match="0001_record were applied in other words") as refused:
                call()
            assert refused.value.migrations == ("0001_record",)
    assert described(database_url) == before


def test_a_hole_in_the_list_of_migrations_is_refused(database_url: str) -> None:
    """L8: nothing is written by anybody: neither the missing step, nor a repair, nor a job."""
    steps = known(database_url)
    with closing(open_store(database_url)) as store:
        store.ready()
    with closing(Owner(database_url)) as owner:
        owner.plant("DELETE FROM {migration} WHERE version = 7")
    before = described(database_url)
    hole = f"{steps[6].version:04}_{steps[6].name}"
    with closing(open_store(database_url)) as store:
        for call in (store.ready, store.migrate):
            with pytest.raises(SchemaDiffers, match=f"{hole} is not in its list of migrations") as refused:
                call()
            assert refused.value.migrations == (hole,)
    assert described(database_url) == before
    assert taken(database_url) == [step.version for step in steps if step != steps[6]]
