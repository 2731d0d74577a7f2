"""Adding up what has changed on SQLite: counts of jobs at rest, figures of the hour, rates of the minute."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from detent.store.sqlite.verb_base import VerbBase

__all__ = ["SqliteFold", "bucket_of"]

_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE
_KEPT = 31 * 24 * _HOUR
_MINUTES_KEPT = 6 * _HOUR
_DELTAS_PER_BATCH = 50
"""A batch stands for many jobs, a delta for one."""

# The bucket of a time: its first two digits, rounded down to one of twelve steps, and a zero for each further digit.
# `_STEPS` has the step for each pair of digits from 10 to 99.
_STEPS = (
    "101012121215151518181818222222222227272727272733333333333339393939393939394747474747474747"
    "475656565656565656565656566868686868686868686868686868828282828282828282828282828282828282"
)
_DIGITS = sorted({int(_STEPS[at : at + 2]) for at in range(0, len(_STEPS), 2)})
_STARTS = [*range(10), *(digits * 10**zeros for zeros in range(12) for digits in _DIGITS)]
"""Where the buckets begin."""


def bucket_of(time: str) -> str:
    """Return the expression for the bucket of a time in microseconds, which another expression gives."""
    return f"""CASE WHEN {time} IS NULL THEN -1 WHEN {time} < 10 THEN {time} ELSE
  CAST(substr('{_STEPS}', 2 * CAST(substr({time}, 1, 2) AS INTEGER) - 19, 2)
       || substr('0000000000000000', 1, length({time}) - 2) AS INTEGER) END"""


_ADD_TO_HOUR = """
INSERT INTO detent_transition_hour
  (hour, task, from_state, to_state, outcome, bucket, moves, ran_us, ran_us_max, held_us, held_us_max, waited_us,
   waited_us_max)
"""
_HOUR_EXISTS = """
ON CONFLICT (hour, task, from_state, to_state, outcome, bucket) DO UPDATE
  SET moves = moves + excluded.moves, held_us = held_us + excluded.held_us,
      held_us_max = max(held_us_max, excluded.held_us_max), ran_us = ran_us + excluded.ran_us,
      ran_us_max = max(ran_us_max, excluded.ran_us_max), waited_us = waited_us + excluded.waited_us,
      waited_us_max = max(waited_us_max, excluded.waited_us_max)
"""
_ADD_TO_RATE = "INSERT INTO detent_transition_rate (seconds, at, to_state, outcome, bucket, moves, us, us_max)"
_RATE_EXISTS = """
ON CONFLICT (seconds, at, to_state, outcome, bucket) DO UPDATE
  SET moves = moves + excluded.moves, us = us + excluded.us, us_max = max(us_max, excluded.us_max)
"""
_TIMES = """count(*), coalesce(sum(ran_us), 0), coalesce(max(ran_us), 0), sum(held_us), max(held_us), sum(waited_us),
       max(waited_us)"""

_DELTAS = "SELECT count(*), max(n) FROM (SELECT n FROM detent_transition_delta ORDER BY n LIMIT ?)"
_HOURS_OF_DELTAS = f"""{_ADD_TO_HOUR}
SELECT at - at % {_HOUR} AS hour, task, from_state, to_state, outcome, {bucket_of("ran_us")} AS bucket, {_TIMES}
  FROM detent_transition_delta WHERE n <= ? GROUP BY hour, task, from_state, to_state, outcome, bucket
{_HOUR_EXISTS}"""
_RATES_OF_DELTAS = f"""{_ADD_TO_RATE}
SELECT 60, minute, to_state, outcome, {bucket_of("us")} AS bucket, count(*), coalesce(sum(us), 0), coalesce(max(us), 0)
  FROM (SELECT at - at % {_MINUTE} AS minute, to_state, outcome, ran_us AS us
          FROM detent_transition_delta WHERE n <= ?1
        UNION ALL
        SELECT at - at % {_MINUTE}, 'running', '', waited_us
          FROM detent_transition_delta WHERE n <= ?1 AND outcome <> '')
 WHERE true GROUP BY minute, to_state, outcome, bucket
{_RATE_EXISTS}"""
_DELTAS_ADDED = "DELETE FROM detent_transition_delta WHERE n <= ?"

_FINISHED_DELTAS = "SELECT n, tenant, queue, task, state, jobs FROM detent_finished_delta ORDER BY n LIMIT ?"
_ADD_TO_COUNT = """
INSERT INTO detent_finished_count (tenant, queue, task, state, jobs) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, queue, task, state) DO UPDATE SET jobs = jobs + excluded.jobs
"""
_ADD_TO_TOTAL = """
INSERT INTO detent_finished_total (queue, task, state, jobs) VALUES (?, ?, ?, ?)
ON CONFLICT (queue, task, state) DO UPDATE SET jobs = jobs + excluded.jobs
"""
_FINISHED_DELTAS_ADDED = "DELETE FROM detent_finished_delta WHERE n <= ?"

_BATCHES = "SELECT n FROM detent_succeeded_batch ORDER BY n LIMIT ?"
_JOBS_OF_BATCHES = f"""
SELECT j.tenant, j.queue, j.task, j.finished_at - j.finished_at % {_MINUTE},
       min(max(j.finished_at - j.started_at, 0), 8640000000000),
       coalesce(min(max(j.finished_at - j.leased_at, 0), 8640000000000), 0),
       coalesce(min(max(j.leased_at - max(j.created_at, j.due_at), 0), 8640000000000), 0)
  FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
  CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded'
 WHERE b.n <= ?
