"""Figures: how often jobs moved from state to state, by hour and task, and how long that took."""

from __future__ import annotations

from datetime import datetime

from detent.model.clock import to_micros
from detent.model.figure_records import BatchCount, TransitionCount
from detent.store.sqlite.verbs.base import VerbBase

__all__ = ["FigureVerbs"]

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


class FigureVerbs(VerbBase):
    """`figures` and `batch_figures`, and what `counts_fold` adds to them."""

    def figures(self, since: datetime, task: str | None = None) -> list[TransitionCount]:
        """From the view, by its hours."""
        at = to_micros(since, field="since")
        return [TransitionCount(*row) for row in self._db.rows(_FIGURES, (at - at % _HOUR, task))]

    def batch_figures(self, since: datetime) -> list[BatchCount]:
        """From the runs that ended since."""
        at = to_micros(since, field="since")
        return [BatchCount(*row) for row in self._db.rows(_BATCH_FIGURES, (at - at % _HOUR,))]

    def _add_moves(self, limit: int) -> int:
        """Add the oldest moves to their hours; and drop one hour that is too old."""
        ((count, last),) = self._db.rows(_DELTAS, (limit,))
        if count:
            self._db.change(_ADD_DELTAS, (last,))
            self._db.change(_DELTAS_ADDED, (last,))
        self._db.change(_OLD_HOUR_GOES, (self._now() - _KEPT,))
        return int(count)

    def _add_succeeded(self, last: int) -> None:
        """Add the batches of jobs that succeeded together, up to this one. They must be there still."""
        self._db.change(_ADD_SUCCEEDED, (last,))
