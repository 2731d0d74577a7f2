"""What is done to many jobs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detent.errors import DetentError, NotFound
from detent.model.clock import from_micros, to_micros
from detent.model.records import Cancelled, Moved
from detent.model.sanitize import error_kind
from detent.model.service_records import DeadGroup, NewOperation, OperationRow
from detent.store.operations import asked, moved_to, operation_row, wanted_metadata
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verbs.base import Job, ids_json, undeclared
from detent.store.sqlite.verbs.moves import MoveVerbs
from detent.store.sqlite.verbs.searching import FITS, json_of
from detent.store.words import JobFilter

__all__ = ["OperationVerbs"]

_FIELDS = (
    *("id", "action", "state", "filter", "argument", "actor", "reason", "until_id", "after_id", "looked_at"),
    *("changed", "refused", "created_at", "finished_at"),
)
_FITS = """(:state IS NULL OR state = :state) AND (:task IS NULL OR task = :task)
   AND (:queue IS NULL OR queue = :queue) AND (:tenant IS NULL OR tenant = :tenant)"""
_COUNT = f"SELECT coalesce(sum(jobs), 0) FROM detent_job_counts WHERE {_FITS}"
_DEAD = DeadGroup.__struct_fields__
# differs: PostgreSQL has a function of its own for the kind of an error, in the same words.
_REPORT = """
SELECT task, queue, reason, kind, count(*), sum(attempt), min(quarantined_at), max(quarantined_at), max(job_id)
  FROM (SELECT d.task, d.queue, d.reason, detent_error_kind(j.error) AS kind, j.attempt, d.quarantined_at, d.job_id
          FROM detent_dead d JOIN detent_job j ON j.id = d.job_id
         WHERE (:task IS NULL OR d.task = :task) AND (:queue IS NULL OR d.queue = :queue)
           AND (:tenant IS NULL OR d.tenant = :tenant))
 GROUP BY task, queue, reason, kind
 ORDER BY count(*) DESC, max(job_id) DESC, task, queue, reason, kind
 LIMIT :limit
"""
_LOG_MOVE = """
INSERT INTO detent_transition_log (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor,
  reason, metadata, correlation_id, at)
VALUES (?, 'job', ?, ?, ?, 'pending', 'pending', 'move', ?, ?, ?, ?, ?)
"""
_READY_MOVES = "UPDATE detent_ready SET lane_id = ? WHERE lane_id = ? AND ready_at = ? AND job_id = ?"
_WAITING_MOVES = "UPDATE detent_waiting SET lane_id = ?, priority = ? WHERE job_id = ?"
_JOB_MOVES = "UPDATE detent_job SET queue = ?, priority = ? WHERE id = ? AND state = 'pending'"
_START = """
INSERT INTO detent_operation (id, action, filter, argument, actor, reason, until_id, created_at)
VALUES (?, ?, ?, ?, ?, ?, coalesce((SELECT max(id) FROM detent_job), 0), ?)
ON CONFLICT (id) DO NOTHING
"""
_LOG = """
INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, reason, metadata, at)
VALUES ('operation', ?, ?, ?, ?, ?, ?, ?, ?)
"""
_LOOK = "SELECT id FROM detent_job WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
_CHOOSE = f"""
SELECT j.id FROM detent_job j WHERE j.id IN (SELECT value FROM json_each(:looked)) {FITS}
   AND (:since IS NULL OR j.created_at >= :since) AND (:until IS NULL OR j.created_at < :until)
   AND (:key IS NULL OR EXISTS (SELECT 1 FROM detent_job_key k
                                 WHERE k.job_id = j.id AND k.key = :key AND k.tenant = coalesce(:tenant, '')))
   AND NOT (:action = 'cancel'
            AND (j.state = 'cancelled' OR j.state = 'running' AND j.cancel_requested_at IS NOT NULL))
 ORDER BY j.id