"""
_ANNOUNCES = "SELECT 1 FROM detent_announced_task LIMIT 1"
_ANNOUNCE = """
INSERT INTO detent_failure_report (job_id, attempt, task)
SELECT j.id, j.attempt, j.task
  FROM detent_succeeded_batch b CROSS JOIN json_each(b.job_ids) u
  CROSS JOIN detent_job j ON j.id = u.value AND j.state = 'succeeded'
 WHERE b.n <= ? AND j.task IN (SELECT task FROM detent_announced_task)
ON CONFLICT (job_id, attempt) DO NOTHING
"""
_BATCHES_ADDED = "DELETE FROM detent_succeeded_batch WHERE n <= ?"
_ADD_HOUR = f"{_ADD_TO_HOUR} VALUES (?, ?, 'running', 'succeeded', 'done', ?, ?, ?, ?, ?, ?, ?, ?) {_HOUR_EXISTS}"
_ADD_RATE = f"{_ADD_TO_RATE} VALUES (60, ?, ?, ?, ?, ?, ?, ?) {_RATE_EXISTS}"

_OLDEST = """
SELECT (SELECT min(hour) FROM detent_transition_hour), (SELECT min(at) FROM detent_transition_rate WHERE seconds = 60)
"""
_HOUR_GOES = "DELETE FROM detent_transition_hour WHERE hour = ?"
_RATES_GO = "DELETE FROM detent_transition_rate WHERE seconds IN (60, 3600) AND at >= ? AND at < ?"
_JOIN_MINUTES = f"""{_ADD_TO_RATE}
SELECT 3600, ?1, to_state, outcome, bucket, sum(moves), sum(us), max(us_max)
  FROM detent_transition_rate WHERE seconds = 60 AND at >= ?1 AND at < ?2 GROUP BY to_state, outcome, bucket
{_RATE_EXISTS}"""
_MINUTES_GO = "DELETE FROM detent_transition_rate WHERE seconds = 60 AND at >= ? AND at < ?"


class SqliteFold(VerbBase):
    """`counts_fold`."""

    def counts_fold(self, limit: int) -> int:
        moves = self._add_moves(_DELTAS_PER_BATCH * limit)
        changes = self._db.rows(_FINISHED_DELTAS, (_DELTAS_PER_BATCH * limit,))
        if changes:
            self._add_counts([row[1:] for row in changes])
            self._db.change(_FINISHED_DELTAS_ADDED, (changes[-1][0],))
        batches = self._db.rows(_BATCHES, (limit,))
        if batches:
            self._add_succeeded(self._db.rows(_JOBS_OF_BATCHES, batches[-1]))
            if self._db.rows(_ANNOUNCES):
                self._db.change(_ANNOUNCE, batches[-1])
            self._db.change(_BATCHES_ADDED, batches[-1])
        self._drop_old()
        return moves + len(changes) + len(batches)

    def _add_moves(self, limit: int) -> int:
        """Add the oldest moves to their hours and minutes."""
        ((count, last),) = self._db.rows(_DELTAS, (limit,))
        if count:
            self._db.change(_HOURS_OF_DELTAS, (last,))
            self._db.change(_RATES_OF_DELTAS, (last,))
            self._db.change(_DELTAS_ADDED, (last,))
        return int(count)

    def _add_succeeded(self, jobs: Iterable[Sequence[Any]]) -> None:
        """Add jobs that succeeded together. They are read once, for everything that they are added to."""
        groups, waits = _grouped(jobs)
        counts: dict[tuple[str, str, str], int] = defaultdict(int)
        hours: dict[tuple[int, str, int], list[int]] = {}
        rates: dict[tuple[int, str, str, int], list[int]] = {}
        for (tenant, queue, task, minute, bucket), figures in groups.items():
            counts[tenant, queue, task] += figures[0]
            if minute is not None:  # damaged otherwise; `verify` finds it
                _add(hours, (minute - minute % _HOUR, task, bucket), figures)
                _add(rates, (minute, "succeeded", "done", bucket), figures[:3])
        for (minute, bucket), figures in waits.items():
            if minute is not None:
                rates[minute, "running", "", bucket] = figures
        self._add_counts([(*key, "succeeded", number) for key, number in counts.items()])
        self._db.change_many(_ADD_HOUR, [(*key, *figures) for key, figures in hours.items()])
        self._db.change_many(_ADD_RATE, [(*key, *figures) for key, figures in rates.items()])

    def _add_counts(self, changes: Sequence[Any]) -> None:
        """Add changes of tenant, queue, task and state to the counts, and to the totals of all tenants."""
        totals: dict[tuple[str, str, str], int] = defaultdict(int)
        for _, queue, task, state, jobs in changes:
            totals[queue, task, state] += jobs
        self._db.change_many(_ADD_TO_COUNT, changes)
        self._db.change_many(_ADD_TO_TOTAL, [(*key, jobs) for key, jobs in totals.items()])

    def _drop_old(self) -> None:
        """Delete one hour that is too old, and make one row of the minutes of an hour that ended long ago."""
        ((hour, minute),) = self._db.rows(_OLDEST)
        now = self._now()
        if minute is not None and (start := minute - minute % _HOUR) < (kept := now - _MINUTES_KEPT) - kept % _HOUR:
            self._db.change(_JOIN_MINUTES, (start, start + _HOUR))
            self._db.change(_MINUTES_GO, (start, start + _HOUR))
        if hour is not None and hour < now - _KEPT:
            self._db.change(_HOUR_GOES, (hour,))
            self._db.change(_RATES_GO, (hour, hour + _HOUR))


def _grouped(jobs: Iterable[Sequence[Any]]) -> tuple[dict[Any, list[int]], dict[Any, list[int]]]:
    """Return the number of jobs and their times, each a sum and a maximum, by tenant, queue, task, minute and bucket;
    and the number and the waiting times by minute and bucket. Plain statements, because it runs once for each job."""
    groups: dict[Any, list[int]] = {}
    waits: dict[Any, list[int]] = {}
    starts = _STARTS
    for tenant, queue, task, minute, ran, held, waited in jobs:
        key = (tenant, queue, task, minute, -1 if ran is None else starts[bisect_right(starts, ran) - 1])
        ran = ran or 0
        if (found := groups.get(key)) is None:
            groups[key] = [1, ran, ran, held, held, waited, waited]
        else:
            found[0] += 1
            found[1] += ran
            found[3] += held
            found[5] += waited
            if ran > found[2]:
                found[2] = ran
            if held > found[4]:
                found[4] = held
            if waited > found[6]:
                found[6] = waited
        wait_key = (minute, starts[bisect_right(starts, waited) - 1])
        if (found := waits.get(wait_key)) is None:
            waits[wait_key] = [1, waited, waited]
        else:
            found[0] += 1
            found[1] += waited
            if waited > found[2]:
                found[2] = waited
    return groups, waits


def _add(groups: dict[Any, list[int]], key: Any, figures: list[int]) -> None:
    """Add to a group: a number, then times, each a sum and a maximum."""
    if (found := groups.get(key)) is None:
        groups[key] = list(figures)
        return
    found[0] += figures[0]
    for at in range(1, len(found), 2):
        found[at] += figures[at]
        found[at + 1] = max(found[at + 1], figures[at + 1])
