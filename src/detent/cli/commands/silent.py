"""`detent silent`: jobs in flight that nothing is heard of."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Group, duration, reason_option
from detent.cli.session import Session
from detent.model.escape import line
from detent.model.records import Moved

__all__ = ["command"]

queue = click.argument("queue", metavar="QUEUE")
stale_after = click.option(
    "--stale-after", type=duration, default="5m", show_default=True, metavar="TIME", help="From the claim to the start."
)
stalled_after = click.option(
    "--stalled-after", type=duration, default="10m", show_default=True, metavar="TIME", help="Since the last event."
)


@click.group("silent", cls=Group)
def command() -> None:
    """List jobs that nothing is heard of; choose the queues whose silent jobs are recovered automatically."""


@command.command("list")
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@stale_after
@stalled_after
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of rows to list."
)
@click.pass_obj
def list_(session: Session, queue: str | None, stale_after: float, stalled_after: float, limit: int) -> None:
    """List jobs in flight that nothing is heard of.

    Stale: claimed and not begun. Stalled: begun and fallen silent. `detent jobs cancel` cancels one. The times of a
    task (stale_after, stalled_after) go before these.
    """
    with session.open() as app:
        found = app.jobs.silent(queue=queue, stale_after=stale_after, stalled_after=stalled_after, limit=limit)
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["ID", "KIND", "SINCE", "TASK", "QUEUE", "ATTEMPT", "WORKER"],
        [[str(one.job_id), one.kind, one.since, one.task, one.queue, one.attempt, one.worker] for one in found],
        empty="no silent jobs",
    )


@command.command()
@click.pass_obj
def queues(session: Session) -> None:
    """List the queues whose silent jobs are stopped and run again without asking."""
    with session.open() as app:
        found = app.queues.recoveries()
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["QUEUE", "STALE AFTER", "STALLED AFTER", "BY", "SINCE", "REASON"],
        [[one.queue, one.stale_after, one.stalled_after, one.changed_by, one.changed_at, one.reason] for one in found],
        empty="none: silent jobs of every queue wait for approval",
    )


@command.command()
@queue
@stale_after
@stalled_after
@reason_option
@click.pass_obj
def automatic(session: Session, queue: str, stale_after: float, stalled_after: float, reason: str | None) -> None:
    """Let workers stop silent jobs of a queue and run them again, without asking."""
    with session.open() as app:
        moved = app.queues.recovery(
            queue, automatic=True, stale_after=stale_after, stalled_after=stalled_after, reason=reason
        )
        _say(session, moved)


@command.command()
@queue
@reason_option
@click.pass_obj
def approval(session: Session, queue: str, reason: str | None) -> None:
    """Leave silent jobs of a queue to a person."""
    with session.open() as app:
        _say(session, app.queues.recovery(queue, automatic=False, reason=reason))


def _say(session: Session, moved: Moved) -> None:
    if session.json:
        render.json_value({"queue": moved.entity_id, "recovery": moved.state, "changed": moved.changed})
    else:
        render.out(f"queue {line(moved.entity_id)}: {moved.state}" + ("" if moved.changed else " (it was already)"))
