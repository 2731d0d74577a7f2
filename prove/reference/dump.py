"""Dumps of the record: every row of every table, in the rows of the reference model.

Times become whole microseconds and surrogate numbers go: a lane is written out, lines of the log stand in order within
their entity, the ids in a lease are in order. What is left must be the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import closing, nullcontext
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from detent.model.clock import to_micros
from detent.testing.stores import is_sqlite, plain_connection, table
from prove.reference import rows as of
from prove.reference.model import Model
from prove.reference.rows import Lane

Row: TypeAlias = Any  # one of the kinds in rows.py
Dump: TypeAlias = dict[str, list[Row]]


class Kept(NamedTuple):
    """One table: the kind of its rows, the order in which the database gives them where that means something, which of
    them count, and the model's name for it where that is another."""

    kind: type[Any]
    order: str = ""
    where: str = ""
    in_model: str = ""


TABLES: dict[str, Kept] = {
    "job": Kept(of.Job),
    "job_key": Kept(of.JobKey),
    "queue": Kept(of.Queue),
    "lane": Kept(of.Lane),
    "ready": Kept(of.Ready),
    "waiting": Kept(of.Waiting),
    "workflow": Kept(of.Workflow),
    "workflow_step": Kept(of.WorkflowStep),
    "lease": Kept(of.Lease),
    "execution": Kept(of.Execution),
    "transition_log": Kept(of.TransitionLog, order="n"),
    "event": Kept(of.Event),
    "dead": Kept(of.Dead),
    "horizon": Kept(of.Horizon, order="n"),
    "worker": Kept(of.Worker),
    # Where somebody waits for work is said in a row of its own, on one of the databases only.
    "service": Kept(of.Service, where="name <> 'wake'"),
    "declaration": Kept(of.Declaration),
    "schedule": Kept(of.Schedule),
    "schedule_fire": Kept(of.ScheduleFire, in_model="fired"),
    "operation": Kept(of.Operation),
    "recovery": Kept(of.Recovery),
    "task_times": Kept(of.Times),
    "rate_limit": Kept(of.RateLimit),
    "limit_member": Kept(of.LimitMember),
    "limit_slot": Kept(of.LimitSlot),
    "failure_report": Kept(of.FailureReport),
    "watch": Kept(of.Watch),
}
BATCHES = {"batch_run", "target", "batch_action", "batch_choice", "reconciliation", "mismatch"}
PIPELINES = {"pipeline_run", "partition", "staged", "portion", "seen", "watermark"}
WORKFLOWS = {
    *("workflow_step_begun", "workflow_wait", "workflow_signal", "workflow_unread", "wake_request", "child_group"),
    "tree_cancel",
    *("graph", "graph_node", "job_after"),
}
ALERTS = {"alert", "alert_policy", "alert_notice", "alert_delivery", "alert_tally", "alert_look"}
"""Nothing that the machine does touches them. Batches have a test of their own beside it."""

OPS = {"ops_run", "ops_environment"}
"""Their verbs are made of those of jobs, and each move of a run is tried on both databases in tests/contract."""

COUNTS = {
    "finished_count",
    "finished_total",
    "finished_delta",
    "succeeded_batch",
    "job_span",
    "unsuccessful",
    "transition_hour",
    "transition_rate",
    "transition_delta",
}
"""`counts`, `job_count`, `job_list` and `figures` are compared instead: when changes are added up differs, and so do
ids."""

NOT_COMPARED = {
    "migration",
    "installed",
    "ids",
    "identity",
    "lane_group",
    "lifecycle",
    "test_clock",
    "token",  # nothing that the machine does touches it
    "signal_key",  # likewise
    "task_secret",  # likewise
    "webhook_target",
    "announced_task",
    "database_move",  # tests/store/move
    "database_move_table",
    *COUNTS,
    *ALERTS,
    *BATCHES,
    *OPS,
    *PIPELINES,
    *WORKFLOWS,
}
"""Tables without a counterpart elsewhere; ids are compared as they are given out."""

BOOLEANS = {"dead_letter", "idempotent", "until_claim", "holds_key", "counted", "forced", "stopping", "unique_pending"}
LISTS = {"job_ids", "queues", "tasks"}


