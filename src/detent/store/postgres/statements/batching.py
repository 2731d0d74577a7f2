"""Batch runs: what their verbs are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from detent.errors import UnknownState
from detent.lifecycle.library import BATCH_RUN
from detent.model.batch_records import (
    ActionRow,
    BatchFilter,
    BatchRunRow,
    Holder,
    MismatchRow,
    NewAction,
    NewBatchRun,
    Observed,
    Previewed,
    ReconciliationRow,
    TargetJob,
    TargetRow,
)
from detent.model.records import Pruned
from detent.store.batch_rules import Named
from detent.store.postgres.statement import Row, Statement, moment, named, numbers, texts

__all__ = [
    "act",
    "action",
    "add",
    "chosen",
    "conflict",
    "create",
    "due",
    "get",
    "holds",
    "lock",
    "look",
    "look_begin",
    "look_open",
    "look_record",
    "looks",
    "mismatches",
    "named_targets",
    "places",
    "portion",
    "previewed",
    "prune",
    "runs",
    "step",
    "stop",
    "take",
    "targets",
]

_RUN = BatchRunRow.__struct_fields__
_RUNS = f"SELECT {', '.join(_RUN)} FROM"
_TARGET = TargetRow.__struct_fields__
_TARGETS = f"SELECT {', '.join('attempts' if name == 'attempts' else f'(target).{name}' for name in _TARGET)} FROM"
_ACTION = ActionRow.__struct_fields__
_LOOK = ReconciliationRow.__struct_fields__
_MISMATCH = MismatchRow.__struct_fields__
_MISMATCHES = f"SELECT {', '.join('ref' if name == 'ref' else f'(mismatch).{name}' for name in _MISMATCH)} FROM"
_CREATE = """
SELECT detent.batch_create_v1(%s::bigint, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text,
                              %s::text, %s::integer, %s::double precision)
"""
_PREVIEWED = "SELECT detent.target_previewed_v1(%s::bigint, %s::integer[], %s::jsonb)"
_ACT = """
SELECT detent.batch_act_v2(%s::bigint, %s::bigint, %s::text, %s::text, %s::text, %s::text, %s::boolean, %s::bigint,
                           %s::integer[], %s::boolean)
"""
_RECORD = """
SELECT detent.reconcile_record_v1(%s::bigint, %s::integer, %s::integer, %s::integer, %s::integer, %s::integer[],
                                  %s::text[], %s::text[], %s::boolean)
