"""The consolidation of pipeline runs on SQLite: portions of staged records, retired keys, completion and watermark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from detent.errors import DetentError, LeaseLost, NotFound
from detent.model.pipeline_records import ConsolidationStep
from detent.model.records import Moved
from detent.store.pipelines.sqlite import SqlitePipelines

__all__ = ["SqliteConsolidation"]

_ALIVE = """
SELECT 1 FROM detent_job j JOIN detent_lease l ON l.id = j.lease_id
 WHERE j.id = {job} AND j.state = 'running' AND j.attempt = {attempt} AND l.expires_at > :now
"""
# A try whose attempt was given back does not count.
_GIVEN_BACK = """
EXISTS (SELECT 1 FROM detent_execution e WHERE e.job_id = {job} AND e.attempt = {attempt} AND NOT e.counted
                                           AND e.outcome IN ('released', 'snoozed', 'throttled', 'parked'))
"""
_FREE = f"""
SELECT n, first_key, last_key, tries - {_GIVEN_BACK.format(job="p.job_id", attempt="p.attempt")} FROM detent_portion p
 WHERE run_id = :run AND done_at IS NULL
   AND (job_id = :job OR NOT EXISTS ({_ALIVE.format(job="p.job_id", attempt="p.attempt")}))
 ORDER BY n LIMIT 1
"""
_TAKE = """
UPDATE detent_portion SET tries = :tries, job_id = :job, attempt = :attempt
 WHERE run_id = :run AND n = :n AND done_at IS NULL
"""
_NEXT = """
SELECT min(key), max(key), count(*) FROM (
  SELECT key FROM detent_staged WHERE run_id = :run AND key > :after ORDER BY key LIMIT :size)
"""
_CUT = (
    """
INSERT INTO detent_portion (run_id, n, first_key, last_key, records, tries, job_id, attempt)
VALUES (:run, :n, :first, :last, :records, 1, :job, :attempt)
""",
    "UPDATE detent_pipeline_run SET portions = :n, cut_key = :last WHERE id = :run",
)
_OPEN = "SELECT 1 FROM detent_portion WHERE run_id = :run AND done_at IS NULL LIMIT 1"
_FINISHER = f"SELECT EXISTS ({_ALIVE.format(job=':other_job', attempt=':other_attempt')})"
_FINISHER_GIVEN_BACK = f"SELECT {_GIVEN_BACK.format(job=':other_job', attempt=':other_attempt')}"
_FINISH = """
UPDATE detent_pipeline_run SET finisher_job_id = :job, finisher_attempt = :attempt, finisher_tries = :tries
 WHERE id = :run
"""
_RECORDS = """
SELECT key, data FROM detent_staged WHERE run_id = ? AND key BETWEEN ? AND ? ORDER BY key
"""
_DONE = """
UPDATE detent_portion SET done_at = :now
 WHERE run_id = :run AND n = :n AND done_at IS NULL AND job_id = :job AND attempt = :attempt
"""
_SEE = """
INSERT INTO detent_seen (tenant, watermark, key)
SELECT :tenant, :watermark, s.key
  FROM detent_portion p CROSS JOIN detent_staged s ON s.run_id = p.run_id AND s.key BETWEEN p.first_key AND p.last_key
 WHERE p.run_id = :run AND p.n = :n
ON CONFLICT (tenant, watermark, key) DO NOTHING
"""
_SAW_ANY = "SELECT EXISTS (SELECT 1 FROM detent_staged WHERE run_id = ?)"
_GONE = """
SELECT s.key FROM detent_seen s
 WHERE s.tenant = ? AND s.watermark = ?
   AND NOT EXISTS (SELECT 1 FROM detent_staged t WHERE t.run_id = ? AND t.key = s.key)
 ORDER BY s.key LIMIT ?
"""
_FORGET = """
DELETE FROM detent_seen WHERE tenant = ? AND watermark = ? AND key IN (SELECT value FROM json_each(?))
"""
_RETIRED = "UPDATE detent_pipeline_run SET retired = retired + ?, finisher_tries = 0 WHERE id = ?"
_LEFT = """
SELECT EXISTS (SELECT 1 FROM detent_portion WHERE run_id = :run AND done_at IS NULL)
    OR EXISTS (SELECT 1 FROM detent_staged WHERE run_id = :run AND key > :after)
