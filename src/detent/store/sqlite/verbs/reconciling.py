"""Looking at what became of applied targets, and letting old runs go."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError, NotFound, TransitionRace
from detent.model.batch_records import Holder, Observed, ReconciliationRow
from detent.model.clock import from_micros, to_micros
from detent.model.records import NewJob, Pruned
from detent.store.batch_rules import next_look, refuse_look
from detent.store.sqlite.verb_base import ids_json
from detent.store.sqlite.verbs.batches import BatchVerbs

__all__ = ["ReconcileVerbs"]

_OPEN = """
SELECT r.no, j.state IN ('pending', 'running')
  FROM detent_reconciliation r LEFT JOIN detent_job j ON j.id = r.job_id WHERE r.run_id = ? AND r.done_at IS NULL
"""
_GIVEN_UP = "UPDATE detent_reconciliation SET done_at = ? WHERE run_id = ? AND no = ?"
_NEW_LOOK = """
INSERT INTO detent_reconciliation (run_id, no, planned, actor, job_id, created_at)
VALUES (:run, 1 + coalesce((SELECT max(no) FROM detent_reconciliation WHERE run_id = :run), 0), :planned, :actor, :job,
  :now)
RETURNING no
"""
_NEXT = "UPDATE detent_batch_run SET reconcile_no = ?, reconcile_at = ? WHERE id = ?"
_LOOKED = """
UPDATE detent_reconciliation
   SET cursor = :to, checked = checked + :checked, mismatched = mismatched + :mismatched,
       done_at = CASE WHEN :last THEN max(:now, created_at) END
 WHERE run_id = :run AND no = :no AND cursor = :from AND done_at IS NULL
"""
_FOUND = """
INSERT INTO detent_mismatch (run_id, n, no, expected, actual, found_at, checked_at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, n) WHERE resolved_at IS NULL DO UPDATE
  SET expected = excluded.expected, actual = excluded.actual, checked_at = excluded.checked_at
"""
_RESOLVED = """
UPDATE detent_mismatch SET resolved_at = :now
 WHERE run_id = :run AND n > :from AND n <= :to AND resolved_at IS NULL
   AND n NOT IN (SELECT value FROM json_each(:ns))
"""
_COUNTED = """
UPDATE detent_batch_run
   SET mismatches = (SELECT count(*) FROM detent_mismatch m WHERE m.run_id = :run AND m.resolved_at IS NULL),
       reconciled_at = CASE WHEN :last THEN :now ELSE reconciled_at END
 WHERE id = :run
"""
_HORIZON = """
INSERT INTO detent_horizon (before, actor, at)
SELECT :before, :actor, :now WHERE :before > coalesce((SELECT max(before) FROM detent_horizon), :before - 1)
"""
_OLD = """
SELECT id, moved_at < :before AND outstanding = 0 AND queued + applying + reverting = 0 AND reconcile_at IS NULL
           AND state IN ('preview', 'applied', 'partial', 'failed', 'rolled_back')
  FROM detent_batch_run WHERE id > :after ORDER BY id LIMIT :limit
"""
# The run first: the guards let its targets go only when it is gone.
_GO = (
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


class ReconcileVerbs(BatchVerbs):
    """`reconcile_begin`, `reconcile_record` and `batch_prune`."""

    def reconcile_begin(
        self, run_id: int, planned: int | None, job: NewJob, actor: str
    ) -> ReconciliationRow | DetentError:
        """One at a time: one whose job has given up is over."""
        now = self._now()
        run = self.batch_get(run_id)
        if run is None:
            return NotFound("batch_run", str(run_id))
        refused = refuse_look(run)
        if refused is not None:
            return refused
        if planned is not None:
            found = f"look {run.reconcile_no}" if run.reconcile_at else "no look planned"
            if run.reconcile_at is None or planned != run.reconcile_no or to_micros(run.reconcile_at, field="at") > now:
                return TransitionRace("batch_run", str(run_id), f"look {planned} due", found)
        for no, is_alive in self._db.rows(_OPEN, (run_id,)):
            if is_alive:
                return self._batch_look_there(run_id, no)
            self._db.change(_GIVEN_UP, (now, run_id, no))
        refused = self._batch_jobs([job])
        if refused is not None:
            return refused
        look = {"run": run_id, "planned": planned, "actor": actor, "job": job.id, "now": now}
        ((no,),) = self._db.rows(_NEW_LOOK, look)
        if planned is not None and run.finished_at is not None:
            following, at = next_look(run.finished_at, planned, from_micros(now))
            self._db.change(_NEXT, (following, None if at is None else to_micros(at, field="at"), run_id))
        return self._batch_look_there(run_id, no)

    def reconcile_record(
        self,
        holder: Holder,
        run_id: int,
        no: int,
        from_cursor: int,
        to_cursor: int,
        checked: int,
        mismatches: Sequence[Observed],
        last: bool,
    ) -> ReconciliationRow | DetentError:
        """The cursor, then what was found."""
        now = self._now()
        run = self._batch_held(holder, run_id, now)
        if isinstance(run, DetentError):
            return run
        look = self._batch_look(run_id, no)
        if look is None:
            return NotFound("reconciliation", f"{run_id}/{no}")
        if look.done_at is not None or look.cursor == to_cursor > from_cursor:
            return look
        step = {"run": run_id, "no": no, "from": from_cursor, "to": to_cursor, "last": last, "now": now}
        if not self._db.change(_LOOKED, step | {"checked": checked, "mismatched": len(mismatches)}):
            expected, found = f"cursor {from_cursor}", f"cursor {look.cursor}"
            return TransitionRace("reconciliation", f"{run_id}/{no}", expected, found)
        self._db.change_many(_FOUND, ((run_id, m.n, no, m.expected, m.actual, now, now) for m in mismatches))
        self._db.change(_RESOLVED, step | {"ns": json.dumps([m.n for m in mismatches])})
        self._db.change(_COUNTED, step)
        return self._batch_look_there(run_id, no)

    def _batch_look_there(self, run_id: int, no: int) -> ReconciliationRow:
        look = self._batch_look(run_id, no)
        assert look is not None
        return look

    def batch_prune(self, before: datetime, after_id: int, limit: int, actor: str) -> Pruned:
        """The horizon first: the guards let nothing go that is not below it."""
        horizon = to_micros(before, field="before")
        self._db.change(_HORIZON, {"before": horizon, "actor": actor, "now": self._now()})
        looked = self._db.rows(_OLD, {"before": horizon, "after": after_id, "limit": limit})
        old = [run_id for run_id, is_old in looked if is_old]
        for statement in _GO if old else ():
            self._db.change(statement, (ids_json(old),))
        return Pruned(len(old), looked[-1][0] if len(looked) == limit else None)