"""
# The sum keeps SQLite from walking along all jobs for the least and the greatest.
_BOUNDS = """
SELECT min(id + 0), max(id + 0)
  FROM (SELECT job_id AS id FROM detent_job_key WHERE tenant = coalesce(:tenant, '') AND key = :key
        UNION ALL
        SELECT id FROM detent_job WHERE :key IS NULL AND run_id = :run_id
        UNION ALL
        SELECT id FROM detent_job WHERE :key IS NULL AND :run_id IS NULL AND correlation_id = :correlation_id)
"""
_STEPPED = """
UPDATE detent_operation
   SET until_id = ?, after_id = ?, looked_at = looked_at + ?, changed = changed + ?, refused = refused + ?, state = ?,
       finished_at = ?
 WHERE id = ?
"""
_CANCEL = "UPDATE detent_operation SET state = 'cancelled', finished_at = ? WHERE id = ?"
_ROW = f"SELECT {', '.join(_FIELDS)} FROM detent_operation"
_GET = f"{_ROW} WHERE id = ?"
_LIST = f"{_ROW} WHERE :state IS NULL OR state = :state ORDER BY id DESC LIMIT :limit"

Answer = Cancelled | Moved | DetentError


class OperationVerbs(MoveVerbs):
    """`job_count`, `dead_report`, `job_move` and the verbs of operations."""

    def job_count(self, chosen: JobFilter) -> int:
        """From the view, which walks through no job at rest."""
        return int(self._db.rows(_COUNT, _fits(chosen.state, chosen.task, chosen.queue, chosen.tenant))[0][0])

    def dead_report(self, task: str | None, queue: str | None, tenant: str | None, limit: int) -> list[DeadGroup]:
        """Grouped by SQLite, which asks us for the kind of each error."""
        self._db.teach("detent_error_kind", error_kind)
        where = {"task": task, "queue": queue, "tenant": tenant, "limit": limit}
        found = [dict(zip(_DEAD, row, strict=True)) for row in self._db.rows(_REPORT, where)]
        return [
            DeadGroup(**row | {name: from_micros(row[name]) for name in ("oldest_at", "newest_at")}) for row in found
        ]

    def job_move(
        self, ids: Sequence[int], queue: str | None, priority: int | None, actor: str, reason: str | None = None
    ) -> list[Moved | DetentError]:
        """One after the other."""
        now = self._now()
        return [self._move_job(job_id, queue, priority, actor, reason, now) for job_id in ids]

    def _move_job(
        self, job_id: int, queue: str | None, priority: int | None, actor: str, reason: str | None, now: int
    ) -> Moved | DetentError:
        job = self._jobs([job_id]).get(job_id)
        if job is None:
            return NotFound("job", str(job_id))
        if job.state != "pending":
            return undeclared(job, "pending")
        to = job._replace(
            queue=job.queue if queue is None else queue, priority=job.priority if priority is None else priority
        )
        if to.lane == job.lane:
            return Moved(str(job_id), "pending", False)
        self._relane(job, to)
        about = (actor, reason, moved_to(queue, priority), job.correlation_id, max(now, job.last_at))
        self._db.change(_LOG_MOVE, (job.tenant, str(job.id), job.id, job.attempt, *about))
        return Moved(str(job_id), "pending", True)

    def _relane(self, job: Job, to: Job) -> None:
        lane = self._lane(to.lane)
        if not self._db.change(_WAITING_MOVES, (lane, to.priority, job.id)):
            moved = self._db.change(_READY_MOVES, (lane, self._lane(job.lane), job.due_at, job.id))
            self._in_place(job, moved)
        self._expect(self._db.change(_JOB_MOVES, (to.queue, to.priority, job.id)), 1, [job.id], "pending")

    def operation_start(self, item: NewOperation) -> OperationRow:
        """One row by its id."""
        now = self._now()
        chosen, argument = asked(item)
        row = (item.id, item.action, chosen, argument, item.actor, item.reason, now)
        if self._db.change(_START, row):
            line = (str(item.id), None, "running", item.action, item.actor, item.reason, chosen, now)
            self._db.change(_LOG, line)
        found = self.operation_get(item.id)
        assert found is not None
        return found

    def operation_step(self, operation_id: int, limit: int) -> OperationRow | DetentError:
        """Through the verbs themselves."""
        row = self.operation_get(operation_id)
        if row is None:
            return NotFound("operation", str(operation_id))
        if row.state != "running":
            return row
        fits = _asked(row)
        low, high = self._bounds(row, fits)
        looked = [found[0] for found in self._db.rows(_LOOK, (low, high, limit))]
        chosen = self._db.rows(_CHOOSE, fits | {"looked": ids_json(looked), "action": row.action})
        answers = self._act(row, [found[0] for found in chosen])
        refused = sum(isinstance(answer, DetentError) for answer in answers)
        changed = sum(
            isinstance(answer, Cancelled) or (isinstance(answer, Moved) and answer.changed) for answer in answers
        )
        is_done, now = len(looked) < limit, self._now()
        state, finished_at, after = ("done", now, high) if is_done else ("running", None, looked[-1])
        self._db.change(_STEPPED, (high, after, len(looked), changed, refused, state, finished_at, row.id))
        if is_done:
            self._db.change(_LOG, (str(row.id), "running", "done", "complete", "system", None, None, now))
        return self.operation_get(operation_id) or NotFound("operation", str(operation_id))

    def _bounds(self, row: OperationRow, fits: dict[str, Any]) -> tuple[int, int]:
        """Between which ids the operation looks: where such jobs are, if an index tells."""
        if row.looked or (row.key is None and row.run_id is None and row.correlation_id is None):
            return row.after_id, row.until_id
        low, high = self._db.rows(_BOUNDS, fits)[0]
        return max(row.after_id, (low or 1) - 1), min(row.until_id, high or 0)

    def _act(self, row: OperationRow, ids: list[int]) -> Sequence[Answer]:
        match row.action:
            case "retry":
                return self.job_retry(ids, row.actor, row.reason)
            case "cancel":
                return self.job_cancel(ids, row.actor, row.reason)
            case "discard":
                return self.job_discard(ids, row.actor, row.reason)
            case "move":
                return self.job_move(ids, row.to_queue, row.to_priority, row.actor, row.reason)

    def operation_cancel(self, operation_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        row = self.operation_get(operation_id)
        if row is None:
            return NotFound("operation", str(operation_id))
        if row.state != "running":
            return Moved(str(operation_id), row.state, False)
        now = self._now()
        self._db.change(_CANCEL, (now, operation_id))
        self._db.change(_LOG, (str(operation_id), "running", "cancelled", "cancel", actor, reason, None, now))
        return Moved(str(operation_id), "cancelled", True)

    def operation_get(self, operation_id: int) -> OperationRow | None:
        """By its id."""
        found = self._db.rows(_GET, (operation_id,))
        return _operation(found[0]) if found else None

    def operation_list(self, state: str | None = None, limit: int = 100) -> list[OperationRow]:
        """The newest first."""
        return [_operation(row) for row in self._db.rows(_LIST, {"state": state, "limit": limit})]


def _fits(state: str | None, task: str | None, queue: str | None, tenant: str | None) -> dict[str, Any]:
    return {"state": state, "task": task, "queue": queue, "tenant": tenant}


def _asked(row: OperationRow) -> dict[str, Any]:
    return {
        **_fits(row.job_state, row.task, row.queue, row.tenant),
        **{name: getattr(row, name) for name in ("key", "correlation_id", "run_id", "worker", "error")},
        "metadata": json_of(wanted_metadata(row.metadata)),
        "since": None if row.since is None else to_micros(row.since, field="since"),
        "until": None if row.until is None else to_micros(row.until, field="until"),
    }


def _operation(row: Row) -> OperationRow:
    fields = dict(zip(_FIELDS, row, strict=True))
    times = {name: from_micros(fields[name]) for name in ("created_at", "finished_at") if fields[name] is not None}
    return operation_row(fields | times)
