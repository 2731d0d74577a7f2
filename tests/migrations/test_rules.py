"""Migrations after the first one are safe on a live database."""

from __future__ import annotations

import re

import pytest

from detent.store.migrate import load
from tests.migrations.rules import complaints


def test_migrations_keep_no_writer_waiting() -> None:
    """L8: no whole table is read under a lock that keeps writers out."""
    for step in load("postgres")[1:]:
        assert complaints(step.template) == [], step.name


def test_the_first_migration_has_tables_and_nothing_that_is_installed() -> None:
    """L8: functions, triggers and views are installed, so that they can change without a migration."""
    for dialect in ("postgres", "sqlite"):
        first = load(dialect)[0].template
        assert "TRIGGER" not in re.sub(r"--.*", "", first)
        assert " VIEW " not in first
        # The clock is there before anything that asks for the time, and tests replace it.
        assert re.findall(r"CREATE FUNCTION (\S+)\(", first) == (["detent.clock"] if dialect == "postgres" else [])


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE detent.job ADD COLUMN note text;",
        "ALTER TABLE detent.job ADD COLUMN note text NOT NULL DEFAULT '';",
        "CREATE TABLE detent.note (id bigint NOT NULL);\nCREATE INDEX note_id ON detent.note (id);",
        "-- one by one\nCREATE INDEX CONCURRENTLY IF NOT EXISTS job_note ON detent.job (note);",
        "ALTER TABLE detent.job ADD CONSTRAINT note_is_short CHECK (length(note) < 9) NOT VALID;",
        "-- one by one\nALTER TABLE detent.job VALIDATE CONSTRAINT note_is_short;",
    ],
)
def test_what_is_safe(sql: str) -> None:
    assert complaints(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE INDEX job_note ON detent.job (note);",
        "CREATE UNIQUE INDEX job_note ON detent.job (note);",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS job_note ON detent.job (note);",
        "ALTER TABLE detent.job ADD CONSTRAINT note_is_short CHECK (length(note) < 9);",
        "ALTER TABLE detent.job ADD CONSTRAINT job_note UNIQUE (note);",
        "ALTER TABLE detent.job ALTER COLUMN note SET NOT NULL;",
        "ALTER TABLE detent.job ALTER COLUMN note TYPE bigint;",
        "ALTER TABLE detent.job ADD COLUMN at timestamptz DEFAULT now();",
        "UPDATE detent.job SET note = '';",
        "LOCK TABLE detent.job;",
    ],
)
def test_what_keeps_writers_waiting(sql: str) -> None:
    assert len(complaints(sql)) == 1
