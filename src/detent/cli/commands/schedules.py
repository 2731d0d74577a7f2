"""`detent schedules`: list, set, pause, resume, run and remove schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from detent.cli import output
from detent.cli.command import Group, with_app, with_tasks
from detent.cli.options import option, page_options, reason_option, tenant_option, yes_option
from detent.cli.session import Session, redaction_of
from detent.model.service_records import CATCH_UP
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["schedules"]

schedules = Group(
    "schedules",
    help="List, set, pause, resume, run and remove schedules.",
    examples=("detent schedules list", "detent schedules run-now nightly"),
)
name_argument = click.argument("name", metavar="NAME")


@schedules.command("list")
@page_options
@with_app
def list_(session: Session, app: Detent, limit: int, after: str | None) -> None:
    """List schedules with their next tick.

    FROM is the origin of a schedule: `code` if a program declared it, `hand` if it was set at run time, and `left the
    code` if the application that --app names no longer declares it; `detent schedules prune` removes those.
    """
    found, origins = redaction_of(app).listed(app.schedules.list(limit=limit, after=after)), app.schedules.origins()
    state = ("STATE", lambda one: "active" if one.paused_at is None else "paused")
    ticks = ("cron", "zone", "task", "queue", "catch_up", "next_at", "last_at")
    origin = ("FROM", lambda one: origins[one.name])
    columns = output.columns("name", state, *ticks, origin, "paused_by", "reason")
    objects = (output.to_object(one, origin=origins[one.name]) for one in found)
    session.show_rows(found, columns, empty="no schedules", objects=objects)


@schedules.command()
@name_argument
@with_app
def get(session: Session, app: Detent, name: str) -> None:
    """Show a schedule."""
    (row,) = redaction_of(app).listed([app.schedules.get(name)])
    session.show_record(output.to_object(row))


@schedules.command("set")
@name_argument
@click.argument("cron", metavar="CRON")
@click.argument("task", metavar="TASK")
@click.argument("arguments", metavar="[JSON]", default="{}")
@option("--zone", "Time zone of the cron expression.", "NAME", default="UTC")
@option("--catch-up", "Missed ticks: enqueue a job for the latest, for all, or for none.", CATCH_UP, default="latest")
@tenant_option
@option("--queue", "Queue of the jobs. Default: the task's own.", "NAME")
@option("--priority", "Priority of the jobs. Default: the task's own.", int)
@reason_option
@with_tasks
def set_(session: Session, app: Detent, name: str, cron: str, task: str, arguments: str, **options: Any) -> None:
    """Create a schedule, or change the one of that name. Needs an application.

    CRON has five fields. The arguments of the task are a JSON object.
    """
    row = app.schedules.set(name, cron, app.call_named(task, arguments), **options)
    session.answer(output.to_object(row), f"schedule {line(row.name)}: next at {output.format_time(row.next_at)}")


@schedules.command("next")
@name_argument
@option("--count", "Number of ticks to show.", click.IntRange(1, 1000), default=5)
@with_app
def next_(session: Session, app: Detent, name: str, count: int) -> None:
    """Print the times of the next ticks, in UTC."""
    ticks = app.schedules.next(name, count)
    session.answer(ticks, "\n".join(map(output.format_time, ticks)))


@schedules.command()
@name_argument
@reason_option
@with_app
def pause(session: Session, app: Detent, name: str, reason: str | None) -> None:
    """Enqueue nothing for a schedule until it is resumed."""
    session.show_moved("schedule", app.schedules.pause(name, reason=reason))


@schedules.command()
@name_argument
@reason_option
@with_app
def resume(session: Session, app: Detent, name: str, reason: str | None) -> None:
    """Resume a schedule. Ticks that fell into the pause are not made up for."""
    session.show_moved("schedule", app.schedules.resume(name, reason=reason))


@schedules.command("run-now")
@name_argument
@reason_option
@with_app
def run_now(session: Session, app: Detent, name: str, reason: str | None) -> None:
    """Enqueue the job of a schedule now.

    The next tick stays where it is. A paused schedule can be run too.
    """
    job = app.schedules.run_now(name, reason=reason)
    waiting = "" if job.created else " (it was already pending)"
    session.answer(
        {"schedule": name, "job_id": str(job.id), "created": job.created},
        f"schedule {line(name)}: job {job.id}{waiting}",
    )


@schedules.command()
@name_argument
@reason_option
@with_app
def remove(session: Session, app: Detent, name: str, reason: str | None) -> None:
    """Remove a schedule. Jobs that it has enqueued stay.

    If the code still declares the schedule, `detent migrate --app` writes it again, and so does a worker that starts
    while no other worker runs. To stop a declared schedule, pause it.
    """
    session.show_moved("schedule", app.schedules.remove(name, reason=reason))


@schedules.command()
@yes_option
@reason_option
@with_tasks
def prune(session: Session, app: Detent, yes: bool, reason: str | None) -> None:
    """Remove the schedules that the code no longer declares. Needs an application.

    These are schedules that code once declared for tasks of this application, and that its code does not declare now.
    Jobs that they have enqueued stay.
    """
    names = app.schedules.left()
    if names:
        session.confirm(f"remove {output.count_of(len(names), 'schedule')}: {', '.join(map(line, names))}", yes=yes)
    moved = app.schedules.prune(reason=reason)
    if session.json:
        output.print_json([{"schedule": one.entity_id, "state": one.state} for one in moved])
        return
    for one in moved:
        output.print_text(f"schedule {line(one.entity_id)}: {one.state}")
    if not moved:
        output.print_note("nothing to remove: the code declares every schedule of its tasks")
