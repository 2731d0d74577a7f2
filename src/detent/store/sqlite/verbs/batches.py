"""Batch runs: their plan, their preview, and what is asked of them. What follows from their jobs is the triggers'."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from detent.errors import DetentError, IdConflict, InvalidInput, LeaseLost, NotFound, TransitionRace
from detent.model.batch_records import (
    BatchRunRow,
    Holder,
    NewAction,
    NewBatchRun,
    Portion,
    Previewed,
    Stepped,
    TargetJob,
)
from detent.model.clock import to_micros
from detent.model.records import NewJob
from detent.store.batch_rules import Named, is_rest, is_same_run, nothing_left, refuse_act, refuse_add, refuse_refs
from detent.store.jobs.sqlite_enqueue import SqliteEnqueue
from detent.store.jobs.sqlite_moves import SqliteMoves
from detent.store.sqlite.verb_base import Insert
from detent.store.sqlite.verbs.batches_looking import BatchLookingVerbs

__all__ = ["BatchVerbs"]

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
_HOLDS = "SELECT run_id FROM detent_job WHERE id = ?"
_AT_REFS = """
SELECT g.ref, g.n FROM json_each(:refs) u CROSS JOIN detent_target g ON g.run_id = :run AND g.ref = u.value
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
       reconcile_at = NULL, critical = NULL, overwrite = :overwrite, moved_at = max(:now, moved_at)
 WHERE id = :id AND state IN ('preview', 'applied', 'partial', 'failed')
""",
    "retry_failed": """
UPDATE detent_batch_run
   SET state = 'applying', outstanding = 1, finished_at = NULL, reconcile_at = NULL, critical = NULL,
       overwrite = :overwrite, moved_at = max(:now, moved_at)
 WHERE id = :id AND state IN ('partial', 'failed')
""",
    "roll_back": """
UPDATE detent_batch_run
   SET state = CASE state WHEN 'failed' THEN 'partial' ELSE state END, outstanding = 1,
       rollback_requested_at = coalesce(rollback_requested_at, max(:now, moved_at)), rollback_requested_by = :actor,
       rollback_reason = :reason, reconcile_at = NULL, mismatches = 0, critical = NULL, overwrite = :overwrite,
       moved_at = max(:now, moved_at)
 WHERE id = :id AND state IN ('applied', 'partial', 'failed')
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
_CONFLICT = """
UPDATE detent_target SET conflict = :found
 WHERE run_id = :run AND (apply_job_id = :job AND state = 'applying' OR revert_job_id = :job AND state = 'applied')
"""
_ENDED = "UPDATE detent_batch_run SET outstanding = 0, moved_at = max(:now, moved_at) WHERE id = :id"


