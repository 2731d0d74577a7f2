"""A release with one more state, transition and column, on a database with jobs in it."""

from __future__ import annotations

from contextlib import closing

import pytest

import detent
from detent.errors import InvalidTransition, ReleaseTooOld, SchemaTooNew
from detent.model.database_facts import RELEASE
from detent.store.installed_release import Installed, is_newer
from detent.store.open import open_store
from detent.testing.stores import is_sqlite
from prove.upgrades.described_schema import described
from prove.upgrades.next_release import NEXT, NextRelease
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.store.invariants.owner import Owner


@pytest.fixture(scope="module")
def with_state(tmp_path_factory: pytest.TempPathFactory) -> NextRelease:
    """One more state and its transitions, and nothing else."""
    return NextRelease(tmp_path_factory.mktemp("state")).with_number().with_state()


@pytest.fixture(scope="module")
def with_column(tmp_path_factory: pytest.TempPathFactory) -> NextRelease:
    """The same, and one more column."""
    return NextRelease(tmp_path_factory.mktemp("column")).with_number().with_state().with_column()


def test_a_new_state_comes_with_the_library_alone(database_url: str, with_state: NextRelease) -> None:
    """L1, L8: no migration, no SchemaDiffers; the database refuses the move before, and allows it afterwards."""
    with closing(open_store(database_url)) as store:
        store.ready()
        first, second = enqueue(store), enqueue(store)
        assert isinstance(store.job_force(first, "parked", "ana", "too early"), InvalidTransition)
        applied = with_state.migrate(database_url)
        prefix = "detent_job." if is_sqlite(database_url) else ""
        assert f"check {prefix}job_state_known" in applied
        assert any(name.endswith("job_guard") for name in applied)
        assert with_state.migrate(database_url) == []
        moves = f"store.ready()\nprint(json.dumps(repr(store.job_force({first}, 'parked', 'ana', 'later'))))\n"
        moves += "print(json.dumps([repr(one) for one in store.verify()]))"
        moved, wrong = with_state.run(database_url, moves)
        assert moved.startswith("Moved(")
        assert wrong == []
        # The older release goes on with what it knows.
        assert [one.job_id for one in claim(store)] == [second]


def test_an_older_release_refuses_to_migrate_and_changes_nothing(database_url: str, with_state: NextRelease) -> None:
    """L8: it says so in one sentence; the functions, guards and CHECKs of the newer release stay."""
    with closing(open_store(database_url)) as store:
        store.ready()
        with_state.migrate(database_url)
        before = described(database_url)
        for call in (store.migrate, store.migration_sql):
            with pytest.raises(ReleaseTooOld) as refused:
                call()
            assert (refused.value.found, refused.value.known) == (NEXT, detent.__version__)
        store.ready()
        assert store.facts().differs == ()
        assert store.verify() == []
        with pytest.raises(ReleaseTooOld):
            store.repair("ana", "an older release", apply=True)
        assert described(database_url) == before


def test_a_migrated_schema_equals_a_fresh_one(database_url: str, another_url: str, with_column: NextRelease) -> None:
    """L8: by either way it is the same schema."""
    with closing(open_store(database_url)) as store:
        store.ready()
    applied = with_column.migrate(database_url)
    assert applied[0] == "0002_note"
    assert with_column.migrate(another_url) == ["0001_tables", "0002_note"]
    assert described(database_url) == described(another_url)
    with closing(open_store(database_url)) as store:
        store.ready()
        enqueue(store)
        with pytest.raises(SchemaTooNew):
            store.migrate()


def test_an_interrupted_upgrade_is_continued(database_url: str, with_column: NextRelease) -> None:
    """L8: killed anywhere, the database works with the older release, and the next migrate ends it."""
    with closing(open_store(database_url)) as store:
        store.ready()
        enqueue(store)
    stop = (
        "import os\nnames = []\ndef watch(name):\n    names.append(name)\n"
        "    if len(names) == {}: os._exit(9)\nstore.migrate(watch)"
    )
    for number in (1, 3):
        with with_column.start(database_url, stop.format(number)) as process:
            process.communicate()
        assert process.returncode == 9
        with closing(open_store(database_url)) as store:
            store.ready()
            enqueue(store)
            if not is_sqlite(database_url):
                with pytest.raises((ReleaseTooOld, SchemaTooNew)):
                    store.migrate()
    assert with_column.migrate(database_url)
    _, wrong = with_column.run(
        database_url, "print(json.dumps(store.migrate()))\nprint(json.dumps([repr(one) for one in store.verify()]))"
    )
    assert wrong == []


def test_a_trigger_that_a_release_no_longer_has_is_dropped(database_url: str) -> None:
    """L8: what an older release had installed does not stay behind; a stranger's trigger does."""
    with closing(open_store(database_url)) as store, closing(Owner(database_url)) as owner:
        store.ready()
        if owner.sqlite:
            owner.run("CREATE TRIGGER detent_event_then AFTER INSERT ON {event} BEGIN SELECT 1; END")
            owner.run("CREATE TRIGGER eve AFTER INSERT ON {event} BEGIN SELECT 1; END")
        else:
            owner.run("CREATE TRIGGER event_then BEFORE DELETE ON {event} FOR EACH ROW EXECUTE FUNCTION detent.keep()")
            owner.run(
                "CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
                "CREATE TRIGGER eve AFTER INSERT ON {event} FOR EACH ROW EXECUTE FUNCTION eve()",
            )
        name = "detent_event_then" if owner.sqlite else "event_then"
        assert store.facts().differs == (f"trigger {name}",)
        assert store.migrate() == [f"trigger {name}"]
        assert [one.entity_id for one in store.verify()] == ["event.eve"]


def test_views_and_guards_that_were_changed_by_hand_are_put_right(database_url: str) -> None:
    """L8: migrate puts everything in place, every time."""
    with closing(open_store(database_url)) as store, closing(Owner(database_url)) as owner:
        store.ready()
        if owner.sqlite:
            owner.run("DROP VIEW {ops_runs}", "CREATE VIEW {ops_runs} AS SELECT 1 AS job_id")
            owner.run("DROP TRIGGER detent_event_keep")
            wanted = ["view detent_ops_runs", "trigger detent_event_keep"]
        else:
            owner.run("DROP VIEW {ops_runs} CASCADE", "CREATE VIEW {ops_runs} AS SELECT 1::bigint AS job_id")
            owner.run("ALTER TABLE {event} DISABLE TRIGGER event_keep")
            wanted = ["trigger event_keep", "view ops_runs"]
        assert [name for name in store.migrate() if not name.startswith("function")] == wanted
        assert store.migrate() == []
        assert store.verify() == []


def test_a_release_is_never_taken_back() -> None:
    """L8: numbers are compared part by part, not as text."""

    def installed(release: str) -> Installed:
        return Installed(release, "x", complete=True)

    assert is_newer(installed(f"{RELEASE[0] + 10}.0.0"))
    assert is_newer(installed(f"{detent.__version__}.1"))
    assert not is_newer(installed(detent.__version__))
    assert not is_newer(None)
