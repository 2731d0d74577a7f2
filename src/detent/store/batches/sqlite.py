"""Batch runs on SQLite. Triggers move targets and runs when their jobs move."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

from detent.errors import DetentError, LeaseLost
from detent.model.batch_records import (
    ActionRow,
    BatchRunRow,
    Holder,
    NewAction,
    NewBatchRun,
    Observed,
    Previewed,
    ReconciliationRow,
    TargetJob,
)
from detent.model.clock import from_micros, to_micros
from detent.model.records import Enqueued, Moved, NewJob, Pruned
from detent.store.batches import shared_verbs
from detent.store.batches.rules import Named
from detent.store.batches.sqlite_queries import SqliteBatchQueries
from detent.store.batches.table_access import BatchTables, Undone
from detent.store.jobs.sqlite_enqueue import SqliteEnqueue
from detent.store.jobs.sqlite_moves import SqliteMoves
from detent.store.sqlite.verb_base import Insert, ids_json

__all__ = ["SqliteBatches"]

P = ParamSpec("P")
R = TypeVar("R")

_NEW_RUN = """
INSERT INTO detent_batch_run (id, tenant, batch, payload, fingerprint, actor, reason, correlation_id, metadata,
  tolerate_count, tolerate_share, created_at, moved_at)
VALUES (:id, :tenant, :batch, :payload, :fingerprint, :actor, :reason, :correlation_id, :metadata,
  :tolerate_count, :tolerate_share, :now, :now)
"""
_LOG = """
INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, metadata,
  correlation_id, at)
SELECT tenant, 'batch_run', CAST(id AS TEXT), :from, :to, :trigger, :actor, :reason, :metadata, correlation_id,
       max(:now, moved_at)
  FROM detent_batch_run WHERE id = :id
"""
_MOVED_AT = "SELECT moved_at FROM detent_batch_run WHERE id = ?"
_HOLDS = "SELECT run_id FROM detent_job WHERE id = ?"
_AT_REFS = """
SELECT g.n, g.ref FROM json_each(:refs) u CROSS JOIN detent_target g ON g.run_id = :run AND g.ref = u.value
"""
_AT_NUMBERS = "SELECT n, ref FROM detent_target WHERE run_id = ? AND n BETWEEN ? AND ?"
_NEW_TARGETS = Insert("detent_target", "run_id, n, ref, created_at, moved_at")
_PLANNED = "UPDATE detent_batch_run SET planned_at = max(:now, moved_at) WHERE id = :id AND planned_at IS NULL"
_ALL_PREVIEWED = """
UPDATE detent_batch_run SET previewed_at = max(:now, moved_at)
 WHERE id = :id AND planned_at IS NOT NULL AND previewed_at IS NULL AND previewed + preview_failed = total
"""
_PREVIEWED = """
UPDATE detent_target
   SET before = ?, after = ?, changed = ?, preview_error = ?, previewed_at = ?, moved_at = max(moved_at, ?)
 WHERE run_id = ? AND n = ? AND previewed_at IS NULL
"""
_OF_REFS = """
SELECT g.n, g.ref, g.state, g.changed IS NOT NULL FROM (SELECT DISTINCT value AS ref FROM json_each(:refs)) u
  CROSS JOIN detent_target g ON g.run_id = :run AND g.ref = u.ref ORDER BY g.n
"""
_NEW_ACTION = """
INSERT INTO detent_batch_action (id, run_id, action, actor, reason, metadata, chosen, unchanged, job_id, created_at)
VALUES (:id, :run_id, :action, :actor, :reason, :metadata, :chosen, :unchanged, :job_id, :now)
"""
_CHOICES = "INSERT INTO detent_batch_choice (action_id, n) SELECT ?, value FROM json_each(?)"
_BEGUN = {
    "apply": """
UPDATE detent_batch_run
   SET state = 'queued', outstanding = 1, queued_at = max(:now, moved_at), started_at = NULL, finished_at = NULL,
       reconcile_at = NULL, critical = NULL, overwrite = :overwrite, cancel_requested_at = NULL,
       cancel_requested_by = NULL, cancel_reason = NULL, stuck = 0, error = NULL, moved_at = max(:now, moved_at)
 WHERE id = :id AND state IN ('preview', 'applied', 'partial', 'failed', 'cancelled')
""",
    "retry_failed": """