"""
_COMPLETE = "UPDATE detent_pipeline_run SET state = 'completed', finished_at = ?, moved_at = ? WHERE id = ?"
_MOVE = "UPDATE detent_watermark SET value = ?, run_id = ?, moved_at = ? WHERE tenant = ? AND name = ?"
_BEGIN = "INSERT INTO detent_watermark (value, run_id, moved_at, tenant, name) VALUES (?, ?, ?, ?, ?)"


class SqliteConsolidation(SqlitePipelines):
    """The verbs of the consolidation."""

    def portion_take(self, run_id: int, job_id: int, attempt: int, tries_max: int) -> ConsolidationStep | DetentError:
        """Take a portion that an earlier job left, else a new one, else the end of the run."""
        now = self._now()
        job = self._jobs([job_id]).get(job_id)
        if (lost := self._lost(job, job_id, attempt, now)) or job is None:
            return lost or LeaseLost(job_id, attempt, "no such job")
        run = self._pipeline(run_id)
        if run is None:
            return NotFound("pipeline_run", str(run_id))
        if run["state"] != "consolidating":
            return ConsolidationStep("over")
        self._start(job, now)
        me: dict[str, Any] = {"run": run_id, "job": job_id, "attempt": attempt, "now": now}
        if free := self._db.rows(_FREE, {"run": run_id, "job": job_id, "now": now}):
            n, first, last, tries = free[0]
            if tries >= tries_max:
                return ConsolidationStep("used_up", n, tries)
            self._db.change(_TAKE, {"run": run_id, "job": job_id, "attempt": attempt, "n": n, "tries": tries + 1})
            return ConsolidationStep("portion", n, tries + 1, self._records(run_id, first, last))
        if (portion := self._cut(run, me)) is not None:
            return portion
        if self._db.rows(_OPEN, {"run": run_id}):
            return ConsolidationStep("nothing")
        other = {"other_job": run["finisher_job_id"], "other_attempt": run["finisher_attempt"]}
        if run["finisher_job_id"] != job_id and self._db.rows(_FINISHER, other | {"now": now})[0][0]:
            return ConsolidationStep("nothing")
        tries = run["finisher_tries"]
        if tries and self._db.rows(_FINISHER_GIVEN_BACK, other)[0][0]:
            tries -= 1
        if tries >= tries_max:
            return ConsolidationStep("used_up", 0, tries)
        self._db.change(_FINISH, {"run": run_id, "job": job_id, "attempt": attempt, "tries": tries + 1})
        return ConsolidationStep("finish", 0, tries + 1)

    def _cut(self, run: Mapping[str, Any], me: Mapping[str, Any]) -> ConsolidationStep | None:
        """Make a portion for this job out of the next records that are in none."""
        bounds = {"run": me["run"], "after": run["cut_key"], "size": run["portion_size"]}
        ((first, last, records),) = self._db.rows(_NEXT, bounds)
        if not records:
            return None
        n = run["portions"] + 1
        insert, move = _CUT
        told = {"run": me["run"], "n": n, "last": last}
        self._db.change(insert, told | {"first": first, "records": records, "job": me["job"], "attempt": me["attempt"]})
        self._db.change(move, told)
        return ConsolidationStep("portion", n, 1, self._records(me["run"], first, last))

    def _records(self, run_id: int, first: str, last: str) -> tuple[tuple[str, str], ...]:
        return tuple((key, data) for key, data in self._db.rows(_RECORDS, (run_id, first, last)))

    def portion_done(self, run_id: int, n: int, job_id: int, attempt: int) -> Moved | DetentError:
        now = self._now()
        if lost := self._lost(self._jobs([job_id]).get(job_id), job_id, attempt, now):
            return lost
        run = self._pipeline(run_id)
        told = {"run": run_id, "n": n, "job": job_id, "attempt": attempt, "now": now}
        if run is None or run["state"] != "consolidating" or not self._db.change(_DONE, told):
            return LeaseLost(job_id, attempt, f"portion {n} of run {run_id} is not in its hands")
        if run["retires"]:
            self._db.change(_SEE, {"tenant": run["tenant"], "watermark": run["watermark"], "run": run_id, "n": n})
        return Moved(f"{run_id}/{n}", "done", True)

    def gone_take(self, run_id: int, job_id: int, attempt: int, limit: int) -> list[str] | DetentError:
        run = self._finishing(run_id, job_id, attempt)
        if isinstance(run, DetentError):
            return run
        if not run["retires"] or not run["is_full"] or run["parts_failed"] or not self._saw_any(run_id):
            return []
        found = self._db.rows(_GONE, (run["tenant"], run["watermark"], run_id, limit))
        return [key for (key,) in found]

    def _saw_any(self, run_id: int) -> bool:
        return bool(self._db.rows(_SAW_ANY, (run_id,))[0][0])

    def gone_done(self, run_id: int, job_id: int, attempt: int, keys: Sequence[str]) -> Moved | DetentError:
        run = self._finishing(run_id, job_id, attempt)
        if isinstance(run, DetentError):
            return run
        gone = self._db.change(_FORGET, (run["tenant"], run["watermark"], json.dumps(list(keys))))
        self._db.change(_RETIRED, (gone, run_id))
        return Moved(str(run_id), run["state"], bool(gone))

    def pipeline_complete(self, run_id: int, job_id: int, attempt: int) -> Moved | DetentError:
        """Complete the run and move its watermark in one transaction."""
        there = self._pipeline(run_id)
        if there is not None and there["state"] == "completed":
            return Moved(str(run_id), "completed", False)
        run = self._finishing(run_id, job_id, attempt)
        if isinstance(run, DetentError):
            return run
        if self._db.rows(_LEFT, {"run": run_id, "after": run["cut_key"]})[0][0]:
            return LeaseLost(job_id, attempt, f"run {run_id} has staged records that are not consolidated")
        at = max(self._now(), run["moved_at"])
        self._log_run(run["tenant"], run_id, "consolidating", "completed", "complete", "worker", None, at)
        self._db.change(_COMPLETE, (at, at, run_id))
        stands = (run["captured_at"], run_id, at, run["tenant"], run["watermark"])
        if not self._db.change(_MOVE, stands):
            self._db.change(_BEGIN, stands)
        return Moved(str(run_id), "completed", True)

    def _finishing(self, run_id: int, job_id: int, attempt: int) -> Mapping[str, Any] | DetentError:
        """Return the run, if this caller is the holder that ends it."""
        if lost := self._lost(self._jobs([job_id]).get(job_id), job_id, attempt, self._now()):
            return lost
        run = self._pipeline(run_id)
        mine = run is not None and (run["finisher_job_id"], run["finisher_attempt"]) == (job_id, attempt)
        if run is None or not mine or run["state"] != "consolidating":
            return LeaseLost(job_id, attempt, f"the end of run {run_id} is not in its hands")
        return run
