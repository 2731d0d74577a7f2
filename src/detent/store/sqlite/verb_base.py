"""What every verb stands on: the executor, the time, and the few statements that several of them share.

A verb runs inside one write transaction (BEGIN IMMEDIATE), so what it read still holds when it writes. Each write names
the state it expects all the same, and a row too few is a `TransitionRace`: the transaction is given up.
differs: PostgreSQL locks rows, here no other connection writes, so no verb meets a locked row.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

from detent.errors import GuardViolation, LeaseLost, TransitionRace
from detent.model.clock import Clock, from_micros, to_micros
from detent.model.ops_records import OPS_TASK, ops_state
from detent.store.sqlite.driver.executor import Executor, Row

__all__ = [
    "NEW_GROUP",
    "NEW_LANE",
    "Insert",
    "Job",
    "VerbBase",
    "begun_micros",
    "fields_named",
    "ids_json",
    "micros",
]

_ROWS_AT_ONCE = 50
_FLAGS = frozenset(
    (
        *("changed", "counted", "dead_letter", "forced", "idempotent", "is_forced", "is_full", "last_page"),
        *("overwrite", "retires", "suspect"),
    )
)
_TIMES = frozenset(("at", "since", "undoing_since"))


class Insert:
    """An INSERT of many rows.

    With triggers on the table a row of its own statement costs twice what it costs in a list of them, so they go in
    lists of one fixed length, and the rest one by one. Columns that are null in all lists are left out, and those of a
    row by itself: sqlite3 looks for an adapter of every None it is given (and of every bool), which costs more than
    several other values.
    """

    def __init__(self, table: str, columns: str) -> None:
        self._table = table
        self._columns = tuple(columns.split(", "))

    def run(self, executor: Executor, rows: Sequence[Row]) -> None:
        """All of them, in order."""
        if len(rows) == 1:
            given = [value is not None for value in rows[0]]
            statement = _list_insert(self._table, tuple(compress(self._columns, given)), 1)
            executor.change(statement, tuple(compress(rows[0], given)))
            return
        whole = len(rows) - len(rows) % _ROWS_AT_ONCE
        if whole:
            columns = zip(self._columns, zip(*rows[:whole], strict=True), strict=True)
            filled = {name: values for name, values in columns if values.count(None) < whole}
            statement = _list_insert(self._table, tuple(filled), _ROWS_AT_ONCE)
            listed = list(zip(*filled.values(), strict=True))
            for start in range(0, whole, _ROWS_AT_ONCE):
                executor.change(statement, list(chain.from_iterable(listed[start : start + _ROWS_AT_ONCE])))
        if whole < len(rows):
            executor.change_many(_list_insert(self._table, self._columns, 1), rows[whole:])

    def run_alike(self, executor: Executor, same: Mapping[str, Any], rows: Sequence[Row], own: Sequence[str]) -> None:
        """Rows that differ in the columns `own` alone. What is the same for all is given once for each list."""
        given = {name: value for name, value in same.items() if value is not None}
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            statement = _alike_insert(self._table, tuple(given), tuple(own), len(part))
            executor.change(statement, [*given.values(), *chain.from_iterable(part)])


@functools.lru_cache(maxsize=256)
def _list_insert(table: str, columns: tuple[str, ...], count: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * count)}"


@functools.lru_cache(maxsize=1024)
def _alike_insert(table: str, same: tuple[str, ...], own: tuple[str, ...], count: int) -> str:
    shared = [f"?{n}" for n in range(1, len(same) + 1)]
    rows = (
        ", ".join([*shared, *(f"?{len(same) + len(own) * row + n}" for n in range(1, len(own) + 1))])
        for row in range(count)
    )
    return f"INSERT INTO {table} ({', '.join(same + own)}) VALUES {', '.join(f'({row})' for row in rows)}"


_JOBS = """
SELECT j.id, j.tenant, j.task, j.queue, j.priority, j.due_at, j.expires_at, j.correlation_id, j.attempts_max,
       j.dead_letter, j.idempotent, j.state, j.attempt, j.spared, j.result, j.lease_id, j.leased_at, j.started_at,
       j.committed_at, j.cancel_requested_at, j.limit_key,
       max(j.created_at, coalesce(j.leased_at, 0), coalesce(j.started_at, 0), coalesce(j.committed_at, 0),
           coalesce(j.finished_at, 0), coalesce(j.cancel_requested_at, 0),
           CASE WHEN j.state = 'pending' AND j.ended > 0
                THEN coalesce((SELECT e.aborted_at FROM detent_execution e
                                WHERE e.job_id = j.id AND e.attempt = j.ended), 0) ELSE 0 END),
       l.expires_at, coalesce(l.worker, ''), j.effect_evidence, max(j.created_at, j.due_at), j.finished_at
  FROM json_each(?) asked JOIN detent_job j ON j.id = asked.value LEFT JOIN detent_lease l ON l.id = j.lease_id
"""
_LANE = """
SELECT id FROM detent_lane
 WHERE queue = ? AND task = ? AND tenant = ? AND priority = ? AND limit_key = ? AND version = ?
