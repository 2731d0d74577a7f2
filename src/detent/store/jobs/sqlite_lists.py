"""Lists of jobs on SQLite. A search reads jobs in portions, newest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from detent.errors import UnknownState
from detent.lifecycle.library import JOB
from detent.model.clock import from_micros, to_micros
from detent.model.records import EventRow, ExecutionRow, JobDetails, JobPage, JobPlace, JobRow
from detent.store.jobs.filters import (
    FEW_MAX,
    LOOKS_MAX,
    PORTION,
    JobSearch,
    bounds_of,
    page_of,
)
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import VerbBase, fields_named, ids_json

__all__ = ["FITS", "JOB_COLUMNS", "SqliteLists", "json_of"]

_JOB_FIELDS = JobRow.__struct_fields__

JOB_COLUMNS = ", ".join("j." + name for name in _JOB_FIELDS)

_AFTER = "(created_at, id) < (:after_at, :after_id) AND created_at >= :since"
_WALK = "SELECT id, created_at FROM detent_job WHERE {which} ORDER BY created_at DESC, id DESC LIMIT :step"
# The plus keeps SQLite from making an index on all jobs for this one statement. A job in two spans counts once.
_BY_TIME = """
SELECT j.id, j.created_at
  FROM detent_job_span s
 CROSS JOIN detent_job j ON j.id BETWEEN s.first_id AND s.last_id AND +j.created_at = s.created_at
 WHERE (s.created_at, s.block) <= (:after_at, :after_id >> 10) AND s.created_at >= :since
   AND (j.created_at, j.id) < (:after_at, :after_id)
   AND NOT EXISTS (SELECT 1 FROM detent_job_span o
                    WHERE o.created_at = s.created_at AND o.block = s.block
                      AND o.first_id > s.first_id AND o.first_id <= j.id AND o.last_id >= j.id)
 ORDER BY s.created_at DESC, s.block DESC, j.id DESC LIMIT :step
"""
_BY_RUN = _WALK.format(which=f"run_id = :run_id AND {_AFTER}")
_BY_CORRELATION = _WALK.format(which=f"correlation_id = :correlation_id AND {_AFTER}")
_BY_KEY = "SELECT job_id FROM detent_job_key WHERE tenant = coalesce(:tenant, '') AND key = :key"
_OF_STATE = {
    "running": "SELECT held.value FROM detent_lease l CROSS JOIN json_each(l.job_ids) held LIMIT :few",
    "quarantined": "SELECT job_id FROM detent_dead LIMIT :few",
    "failed": "SELECT job_id FROM detent_unsuccessful WHERE state = 'failed' LIMIT :few",
    "cancelled": "SELECT job_id FROM detent_unsuccessful WHERE state = 'cancelled' LIMIT :few",
    "pending": "SELECT job_id FROM detent_ready UNION ALL SELECT job_id FROM detent_waiting LIMIT :few",
}
FITS = """
   AND (:state IS NULL OR j.state = :state) AND (:task IS NULL OR j.task = :task)
   AND (:queue IS NULL OR j.queue = :queue) AND (:tenant IS NULL OR j.tenant = :tenant)
   AND (:correlation_id IS NULL OR j.correlation_id = :correlation_id) AND (:run_id IS NULL OR j.run_id = :run_id)
   AND (:worker IS NULL
        OR EXISTS (SELECT 1 FROM detent_execution e WHERE e.job_id = j.id AND e.worker = :worker)
        OR EXISTS (SELECT 1 FROM detent_lease l WHERE l.id = j.lease_id AND j.state = 'running' AND l.worker = :worker))
   AND (:error IS NULL OR instr(j.error, :error) > 0
        OR EXISTS (SELECT 1 FROM detent_execution e WHERE e.job_id = j.id AND instr(e.error, :error) > 0))
   AND (:metadata IS NULL OR CASE WHEN json_valid(j.metadata) THEN NOT EXISTS (
          SELECT 1 FROM json_each(:metadata) wanted WHERE NOT EXISTS (
            SELECT 1 FROM json_each(j.metadata) has CROSS JOIN json_each(wanted.value, '$[1]') allowed
             WHERE has.key = wanted.value ->> '$[0]' AND has.value IS allowed.value
               AND has.type NOT IN ('array', 'object')
               AND (has.type = allowed.type OR has.type IN ('integer', 'real') AND allowed.type IN ('integer', 'real'))
          )) ELSE false END)
"""
"""The filters of a search, about the job j."""
_FITTING = f"""
SELECT {JOB_COLUMNS} FROM json_each(:ids) asked CROSS JOIN detent_job j ON j.id = asked.value
 WHERE (j.created_at, j.id) < (:after_at, :after_id) AND j.created_at >= :since {FITS}
 ORDER BY j.created_at DESC, j.id DESC LIMIT :limit
"""
_DETAILS = """
SELECT j.id, (SELECT k.key FROM detent_job_key k WHERE k.job_id = j.id ORDER BY k.key LIMIT 1),
       CASE WHEN j.state = 'running' THEN (SELECT l.worker FROM detent_lease l WHERE l.id = j.lease_id)
            ELSE (SELECT e.worker FROM detent_execution e WHERE e.job_id = j.id ORDER BY e.attempt DESC LIMIT 1) END,
       (SELECT p.payload FROM (SELECT e.payload, e.seq FROM detent_event e
                                WHERE e.job_id = j.id AND e.attempt = j.attempt ORDER BY e.seq DESC LIMIT 100) p
         WHERE substr(p.payload, 1, 8) = '{"done":' ORDER BY p.seq DESC LIMIT 1),
       (SELECT e.payload FROM detent_event e WHERE e.job_id = j.id AND e.message = 'status' ORDER BY e.seq DESC LIMIT 1)
  FROM json_each(?) asked CROSS JOIN detent_job j ON j.id = asked.value ORDER BY j.id
