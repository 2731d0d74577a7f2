"""Rebuild a job: what its row and its queue rows must say, according to its records. Pure: no database, no clock.

Times have the type of the database (microseconds or datetimes); they are only compared and passed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from detent.lifecycle.library import JOB
from detent.model.records import OUTCOMES

__all__ = [
    "Contradiction",
    "DeadRow",
    "Execution",
    "Facts",
    "Job",
    "Key",
    "Line",
    "Projection",
    "Queued",
    "rebuild",
    "spared_by_record",
]


class Job(NamedTuple):
    """The columns of a job's row that are rebuilt, and those that are needed for it."""

    id: int
    tenant: str
    task: str
    queue: str
    priority: int
    due_at: Any
    expires_at: Any
    correlation_id: str | None
    attempts_max: int
    state: str
    attempt: int
    spared: int
    ended: int
    error: str | None
    finished_at: Any
    lease_id: int | None
    leased_at: Any
    started_at: Any
    committed_at: Any
    limit_key: str | None
    version: int


class Execution(NamedTuple):
    """An ended attempt."""

    job_id: int
    attempt: int
    outcome: str
    next_state: str
    next_due_at: Any
    counted: bool
    committed_at: Any
    ended_at: Any
    error: str | None


class Line(NamedTuple):
    """A line of the log that moved the job. Requests and repairs are left out."""

    job_id: int
    n: int
    attempt: int
    to_state: str
    trigger: str
    at: Any
    from_state: str | None


class Queued(NamedTuple):
    """A row in ready or waiting, with its lane."""

    job_id: int
    place: str
    at: Any
    expires_at: Any
    holds_key: bool
    queue: str | None
    task: str | None
    tenant: str | None
    limit_key: str | None
    version: int | None
    priority: int | None


class DeadRow(NamedTuple):
    """A dead letter."""

    job_id: int
    tenant: str
    queue: str
    task: str


class Key(NamedTuple):
    """A key held until the first claim."""

    job_id: int
    tenant: str
    key: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the database has about one job."""

    job: Job
    executions: tuple[Execution, ...]  # by attempt
    lines: tuple[Line, ...]  # by n
    queued: tuple[Queued, ...]
    dead: DeadRow | None
    leased: bool  # the row of its lease exists and has the job
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Projection:
    """A job according to its records. `dead_reason` is set if it belongs among the dead letters."""

    state: str
    attempt: int
    ended: int
    spared: int
    due_at: Any
    finished_at: Any
    leased_at: Any  # None if no record bounds it
    committed_at: Any
    error: str | None
    dead_reason: str | None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Why the records do not determine the job."""

    why: str


def rebuild(facts: Facts) -> Projection | Contradiction:
    """Return the job according to its records, or why they do not determine it: gaps, unknown states, a commit."""
    job, executions, lines = facts.job, facts.executions, facts.lines
    ended = len(executions)
    if why := _hole(job, executions) or _unknown_word(executions, lines):
        return Contradiction(why)
    attempt = max(job.attempt, ended)
    last = _last(executions, lines)
    state = "running" if attempt > ended else last.state
    committed_at = job.committed_at
    if state == "succeeded" and committed_at is None:
        committed_at = last.committed_at
    if why := _against_commit(facts, state):
        return Contradiction(why)
    # A guard lets `spared` only grow, also during a repair.
    spared = max(job.spared, _spared(executions, lines))
    if not 0 <= spared <= attempt or job.attempts_max < 1:
        return Contradiction(f"spared {job.spared} and attempts_max {job.attempts_max} fit no record")
    rests = state in JOB.rests
    return Projection(
        state=state,
        attempt=attempt,
        ended=ended,
        spared=spared,
        due_at=_due_at(job, state, last, executions),
        finished_at=last.at if rests else None,
        leased_at=_earliest(job.leased_at, job.started_at, job.committed_at) if state == "running" else job.leased_at,
        committed_at=committed_at,
        error=job.error if state == job.state else last.error if rests and state != "succeeded" else None,
        dead_reason=_dead_reason(job, last, attempt - spared) if state == "quarantined" else None,
    )


def spared_by_record(facts: Facts) -> int:
    """Return the attempt of the newest retry plus the attempts since then that did not count."""
    return _spared(facts.executions, facts.lines)