UPDATE detent_batch_run
   SET state = 'applying', outstanding = 1, started_at = coalesce(started_at, queued_at), finished_at = NULL,
       reconcile_at = NULL, critical = NULL, overwrite = :overwrite, cancel_requested_at = NULL,
       cancel_requested_by = NULL, cancel_reason = NULL, stuck = 0, error = NULL, moved_at = max(:now, moved_at)
 WHERE id = :id AND state IN ('partial', 'failed', 'cancelled')
""",
    "roll_back": """
UPDATE detent_batch_run
   SET state = CASE WHEN state IN ('failed', 'cancelled') THEN 'partial' ELSE state END, outstanding = 1,
       started_at = coalesce(started_at, queued_at),
       rollback_requested_at = coalesce(rollback_requested_at, max(:now, moved_at)), rollback_requested_by = :actor,
       rollback_reason = :reason, reconcile_at = NULL, mismatches = 0, critical = NULL, overwrite = :overwrite,
       cancel_requested_at = NULL, cancel_requested_by = NULL, cancel_reason = NULL, stuck = 0, error = NULL,
       moved_at = max(:now, moved_at)
 WHERE id = :id AND state IN ('applied', 'partial', 'failed', 'cancelled')
""",
}
_MISMATCHES_GO = "UPDATE detent_mismatch SET resolved_at = ? WHERE run_id = ? AND resolved_at IS NULL"
_QUEUE = """
UPDATE detent_target SET state = 'queued', apply_job_id = ?, queued_at = max(?, moved_at), moved_at = max(?, moved_at)
 WHERE run_id = ? AND n = ? AND state = 'preview'
"""
_REVERT = """
UPDATE detent_target SET revert_state = 'reverting', revert_job_id = ?, moved_at = max(?, ?, moved_at)
 WHERE run_id = ? AND n = ? AND state = 'applied' AND revert_job_id IS NULL
"""
_STEPPED = """
UPDATE detent_batch_action SET cursor = :to, moved = moved + :moved, done_at = CASE WHEN :last THEN :now END
 WHERE id = :id AND cursor = :from AND done_at IS NULL
"""
_STOPPED = (
    "UPDATE detent_batch_action SET done_at = max(:now, created_at) WHERE run_id = :id AND done_at IS NULL",
    """
UPDATE detent_batch_run SET critical = :reason, outstanding = 0, moved_at = max(:now, moved_at) WHERE id = :id
""",
)
_CANCEL = (
    "UPDATE detent_batch_action SET done_at = max(:now, created_at) WHERE run_id = :id AND done_at IS NULL",
    """
UPDATE detent_batch_run
   SET state = :to, outstanding = 0,
       critical = coalesce(critical, 'cancelled by ' || :actor || coalesce(': ' || :reason, '')),
       cancel_requested_at = max(:now, moved_at), cancel_requested_by = :actor, cancel_reason = :reason,
       finished_at = CASE :to WHEN 'cancelled' THEN max(:now, moved_at) END, moved_at = max(:now, moved_at)
 WHERE id = :id
""",
)
_CANCEL_RESOLVES = """
INSERT INTO detent_alert_event (policy, scope, message, at)
SELECT p.value, 'run:' || b.id, 'Run ' || b.id || ' of ' || b.batch || ' is cancelled', b.moved_at
  FROM json_each('["run_failed","run_partial"]') p CROSS JOIN detent_batch_run b WHERE b.id = ?
"""
_CONFLICT = """
UPDATE detent_target SET conflict = :found
 WHERE run_id = :run AND (apply_job_id = :job AND state = 'applying' OR revert_job_id = :job AND state = 'applied')
"""
_ENDED = "UPDATE detent_batch_run SET outstanding = 0, moved_at = max(:now, moved_at) WHERE id = :id"
_OPEN_RECONCILIATION = """
SELECT r.no, j.state IN ('pending', 'running')
  FROM detent_reconciliation r LEFT JOIN detent_job j ON j.id = r.job_id WHERE r.run_id = ? AND r.done_at IS NULL
"""
_GIVEN_UP = "UPDATE detent_reconciliation SET done_at = ? WHERE run_id = ? AND no = ?"
_NEW_RECONCILIATION = """
INSERT INTO detent_reconciliation (run_id, no, planned, actor, job_id, created_at)
VALUES (:run, 1 + coalesce((SELECT max(no) FROM detent_reconciliation WHERE run_id = :run), 0), :planned, :actor, :job,
  :now)
