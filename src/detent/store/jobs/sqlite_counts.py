"""Counts of jobs on SQLite, and figures: how often and how fast jobs moved from state to state, by hour and task."""

from __future__ import annotations

from datetime import datetime

from detent.model.clock import from_micros, to_micros
from detent.model.figure_records import BatchCount, TransitionCount
from detent.model.records import Count
from detent.model.service_records import DeadGroup
from detent.model.stored_text import error_kind
from detent.store.jobs.filters import JobFilter
from detent.store.sqlite.verb_base import VerbBase

__all__ = ["SqliteCounts"]

_HOUR = 3_600_000_000
_KEPT = 31 * 24 * _HOUR

_KEY = ("task", "from_state", "to_state", "outcome", "bucket")
_FIGURES = f"""
SELECT {", ".join(_KEY)}, sum(moves), sum(held_us), max(held_us_max), sum(ran_us), max(ran_us_max), sum(waited_us),
       max(waited_us_max)
  FROM detent_transition_counts WHERE hour >= ? AND (?2 IS NULL OR task = ?2)
 GROUP BY {", ".join(_KEY)} ORDER BY {", ".join(_KEY)}
"""
_BATCH_FIGURES = """
SELECT batch, bucket, sum(applies), sum(runs), sum(applied), sum(failed), sum(ran_us), max(ran_us)
  FROM detent_batch_counts WHERE at >= ? GROUP BY batch, bucket ORDER BY batch, bucket
"""

# The bucket of a time: its first two digits, rounded down to one of twelve steps, and a zero for each further digit.
# `_STEPS` has the step for each pair of digits from 10 to 99.
_STEPS = (
    "101012121215151518181818222222222227272727272733333333333339393939393939394747474747474747"
    "475656565656565656565656566868686868686868686868686868828282828282828282828282828282828282"
)
_BUCKET = f"""CASE WHEN ran_us IS NULL THEN -1 WHEN ran_us < 10 THEN ran_us ELSE
  CAST(substr('{_STEPS}', 2 * CAST(substr(ran_us, 1, 2) AS INTEGER) - 19, 2)
       || substr('0000000000000000', 1, length(ran_us) - 2) AS INTEGER) END"""
_ADD = """
INSERT INTO detent_transition_hour
  (hour, task, from_state, to_state, outcome, bucket, moves, held_us, held_us_max, ran_us, ran_us_max, waited_us,
   waited_us_max)
"""
_TIMES = f"""{_BUCKET} AS bucket, count(*), sum(held_us), max(held_us), coalesce(sum(ran_us), 0),
       coalesce(max(ran_us), 0), sum(waited_us), max(waited_us)"""
_TO_THE_OTHERS = """
ON CONFLICT (hour, task, from_state, to_state, outcome, bucket) DO UPDATE
  SET moves = moves + excluded.moves, held_us = held_us + excluded.held_us,
      held_us_max = max(held_us_max, excluded.held_us_max), ran_us = ran_us + excluded.ran_us,
      ran_us_max = max(ran_us_max, excluded.ran_us_max), waited_us = waited_us + excluded.waited_us,
      waited_us_max = max(waited_us_max, excluded.waited_us_max)
"""
_DELTAS = "SELECT count(*), max(n) FROM (SELECT n FROM detent_transition_delta ORDER BY n LIMIT ?)"
_ADD_DELTAS = f"""{_ADD}
SELECT at - at % {_HOUR} AS hour, task, from_state, to_state, outcome, {_TIMES}
  FROM detent_transition_delta WHERE n <= ? GROUP BY hour, task, from_state, to_state, outcome, bucket
{_TO_THE_OTHERS}"""
_DELTAS_ADDED = "DELETE FROM detent_transition_delta WHERE n <= ?"
_ADD_SUCCEEDED = f"""{_ADD}
SELECT hour, task, 'running', 'succeeded', 'done', {_TIMES}
  FROM (SELECT j.finished_at - j.finished_at % {_HOUR} AS hour, j.task,
               coalesce(min(max(j.finished_at - j.leased_at, 0), 8640000000000), 0) AS held_us,
               min(max(j.finished_at - j.started_at, 0), 8640000000000) AS ran_us,
               coalesce(min(max(j.leased_at - max(j.created_at, j.due_at), 0), 8640000000000), 0) AS waited_us
          FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
          CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded'
         WHERE b.n <= ? AND j.finished_at IS NOT NULL LIMIT -1)
 GROUP BY hour, task, bucket
{_TO_THE_OTHERS}"""
_OLD_HOUR_GOES = """
DELETE FROM detent_transition_hour WHERE hour = (SELECT min(hour) FROM detent_transition_hour) AND hour < ?
"""

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