def dump_model(model: Model, tables: Iterable[str] = TABLES) -> Dump:
    """The model's rows as they would be read from a database."""
    found: dict[str, Iterable[Row]] = {}
    for name in tables:
        kept = getattr(model, TABLES[name].in_model or name)
        found[name] = kept if isinstance(kept, list) else kept.values()
    return {name: _in_order(name, rows) for name, rows in found.items()}


class Reader:
    """A connection that reads tables, all of them or some: of its own, or a given one, which stays open."""

    def __init__(self, url: str, connection: Any = None, tables: Iterable[str] = TABLES) -> None:
        self.url = url
        self.is_own = connection is None
        self.connection = plain_connection(url) if connection is None else connection
        if not is_sqlite(url):
            self.connection.autocommit = True
        self.statements = {name: self._statement(name, TABLES[name]) for name in tables}

    def _statement(self, name: str, kept: Kept) -> str:
        columns = [column for column in kept.kind._fields if column != "lane"]
        source = f"{table(self.url, name)} t"
        chosen = [f"t.{column}" for column in columns]
        if "lane" in kept.kind._fields:
            chosen = [f"l.{column}" for column in Lane._fields] + chosen
            source += f" LEFT JOIN {table(self.url, 'lane')} l ON l.id = t.lane_id"
        where = f" WHERE {kept.where}" if kept.where else ""
        order = f" ORDER BY t.{kept.order}" if kept.order else ""
        return f"SELECT {', '.join(chosen)} FROM {source}{where}{order}"

    def dump(self) -> Dump:
        """Every row there is. All questions go out together: one way there and back."""
        with nullcontext() if is_sqlite(self.url) else self.connection.pipeline():
            asked = {name: self.connection.execute(sql) for name, sql in self.statements.items()}
        return {name: _in_order(name, self._rows(cursor.fetchall(), TABLES[name])) for name, cursor in asked.items()}

    def _rows(self, rows: Sequence[Sequence[Any]], kept: Kept) -> list[Row]:
        found = []
        for values in rows:
            values = [_plain(value) for value in values]
            if "lane" in kept.kind._fields:
                place = kept.kind._fields.index("lane")
                rest = values[len(Lane._fields) :]
                values = [*rest[:place], Lane(*values[: len(Lane._fields)]), *rest[place:]]
            found.append(_typed(kept.kind, values))
        return found

    def close(self) -> None:
        """Close its own connection."""
        if self.is_own:
            self.connection.close()


def tables_of(url: str) -> set[str]:
    """The names of all tables of Detent's in a database, so that a new one is not forgotten here."""
    with closing(plain_connection(url)) as connection:
        if is_sqlite(url):
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return {name.removeprefix("detent_") for (name,) in rows if name.startswith("detent_")}
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'detent'").fetchall()
        return {name for (name,) in rows}


def difference(left: Dump, right: Dump) -> str:
    """Where two dumps differ, row by row; empty where they do not."""
    lines = []
    for name in left:
        lines += [f"  - {name}: {row}" for row in left[name] if row not in right[name]]
        lines += [f"  + {name}: {row}" for row in right[name] if row not in left[name]]
        if left[name] != right[name] and not lines:
            lines.append(f"  {name}: the same rows in another order, or another number of times")
    return "\n".join(lines)


def _in_order(name: str, rows: Iterable[Row]) -> list[Row]:
    """By content; lines of the log by their entity, and within it as they were written."""
    if name == "transition_log":
        return sorted(rows, key=lambda row: (row.entity, row.entity_id))
    if name == "lease":
        rows = [row._replace(job_ids=tuple(sorted(row.job_ids))) for row in rows]
    return list(rows) if TABLES[name].order else sorted(rows, key=repr)


def _typed(kind: type[Any], values: Sequence[Any]) -> Row:
    row = kind(*values)
    wanted: dict[str, Any] = {name: bool(getattr(row, name)) for name in BOOLEANS.intersection(kind._fields)}
    for name in LISTS.intersection(kind._fields):
        listed = getattr(row, name)
        wanted[name] = listed and tuple(json.loads(listed) if isinstance(listed, str) else listed)
    if "versions" in kind._fields:
        wanted["versions"] = {task: tuple(several) for task, several in json.loads(row.versions).items()}
    return row._replace(**wanted)


def _plain(value: Any) -> Any:
    return to_micros(value, field="a column") if isinstance(value, datetime) else value
