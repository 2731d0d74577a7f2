"""Pipeline runs on SQLite: start, fan-out, pages, retries, retention and reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from detent.errors import DetentError, IdConflict, InvalidTransition, LeaseLost, NotFound, RunInProgress
from detent.lifecycle.library import PIPELINE_RUN
from detent.model.clock import from_micros, to_micros
from detent.model.pipeline_records import (
    NewPage,
    NewPartition,
    NewPipelineRun,
    PageStored,
    PartitionRow,
    PipelineRunRow,
    PrunedRuns,
    WatermarkRow,
)
from detent.model.records import Moved
from detent.store.jobs.sqlite_enqueue import SqliteEnqueue
from detent.store.jobs.sqlite_moves import SqliteMoves
from detent.store.pipelines.rules import CANCELLED_FROM, RETRIED_FROM, cancelled, not_retried, wrong_state
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import Insert, fields_named

__all__ = ["SqlitePipelines"]

_FIELDS = PipelineRunRow.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_GET = f"SELECT {_COLUMNS} FROM detent_pipeline_runs WHERE id = ?"
_LIST = f"""
SELECT {_COLUMNS} FROM detent_pipeline_runs
 WHERE (:state IS NULL OR state = :state) AND (:name IS NULL OR name = :name)
   AND (:tenant IS NULL OR tenant = :tenant) AND (:before IS NULL OR id < :before)
 ORDER BY id DESC LIMIT :limit
"""
_ACTIVE = """
SELECT id FROM detent_pipeline_run
 WHERE tenant = ? AND watermark = ? AND state NOT IN ('completed', 'failed', 'cancelled')
"""
_WATERMARK = "SELECT value FROM detent_watermark WHERE tenant = ? AND name = ?"
_NEW = Insert(
    "detent_pipeline_run",
    "id, tenant, name, payload, watermark, since, captured_at, is_full, is_forced, started_by, reason, retires, queue, "
    "priority, replicas, portion_size, plan_job_id, created_at, moved_at",
)
_LOG_RUN = """
INSERT INTO detent_transition_log
  (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, forced, at)
VALUES (?, 'pipeline_run', ?, ?, ?, ?, ?, ?, ?, ?)
"""
_RUN_FIELDS = (
    *("state", "tenant", "watermark", "captured_at", "moved_at", "is_full", "retires", "parts_failed", "portions"),
    *("cut_key", "portion_size", "finisher_job_id", "finisher_attempt", "finisher_tries", "plan_job_id", "started_at"),
    *("partitions", "parts_ended"),
)
_RUN = f"SELECT {', '.join(_RUN_FIELDS)} FROM detent_pipeline_run WHERE id = ?"
_NEW_PARTITION = Insert("detent_partition", "run_id, n, key, payload, job_id")
_PLANNED = """
UPDATE detent_pipeline_run SET state = 'workers_running', partitions = ?, tolerated = ?, started_at = ?, moved_at = ?
 WHERE id = ? AND state = 'created'
"""
_PARTITION = """
SELECT job_id, state, next_offset, last_page FROM detent_partition WHERE run_id = ? AND n = ?
"""
_STAGE = """
INSERT INTO detent_staged (run_id, key, data, partition_n) VALUES (?, ?, ?, ?) ON CONFLICT (run_id, key) DO NOTHING
"""
_STAGE_AGAIN = """
INSERT INTO detent_staged (run_id, key, data, partition_n) VALUES (?, ?, ?, ?)
ON CONFLICT (run_id, key) DO UPDATE SET data = excluded.data, partition_n = excluded.partition_n
"""
_PAGED = """
UPDATE detent_partition
   SET next_offset = coalesce(:next, next_offset), last_page = :next IS NULL, pages = pages + 1,
       records = records + :records, staged = staged + :fresh, tries = 0, paged_at = :now,
       state = CASE state WHEN 'in_progress' THEN 'fetching_pages' ELSE state END
 WHERE run_id = :run AND n = :n AND next_offset = :offset AND NOT last_page
   AND state IN ('in_progress', 'fetching_pages')