def _due_at(job: Job, state: str, last: _Last, executions: tuple[Execution, ...]) -> Any:
    """Return the due time of the last record. A retry keeps a later due time, unless the last attempt set another; a
    parked job may have been woken."""
    if state != "pending" or last.due_at is None:
        return job.due_at
    given = [one.next_due_at for one in executions if one.attempt == job.attempt]
    kept = last.trigger == "retry" and job.due_at > last.at and given in ([], [job.due_at])
    kept |= last.outcome == "parked" and last.at <= job.due_at <= last.due_at
    return job.due_at if kept else last.due_at


class _Last(NamedTuple):
    """The last record of a job, which determines its state."""

    state: str
    at: Any = None
    due_at: Any = None
    committed_at: Any = None
    error: str | None = None
    outcome: str | None = None
    trigger: str | None = None


def _last(executions: tuple[Execution, ...], lines: tuple[Line, ...]) -> _Last:
    """Return the last record by (attempt, rank, n): a line of the log comes after the end of its attempt."""
    line = max(lines, key=lambda line: (line.attempt, line.n), default=None)
    end = executions[-1] if executions else None
    if line is not None and (end is None or line.attempt >= end.attempt):
        due_at = line.at if line.trigger in ("retry", "settle", "rewind") else None
        return _Last(line.to_state, line.at, due_at, committed_at=line.at, trigger=line.trigger)
    if end is not None:
        return _Last(end.next_state, end.ended_at, end.next_due_at, end.committed_at, end.error, end.outcome)
    return _Last(JOB.initial)


def _hole(job: Job, executions: tuple[Execution, ...]) -> str | None:
    found = [execution.attempt for execution in executions]
    if found != list(range(1, len(found) + 1)):
        return f"the execution rows are those of attempts {', '.join(map(str, found))}: the others are lost"
    if job.attempt > len(found) + 1 or job.ended > len(found):
        return f"attempt {max(job.ended, job.attempt - 1)} ended without its execution row: how is not on record"
    return None


def _unknown_word(executions: tuple[Execution, ...], lines: tuple[Line, ...]) -> str | None:
    for execution in executions:
        if execution.outcome not in OUTCOMES or execution.next_state not in JOB.states:
            words = f"{execution.outcome}, {execution.next_state}"
            return f"attempt {execution.attempt} ended as {words}: not known to this version"
    for line in lines:
        if line.to_state not in JOB.states:
            return f"line {line.n} of the log led to {line.to_state}: not known to this version"
    return None


def _against_commit(facts: Facts, state: str) -> str | None:
    committed = [execution for execution in facts.executions if execution.committed_at is not None]
    found = facts.job.committed_at
    if len(committed) > 1:
        return f"attempts {' and '.join(str(execution.attempt) for execution in committed)} are both committed"
    if committed and state != "succeeded":
        return f"attempt {committed[0].attempt} is committed, and later records lead to {state}"
    if committed and found is not None and found != committed[0].committed_at:
        return f"committed_at on the row is not that of attempt {committed[0].attempt}, and a commit is never rewritten"
    if state not in ("running", "succeeded") and found is not None:
        return f"the row says it is committed, the records lead to {state}"
    if state == "running" != facts.job.state and found is not None:
        return f"the row says it is committed and {facts.job.state}, and its attempt has not ended"
    return None


def _earliest(leased_at: Any, *later: Any) -> Any:
    """Return when the job was leased; if that is lost, the first time under the lease."""
    return next((time for time in (leased_at, *later) if time is not None), None)


def _spared(executions: tuple[Execution, ...], lines: tuple[Line, ...]) -> int:
    retried = max(
        (
            line.attempt
            for line in lines
            if line.to_state == "pending" != line.from_state and line.trigger in ("retry", "settle", "rewind")
        ),
        default=0,
    )
    return retried + sum(1 for execution in executions if execution.attempt > retried and not execution.counted)


def _dead_reason(job: Job, last: _Last, used: int) -> str:
    if last.trigger is not None:
        return "forced"
    if last.outcome == "unknown":
        return "unknown"
    if (last.error or "").startswith("UndoFailed"):
        return "undo failed"
    return "attempts used up" if used >= job.attempts_max else "fatal"
