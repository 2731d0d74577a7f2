"""How jobs look: a list of them, and one with all that is on record about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from detent.cli import render
from detent.cli.failures import NOT_FOUND, CommandFailed
from detent.cli.session import Session
from detent.client.job import Job
from detent.client.listing import ListPage
from detent.errors import essence
from detent.model.records import ExecutionRow, JobDetails, JobRow, TransitionRow

__all__ = ["job_object", "list_dead", "list_jobs", "show_job", "show_past"]


def job_object(row: JobRow, **more: Any) -> dict[str, Any]:
    """A job as the JSON object that every command gives for one."""
    # Which client process sent it is the engine's own business.
    return {name: value for name, value in render.plain(row, **more).items() if name != "nonce"}


def _details_object(details: JobDetails | None) -> dict[str, Any]:
    """What is shown beside a job's row, as JSON values."""
    if details is None:
        return {"key": None, "worker": None, "progress": None}
    progress = None if details.progress is None else msgspec.Raw(details.progress.encode())
    return {"key": details.key, "worker": details.worker, "progress": progress}


def _progress(text: str | None) -> str:
    """Return a job's progress for people: `30 of 90`, or `30`."""
    if text is None:
        return ""
    try:
        found = msgspec.json.decode(text)
        done = f"{found['done']:g}"
        return f"{done} of {found['total']:g}" if "total" in found else done
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return text


def list_jobs(session: Session, jobs: ListPage[Job[Any]], details: Sequence[JobDetails], *, where: str) -> None:
    """Print jobs as a table or as JSON. `where` is the database: an empty answer names it, since it may not be the one
    that was meant. Columns that no job fills are left out."""
    rows, beside = [job.row for job in jobs], {one.job_id: one for one in details}
    if session.json:
        render.json_value([job_object(row, **_details_object(beside.get(row.id))) for row in rows])
        _say_more(jobs)
        return
    running = {row.id for row in rows if row.state == "running"}
    more: list[tuple[str, dict[int, str | None]]] = [
        ("TENANT", {row.id: row.tenant for row in rows}),
        ("KEY", {one.job_id: one.key for one in details}),
        ("PROGRESS", {one.job_id: _progress(one.progress) for one in details if one.job_id in running}),
    ]
    shown = [(name, values) for name, values in more if any(values.values())]
    render.table(
        ["ID", "STATE", "TASK", "QUEUE", *(name for name, _ in shown), "ATTEMPTS", "CREATED", "FINISHED"],
        [
            [
                *(str(row.id), row.state, row.task, row.queue, *(values.get(row.id) for _, values in shown)),
                *(_attempts(row), row.created_at, row.finished_at),
            ]
            for row in rows
        ],
        empty=f"no jobs to show in {where}",
    )
    _say_more(jobs)


def list_dead(session: Session, jobs: ListPage[Job[Any]], *, where: str) -> None:
    """Print dead jobs with their errors. State and creation are left out, so that the error has room on a terminal."""
    rows = [job.row for job in jobs]
    if session.json:
        render.json_value([job_object(row) for row in rows])
        _say_more(jobs)
        return
    tenants = any(row.tenant for row in rows)
    render.table(
        ["ID", "TASK", "QUEUE", *(["TENANT"] if tenants else []), "ATTEMPTS", "DIED", "ERROR"],
        [
            [
                *(str(row.id), row.task, row.queue, *([row.tenant] if tenants else [])),
                *(_attempts(row), row.finished_at, essence(row.error)),
            ]
            for row in rows
        ],
        empty=f"no dead jobs in {where}",
    )
    _say_more(jobs)


def _say_more(jobs: ListPage[Job[Any]]) -> None:
    if jobs.next is not None:
        render.note(f"there may be more: --after {jobs.next}")


def show_job(
    session: Session,
    row: JobRow,
    details: Sequence[JobDetails],
    executions: Sequence[ExecutionRow],
    transitions: Sequence[TransitionRow],
) -> None:
    """One job with its attempts and its transitions."""
    beside = details[0] if details else None
    if session.json:
        both = {"executions": render.records(executions), "transitions": render.records(transitions)}
        render.json_value(job_object(row, **_details_object(beside), **both))
        return
    render.fields(
        {
            "id": str(row.id),
            "state": row.state,
            "task": row.task,
            "queue": row.queue,
            "tenant": row.tenant,
            "key": beside.key if beside else None,
            "run": None if row.run_id is None else str(row.run_id),
            "priority": row.priority,
            "attempts": _attempts(row),
            "limit key": row.limit_key,
            "cost": row.cost,
            "worker": beside.worker if beside else None,
            "progress": _progress(beside.progress) if beside else None,
            "created": row.created_at,
            "due": row.due_at if row.state == "pending" else None,
            "expires": row.expires_at,
            "finished": row.finished_at,
            "correlation id": row.correlation_id,
            "cancel asked by": row.cancel_requested_by,
            "cancel reason": row.cancel_reason,
            "payload": row.payload,
            "metadata": row.metadata,
            "result": row.result,
            "result dropped": row.result_dropped_at,
            "error": row.error,
        }
    )
    _show_history(executions, transitions)


def show_past(
    session: Session,
    row: JobRow,
    at: datetime,
    state: str | None,
    executions: Sequence[ExecutionRow],
    transitions: Sequence[TransitionRow],
) -> None:
    """A job at a past time: the attempts that had begun and the transitions until then. What ended later is open."""
    then = [one if _ended(one, at) else _open(one) for one in executions]
    if state is None:
        raise CommandFailed(f"job {row.id} did not exist at {render.when(at)}: it was created later", NOT_FOUND)
    if session.json:
        told = {"id": str(row.id), "task": row.task, "queue": row.queue, "tenant": row.tenant, "at": at, "state": state}
        render.json_value(told | {"executions": render.records(then), "transitions": render.records(transitions)})
        return
    render.fields({"id": str(row.id), "at": at, "state": state, "task": row.task, "payload": row.payload})
    _show_history(then, transitions)


def _ended(one: ExecutionRow, at: datetime) -> bool:
    ended = one.done_at or one.aborted_at
    return ended is not None and ended <= at


def _open(one: ExecutionRow) -> ExecutionRow:
    """Return an attempt without its end."""
    nothing = dict.fromkeys(("done_at", "aborted_at", "outcome", "error", "next_state", "next_due_at", "committed_at"))
    return msgspec.structs.replace(one, state="in_progress" if one.started_at else "leased", **nothing)


def _show_history(executions: Sequence[ExecutionRow], transitions: Sequence[TransitionRow]) -> None:
    if executions:
        render.out("")
        render.table(
            ["ATTEMPT", "STATE", "OUTCOME", "WORKER", "LEASED", "ENDED", "ERROR"],
            [
                [
                    one.attempt,
                    one.state,
                    one.outcome,
                    one.worker,
                    one.leased_at,
                    one.done_at or one.aborted_at,
                    essence(one.error),
                ]
                for one in executions
            ],
        )
    render.out("")
    render.table(
        ["AT", "WHAT", "FROM", "TO", "TRIGGER", "ACTOR", "REASON"],
        [
            [
                one.at,
                one.entity,
                one.from_state,
                one.to_state,
                one.trigger + (" (forced)" if one.forced else ""),
                one.actor,
                one.reason,
            ]
            for one in transitions
        ],
    )


def _attempts(row: JobRow) -> str:
    """Return how many attempts are used up, of how many."""
    return f"{row.attempt - row.spared}/{row.attempts_max}"