"""
_FORCE = "UPDATE detent_pipeline_run SET state = 'consolidation_triggered', moved_at = ? WHERE id = ?"
_CANCEL = """
UPDATE detent_pipeline_run
   SET state = 'cancelled', finished_at = :now, moved_at = :now,
       error = 'cancelled by ' || :actor || coalesce(': ' || :reason, '')
 WHERE id = :run
"""
_FAILED_PARTS = """
SELECT p.job_id, j.id IS NOT NULL AND j.state IN ('failed', 'quarantined', 'cancelled')
  FROM detent_partition p LEFT JOIN detent_job j ON j.id = p.job_id
 WHERE p.run_id = ? AND p.state = 'failed' ORDER BY p.job_id
"""
_SWEPT = """
SELECT (SELECT count(*) FROM detent_staged WHERE run_id = :run)
       <> (SELECT coalesce(sum(staged), 0) FROM detent_partition WHERE run_id = :run)
"""
_PASSED = "SELECT run_id FROM detent_watermark WHERE tenant = ? AND name = ? AND value > ?"
_PARTS_AGAIN = """
UPDATE detent_partition
   SET state = CASE WHEN pages = 0 THEN 'pending' ELSE 'fetching_pages' END, tries = 0, error = NULL, ended_at = NULL
 WHERE run_id = ? AND state = 'failed'
"""
_PORTIONS_AGAIN = "UPDATE detent_portion SET tries = 0 WHERE run_id = ? AND done_at IS NULL"
_RUN_AGAIN = """
UPDATE detent_pipeline_run
   SET state = :to, error = NULL, finished_at = NULL, moved_at = :now, finisher_tries = 0,
       parts_ended = parts_ended - :parts, parts_failed = parts_failed - :parts
 WHERE id = :run
"""
_PARTITION_FIELDS = PartitionRow.__struct_fields__
_PARTITIONS = f"""
SELECT {", ".join(_PARTITION_FIELDS)} FROM detent_partition
 WHERE run_id = :run AND n > :after AND (:state IS NULL OR state = :state) ORDER BY n LIMIT :limit
"""
_WATERMARKS = """
SELECT tenant, name, value, run_id, moved_at FROM detent_watermark
 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:name IS NULL OR name = :name) ORDER BY tenant, name
"""
_STAGED_GO = """
DELETE FROM detent_staged WHERE (run_id, key) IN (
  SELECT s.run_id, s.key FROM detent_pipeline_run r CROSS JOIN detent_staged s ON s.run_id = r.id
   WHERE r.finished_at < :before LIMIT :limit)
"""
_OLD_RUN = """
SELECT r.id FROM detent_pipeline_run r
 WHERE r.finished_at < ? AND NOT EXISTS (SELECT 1 FROM detent_staged s WHERE s.run_id = r.id)
   AND NOT EXISTS (SELECT 1 FROM detent_watermark w WHERE w.run_id = r.id)
 ORDER BY r.id LIMIT 1
