"""How jobs are printed: in lists, alone with their attempts and transitions, and as they were in the past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from detent.cli import output
from detent.cli.failures import NOT_FOUND, CommandFailed
from detent.cli.session import Session
from detent.client.list_page import ListPage
from detent.errors import essence
from detent.model.records import ExecutionRow, JobDetails, JobRow, TransitionRow
from detent.model.workflow_records import NEVER

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["EXECUTIONS", "attempts_of", "job_object", "parked_for", "show_job", "show_jobs", "show_past_job"]

_NO_DETAILS: dict[str, Any] = {"key": None, "worker": None, "progress": None, "status": None}
_END_FIELDS = ("done_at", "aborted_at", "outcome", "error", "next_state", "next_due_at", "committed_at")

EXECUTIONS = output.columns(
    *("attempt", "state", "outcome", "worker", "leased_at"),
    ("ENDED", lambda one: one.done_at or one.aborted_at),
    ("ERROR", lambda one: essence(one.error)),
)
"""The columns of a list of attempts."""


def job_object(row: JobRow, **more: Any) -> dict[str, Any]:
    """Return a job as the JSON object that every command prints for one. The nonce is internal and left out."""
    return {name: value for name, value in output.to_object(row, **more).items() if name != "nonce"}


def attempts_of(row: JobRow) -> str:
    """Return the number of attempts that are used up, of those that the job has."""
    return f"{row.attempt - row.spared}/{row.attempts_max}"


def _details_object(details: JobDetails | None) -> dict[str, Any]:
    if details is None:
        return _NO_DETAILS
    progress = None if details.progress is None else msgspec.Raw(details.progress.encode())
    status = None if details.status is None else output.stored_json(details.status)
    return {"key": details.key, "worker": details.worker, "progress": progress, "status": status}


def _progress(text: str | None) -> str | None:
    """Return a job's progress for people: `30 of 90`, or `30`."""
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
        done = f"{found['done']:g}"
        return f"{done} of {found['total']:g}" if "total" in found else done
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return text


def parked_for(app: Detent, rows: Sequence[JobRow]) -> dict[int, str]:
    """Return what the parked ones of these jobs wait for, by id."""
    pending = [row.id for row in rows if row.state == "pending" and row.ended]
    found = app.store.workflow_get(pending) if pending else []
    return {one.job_id: one.parked_for or "" for one in found if one is not None and one.parked_at is not None}


def show_jobs(
    session: Session,
    rows: ListPage[JobRow],
    details: Sequence[JobDetails],
    parked: Mapping[int, str],
    *,
    database: str,
) -> None:
    """Print a list of jobs, without the columns that are empty for all of them. An empty list names the database, since
    it may be another one than the user meant."""
    details_of = {one.job_id: one for one in details}
    running = {row.id for row in rows if row.state == "running"}
    keys = {one.job_id: one.key for one in details}
    progress = {one.job_id: _progress(one.progress) for one in details if one.job_id in running}
    optional: list[output.Column] = [
        *(["tenant"] if any(row.tenant for row in rows) else []),
        *([("KEY", lambda row: keys.get(row.id))] if any(keys.values()) else []),
        *([("PROGRESS", lambda row: progress.get(row.id))] if any(progress.values()) else []),
    ]
    times = ("created_at", "finished_at")
    session.show_rows(
        rows,
        output.columns(
            "id",
            ("STATE", lambda row: _state(row, parked)),
            "task",
            "queue",
            *optional,
            ("ATTEMPTS", attempts_of),
            *times,
        ),
        empty=f"no jobs to show in {database}",
        objects=(
            job_object(row, **_details_object(details_of.get(row.id)), parked_for=parked.get(row.id)) for row in rows
        ),
    )


def _state(row: JobRow, parked: Mapping[int, str]) -> str:
    """Return the state for people. A parked job is pending: it waits for something other than a worker."""
    return "parked" if row.id in parked else row.state


def show_job(
    session: Session,
    row: JobRow,
    details: Sequence[JobDetails],
    executions: Sequence[ExecutionRow],
    transitions: Sequence[TransitionRow],
    parked: Mapping[int, str],
    **more: Sequence[msgspec.Struct],
) -> None:
    """Print one job with its attempts and its transitions; as JSON, also with the other lists that are given."""
    found = details[0] if details else None
    if session.json:
        history = output.lists(executions=executions, transitions=transitions, **more)
        output.print_json(job_object(row, **_details_object(found), parked_for=parked.get(row.id), **history))
        return
    output.print_fields(
        {
            "id": str(row.id),
            "state": _state(row, parked),
            "parked for": parked.get(row.id),
            "status": found.status if found else None,
            "task": row.task,
            "queue": row.queue,
            "tenant": row.tenant,
            "key": found.key if found else None,
            "run": None if row.run_id is None else str(row.run_id),
            "parent": None if row.parent_id is None else str(row.parent_id),
            "priority": row.priority,
            "attempts": attempts_of(row),
            "limit key": row.limit_key,
            "cost": row.cost,
            "worker": found.worker if found else None,
            "progress": _progress(found.progress) if found else None,
            "created": row.created_at,
            "due": row.due_at if row.state == "pending" and row.due_at < NEVER else None,
            "expires": row.expires_at,
            "finished": row.finished_at,
            "correlation id": row.correlation_id,
            "cancel requested by": row.cancel_requested_by,
            "cancel reason": row.cancel_reason,
            "payload": row.payload,
            "metadata": row.metadata,
            "result": row.result,
            "result dropped": row.result_dropped_at,
            "error": row.error,
        }
    )
    _print_history(executions, transitions)


def show_past_job(
    session: Session,
    row: JobRow,
    at: datetime,
    state: str | None,
    executions: Sequence[ExecutionRow],
    transitions: Sequence[TransitionRow],
) -> None:
    """Print a job as it was at a past time, with the attempts and transitions until then. `CommandFailed` if it did not
    exist yet."""
    if state is None:
        raise CommandFailed(f"job {row.id} did not exist at {output.format_time(at)}: it was created later", NOT_FOUND)
    then = [one if _has_ended(one, at) else _without_end(one) for one in executions]
    if session.json:
        known = {"id": str(row.id), "task": row.task, "queue": row.queue, "tenant": row.tenant, "at": at}
        output.print_json({**known, "state": state, **output.lists(executions=then, transitions=transitions)})
        return
    output.print_fields({"id": str(row.id), "at": at, "state": state, "task": row.task, "payload": row.payload})
    _print_history(then, transitions)


def _has_ended(one: ExecutionRow, at: datetime) -> bool:
    ended = one.done_at or one.aborted_at
    return ended is not None and ended <= at


def _without_end(one: ExecutionRow) -> ExecutionRow:
    """Return an attempt as it was before it ended."""
    state = "in_progress" if one.started_at else "leased"
    return msgspec.structs.replace(one, state=state, **dict.fromkeys(_END_FIELDS))


def _print_history(executions: Sequence[ExecutionRow], transitions: Sequence[TransitionRow]) -> None:
    output.print_section(executions, EXECUTIONS)
    output.print_section(transitions, {**output.columns("at", "entity"), **output.TRANSITIONS})
