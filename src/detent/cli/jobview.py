"""How jobs look: a list of them, and one with all that is on record about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detent.cli import render
from detent.cli.session import Session
from detent.client.job import Job
from detent.errors import essence
from detent.model.records import ExecutionRow, JobRow, TransitionRow

__all__ = ["job_object", "list_dead", "list_jobs", "show_job"]


def job_object(row: JobRow, **more: Any) -> dict[str, Any]:
    """A job as the JSON object that every command gives for one."""
    # Which client process sent it is the engine's own business.
    return {name: value for name, value in render.plain(row, **more).items() if name != "nonce"}


def list_jobs(session: Session, jobs: Sequence[Job[Any]], limit: int, *, where: str) -> None:
    """Print jobs as a table or as JSON. `where` is the database: an empty answer names it, since it may not be the one
    that was meant."""
    rows = [job.row for job in jobs]
    if session.json:
        render.json_value([job_object(row) for row in rows])
        return
    tenants = any(row.tenant for row in rows)
    render.table(
        ["ID", "STATE", "TASK", "QUEUE", *(["TENANT"] if tenants else []), "ATTEMPTS", "CREATED", "FINISHED"],
        [
            [
                str(row.id),
                row.state,
                row.task,
                row.queue,
                *([row.tenant] if tenants else []),
                _attempts(row),
                row.created_at,
                row.finished_at,
            ]
            for row in rows
        ],
        empty=f"no jobs to show in {where}",
    )
    _say_more(rows, limit)


def list_dead(session: Session, jobs: Sequence[Job[Any]], limit: int, *, where: str) -> None:
    """Print dead jobs with their errors. State and creation are left out, so that the error has room on a terminal."""
    rows = [job.row for job in jobs]
    if session.json:
        render.json_value([job_object(row) for row in rows])
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
    _say_more(rows, limit)


def _say_more(rows: Sequence[JobRow], limit: int) -> None:
    if len(rows) == limit:
        render.note(f"there may be more: --after {rows[-1].id}")


def show_job(
    session: Session, row: JobRow, executions: Sequence[ExecutionRow], transitions: Sequence[TransitionRow]
) -> None:
    """One job with its attempts and its transitions."""
    if session.json:
        both = {"executions": render.records(executions), "transitions": render.records(transitions)}
        render.json_value(job_object(row, **both))
        return
    render.fields(
        {
            "id": str(row.id),
            "state": row.state,
            "task": row.task,
            "queue": row.queue,
            "tenant": row.tenant,
            "priority": row.priority,
            "attempts": _attempts(row),
            "limit key": row.limit_key,
            "cost": row.cost,
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