"""
_RUN_GOES = tuple(
    f"DELETE FROM detent_{table} WHERE {column} = ?"
    for table, column in (("portion", "run_id"), ("partition", "run_id"), ("pipeline_run", "id"))
)


class SqlitePipelines(SqliteEnqueue, SqliteMoves):
    """The verbs of pipeline runs; those of the consolidation are in `sqlite_consolidation`."""

    def pipeline_start(self, item: NewPipelineRun) -> PipelineRunRow | DetentError:
        if (there := self.pipeline_get(item.id)) is not None:
            same = (there.name, there.payload, there.tenant) == (item.name, item.payload, item.tenant)
            return there if same else IdConflict(item.id)
        if active := self._db.rows(_ACTIVE, (item.tenant, item.watermark)):
            return RunInProgress(item.watermark, int(active[0][0]))
        now = self._now()
        stands = self._db.rows(_WATERMARK, (item.tenant, item.watermark))
        value = stands[0][0] if stands else None
        full = item.full or value is None
        captured = now if value is None else max(now, value)
        _NEW.run(
            self._db,
            [
                (
                    *(item.id, item.tenant, item.name, item.payload, item.watermark, None if full else value, captured),
                    *(int(full), int(item.forced), item.started_by, item.reason, int(item.retires), item.queue),
                    *(item.priority, item.replicas, item.portion_size, item.plan.id, now, now),
                )
            ],
        )
        self._log_run(item.tenant, item.id, None, "created", "create", item.started_by, item.reason, now)
        (answer,) = self.job_enqueue([item.plan])
        if isinstance(answer, DetentError):
            raise answer
        row = self.pipeline_get(item.id)
        assert row is not None
        return row

    def pipeline_fan_out(
        self, run_id: int, job_id: int, attempt: int, parts: Sequence[NewPartition], tolerated: int = 0
    ) -> Moved | DetentError:
        now = self._now()
        if lost := self._lost(self._jobs([job_id]).get(job_id), job_id, attempt, now):
            return lost
        run = self._pipeline(run_id)
        if run is None or run["plan_job_id"] != job_id:
            return NotFound("pipeline_run", str(run_id))
        if run["state"] != "created":
            return Moved(str(run_id), run["state"], False)
        at = max(now, run["moved_at"])
        _NEW_PARTITION.run(self._db, [(run_id, part.n, part.key, part.payload, part.job.id) for part in parts])
        for answer in self.job_enqueue([part.job for part in parts]):
            if isinstance(answer, DetentError):
                raise answer
        self._log_run(run["tenant"], run_id, "created", "workers_running", "fan_out", "worker", None, at)
        self._db.change(_PLANNED, (len(parts), tolerated, at, at, run_id))
        return Moved(str(run_id), "workers_running", True)

    def page_store(self, item: NewPage) -> PageStored | DetentError:
        """Store the records, then move the offset, which must be where the page was fetched."""
        now = self._now()
        job = self._jobs([item.job_id]).get(item.job_id)
        if (lost := self._lost(job, item.job_id, item.attempt, now)) or job is None:
            return lost or LeaseLost(item.job_id, item.attempt, "no such job")
        found = self._db.rows(_PARTITION, (item.run_id, item.n))
        if not found or found[0][0] != item.job_id:
            return NotFound("partition", f"{item.run_id}/{item.n}")
        _, state, next_offset, last_page = found[0]
        if next_offset != item.offset or last_page or state not in ("in_progress", "fetching_pages"):
            return PageStored(False, next_offset, bool(last_page))
        self._start(job, now)
        rows = [(item.run_id, key, data, item.n) for key, data in zip(item.keys, item.datas, strict=True)]
        fresh = self._db.change_many(_STAGE, rows) if rows else 0
        if fresh < len(rows):
            self._db.change_many(_STAGE_AGAIN, rows)
        told = {"run": item.run_id, "n": item.n, "offset": item.offset, "next": item.next_offset}
        told |= {"records": len(rows), "fresh": fresh, "now": max(now, job.last_at)}
        self._expect(self._db.change(_PAGED, told), 1, [item.job_id], "running")
        return PageStored(True, item.next_offset or item.offset, item.next_offset is None)

    def pipeline_force(self, run_id: int, actor: str, reason: str) -> Moved | DetentError:
        run = self._pipeline(run_id)
        if run is None:
            return NotFound("pipeline_run", str(run_id))
        if run["state"] != "consolidation_skipped":
            to = "consolidation_triggered"
            allowed = PIPELINE_RUN.allowed(run["state"])
            return InvalidTransition("pipeline_run", str(run_id), run["state"], to, allowed, "force", (_SKIPPED,))
        at = max(self._now(), run["moved_at"])
        self._log_run(
            run["tenant"], run_id, _SKIPPED, "consolidation_triggered", "force", actor, reason, at, forced=True
        )
        self._db.change(_FORCE, (at, run_id))
        return Moved(str(run_id), "consolidation_triggered", True)

    def pipeline_cancel(self, run_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        run = self._pipeline(run_id)
        was = None if run is None else run["state"]
        if run is not None and was in CANCELLED_FROM:
            at = max(self._now(), run["moved_at"])
            self._log_run(run["tenant"], run_id, was, "cancelled", "cancel", actor, reason, at)
            self._db.change(_CANCEL, {"run": run_id, "actor": actor, "reason": reason, "now": at})
        return cancelled(run_id, was)

    def pipeline_retry(self, run_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        run = self._pipeline(run_id)
        if run is None:
            return NotFound("pipeline_run", str(run_id))
        if run["state"] not in RETRIED_FROM:
            return wrong_state(run_id, run["state"])
        parts = self._db.rows(_FAILED_PARTS, (run_id,))
        if found := self._refuse_retry(run_id, run, parts):
            return not_retried(run_id, run["watermark"], *found)
        now = max(self._now(), run["moved_at"])
        # A partition that is fetched again may bring keys below consolidated ones: then only the consolidation goes on.
        fetches = run["portions"] == 0 and bool(parts)
        to = "workers_running" if fetches else "consolidation_triggered"
        self._log_run(run["tenant"], run_id, run["state"], to, "retry", actor, reason, now)
        self._db.change(_PARTS_AGAIN if fetches else _PORTIONS_AGAIN, (run_id,))
        self._db.change(_RUN_AGAIN, {"run": run_id, "to": to, "now": now, "parts": len(parts) if fetches else 0})
        if fetches:
            for job in self._jobs([part[0] for part in parts]).values():
                self._bring_back(job, "retry", actor, reason, now)
        return Moved(str(run_id), to, True)

    def _refuse_retry(self, run_id: int, run: Mapping[str, Any], parts: Sequence[Row]) -> tuple[str, int | None] | None:
        """Return why a run cannot be retried, and the other run that is the cause."""
        active = [row[0] for row in self._db.rows(_ACTIVE, (run["tenant"], run["watermark"])) if row[0] != run_id]
        if active:
            return "active", active[0]
        if passed := self._db.rows(_PASSED, (run["tenant"], run["watermark"], run["captured_at"])):
            return "passed", passed[0][0]
        if run["started_at"] is None:
            return "unplanned", None
        if run["parts_ended"] < run["partitions"]:
            return "ending", None
        if self._db.rows(_SWEPT, {"run": run_id})[0][0]:
            return "swept", None
        return None if all(part[1] for part in parts) else ("jobless", None)

    def pipeline_get(self, run_id: int) -> PipelineRunRow | None:
        found = self._db.rows(_GET, (run_id,))
        return PipelineRunRow(**fields_named(_FIELDS, found[0])) if found else None

    def pipeline_list(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[PipelineRunRow]:
        asked = {"state": state, "name": name, "tenant": tenant, "before": before_id, "limit": limit}
        return [PipelineRunRow(**fields_named(_FIELDS, row)) for row in self._db.rows(_LIST, asked)]

    def partition_list(
        self, run_id: int, *, state: str | None = None, after_n: int = 0, limit: int = 1000
    ) -> list[PartitionRow]:
        asked = {"run": run_id, "state": state, "after": after_n, "limit": limit}
        return [PartitionRow(**fields_named(_PARTITION_FIELDS, row)) for row in self._db.rows(_PARTITIONS, asked)]

    def watermark_list(self, *, tenant: str | None = None, name: str | None = None) -> list[WatermarkRow]:
        found = self._db.rows(_WATERMARKS, {"tenant": tenant, "name": name})
        return [WatermarkRow(t, n, from_micros(value), run, from_micros(at)) for t, n, value, run, at in found]

    def pipeline_prune(self, staged_before: datetime, before: datetime, limit: int) -> PrunedRuns:
        """Delete records first. A run is deleted when it has none left."""
        told = {"before": to_micros(staged_before, field="staged_before"), "limit": limit}
        gone = self._db.change(_STAGED_GO, told)
        if gone >= limit:
            return PrunedRuns(gone, True)
        old = self._db.rows(_OLD_RUN, (to_micros(before, field="before"),))
        for (run_id,) in old:
            gone += sum(self._db.change(statement, (run_id,)) for statement in _RUN_GOES)
        return PrunedRuns(gone, bool(old))

    def _pipeline(self, run_id: int) -> Mapping[str, Any] | None:
        found = self._db.rows(_RUN, (run_id,))
        return dict(zip(_RUN_FIELDS, found[0], strict=True)) if found else None

    def _log_run(
        self,
        tenant: str,
        run_id: int,
        was: str | None,
        to: str,
        trigger: str,
        actor: str,
        reason: str | None,
        at: int,
        *,
        forced: bool = False,
    ) -> None:
        self._db.change(_LOG_RUN, (tenant, str(run_id), was, to, trigger, actor, reason, int(forced), at))


_SKIPPED = "consolidation_skipped"