"""
_BEGIN = """
SELECT detent.reconcile_begin_v1(%s::bigint, %s::integer, %s::text, %s::bigint, %s::integer, %s::timestamptz)
"""


def create(run: NewBatchRun) -> Statement[bool]:
    """Whether it is new."""
    params = (
        *(run.id, run.tenant, run.batch, run.payload, run.fingerprint, run.actor, run.reason, run.correlation_id),
        *(run.metadata, run.tolerate_count, run.tolerate_share),
    )
    return Statement(_CREATE, params, lambda rows: bool(rows[0][0]))


def holds(holder: Holder, run_id: int) -> Statement[str | None]:
    """Why the caller does not hold a job of the run."""
    sql = "SELECT detent.batch_holds_v1(%s::bigint, %s::integer, %s::bigint)"
    return Statement(sql, (*holder, run_id), lambda rows: _text(rows[0][0]))


def lock(run_id: int, database: str) -> Statement[BatchRunRow | None]:
    """The run, under its lock."""
    return Statement(f"{_RUNS} detent.batch_lock_v1(%s::bigint)", (run_id,), lambda rows: _one_run(rows, database))


def get(run_id: int, database: str) -> Statement[BatchRunRow | None]:
    """The run as it stands."""
    sql = f"{_RUNS} detent.batch_get_v1(%s::bigint)"
    return Statement(sql, (run_id,), lambda rows: _one_run(rows, database), writes=False)


def runs(chosen: BatchFilter, before_id: int | None, limit: int, database: str) -> Statement[list[BatchRunRow]]:
    """The newest first."""
    sql = f"{_RUNS} detent.batch_list_v1(%s::text, %s::text, %s::text, %s::bigint, %s::integer)"
    params = (chosen.state, chosen.batch, chosen.tenant, before_id, limit)
    return Statement(sql, params, lambda rows: [_run(row, database) for row in rows], writes=False)


def due(limit: int, database: str) -> Statement[list[BatchRunRow]]:
    """The longest due first."""
    sql = f"{_RUNS} detent.reconcile_due_v1(%s::integer)"
    return Statement(sql, (limit,), lambda rows: [_run(row, database) for row in rows], writes=False)


def places(run_id: int, first_n: int, refs: Sequence[str]) -> Statement[list[tuple[int, str]]]:
    """Which of these numbers and refs are taken."""
    sql = "SELECT n, ref FROM detent.target_places_v1(%s::bigint, %s::integer, %s::text[])"
    params = (run_id, first_n, texts(refs))
    return Statement(sql, params, lambda rows: [(n, ref) for n, ref in rows], writes=False)


def add(run_id: int, new: Sequence[tuple[int, str]], last: bool) -> Statement[None]:
    """New targets."""
    sql = "SELECT detent.target_add_v1(%s::bigint, %s::integer[], %s::text[], %s::boolean)"
    params = (run_id, numbers(n for n, _ in new), texts(ref for _, ref in new), last)
    return Statement(sql, params, lambda rows: None)


def previewed(run_id: int, items: Sequence[Previewed]) -> Statement[None]:
    """What their previews came to."""
    came_to = {
        item.n: (item.before, item.after, None if item.error is not None else item.changed, item.error)
        for item in items
    }
    params = (run_id, numbers(came_to), _json(came_to))
    return Statement(_PREVIEWED, params, lambda rows: None)


def named_targets(run_id: int, refs: Sequence[str]) -> Statement[list[Named]]:
    """By number."""
    sql = "SELECT n, ref, state, is_previewed FROM detent.target_named_v1(%s::bigint, %s::text[])"
    return Statement(sql, (run_id, texts(refs)), lambda rows: [Named(*row) for row in rows], writes=False)


def action(action_id: int) -> Statement[ActionRow | None]:
    """The action, under its lock."""
    sql = f"SELECT {', '.join(_ACTION)} FROM detent.batch_action_v1(%s::bigint)"
    return Statement(sql, (action_id,), lambda rows: ActionRow(**named(_ACTION, rows[0])) if rows else None)


def act(item: NewAction, job_id: int, ns: Sequence[int] | None) -> Statement[None]:
    """Begin it."""
    params = (
        *(item.id, item.run_id, item.action, item.actor, item.reason, item.metadata, item.unchanged, job_id),
        None if ns is None else numbers(ns),
        item.overwrite,
    )
    return Statement(_ACT, params, lambda rows: None)


def portion(action_id: int, after: int, until: int | None, limit: int | None) -> Statement[list[TargetRow]]:
    """What it has to move, after one number and up to another."""
    sql = f"{_TARGETS} detent.batch_portion_v1(%s::bigint, %s::integer, %s::integer, %s::integer)"
    return Statement(sql, (action_id, after, until, limit), _target_rows, writes=False)


def chosen(action_id: int, after: int, until: int) -> Statement[tuple[list[int], list[int]]]:
    """Which targets of a portion need a job, and which jobs are to be retried."""
    sql = "SELECT need, again FROM detent.batch_chosen_v1(%s::bigint, %s::integer, %s::integer)"
    return Statement(sql, (action_id, after, until), lambda rows: (rows[0][0] or [], rows[0][1] or []), writes=False)


def take(run_id: int, is_apply: bool, jobs: Sequence[TargetJob]) -> Statement[int]:
    """How many took their jobs."""
    sql = "SELECT detent.target_take_v1(%s::bigint, %s::boolean, %s::integer[], %s::jsonb)"
    params = (run_id, is_apply, numbers(job.n for job in jobs), _json({job.n: job.job.id for job in jobs}))
    return Statement(sql, params, lambda rows: int(rows[0][0]))


def step(action_id: int, from_cursor: int, to_cursor: int, moved: int, last: bool) -> Statement[bool]:
    """Whether it was there."""
    sql = "SELECT detent.batch_step_v1(%s::bigint, %s::integer, %s::integer, %s::integer, %s::boolean)"
    return Statement(sql, (action_id, from_cursor, to_cursor, moved, last), lambda rows: bool(rows[0][0]))


def stop(run_id: int, reason: str) -> Statement[bool]:
    """Whether it was stopped by this."""
    sql = "SELECT detent.batch_stop_v1(%s::bigint, %s::text)"
    return Statement(sql, (run_id, reason), lambda rows: bool(rows[0][0]))


def conflict(run_id: int, job_id: int, found: str) -> Statement[None]:
    """What was found in place of the expected value."""
    sql = "SELECT detent.target_conflict_v1(%s::bigint, %s::bigint, %s::text)"
    return Statement(sql, (run_id, job_id, found), lambda rows: None)


def targets(
    run_id: int, state: str | None, changed: bool | None, refs: Sequence[str] | None, after_n: int, limit: int
) -> Statement[list[TargetRow]]:
    """In the order of the plan."""
    sql = f"{_TARGETS} detent.target_list_v1(%s::bigint, %s::text, %s::boolean, %s::text[], %s::integer, %s::integer)"
    params = (run_id, state, changed, None if refs is None else texts(refs), after_n, limit)
    return Statement(sql, params, _target_rows, writes=False)


def mismatches(run_id: int, open_only: bool, after_n: int, limit: int) -> Statement[list[MismatchRow]]:
    """By number, then look."""
    sql = f"{_MISMATCHES} detent.mismatch_list_v1(%s::bigint, %s::boolean, %s::integer, %s::integer)"
    params = (run_id, open_only, after_n, limit)
    return Statement(sql, params, lambda rows: [MismatchRow(**named(_MISMATCH, row)) for row in rows], writes=False)


def looks(run_id: int, limit: int) -> Statement[list[ReconciliationRow]]:
    """The newest first."""
    sql = f"SELECT {', '.join(_LOOK)} FROM detent.reconciliation_list_v1(%s::bigint, %s::integer)"
    return Statement(sql, (run_id, limit), _look_rows, writes=False)


def look(run_id: int, no: int) -> Statement[list[ReconciliationRow]]:
    """One of them, or none."""
    sql = f"SELECT {', '.join(_LOOK)} FROM detent.reconciliation_list_v1(%s::bigint, 1, %s::integer)"
    return Statement(sql, (run_id, no), _look_rows, writes=False)


def look_open(run_id: int) -> Statement[int | None]:
    """The number of the one under way."""
    sql = "SELECT detent.reconcile_open_v1(%s::bigint)"
    return Statement(sql, (run_id,), lambda rows: None if rows[0][0] is None else int(rows[0][0]))


def look_begin(
    run_id: int, planned: int | None, actor: str, job_id: int, following: int | None, at: datetime | None
) -> Statement[int]:
    """The number of the new one."""
    params = (run_id, planned, actor, job_id, following, None if at is None else moment(at, field="reconcile_at"))
    return Statement(_BEGIN, params, lambda rows: int(rows[0][0]))


def look_record(
    run_id: int, no: int, from_cursor: int, to_cursor: int, checked: int, found: Sequence[Observed], last: bool
) -> Statement[bool]:
    """Whether it was there."""
    params = (
        *(run_id, no, from_cursor, to_cursor, checked, numbers(one.n for one in found)),
        *(texts(one.expected for one in found), texts(one.actual for one in found), last),
    )
    return Statement(_RECORD, params, lambda rows: bool(rows[0][0]))


def prune(before: datetime, after_id: int, limit: int, actor: str) -> Statement[Pruned]:
    """How many went."""
    sql = "SELECT runs, next_id FROM detent.batch_prune_v1(%s::timestamptz, %s::bigint, %s::integer, %s::text)"
    params = (moment(before, field="before"), after_id, limit, actor)
    return Statement(sql, params, lambda rows: Pruned(*rows[0]))


def _one_run(rows: Sequence[Row], database: str) -> BatchRunRow | None:
    return _run(rows[0], database) if rows else None


def _run(row: Row, database: str) -> BatchRunRow:
    run = BatchRunRow(**named(_RUN, row))
    if run.state not in BATCH_RUN.states:
        known = tuple(BATCH_RUN.states)
        raise UnknownState(database, "nothing was changed", "batch_run", str(run.id), run.state, known)
    return run


def _target_rows(rows: Sequence[Row]) -> list[TargetRow]:
    return [TargetRow(**named(_TARGET, row)) for row in rows]


def _look_rows(rows: Sequence[Row]) -> list[ReconciliationRow]:
    return [ReconciliationRow(**named(_LOOK, row)) for row in rows]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _json(values: Mapping[int, Any]) -> str:
    return msgspec.json.encode(values).decode()
