"""Counts of jobs on SQLite, and figures: how often and how fast jobs moved from state to state, by hour and task."""

from __future__ import annotations

from datetime import datetime

from detent.model.clock import from_micros, to_micros
from detent.model.figure_records import BatchCount, RateCount, TransitionCount
from detent.model.records import Count
from detent.model.service_records import DeadGroup, OldestReady, QueueDepth
from detent.model.stored_text import error_kind
from detent.store.jobs.filters import JobFilter
from detent.store.sqlite.verb_base import VerbBase

__all__ = ["SqliteCounts"]

_HOUR = 3_600_000_000

_KEY = ("task", "from_state", "to_state", "outcome", "bucket")
_FIGURES = f"""
SELECT {", ".join(_KEY)}, sum(moves), sum(held_us), max(held_us_max), sum(ran_us), max(ran_us_max), sum(waited_us),
       max(waited_us_max)
  FROM detent_transition_counts WHERE hour >= ?1 AND (?2 IS NULL OR task = ?2) AND (?3 IS NULL OR hour < ?3)
 GROUP BY {", ".join(_KEY)} ORDER BY {", ".join(_KEY)}
"""
_BATCH_FIGURES = """
SELECT batch, bucket, sum(applies), sum(runs), sum(applied), sum(failed), sum(ran_us), max(ran_us)
  FROM detent_batch_counts WHERE at >= ? GROUP BY batch, bucket ORDER BY batch, bucket
"""

_RATES = """
SELECT at - at % :step AS begin, to_state, outcome, bucket, sum(moves), sum(us), max(us_max)
  FROM detent_transition_rates WHERE at >= :since GROUP BY begin, to_state, outcome, bucket
 ORDER BY begin, to_state, outcome, bucket
"""
_DEPTHS = "SELECT queue, state, sum(jobs) FROM detent_queue_counts GROUP BY queue, state ORDER BY queue, state"
_OLDEST = """
WITH RECURSIVE standing (lane_id) AS (
  SELECT min(lane_id) FROM detent_ready
  UNION ALL
  SELECT (SELECT r.lane_id FROM detent_ready r WHERE r.lane_id > s.lane_id ORDER BY r.lane_id LIMIT 1)
    FROM standing s WHERE s.lane_id IS NOT NULL LIMIT 10000)
SELECT queue, task, job_id, ready_at
  FROM (SELECT l.queue, l.task, r.job_id, r.ready_at,
               row_number() OVER (PARTITION BY l.queue, l.task ORDER BY r.ready_at, r.job_id) AS place
          FROM standing s JOIN detent_lane l ON l.id = s.lane_id
          JOIN detent_ready r ON r.lane_id = s.lane_id AND (r.ready_at, r.job_id) = (
            SELECT o.ready_at, o.job_id FROM detent_ready o WHERE o.lane_id = s.lane_id
             ORDER BY o.ready_at, o.job_id LIMIT 1))
 WHERE place = 1 ORDER BY queue, task
"""

_FITS = """(:state IS NULL OR state = :state) AND (:task IS NULL OR task = :task)
   AND (:queue IS NULL OR queue = :queue)"""
_COUNT = f"SELECT coalesce(sum(jobs), 0) FROM detent_queue_counts WHERE {_FITS}"
_COUNT_OF_TENANT = f"SELECT coalesce(sum(jobs), 0) FROM detent_job_counts WHERE {_FITS} AND tenant = :tenant"
_DEAD = DeadGroup.__struct_fields__
# differs: PostgreSQL has a function of its own for the kind of an error, in the same words.
_REPORT = """
SELECT task, queue, reason, kind, count(*), sum(attempt), min(quarantined_at), max(quarantined_at), max(job_id)
  FROM (SELECT d.task, d.queue, d.reason, detent_error_kind(j.error) AS kind, j.attempt, d.quarantined_at, d.job_id
          FROM (SELECT * FROM detent_dead
                 WHERE (:task IS NULL OR task = :task) AND (:queue IS NULL OR queue = :queue)
                   AND (:tenant IS NULL OR tenant = :tenant)
                 ORDER BY job_id DESC LIMIT 10000) d CROSS JOIN detent_job j ON j.id = d.job_id)
 GROUP BY task, queue, reason, kind
 ORDER BY count(*) DESC, max(job_id) DESC, task, queue, reason, kind
 LIMIT :limit
"""

_COUNTS = """
SELECT tenant, queue, state, sum(jobs) FROM detent_job_counts WHERE ?1 IS NULL OR tenant = ?1
 GROUP BY tenant, queue, state ORDER BY 1, 2, 3
"""
_COUNTS_AS_OF = """
SELECT j.tenant, j.queue, then_.to_state, count(*)
  FROM (SELECT job_id, to_state,
               row_number() OVER (PARTITION BY job_id ORDER BY attempt DESC, rank DESC, n DESC) AS back
          FROM detent_transition WHERE entity = 'job' AND at <= ?) then_
  JOIN detent_job j ON j.id = then_.job_id
 WHERE then_.back = 1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


class SqliteCounts(VerbBase):
    """Counts and figures."""

    def figures(self, since: datetime, task: str | None = None, until: datetime | None = None) -> list[TransitionCount]:
        at = to_micros(since, field="since")
        end = None if until is None else to_micros(until, field="until")
        where = (at - at % _HOUR, task, None if end is None else end - end % _HOUR)
        return [TransitionCount(*row) for row in self._db.rows(_FIGURES, where)]

    def rates(self, since: datetime, seconds: int) -> list[RateCount]:
        where = {"since": to_micros(since, field="since"), "step": seconds * 1_000_000}
        return [RateCount(from_micros(row[0]), *row[1:]) for row in self._db.rows(_RATES, where)]

    def queue_depths(self) -> list[QueueDepth]:
        return [QueueDepth(*row) for row in self._db.rows(_DEPTHS)]

    def ready_oldest(self) -> list[OldestReady]:
        return [OldestReady(queue, task, job_id, from_micros(at)) for queue, task, job_id, at in self._db.rows(_OLDEST)]

    def batch_figures(self, since: datetime) -> list[BatchCount]:
        at = to_micros(since, field="since")
        return [BatchCount(*row) for row in self._db.rows(_BATCH_FIGURES, (at - at % _HOUR,))]

    def job_count(self, chosen: JobFilter) -> int:
        where = {"state": chosen.state, "task": chosen.task, "queue": chosen.queue}
        if chosen.tenant is None:
            return int(self._db.rows(_COUNT, where)[0][0])
        return int(self._db.rows(_COUNT_OF_TENANT, where | {"tenant": chosen.tenant})[0][0])

    def dead_report(self, task: str | None, queue: str | None, tenant: str | None, limit: int) -> list[DeadGroup]:
        """Group in SQLite, which calls `error_kind` for each error."""
        self._db.create_function("detent_error_kind", error_kind)
        where = {"task": task, "queue": queue, "tenant": tenant, "limit": limit}
        found = [dict(zip(_DEAD, row, strict=True)) for row in self._db.rows(_REPORT, where)]
        return [
            DeadGroup(**row | {name: from_micros(row[name]) for name in ("oldest_at", "newest_at")}) for row in found
        ]

    def counts(self, tenant: str | None = None) -> list[Count]:
        return [Count(*row) for row in self._db.rows(_COUNTS, (tenant,))]

    def counts_as_of(self, at: datetime) -> list[Count]:
        return [Count(*row) for row in self._db.rows(_COUNTS_AS_OF, (to_micros(at, field="at"),))]
