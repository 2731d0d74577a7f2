"""Statements typed by hand: what the database lets through, and what it refuses by itself."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from detent.errors import TABLE, GuardViolation, InvalidTransition
from detent.testing.stores import Dumps, is_sqlite, plain_connection

# A refusal is one of our guards, which say so, or a constraint of the schema.
GUARDS = {TABLE[GuardViolation].sqlstate, TABLE[InvalidTransition].sqlstate}
CONSTRAINTS = {"23505", "23514", "23502"}


class Prompt:
    """A raw connection. `{job}`, `{execution}` and so on in a statement stand for the names of Detent's tables."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.sqlite = is_sqlite(url)
        self._connection = plain_connection(url)
        self._take = Dumps(url)

    def later(self, column: str) -> str:
        """The expression for a time a little after that of the column."""
        return f"{column} + 1" if self.sqlite else f"{column} + interval '1 microsecond'"

    def now(self) -> str:
        """An expression for some time."""
        return "1800000000000000" if self.sqlite else "'2027-01-15 08:00:00+00'"

    def run(self, *statements: str) -> None:
        """Type them, and commit."""
        for statement in statements:
            self._connection.execute(self._named(statement))
        self._connection.commit()

    def script(self, text: str) -> None:
        """A file of statements, as migrations are."""
        if self.sqlite:
            self._connection.executescript(text)
        else:
            self._connection.execute(text)
        self._connection.commit()

    def value(self, query: str) -> object:
        """The one value of a query."""
        row = self._connection.execute(self._named(query)).fetchone()
        self._connection.rollback()
        return row[0]

    def refuses(self, *statements: str) -> str:
        """Type them in one transaction: the last one is refused by the database, and no row is changed; its message."""
        before = self._take()
        *preparation, last = (self._named(statement) for statement in statements)
        for statement in preparation:
            self._connection.execute(statement)
        with pytest.raises((sqlite3.IntegrityError, psycopg.Error)) as refusal:
            self._connection.execute(last)
        error = refusal.value
        if isinstance(error, psycopg.Error):
            assert error.sqlstate in GUARDS | CONSTRAINTS, error
        self._connection.rollback()
        assert self._take() == before
        return str(error)

    def close(self) -> None:
        self._take.close()
        self._connection.close()

    def _named(self, statement: str) -> str:
        prefix = "detent_" if self.sqlite else "detent."
        record = ("job", "execution", "event", "transition_log", "horizon", "migration", "lease", "ready", "identity")
        runs = ("pipeline_run", "partition", "watermark", "ops_run", "ops_environment", "batch_run", "target")
        flows = ("workflow", "workflow_step", "workflow_step_begun", "workflow_signal", "child_group")
        tables = (*record, *runs, *flows)
        return statement.format(**{table: prefix + table for table in tables})
