"""How jobs look: a list of them, and one with all that is on record about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detent.cli import render
from detent.cli.session import Session
from detent.client.job import Job
from detent.errors import essence
from detent.model.records import ExecutionRow, JobRow, TransitionRow

__all__ = ["job_object", "list_jobs", "show_job"]


def job_object(row: JobRow, **more: Any) -> dict[str, Any]:
    """A job as the JSON object that every command gives for one."""
    # Which client process sent it is the engine's own business.
    return {name: value for name, value in render.plain(row, **more).items() if name != "nonce"}


def list_jobs(session: Session, jobs: Sequence[Job[Any]], limit: int, *, where: str, errors: bool = False) -> None:
    """A table, or an array; with `errors`, what each job's error comes down to. `where` is the
    database: an empty answer names it, since it may be another than was meant."""
    rows = [job.row for job in jobs]
    if session.json:
        render.json_value([job_object(row) for row in rows])
        return
    tenants = any(row.tenant for row in rows)
    head = ["ID", "STATE", "TASK", "QUEUE", *(["TENANT"] if tenants else []), "ATTEMPT", "CREATED", "FINISHED"]
    render.table(
        [*head, *(["ERROR"] if errors else [])],
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
                *([essence(row.error)] if errors else []),
            ]
            for row in rows
        ],
        empty=f"no jobs to show in {where}",
    )
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
            "attempt": _attempts(row),
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
    """How many attempts counted, of how many."""
    return f"{row.attempt - row.spared}/{row.attempts_max}"
