"""Operations on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detent.errors import DetentError, NotFound
from detent.model.clock import from_micros, to_micros
from detent.model.records import Cancelled, Moved
from detent.model.service_records import NewOperation, OperationRow
from detent.store.jobs.sqlite_lists import FITS, json_of
from detent.store.jobs.sqlite_moves import SqliteMoves
from detent.store.operations.stored_request import COLUMNS, asked, operation_row, wanted_metadata
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import ids_json

__all__ = ["SqliteOperations"]

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
            AND (j.state = 'cancelled' OR j.state IN ('pending', 'running') AND j.cancel_requested_at IS NOT NULL
                                          AND (:undo OR j.cancel_undo IS 0)))
 ORDER BY j.id
"""
# The addition keeps SQLite from reading all jobs for the least and the greatest id.
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
_SKIP = """
UPDATE detent_operation
   SET after_id = (SELECT min(id) FROM detent_job WHERE id > after_id), looked_at = looked_at + 1, refused = refused + 1
 WHERE id = ? AND state = 'running'
   AND EXISTS (SELECT 1 FROM detent_job WHERE id > after_id AND id <= until_id)
"""
_CANCEL = "UPDATE detent_operation SET state = 'cancelled', finished_at = ? WHERE id = ?"
_ROW = f"SELECT {', '.join(COLUMNS)} FROM detent_operation"
_GET = f"{_ROW} WHERE id = ?"
_LIST = f"{_ROW} WHERE id < :below ORDER BY id DESC LIMIT :limit"
_LIST_OF_STATE = f"{_ROW} WHERE state = :state AND id < :below ORDER BY id DESC LIMIT :limit"

Answer = Cancelled | Moved | DetentError


class SqliteOperations(SqliteMoves):
    """The verbs of operations."""

    def operation_start(self, item: NewOperation) -> OperationRow:
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
        """Apply the verb of the action to the next jobs."""
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
        """Return the range of ids to read: narrower if an index knows where such jobs are."""
        if row.looked or (row.key is None and row.run_id is None and row.correlation_id is None):
            return row.after_id, row.until_id
        low, high = self._db.rows(_BOUNDS, fits)[0]
        return max(row.after_id, (low or 1) - 1), min(row.until_id, high or 0)

    def _act(self, row: OperationRow, ids: list[int]) -> Sequence[Answer]:
        match row.action:
            case "retry":
                return self.job_retry(ids, row.actor, row.reason)
            case "cancel":
                return self.job_cancel(ids, row.actor, row.reason, undo=row.undo)
            case "discard":
                return self.job_discard(ids, row.actor, row.reason)
            case "move":
                return self.job_move(ids, row.to_queue, row.to_priority, row.actor, row.reason)

    def operation_skip(self, operation_id: int) -> OperationRow | DetentError:
        self._db.change(_SKIP, (operation_id,))
        return self.operation_get(operation_id) or NotFound("operation", str(operation_id))

    def operation_cancel(self, operation_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
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
        found = self._db.rows(_GET, (operation_id,))
        return _operation(found[0]) if found else None

    def operation_list(
        self, state: str | None = None, limit: int = 100, before_id: int | None = None
    ) -> list[OperationRow]:
        chosen = {"state": state, "limit": limit, "below": 2**63 - 1 if before_id is None else before_id}
        return [_operation(row) for row in self._db.rows(_LIST if state is None else _LIST_OF_STATE, chosen)]


def _asked(row: OperationRow) -> dict[str, Any]:
    return {
        "state": row.job_state,
        **{
            name: getattr(row, name)
            for name in ("task", "queue", "tenant", "key", "correlation_id", "run_id", "worker", "error")
        },
        "metadata": json_of(wanted_metadata(row.metadata)),
        "undo": row.undo,
        "since": None if row.since is None else to_micros(row.since, field="since"),
        "until": None if row.until is None else to_micros(row.until, field="until"),
    }


def _operation(row: Row) -> OperationRow:
    fields = dict(zip(COLUMNS, row, strict=True))
    times = {name: from_micros(fields[name]) for name in ("created_at", "finished_at") if fields[name] is not None}
    return operation_row(fields | times)
