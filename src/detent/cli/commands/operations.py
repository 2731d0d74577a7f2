"""`detent operations`: one thing done to all jobs that fit."""

from __future__ import annotations

from typing import Any

import click

from detent.cli import render
from detent.cli.bulk import bulk, say_operation
from detent.cli.command import Group, duration, paged, reason_option, say_more
from detent.cli.session import Session
from detent.lifecycle.library import JOB
from detent.model.service_records import ACTIONS

__all__ = ["command"]

operation_id = click.argument("operation_id", metavar="ID")


@click.group("operations", cls=Group)
def command() -> None:
    """Do one thing to all jobs that fit; look at what was done so, and stop it."""


@command.command()
@click.argument("action", type=click.Choice(ACTIONS), metavar="ACTION")
@click.option("--state", type=click.Choice(list(JOB.states)), help="Only jobs in this state.")
@click.option("--task", metavar="NAME", help="Only jobs of this task.")
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.option("--tenant", metavar="NAME", help="Only jobs of this tenant.")
@click.option("--to-queue", metavar="NAME", help="Where a move goes.")
@click.option("--to-priority", type=int, metavar="N", help="The priority that a move gives.")
@click.option("--all", "every", is_flag=True, help="Every job, without any filter.")
@click.option("--dry-run", is_flag=True, help="Only say how many it would affect.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@reason_option
@click.pass_obj
def start(
    session: Session,
    /,
    action: str,
    every: bool,
    to_queue: str | None,
    to_priority: int | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    **chosen: Any,
) -> int:
    """Retry, cancel, discard or move all jobs that fit.

    It says how many first. Interrupted, it goes on where a worker runs; `cancel` stops it.
    """
    if every == any(value is not None for value in chosen.values()):
        raise click.UsageError("Say which: either a filter (--state, --task, --queue, --tenant), or --all.")
    if (action == "move") == (to_queue is None and to_priority is None):
        raise click.UsageError("--to-queue and --to-priority say where a move goes, and a move goes somewhere.")
    where = {"queue": to_queue, "priority": to_priority} if action == "move" else {}
    with session.open() as app:
        return bulk(session, app, action, chosen, what="jobs", reason=reason, dry_run=dry_run, yes=yes, **where)


@command.command("list")
@click.option("--state", type=click.Choice(["running", "done", "cancelled"]), help="Only those in this state.")
@paged
@click.pass_obj
def list_(session: Session, state: str | None, limit: int, after: str | None) -> None:
    """List operations, the newest first."""
    with session.open() as app:
        page = app.operations.list(state=state, limit=limit, after=after)
    found = [one.row for one in page]
    say_more(page)
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["ID", "ACTION", "STATE", "LOOKED AT", "CHANGED", "REFUSED", "BY", "BEGUN", "ENDED", "REASON"],
        [
            [
                *(str(one.id), one.action, one.state, one.looked, one.changed, one.refused, one.actor),
                *(one.created_at, one.finished_at, one.reason),
            ]
            for one in found
        ],
        empty="no operations",
    )


@command.command()
@operation_id
@reason_option
@click.pass_obj
def cancel(session: Session, operation_id: str, reason: str | None) -> None:
    """Stop an operation where it is; what is done stays done."""
    with session.open() as app:
        operation = app.operations.get(operation_id)
        operation.cancel(reason=reason)
        say_operation(session, operation)


@command.command()
@operation_id
@click.pass_obj
def get(session: Session, operation_id: str) -> None:
    """Show an operation: how many jobs it has changed so far."""
    with session.open() as app:
        say_operation(session, app.operations.get(operation_id))


@command.command()
@operation_id
@click.option("--timeout", type=duration, metavar="TIME", help="Give up after this time: 30s, 5m. Exit code 124.")
@click.pass_obj
def wait(session: Session, operation_id: str, timeout: float | None) -> None:
    """Carry an operation out until it has ended; workers do the same by themselves."""
    with session.open() as app:
        say_operation(session, app.operations.get(operation_id).wait(timeout))