RETURNING no
"""
_NEXT_RECONCILIATION = "UPDATE detent_batch_run SET reconcile_no = ?, reconcile_at = ? WHERE id = ?"
_RECONCILED = """
UPDATE detent_reconciliation
   SET cursor = :to, checked = checked + :checked, mismatched = mismatched + :mismatched,
       done_at = CASE WHEN :last THEN max(:now, created_at) END
 WHERE run_id = :run AND no = :no AND cursor = :from AND done_at IS NULL
"""
_NEW_MISMATCHES = """
INSERT INTO detent_mismatch (run_id, n, no, expected, actual, found_at, checked_at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, n) WHERE resolved_at IS NULL DO UPDATE
  SET expected = excluded.expected, actual = excluded.actual, checked_at = excluded.checked_at
"""
_RESOLVED = """
UPDATE detent_mismatch SET resolved_at = :now
 WHERE run_id = :run AND n > :from AND n <= :to AND resolved_at IS NULL
   AND n NOT IN (SELECT value FROM json_each(:ns))
"""
_MISMATCHES_COUNTED = """
UPDATE detent_batch_run
   SET mismatches = (SELECT count(*) FROM detent_mismatch m WHERE m.run_id = :run AND m.resolved_at IS NULL),
       reconciled_at = CASE WHEN :last THEN :now ELSE reconciled_at END
 WHERE id = :run
"""
_HORIZON = """
INSERT INTO detent_horizon (before, actor, at)
SELECT :before, :actor, :now WHERE :before > coalesce((SELECT max(before) FROM detent_horizon), :before - 1)
"""
_OLD_RUNS = """
SELECT id, moved_at < :before AND outstanding = 0 AND queued + applying + reverting = 0 AND reconcile_at IS NULL
           AND state IN ('preview', 'applied', 'partial', 'failed', 'cancelled', 'rolled_back')
  FROM detent_batch_run WHERE id > :after ORDER BY id LIMIT :limit
"""
# The run first: the guards let its targets go only when it is gone.
_DELETE_RUNS = (
    "DELETE FROM detent_batch_run WHERE id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_target WHERE run_id IN (SELECT value FROM json_each(?))",
    """
DELETE FROM detent_batch_choice
 WHERE action_id IN (SELECT id FROM detent_batch_action WHERE run_id IN (SELECT value FROM json_each(?)))
