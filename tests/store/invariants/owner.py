"""An owner at a prompt, who can defeat every guard: how corruption gets in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from detent.store.invariants.postgres_definitions import postgres_constraints
from detent.store.postgres.installed_parts import triggers
from detent.store.sqlite.installed_parts import expected_schema
from detent.testing.stores import is_sqlite, plain_connection

TABLES = (
    "job",
    "job_key",
    "graph",
    "graph_node",
    "job_after",
    "lane",
    "ready",
    "waiting",
    "lease",
    "execution",
    "transition_log",
    "event",
    "dead",
    "horizon",
    "migration",
    "identity",
    "ops_run",
    "batch_run",
    "finished_count",
    "finished_total",
    "finished_delta",
    "succeeded_batch",
    "transition_rate",
    "job_span",
    "unsuccessful",
    "target",
    "pipeline_run",
    "partition",
    "watermark",
    "portion",
    "batch_action",
    "reconciliation",
    "mismatch",
    "schedule",
    "schedule_fire",
    "rate_limit",
    "limit_slot",
    "limit_member",
    "operation",
    "alert",
    "alert_policy",
    "alert_notice",
    "alert_delivery",
    "alert_look",
    "declaration",
    "recovery",
    "task_times",
    "task_secret",
    "service",
    "worker",
    "queue",
    "failure_report",
    "ops_environment",
    "token",
    "webhook_target",
    "workflow",
    "workflow_step",
    "workflow_step_begun",
    "workflow_wait",
    "workflow_signal",
    "workflow_unread",
    "wake_request",
    "tree_cancel",
    "child_group",
    "announced_task",
    "waiting_due",
    "lease_expiring",
    "transition",
    "ops_runs",
)


class Owner:
    """A raw connection. `{job}`, `{ready}` and so on in a statement stand for the names of Detent's tables."""

    def __init__(self, url: str) -> None:
        self.sqlite = is_sqlite(url)
        self._connection = plain_connection(url)
        if self.sqlite:
            self._connection.isolation_level = None
        else:
            self._connection.autocommit = True
        self._bent: set[str] = set()

    # -- words that differ between the databases ---------------------------------------------------------------

    def seconds_after(self, column: str, seconds: float) -> str:
        """Return the expression for a time `seconds` after that of the column, or before it if negative."""
        if self.sqlite:
            return f"{column} + {round(seconds * 1_000_000)}"
        return f"{column} + interval '{seconds} seconds'"

    def at(self, when: str) -> str:
        """The expression for a moment given as text."""
        if self.sqlite:
            return f"CAST(strftime('%s', '{when}') AS INTEGER) * 1000000"
        return f"'{when}+00'::timestamptz"

    @property
    def prefix(self) -> str:
        """What the names of indexes and views begin with."""
        return "detent_" if self.sqlite else ""

    # -- deeds -------------------------------------------------------------------------------------------------

    def run(self, *statements: str) -> None:
        """Type them, guards and all."""
        for statement in statements:
            self._connection.execute(self._named(statement))

    def plant(self, *statements: str, without: Sequence[str] = ()) -> None:
        """Type them while no guard looks and the constraints named in `without` are off; then all are on again."""
        with self._guards_off(), self._constraints_off(without):
            self.run(*statements)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        found: list[tuple[Any, ...]] = self._connection.execute(self._named(query)).fetchall()
        return found

    def value(self, query: str) -> Any:
        """The one value of a query."""
        ((value,),) = self.rows(query)
        return value

    def validate(self) -> None:
        """Have the constraints that were off checked against every row, as an owner does after a repair."""
        for name in sorted(self._bent):
            self._connection.execute(
                f"ALTER TABLE detent.{postgres_constraints()[name].table} VALIDATE CONSTRAINT {name}"
            )
        self._bent.clear()

    def rewrite_schema(self, name: str, old: str, new: str, *, root_of: str | None = None) -> None:
        """Edit what SQLite keeps as the definition of a thing, or let it begin at the page of another."""
        root = f"(SELECT rootpage FROM sqlite_master WHERE name = '{root_of}')" if root_of else "rootpage"
        text = f"replace(sql, '{old}', '{new}')" if old else "sql"
        self._connection.execute("PRAGMA writable_schema = ON")
        self._connection.execute(f"UPDATE sqlite_master SET sql = {text}, rootpage = {root} WHERE name = '{name}'")
        self._connection.execute("PRAGMA writable_schema = RESET")
        # Other connections read the schema anew when its version has changed.
        ((version,),) = self._connection.execute("PRAGMA schema_version").fetchall()
        self._connection.execute(f"PRAGMA schema_version = {version + 1}")

    def drop_unique_index(self, name: str) -> None:
        self.run(f"DROP INDEX {'detent_' if self.sqlite else 'detent.'}{name}")

    def close(self) -> None:
        self._connection.close()

    # -- how ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _guards_off(self) -> Iterator[None]:
        if not self.sqlite:
            self.run("SET session_replication_role = replica")
            yield
            self.run("RESET session_replication_role")
            return
        guards = [(name, text) for (kind, name), text in expected_schema().items() if kind == "trigger"]
        for name, _ in guards:
            self._connection.execute(f"DROP TRIGGER {name}")
        yield
        for _, text in guards:
            self._connection.execute(text)

    @contextmanager
    def _constraints_off(self, names: Sequence[str]) -> Iterator[None]:
        if self.sqlite:
            self.run("PRAGMA ignore_check_constraints = ON")
            yield
            self.run("PRAGMA ignore_check_constraints = OFF")
            return
        constraints = [postgres_constraints()[name] for name in names]
        for constraint in constraints:
            self.run(f"ALTER TABLE detent.{constraint.table} DROP CONSTRAINT {constraint.name}")
        yield
        for constraint in constraints:
            self._connection.execute(constraint.ddl.rstrip(";") + " NOT VALID")
            self._bent.add(constraint.name)

    def _named(self, statement: str) -> str:
        prefix = "detent_" if self.sqlite else "detent."
        return statement.format(**{table: prefix + table for table in TABLES})


def guard_names(owner: Owner) -> list[str]:
    """The triggers that must be there."""
    if owner.sqlite:
        return [name for kind, name in expected_schema() if kind == "trigger"]
    return list(triggers())