"""
_VERSION = "SELECT version FROM detent_workflow WHERE job_id = ?"
NEW_GROUP = "INSERT INTO detent_lane_group (queue, task, version) VALUES (?1, ?2, ?6) ON CONFLICT DO NOTHING"
NEW_LANE = """
INSERT INTO detent_lane (id, queue, task, tenant, priority, limit_key, version)
SELECT coalesce((SELECT max(l.id) FROM detent_lane l WHERE l.id > (g.id << 32) AND l.id < ((g.id + 1) << 32)),
                g.id << 32) + 1, g.queue, g.task, ?3, ?4, ?5, g.version
  FROM detent_lane_group g WHERE g.queue = ?1 AND g.task = ?2 AND g.version = ?6
ON CONFLICT DO NOTHING RETURNING id
"""
_TO_READY = Insert("detent_ready", "lane_id, ready_at, job_id, holds_key, expires_at")
_TO_WAITING = Insert("detent_waiting", "lane_id, due_at, job_id, holds_key, expires_at, priority")
_START = """
UPDATE detent_job SET started_at = ? WHERE id = ? AND attempt = ? AND state = 'running' AND started_at IS NULL
"""
_LOG_JOB = """
INSERT INTO detent_transition_log
  (tenant, entity, entity_id, job_id, attempt, from_state, to_state, trigger, actor, reason, correlation_id, forced, at,
   metadata)