""",
    "DELETE FROM detent_batch_action WHERE run_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_reconciliation WHERE run_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM detent_mismatch WHERE run_id IN (SELECT value FROM json_each(?))",
)


def _undoable(
    verb: Callable[Concatenate[BatchTables, P], R | DetentError],
) -> Callable[Concatenate[SqliteBatches, P], R | DetentError]:
    """Give a verb a savepoint, to which it is rolled back if it is refused after it has written."""

    def undoable(self: SqliteBatches, /, *args: P.args, **kwargs: P.kwargs) -> R | DetentError:
        self._db.change("SAVEPOINT batch_verb")
        answer: R | DetentError
        try:
            answer = verb(self, *args, **kwargs)
        except Undone as undone:
            self._db.change("ROLLBACK TO batch_verb")
            self._lanes.clear()
            answer = undone.error
        self._db.change("RELEASE batch_verb")
        return answer

    undoable.__name__ = verb.__name__
    return undoable


class SqliteBatches(SqliteBatchQueries, SqliteEnqueue, SqliteMoves):
    """The verbs of batch runs, and their tables."""

    batch_create = _undoable(shared_verbs.batch_create)
    target_add = _undoable(shared_verbs.target_add)
    target_previewed = shared_verbs.target_previewed
    batch_act = _undoable(shared_verbs.batch_act)
    batch_portion = shared_verbs.batch_portion
    batch_step = _undoable(shared_verbs.batch_step)
    batch_stop = _undoable(shared_verbs.batch_stop)
    batch_cancel = _undoable(shared_verbs.batch_cancel)
    target_conflict = shared_verbs.target_conflict
    reconcile_begin = _undoable(shared_verbs.reconcile_begin)
    reconcile_record = shared_verbs.reconcile_record

    def batch_prune(self, before: datetime, after_id: int, limit: int, actor: str) -> Pruned:
        """Record the horizon first: the guards let nothing be deleted that is not before it."""
        horizon = to_micros(before, field="before")
        self._db.change(_HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        looked = self._db.rows(_OLD_RUNS, {"before": horizon, "after": after_id, "limit": limit})
        old = [run_id for run_id, is_old in looked if is_old]
        for statement in _DELETE_RUNS if old else ():
            self._db.change(statement, (ids_json(old),))
        return Pruned(len(old), looked[-1][0] if len(looked) == limit else None)

    # -- tables ------------------------------------------------------------------------------------------------

    def _batch_now(self) -> datetime:
        return from_micros(self._now())

    def _batch_lost(self, holder: Holder, run_id: int) -> LeaseLost | None:
        job_id, attempt = holder
        lost = self._lost(self._jobs([job_id]).get(job_id), job_id, attempt, self._now())
        if lost is None and self._db.rows(_HOLDS, (job_id,)) != [(run_id,)]:
            return LeaseLost(job_id, attempt, f"it is no job of run {run_id}")
        return lost

    def _batch_lock(self, run_id: int) -> BatchRunRow | None:
        return self.batch_get(run_id)

    def _batch_hold(self, run_id: int) -> BatchRunRow | None:
        return self.batch_get(run_id)

    def _batch_enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        return self.job_enqueue(jobs)

    def _batch_retry(self, jobs: Sequence[int], action: ActionRow) -> list[Moved | DetentError]:
        return self.job_retry(jobs, action.actor, action.reason)

    def _batch_insert(self, run: NewBatchRun) -> bool:
        if self.batch_get(run.id) is not None:
            return False
        now = self._now()
        self._db.change(_NEW_RUN, {name: getattr(run, name) for name in run.__struct_fields__} | {"now": now})
        line = {"id": run.id, "from": None, "to": "preview", "trigger": "create", "actor": run.actor}
        self._db.change(_LOG, line | {"reason": run.reason, "metadata": run.metadata, "now": now})
        return True

    def _batch_taken(self, run_id: int, first_n: int, refs: Sequence[str]) -> list[tuple[int, str]]:
        at_refs = self._db.rows(_AT_REFS, {"run": run_id, "refs": json.dumps(list(refs))})
        at_numbers = self._db.rows(_AT_NUMBERS, (run_id, first_n, first_n + len(refs) - 1))
        return [(n, ref) for n, ref in (*at_refs, *at_numbers)]

    def _batch_add(self, run_id: int, new: Sequence[tuple[int, str]], last: bool) -> None:
        now = self._now()
        at = self._not_before_run(run_id, now)
        _NEW_TARGETS.run(self._db, [(run_id, n, ref, at, at) for n, ref in new])
        if last:
            self._db.change(_PLANNED, {"id": run_id, "now": now})
        self._db.change(_ALL_PREVIEWED, {"id": run_id, "now": now})

    def _batch_previewed(self, run_id: int, items: Sequence[Previewed]) -> None:
        now = self._now()
        at = self._not_before_run(run_id, now)
        rows = ((item.before, item.after, _changed(item), item.error, at, at, run_id, item.n) for item in items)
        self._db.change_many(_PREVIEWED, rows)
        self._db.change(_ALL_PREVIEWED, {"id": run_id, "now": now})

    def _not_before_run(self, run_id: int, now: int) -> int:
        ((moved_at,),) = self._db.rows(_MOVED_AT, (run_id,))
        return max(now, int(moved_at))

    def _batch_named(self, run_id: int, refs: Sequence[str]) -> list[Named]:
        rows = self._db.rows(_OF_REFS, {"run": run_id, "refs": json.dumps(list(refs))})
        return [Named(n, ref, state, bool(is_previewed)) for n, ref, state, is_previewed in rows]

    def _batch_begin(self, run: BatchRunRow, item: NewAction, job_id: int, chosen: Sequence[int] | None) -> None:
        now = self._now()
        row = {name: getattr(item, name) for name in ("id", "run_id", "action", "actor", "reason", "metadata")}
        count = None if chosen is None else len(chosen)
        self._db.change(
            _NEW_ACTION, row | {"chosen": count, "unchanged": int(item.unchanged), "job_id": job_id, "now": now}
        )
        if chosen is not None:
            self._db.change(_CHOICES, (item.id, json.dumps(chosen)))
        match item.action:
            case "apply":
                to, trigger = "queued", "queue" if run.state == "preview" else "queue_rest"
            case "retry_failed":
                to, trigger = "applying", "retry_failed"
            case "roll_back":
                to = "partial" if run.state in ("failed", "cancelled") else run.state
                trigger = "request_roll_back"
                self._db.change(_MISMATCHES_GO, (now, run.id))
        line = {"id": run.id, "from": run.state, "to": to, "trigger": trigger, "actor": item.actor}
        self._db.change(_LOG, line | {"reason": item.reason, "metadata": item.metadata, "now": now})
        begun = {"id": run.id, "now": now, "actor": item.actor, "reason": item.reason, "overwrite": int(item.overwrite)}
        self._expect(self._db.change(_BEGUN[item.action], begun), 1, [run.id], run.state)

    def _batch_take(self, action: ActionRow, jobs: Sequence[TargetJob]) -> int:
        now = self._now()
        rows = [(job.job.id, now, now, action.run_id, job.n) for job in jobs]
        return self._db.change_many(_QUEUE if action.action == "apply" else _REVERT, rows)

    def _batch_advance(self, action: ActionRow, to_cursor: int, moved: int, last: bool) -> bool:
        step = {"id": action.id, "from": action.cursor, "to": to_cursor, "moved": moved, "last": last}
        now = self._now()
        if not self._db.change(_STEPPED, step | {"now": now}):
            return False
        if last:
            self._db.change(_ENDED, {"id": action.run_id, "now": now})
        return True

    def _batch_halt(self, run_id: int, reason: str) -> bool:
        run = self.batch_get(run_id)
        if run is None or run.critical is not None:
            return False
        for statement in _STOPPED:
            self._db.change(statement, {"id": run_id, "now": self._now(), "reason": reason})
        return True

    def _batch_cancel(self, run: BatchRunRow, actor: str, reason: str | None) -> None:
        now = self._now()
        to = "cancelled" if run.queued + run.applying == 0 else run.state
        trigger = "cancel" if to == "cancelled" else "request_cancel"
        line = {"id": run.id, "from": run.state, "to": to, "trigger": trigger, "actor": actor}
        self._db.change(_LOG, line | {"reason": reason, "metadata": None, "now": now})
        for statement in _CANCEL:
            self._db.change(statement, {"id": run.id, "to": to, "actor": actor, "reason": reason, "now": now})
        if to == "cancelled":
            self._db.change(_CANCEL_RESOLVES, (run.id,))

    def _batch_conflict(self, run_id: int, job_id: int, found: str) -> None:
        self._db.change(_CONFLICT, {"run": run_id, "job": job_id, "found": found})

    def _batch_open_reconciliation(self, run_id: int) -> int | None:
        for no, is_alive in self._db.rows(_OPEN_RECONCILIATION, (run_id,)):
            if is_alive:
                return int(no)
            self._db.change(_GIVEN_UP, (self._now(), run_id, no))
        return None

    def _batch_begin_reconciliation(
        self, run_id: int, planned: int | None, actor: str, job_id: int, following: int | None, at: datetime | None
    ) -> int:
        new = {"run": run_id, "planned": planned, "actor": actor, "job": job_id, "now": self._now()}
        ((no,),) = self._db.rows(_NEW_RECONCILIATION, new)
        if planned is not None:
            self._db.change(
                _NEXT_RECONCILIATION, (following, None if at is None else to_micros(at, field="at"), run_id)
            )
        return int(no)

    def _batch_reconciled(
        self, was: ReconciliationRow, to_cursor: int, checked: int, found: Sequence[Observed], last: bool
    ) -> bool:
        now, run_id, no = self._now(), was.run_id, was.no
        step = {"run": run_id, "no": no, "from": was.cursor, "to": to_cursor, "last": last, "now": now}
        if not self._db.change(_RECONCILED, step | {"checked": checked, "mismatched": len(found)}):
            return False
        self._db.change_many(_NEW_MISMATCHES, ((run_id, m.n, no, m.expected, m.actual, now, now) for m in found))
        self._db.change(_RESOLVED, step | {"ns": json.dumps([m.n for m in found])})
        self._db.change(_MISMATCHES_COUNTED, step)
        return True


def _changed(item: Previewed) -> int | None:
    return None if item.error is not None else int(item.changed)
