"""What outgoing webhooks tell of: jobs that ended, runs and alerts that changed their state, ops runs that ended.

An event has the form of Standard Webhooks: `{"type": "job.failed", "timestamp": "…", "data": {…}}`. Payloads and
results of jobs are not part of it, because they may hold what only the application should see.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from detent.errors import InvalidInput
from detent.lifecycle.library import BATCH_RUN, OPS_RUN, PIPELINE_RUN
from detent.model import json_codec
from detent.model.ops_records import OpsRunRow
from detent.model.records import ExecutionRow, JobRow, RecordFeedLine

__all__ = [
    "EVENT_TYPES",
    "OPS_TYPES",
    "Event",
    "check_patterns",
    "job_change_event",
    "job_event",
    "ops_event",
    "record_event",
]

_FAILURES = ("failed", "quarantined")
_NAMED_ONLY = ("job.succeeded", "job.cancelled")
"""Types that a target gets only if it names them: there may be one for almost every job."""
_ALERT_STATES = ("firing", "acknowledged", "resolved")
_RUN_KINDS = {"batch_run": "batch", "pipeline_run": "pipeline"}
_ERROR_MAX = 2000

EVENT_TYPES: tuple[str, ...] = (
    *(f"job.{state}" for state in _FAILURES),
    *_NAMED_ONLY,
    *(f"run.{state}" for state in sorted({*BATCH_RUN.states, *PIPELINE_RUN.states, *OPS_RUN.final})),
    *(f"alert.{state}" for state in _ALERT_STATES),
)
"""Every type of event."""
OPS_TYPES = frozenset(f"run.{state}" for state in OPS_RUN.final)
"""Those that the end of an ops run may have."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened. `source` names it within the database, and is the same whenever it is read."""

    source: str
    type: str
    at: datetime
    data: dict[str, Any]
    tenant: str = ""
    task: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The body of its deliveries."""
        return {"type": self.type, "timestamp": self.at.isoformat(), "data": self.data}


def check_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the types of events that a target asks for, such as `job.failed` or `run.*`. `InvalidInput` for a pattern
    that fits none. A pattern does not stand for `job.succeeded` and `job.cancelled`."""
    listed = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    if not listed:
        raise InvalidInput("on", "nothing", "types of events, such as job.quarantined or run.*")
    for one in listed:
        if not isinstance(one, str) or not fnmatch.filter(EVENT_TYPES, one):
            raise InvalidInput("on", repr(one)[:80], f"{', '.join(EVENT_TYPES)}; `run.*` is all of a kind")
    found = {kind for kind in EVENT_TYPES if any(fnmatch.fnmatchcase(kind, one) for one in listed)}
    return tuple(kind for kind in EVENT_TYPES if kind in found and (kind in listed or kind not in _NAMED_ONLY))


def job_event(job: JobRow, attempt: ExecutionRow) -> Event | None:
    """Return the event of an attempt that ended its job; None if the job was to be tried again."""
    at = attempt.aborted_at or attempt.done_at
    if attempt.next_state is None or f"job.{attempt.next_state}" not in EVENT_TYPES or at is None:
        return None
    told = {
        "attempt": attempt.attempt,
        "outcome": attempt.outcome,
        "error": None if attempt.error is None else attempt.error[:_ERROR_MAX],
    }
    return _of_job(job, f"job:{job.id}:{attempt.attempt}", attempt.next_state, at, told)


def job_change_event(job: JobRow, line: RecordFeedLine) -> Event | None:
    """Return the event of a line of the record that says that a job was cancelled or declared done; None for others."""
    row = line.row
    if f"job.{row.to_state}" not in _NAMED_ONLY or row.from_state == row.to_state:
        return None
    told = {"trigger": row.trigger, "actor": row.actor, "reason": row.reason}
    return _of_job(job, f"record:{row.n}", row.to_state, row.at, told)


def _of_job(job: JobRow, source: str, state: str, at: datetime, told: dict[str, Any]) -> Event:
    return Event(
        source=source,
        type=f"job.{state}",
        at=at,
        tenant=job.tenant,
        task=job.task,
        data={
            "job_id": str(job.id),
            "task": job.task,
            "queue": job.queue,
            "tenant": job.tenant,
            "state": state,
            **told,
            "run_id": None if job.run_id is None else str(job.run_id),
            "correlation_id": job.correlation_id,
            "created_at": job.created_at.isoformat(),
        },
    )


def ops_event(run: OpsRunRow) -> Event | None:
    """Return the event of an ops run that ended; None for one that did not."""
    if run.finished_at is None or run.state not in OPS_RUN.final:
        return None
    run_id = f"run-{run.job_id}"
    return Event(
        source=f"ops:{run_id}:{run.state}",
        type=f"run.{run.state}",
        at=run.finished_at,
        data={
            "run_id": run_id,
            "kind": "ops",
            "project_id": run.project_id,
            "env": run.env,
            "git_sha": run.git_sha,
            "git_ref": run.git_ref,
            "to": run.state,
            "outcome": run.outcome,
            "actor": run.cancelled_by or run.claimed_by,
        },
    )


def record_event(line: RecordFeedLine) -> Event | None:
    """Return the event of a line of the record; None for lines about anything but runs and alerts."""
    row = line.row
    if row.from_state == row.to_state:
        return None
    told: dict[str, Any] = {
        "from": row.from_state,
        "to": row.to_state,
        "trigger": row.trigger,
        "actor": row.actor,
        "reason": row.reason,
    }
    if row.entity == "alert":
        kind, about = "alert", {"alert": row.entity_id, "facts": _facts(row.metadata)}
    elif row.entity in _RUN_KINDS:
        about = {"run_id": row.entity_id, "kind": _RUN_KINDS[row.entity], "tenant": line.tenant}
        kind, about = "run", about | {"correlation_id": row.correlation_id}
    else:
        return None
    return Event(
        source=f"record:{row.n}", type=f"{kind}.{row.to_state}", at=row.at, data=about | told, tenant=line.tenant
    )


def _facts(text: str | None) -> Any:
    return None if text is None else json_codec.decode(text, field="facts")