_COUNTS = "SELECT tenant, queue, state, sum(jobs) FROM detent_job_counts GROUP BY tenant, queue, state ORDER BY 1, 2, 3"
_COUNTS_AS_OF = """
SELECT j.tenant, j.queue, then_.to_state, count(*)
  FROM (SELECT job_id, to_state,
               row_number() OVER (PARTITION BY job_id ORDER BY attempt DESC, rank DESC, n DESC) AS back
          FROM detent_transition WHERE entity = 'job' AND at <= ?) then_
  JOIN detent_job j ON j.id = then_.job_id
 WHERE then_.back = 1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
_DELTAS_PER_BATCH = 50
"""A batch stands for many jobs, a delta for one."""
_FINISHED_DELTAS = "SELECT n, tenant, queue, task, state, jobs FROM detent_finished_delta ORDER BY n LIMIT ?"
_FOLD = """
INSERT INTO detent_finished_count (tenant, queue, task, state, jobs) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, queue, task, state) DO UPDATE SET jobs = jobs + excluded.jobs
"""
_FOLDED = "DELETE FROM detent_finished_delta WHERE n <= ?"
_BATCHES = "SELECT n FROM detent_succeeded_batch ORDER BY n LIMIT ?"
_FOLD_BATCHES = """
INSERT INTO detent_finished_count (tenant, queue, task, state, jobs)
SELECT j.tenant, j.queue, j.task, j.state, count(*)
  FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
  CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded'
 WHERE b.n <= ? GROUP BY j.tenant, j.queue, j.task, j.state
ON CONFLICT (tenant, queue, task, state) DO UPDATE SET jobs = jobs + excluded.jobs
"""
_BATCHES_FOLDED = "DELETE FROM detent_succeeded_batch WHERE n <= ?"


class SqliteCounts(VerbBase):
    """Counts and figures."""

    def figures(self, since: datetime, task: str | None = None) -> list[TransitionCount]:
        at = to_micros(since, field="since")
        return [TransitionCount(*row) for row in self._db.rows(_FIGURES, (at - at % _HOUR, task))]

    def batch_figures(self, since: datetime) -> list[BatchCount]:
        at = to_micros(since, field="since")
        return [BatchCount(*row) for row in self._db.rows(_BATCH_FIGURES, (at - at % _HOUR,))]

    def job_count(self, chosen: JobFilter) -> int:
        return int(
            self._db.rows(
                _COUNT, {"state": chosen.state, "task": chosen.task, "queue": chosen.queue, "tenant": chosen.tenant}
            )[0][0]
        )

    def dead_report(self, task: str | None, queue: str | None, tenant: str | None, limit: int) -> list[DeadGroup]:
        """Group in SQLite, which calls `error_kind` for each error."""
        self._db.create_function("detent_error_kind", error_kind)
        where = {"task": task, "queue": queue, "tenant": tenant, "limit": limit}
        found = [dict(zip(_DEAD, row, strict=True)) for row in self._db.rows(_REPORT, where)]
        return [
            DeadGroup(**row | {name: from_micros(row[name]) for name in ("oldest_at", "newest_at")}) for row in found
        ]

    def counts(self) -> list[Count]:
        return [Count(*row) for row in self._db.rows(_COUNTS)]

    def counts_as_of(self, at: datetime) -> list[Count]:
        return [Count(*row) for row in self._db.rows(_COUNTS_AS_OF, (to_micros(at, field="at"),))]

    def counts_fold(self, limit: int) -> int:
        moves = self._add_moves(_DELTAS_PER_BATCH * limit)
        changes = self._db.rows(_FINISHED_DELTAS, (_DELTAS_PER_BATCH * limit,))
        if changes:
            self._db.change_many(_FOLD, [row[1:] for row in changes])
            self._db.change(_FOLDED, (changes[-1][0],))
        batches = self._db.rows(_BATCHES, (limit,))
        if batches:
            self._db.change(_FOLD_BATCHES, batches[-1])
            self._add_succeeded(batches[-1][0])
            self._db.change(_BATCHES_FOLDED, batches[-1])
        return moves + len(changes) + len(batches)

    def _add_moves(self, limit: int) -> int:
        """Add the oldest moves to their hours, and delete one hour that is too old."""
        ((count, last),) = self._db.rows(_DELTAS, (limit,))
        if count:
            self._db.change(_ADD_DELTAS, (last,))
            self._db.change(_DELTAS_ADDED, (last,))
        self._db.change(_OLD_HOUR_GOES, (self._now() - _KEPT,))
        return int(count)

    def _add_succeeded(self, last: int) -> None:
        """Add batches of jobs that succeeded together, up to this one. Their rows must still exist."""
        self._db.change(_ADD_SUCCEEDED, (last,))