VALUES (?, 'job', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

# A workflow whose function has ended as cancelled, or waits, and whose undo has not begun, does not want any.
_UNDO_IS_OPEN = """
SELECT j.cancel_undo IS NOT 0 AND w.undo_of IS NULL
   AND (w.undoing_since IS NOT NULL OR :wants AND EXISTS (
          SELECT 1 FROM detent_workflow_step s
           WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.undo AND s.error IS NULL))
   AND NOT EXISTS (SELECT 1 FROM detent_workflow_step s
                    WHERE s.job_id = w.job_id AND s.generation = w.generation AND s.path = '~undone')
  FROM detent_workflow w CROSS JOIN detent_job j ON j.id = w.job_id WHERE w.job_id = :id
"""
_COUNT_MOVE = """
INSERT INTO detent_transition_delta (at, task, from_state, to_state, outcome, held_us, ran_us, waited_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_LONGEST = 100 * 86_400_000_000

Lane = tuple[str, str, str, int, str, int]
"""Queue, task, tenant, priority, limit key (empty: the limit of its task), and version."""


class Job(NamedTuple):
    """What the verbs decide on: a job, the last time on its row or of its last attempt, and the lease it names."""

    id: int
    tenant: str
    task: str
    queue: str
    priority: int
    due_at: int
    expires_at: int | None
    correlation_id: str | None
    attempts_max: int
    dead_letter: int
    idempotent: int
    state: str
    attempt: int
    spared: int
    result: str | None
    lease_id: int | None
    leased_at: int | None
    started_at: int | None
    committed_at: int | None
    cancel_requested_at: int | None
    limit_key: str | None
    last_at: int
    lease_expires_at: int | None
    lease_worker: str
    effect_evidence: str | None
    queued_at: int
    finished_at: int | None

    @property
    def run_state(self) -> str | None:
        """The state of an ops run in its own lifecycle; None for every other job."""
        return ops_state(self.state, self.started_at is not None) if self.task == OPS_TASK else None

    @property
    def since(self) -> int | None:
        """When it came into its state; a pending job, when it was due."""
        if self.state == "pending":
            return self.queued_at
        return self.leased_at if self.state == "running" else self.finished_at


class VerbBase:
    """An executor inside one transaction, and the clock that says what time it is in it."""

    def __init__(self, executor: Executor, clock: Clock, database: str) -> None:
        self._db = executor
        self._clock = clock
        self._database = database
        self._lanes: dict[Lane, int] = {}

    def _now(self) -> int:
        return to_micros(self._clock.now(), field="now")

    def _jobs(self, ids: Iterable[int]) -> dict[int, Job]:
        """Return the jobs that exist, by id."""
        return {row[0]: Job._make(row) for row in self._db.rows(_JOBS, (ids_json(ids),))}

    def _lost(self, job: Job | None, job_id: int, attempt: int, now: int) -> LeaseLost | None:
        """Return why the caller does not hold the attempt (any more); None if it does."""
        if job is None:
            return LeaseLost(job_id, attempt, "no such job")
        if job.state != "running":
            return LeaseLost(job_id, attempt, f"the job is {job.state}")
        if job.attempt != attempt:
            return LeaseLost(job_id, attempt, f"attempt {job.attempt} is current")
        if job.lease_expires_at is None or job.lease_expires_at <= now:
            return LeaseLost(job_id, attempt, "its lease has expired")
        return None

    def _start(self, job: Job, now: int) -> None:
        """Record that the attempt is in progress from now on, unless it was before."""
        if job.started_at is None:
            self._db.change(_START, (max(now, job.last_at), job.id, job.attempt))

    def _lane(self, lane: Lane) -> int:
        """Return the number of a lane, and create the lane if it is missing. Remembered for this transaction only."""
        number = self._lanes.get(lane)
        if number is None:
            found = self._db.rows(_LANE, lane)
            if not found:
                self._db.change(NEW_GROUP, lane)
                found = self._db.rows(NEW_LANE, lane)
            number = self._lanes[lane] = int(found[0][0])
        return number

    def _lane_of(self, job: Job) -> Lane:
        """Return the lane in which a job stands while it is pending. A workflow that has begun keeps its version."""
        begun = self._db.rows(_VERSION, (job.id,))
        version = int(begun[0][0]) if begun else 0
        return job.queue, job.task, job.tenant, job.priority, job.limit_key or "", version

    def _enter_queue(self, jobs: Sequence[tuple[Lane, int, int, int, int | None]], now: int) -> None:
        """Each pending job (lane, due_at, id, holds_key, expires_at) gets its one row: ready, or waiting."""
        ready, waiting = [], []
        for lane, due_at, job_id, holds_key, expires_at in jobs:
            row = (self._lanes.get(lane) or self._lane(lane), due_at, job_id, holds_key, expires_at)
            if due_at <= now:
                ready.append(row)
            else:
                waiting.append((*row, lane[3]))
        _TO_READY.run(self._db, ready)
        _TO_WAITING.run(self._db, waiting)

    def _enter_queue_alike(
        self, lane: Lane, due_at: int, expires_at: int | None, ids: Sequence[tuple[int]], now: int
    ) -> None:
        """The same for many of one lane and time that hold no keys."""
        same = {"lane_id": self._lane(lane), "holds_key": 0, "expires_at": expires_at}
        if due_at <= now:
            _TO_READY.run_alike(self._db, same | {"ready_at": due_at}, ids, ("job_id",))
        else:
            _TO_WAITING.run_alike(self._db, same | {"due_at": due_at, "priority": lane[3]}, ids, ("job_id",))

    def _log(
        self,
        job: Job,
        to_state: str,
        trigger: str,
        actor: str,
        reason: str | None,
        now: int,
        metadata: str | None = None,
    ) -> int:
        """The line of an explicit move, which must be there before the move; the time it carries."""
        at = max(now, job.last_at)
        self._db.change(
            _LOG_JOB,
            (
                *(job.tenant, str(job.id), job.id, job.attempt, job.state, to_state),
                *(trigger, actor, reason, job.correlation_id, trigger == "force", at, metadata),
            ),
        )
        if to_state != job.state:
            self._count_move(job, at, to_state)
        return at

    def _count_move(self, job: Job, at: int, to_state: str, outcome: str = "") -> None:
        """Count a move for the figures; with an outcome, the move that ends an attempt."""
        ran = _micros_between(job.started_at, at) if outcome else None
        waited = _micros_between(job.queued_at, job.leased_at) if outcome else 0
        held = _micros_between(job.since, at)
        self._db.change(_COUNT_MOVE, (at, job.task, job.state, to_state, outcome, held or 0, ran, waited or 0))

    def _undo_is_open(self, job_id: int, outcome: str | None = None) -> bool | None:
        """Return whether steps of a workflow have yet to be undone before it may be cancelled, with the outcome of its
        attempt if it ends now; None if the job is no workflow, or has recorded nothing."""
        asked = {"id": job_id, "wants": outcome not in ("cancelled", "parked")}
        return next((bool(is_open) for (is_open,) in self._db.rows(_UNDO_IS_OPEN, asked)), None)

    def _in_place(self, job: Job, found: int) -> None:
        """Check that a pending job was found in the queue at the place that its row says. Otherwise a row was changed
        by hand, and the row left behind would block every claim: nothing is done (`GuardViolation`)."""
        if not found:
            found_at = f"job {job.id} is not in the queue where its queue, priority and due time say"
            raise GuardViolation(self._database, f"{found_at}; `detent repair` puts it right")

    def _expect(self, changed: int, expected: int, jobs: Sequence[Any] | str, state: str) -> None:
        """Every row that was to move has moved; otherwise nothing has."""
        if changed != expected:
            listed = json.loads(jobs) if isinstance(jobs, str) else jobs
            which = ", ".join(str(job) for job in listed[:5])
            raise TransitionRace("job", which, state, f"{expected - changed} of {expected} elsewhere")


def ids_json(ids: Iterable[int]) -> str:
    """A list of ids for json_each: one statement for any number of them."""
    return json.dumps(list(ids))


def begun_micros(seconds: float | None) -> int | None:
    """How long after its claim a function was called, in whole microseconds."""
    return None if seconds is None else int(seconds * 1_000_000)


def micros(seconds: float) -> int:
    """A duration in whole microseconds."""
    return round(seconds * 1_000_000)


def _micros_between(since: int | None, until: int | None) -> int | None:
    return None if since is None or until is None else min(max(until - since, 0), _LONGEST)


def fields_named(fields: Sequence[str], row: Row) -> dict[str, Any]:
    """Return a row by its names, with times and booleans decoded."""
    return {name: _value(name, value) for name, value in zip(fields, row, strict=True)}


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _TIMES or name.endswith("_at"):
        return from_micros(value)
    return bool(value) if name in _FLAGS else value