"""

_GET = f"SELECT {JOB_COLUMNS} FROM json_each(?) asked JOIN detent_job j ON j.id = asked.value"
_EXECUTION_FIELDS = ExecutionRow.__struct_fields__
_EXECUTIONS = f"SELECT {', '.join(_EXECUTION_FIELDS)} FROM detent_executions WHERE job_id = ? ORDER BY attempt"
_EVENT_FIELDS = EventRow.__struct_fields__
_EVENTS = f"""
SELECT {", ".join(_EVENT_FIELDS)} FROM detent_event WHERE job_id = ? AND seq > ? ORDER BY seq LIMIT ?
"""


class SqliteLists(VerbBase):
    """Lists of jobs, of their attempts and of their events."""

    def job_get(self, ids: Sequence[int]) -> list[JobRow | None]:
        found = {row[0]: self._job(row) for row in self._db.rows(_GET, (ids_json(dict.fromkeys(ids)),))}
        return [found.get(job_id) for job_id in ids]

    def _job(self, row: Row) -> JobRow:
        job = JobRow(**fields_named(_JOB_FIELDS, row))
        if job.state not in JOB.states:
            known = tuple(JOB.states)
            raise UnknownState(self._database, "nothing was changed", "job", str(job.id), job.state, known)
        return job

    def job_list(
        self, chosen: JobSearch, after: JobPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
    ) -> JobPage:
        """Read in portions until the page is full."""
        since, place = bounds_of(chosen, after)
        asked = {
            **{name: getattr(chosen, name) for name in ("state", "task", "queue", "tenant", "key", "correlation_id")},
            **{name: getattr(chosen, name) for name in ("run_id", "worker", "error")},
            "metadata": json_of(chosen.metadata),
            "since": to_micros(since, field="since"),
        }
        few = [row[0] for row in self._db.rows(_BY_KEY, asked)] if chosen.key is not None else None
        # Without other filters the first portion is the page.
        step, looked, portion, found = limit, 0, 0, list[JobRow]()
        while True:
            portion += 1
            if portion == 3 and few is None:
                few = self._of_state(chosen, min(looks, FEW_MAX))
            at = {"after_at": to_micros(place.created_at, field="until"), "after_id": place.id}
            walked = None if few is not None else self._next_ids(chosen, asked | at | {"step": step})
            ids = few if walked is None else [row[0] for row in walked]
            fits = asked | at | {"ids": ids_json(ids or ()), "limit": limit - len(found)}
            found += [JobRow(**fields_named(_JOB_FIELDS, row)) for row in self._db.rows(_FITTING, fits)]
            if walked is None or len(found) >= limit or len(walked) < step:
                return page_of(found, limit, None)
            looked += len(walked)
            place = JobPlace(from_micros(walked[-1][1]), walked[-1][0])
            if looked >= looks:
                return page_of(found, limit, place)
            step = max(limit, PORTION)

    def _of_state(self, chosen: JobSearch, few_max: int) -> list[int] | None:
        """Return the jobs of a state that has its own rows, if they are few; else None. The search asks for them if the
        newest jobs do not fill its page."""
        if chosen.run_id is not None or chosen.correlation_id is not None or chosen.state not in _OF_STATE:
            return None
        ids = [row[0] for row in self._db.rows(_OF_STATE[chosen.state], {"few": few_max + 1})]
        return list(dict.fromkeys(ids)) if len(ids) <= few_max else None

    def _next_ids(self, chosen: JobSearch, asked: dict[str, Any]) -> list[Row]:
        """Return the next portion of ids, by the most selective index."""
        if chosen.run_id is not None:
            return self._db.rows(_BY_RUN, asked)
        return self._db.rows(_BY_TIME if chosen.correlation_id is None else _BY_CORRELATION, asked)

    def job_details(self, ids: Sequence[int]) -> list[JobDetails]:
        return [JobDetails(*row) for row in self._db.rows(_DETAILS, (ids_json(dict.fromkeys(ids)),))]

    def job_executions(self, job_id: int) -> list[ExecutionRow]:
        rows = self._db.rows(_EXECUTIONS, (job_id,))
        return [ExecutionRow(**fields_named(_EXECUTION_FIELDS, row)) for row in rows]

    def job_events(self, job_id: int, after_seq: int = 0, limit: int = 1000) -> list[EventRow]:
        rows = self._db.rows(_EVENTS, (job_id, after_seq, limit))
        return [EventRow(**fields_named(_EVENT_FIELDS, row)) for row in rows]

    def now(self) -> datetime:
        """Return the time of the injected clock: SQLite has none of its own."""
        return from_micros(self._now())


def json_of(metadata: Sequence[tuple[str, str]]) -> str | None:
    """Names and the values that fit, as one JSON array of pairs; the values are JSON already."""
    return "[" + ",".join(f"[{json.dumps(name)},{values}]" for name, values in metadata) + "]" if metadata else None