class BatchVerbs(BatchLookingVerbs, SqliteEnqueue, SqliteMoves):
    """The verbs of the preview and of actions."""

    def batch_create(self, run: NewBatchRun, plan: NewJob) -> BatchRunRow | DetentError:
        """One row by its id, and the job."""
        found = self.batch_get(run.id)
        if found is not None and not is_same_run(run, found):
            return IdConflict(run.id)
        if found is None:
            refused = self._batch_jobs([plan])
            if refused is not None:
                return refused
            now = self._now()
            self._db.change(_NEW_RUN, {name: getattr(run, name) for name in run.__struct_fields__} | {"now": now})
            self._batch_log(run.id, None, "preview", "create", run.actor, run.reason, run.metadata, now)
        return self._batch_there(run.id)

    def target_add(
        self, holder: Holder, run_id: int, first_n: int, refs: Sequence[str], preview: NewJob | None, last: bool
    ) -> BatchRunRow | DetentError:
        """What is there already is passed over."""
        now = self._now()
        run = self._batch_held(holder, run_id, now)
        if isinstance(run, DetentError):
            return run
        at_refs: dict[str, int] = dict(self._db.rows(_AT_REFS, {"run": run_id, "refs": json.dumps(list(refs))}))
        at_numbers: dict[int, str] = dict(self._db.rows(_AT_NUMBERS, (run_id, first_n, first_n + len(refs) - 1)))
        refused = refuse_add(run, first_n, refs, at_refs, at_numbers)
        if refused is not None:
            return refused
        at = max(now, to_micros(run.moved_at, field="moved_at"))
        new = [(run_id, n, ref, at, at) for n, ref in enumerate(refs, start=first_n) if n not in at_numbers]
        if new and preview is not None:
            refused = self._batch_jobs([preview])
            if refused is not None:
                return refused
        _NEW_TARGETS.run(self._db, new)
        if last:
            self._db.change(_PLANNED, {"id": run_id, "now": now})
        self._db.change(_ALL_PREVIEWED, {"id": run_id, "now": now})
        return self._batch_there(run_id)

    def target_previewed(self, holder: Holder, run_id: int, items: Sequence[Previewed]) -> BatchRunRow | DetentError:
        """What is on record stays."""
        now = self._now()
        run = self._batch_held(holder, run_id, now)
        if isinstance(run, DetentError):
            return run
        at = max(now, to_micros(run.moved_at, field="moved_at"))
        rows = ((item.before, item.after, _changed(item), item.error, at, at, run_id, item.n) for item in items)
        self._db.change_many(_PREVIEWED, rows)
        self._db.change(_ALL_PREVIEWED, {"id": run_id, "now": now})
        return self._batch_there(run_id)

    def batch_act(self, item: NewAction, driver: NewJob) -> BatchRunRow | DetentError:
        """Judged by the run's row and by the targets that were named, then written."""
        run = self.batch_get(item.run_id)
        if run is None:
            return NotFound("batch_run", str(item.run_id))
        there = self._batch_action(item.id)
        if there is not None:
            is_same = there.run_id == item.run_id and there.action == item.action
            return run if is_same else IdConflict(item.id)
        refused = refuse_act(run, item)
        if refused is None and run.state != "preview" and is_rest(item):
            refused = None if self.target_list(run.id, state="preview", changed=True, limit=1) else nothing_left(run)
        chosen = None
        if refused is None and item.refs is not None:
            found = [Named(n, ref, state, bool(ok)) for n, ref, state, ok in self._batch_named(item.run_id, item.refs)]
            chosen = [named.n for named in found]
            refused = refuse_refs(item, found)
        refused = refused or self._batch_jobs([driver])
        if refused is not None:
            return refused
        now = self._now()
        row = {name: getattr(item, name) for name in ("id", "run_id", "action", "actor", "reason", "metadata")}
        count = None if chosen is None else len(chosen)
        about = {"chosen": count, "unchanged": int(item.unchanged), "job_id": driver.id, "now": now}
        self._db.change(_NEW_ACTION, row | about)
        if chosen is not None:
            self._db.change(_CHOICES, (item.id, json.dumps(chosen)))
        told = (item.actor, item.reason, item.metadata, now)
        match item.action:
            case "apply":
                trigger = "queue" if run.state == "preview" else "queue_rest"
                self._batch_log(run.id, run.state, "queued", trigger, *told)
            case "retry_failed":
                self._batch_log(run.id, run.state, "applying", "retry_failed", *told)
            case "roll_back":
                to = "partial" if run.state == "failed" else run.state
                self._batch_log(run.id, run.state, to, "request_roll_back", *told)
                self._db.change(_MISMATCHES_GO, (now, run.id))
        begun = {"id": run.id, "now": now, "actor": item.actor, "reason": item.reason, "overwrite": int(item.overwrite)}
        self._expect(self._db.change(_BEGUN[item.action], begun), 1, [run.id], run.state)
        return self._batch_there(run.id)

    def _batch_named(self, run_id: int, refs: Sequence[str]) -> list[tuple[int, str, str, int]]:
        rows = self._db.rows(_OF_REFS, {"run": run_id, "refs": json.dumps(list(refs))})
        return [(n, ref, state, is_previewed) for n, ref, state, is_previewed in rows]

    def batch_portion(self, action_id: int, limit: int) -> Portion | DetentError:
        """A walk along the targets."""
        action = self._batch_action(action_id)
        if action is None:
            return NotFound("batch_action", str(action_id))
        found = self._batch_targets(action, limit)
        is_last = len(found) < limit
        end = found[-1].n if found and not is_last else self._batch_there(action.run_id).total
        return Portion(action=action, to_cursor=max(end, action.cursor), last=is_last, targets=tuple(found))

    def batch_step(
        self, holder: Holder, action_id: int, from_cursor: int, to_cursor: int, jobs: Sequence[TargetJob], last: bool
    ) -> Stepped | DetentError:
        """The portion is chosen once more, here, and must be the caller's."""
        now = self._now()
        action = self._batch_action(action_id)
        if action is None:
            return NotFound("batch_action", str(action_id))
        run = self._batch_held(holder, action.run_id, now)
        if isinstance(run, DetentError):
            return run
        if action.done_at is not None or action.cursor == to_cursor > from_cursor:
            return Stepped(
                action_id=action_id, cursor=action.cursor, moved=action.moved, done=action.done_at is not None
            )
        if action.cursor != from_cursor:
            return TransitionRace("batch_action", str(action_id), f"cursor {from_cursor}", f"cursor {action.cursor}")
        need, again = self._batch_to_move(action, from_cursor, to_cursor)
        if sorted(job.n for job in jobs) != need:
            given = f"jobs for {len(jobs)} targets"
            return InvalidInput("jobs", given, f"one for each of the {len(need)} targets of the portion that need one")
        refused = self._batch_jobs([job.job for job in jobs])
        if refused is not None:
            return refused
        statement = _QUEUE if action.action == "apply" else _REVERT
        rows = [(job.job.id, now, now, action.run_id, job.n) for job in jobs]
        moved = self._db.change_many(statement, rows) if rows else 0
        self._expect(moved, len(jobs), [job.n for job in jobs], "preview" if action.action == "apply" else "applied")
        for answer in self.job_retry(again, action.actor, action.reason):
            if isinstance(answer, DetentError):
                raise answer
        count = len(need) + len(again)
        step = {"id": action_id, "from": from_cursor, "to": to_cursor, "moved": count, "last": last, "now": now}
        self._expect(self._db.change(_STEPPED, step), 1, [action_id], "open")
        if last:
            self._db.change(_ENDED, {"id": action.run_id, "now": now})
        return Stepped(action_id=action_id, cursor=to_cursor, moved=action.moved + count, done=last)

    def batch_stop(self, holder: Holder, run_id: int, reason: str, driver: NewJob) -> BatchRunRow | DetentError:
        """The open action ends here; the driver cancels what has not begun."""
        now = self._now()
        run = self._batch_held(holder, run_id, now)
        if isinstance(run, DetentError) or run.critical is not None:
            return run
        refused = self._batch_jobs([driver])
        if refused is not None:
            return refused
        for statement in _STOPPED:
            self._db.change(statement, {"id": run_id, "now": now, "reason": reason})
        return self._batch_there(run_id)

    def target_conflict(self, holder: Holder, run_id: int, found: str) -> BatchRunRow | DetentError:
        """By the job that the caller holds."""
        run = self._batch_held(holder, run_id, self._now())
        if isinstance(run, DetentError):
            return run
        self._db.change(_CONFLICT, {"run": run_id, "job": holder[0], "found": found})
        return self._batch_there(run_id)

    # -- what they share ---------------------------------------------------------------------------------------

    def _batch_there(self, run_id: int) -> BatchRunRow:
        run = self.batch_get(run_id)
        assert run is not None
        return run

    def _batch_held(self, holder: Holder, run_id: int, now: int) -> BatchRunRow | DetentError:
        """The run, where the caller holds a job of it."""
        run = self.batch_get(run_id)
        if run is None:
            return NotFound("batch_run", str(run_id))
        job_id, attempt = holder
        lost = self._lost(self._jobs([job_id]).get(job_id), job_id, attempt, now)
        if lost is None and self._db.rows(_HOLDS, (job_id,)) != [(run_id,)]:
            lost = LeaseLost(job_id, attempt, f"it is no job of run {run_id}")
        return lost or run

    def _batch_jobs(self, jobs: Sequence[NewJob]) -> DetentError | None:
        """All of them, or the refusal of one: then none."""
        grouped = [replace(job, group=0) for job in jobs]
        return next((said for said in self.job_enqueue(grouped) if isinstance(said, DetentError)), None)

    def _batch_log(
        self,
        run_id: int,
        was: str | None,
        to: str,
        trigger: str,
        actor: str,
        reason: str | None,
        metadata: str | None,
        now: int,
    ) -> None:
        line = {"id": run_id, "from": was, "to": to, "trigger": trigger, "actor": actor, "reason": reason}
        self._db.change(_LOG, line | {"metadata": metadata, "now": now})


def _changed(item: Previewed) -> int | None:
    return None if item.error is not None else int(item.changed)
