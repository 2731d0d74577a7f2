"""The two schemas are one schema: the same steps, and the same names for the same things."""

from __future__ import annotations

import re
from contextlib import closing

import pytest

from detent.store.migrate import Migration, load
from detent.store.open import open_store
from tests.migrations.schemas import Names, names

SQLITE = load("sqlite")
POSTGRES = load("postgres")
CONSTRAINT = re.compile(r"^(?:\s*|ALTER TABLE [\w.]+ ADD )CONSTRAINT (\w+) (.+?)[,;]?(\s*-- differs.*)?$", re.MULTILINE)
SHORTER = {
    "job_running_has_open_attempt",
    "job_attempts_in_order",
    "job_commit_is_of_a_running_or_succeeded_job",
    "job_effect_evidence_known",
}
"""CHECKs that say the same in fewer words on PostgreSQL: tests/guards/test_short_checks.py tries every combination."""
INDEX = re.compile(r"^CREATE (?:UNIQUE )?INDEX (?:detent_)?(\w+) ON (.+);$", re.MULTILINE)


@pytest.fixture
def sqlite_names(sqlite_url: str) -> Names:
    with closing(open_store(sqlite_url)) as store:
        store.ready()
    return names(sqlite_url)


@pytest.fixture
def postgres_names(postgres_url: str) -> Names:
    with closing(open_store(postgres_url)) as store:
        store.ready()
    return names(postgres_url)


def differing(steps: tuple[Migration, ...]) -> set[str]:
    """The constraints that a schema says are its own alone."""
    return {name for step in steps for name, _, mark in CONSTRAINT.findall(step.sql) if mark}


def test_steps_have_the_same_numbers_names_and_demands() -> None:
    assert [(s.version, s.name, s.oldest_code) for s in SQLITE] == [
        (s.version, s.name, s.oldest_code) for s in POSTGRES
    ]


def test_tables_and_views_have_the_same_columns(sqlite_names: Names, postgres_names: Names) -> None:
    # A row in `ids` is what a sequence is on PostgreSQL.
    assert sqlite_names.columns.pop("ids") == [("next", True)]
    # What a function is on PostgreSQL: triggers raise alerts through this view.
    assert sqlite_names.columns.pop("alert_event")
    # Autoscalers read PostgreSQL.
    assert postgres_names.columns.pop("queue_backlog")
    assert sqlite_names.columns == postgres_names.columns


def test_constraints_have_the_same_names(sqlite_names: Names, postgres_names: Names) -> None:
    """C1, R2: what one database refuses, the other refuses under the same name."""
    assert sqlite_names.constraints - differing(SQLITE) == postgres_names.constraints - differing(POSTGRES)
    # What types say on PostgreSQL, since SQLite has no smallint and no boolean.
    assert differing(SQLITE) == {"job_priority_is_small", "job_booleans"}
    assert differing(POSTGRES) == set()


def test_constraints_and_indexes_of_one_name_say_the_same() -> None:
    for pattern in (CONSTRAINT, INDEX):
        on_sqlite = {found[0]: found[1] for step in SQLITE for found in pattern.findall(step.template)}
        on_postgres = {found[0]: found[1] for step in POSTGRES for found in pattern.findall(step.template)}
        shared = (on_sqlite.keys() & on_postgres.keys()) - SHORTER
        assert len(shared) > 10
        # SQLite compares text by its bytes, and puts no expression of an index into brackets.
        assert {name: on_sqlite[name].replace("detent_", "detent.") for name in shared} == {
            name: on_postgres[name].replace(' COLLATE "C"', "").replace("(CASE", "CASE").replace("END))", "END)")
            for name in shared
        }


def test_indexes_have_the_same_names(sqlite_names: Names, postgres_names: Names) -> None:
    assert "execution_one_commit" in sqlite_names.indexes
    assert sqlite_names.indexes == postgres_names.indexes


def test_the_same_tables_are_guarded(sqlite_names: Names, postgres_names: Names) -> None:
    """E1: whatever is only ever added to, the job itself, and what follows it."""
    assert sqlite_names.guarded - {"alert_event"} == postgres_names.guarded
    kept = {"execution", "event", "transition_log", "horizon", "migration", "identity", "token"}
    follows = {"batch_run", "target", "ops_run", "ops_environment", "pipeline_run", "partition", "watermark"}
    of_workflows = {"workflow", "workflow_step", "workflow_step_begun", "workflow_signal", "child_group"}
    of_graphs = {"graph", "graph_node", "job_after"}
    assert postgres_names.guarded == kept | {"job"} | follows | of_workflows | of_graphs
