"""`detent schedules`: what is enqueued by the clock."""

from __future__ import annotations

from typing import Any

import click

from detent.cli import render
from detent.cli.acting import confirm
from detent.cli.command import Group, paged, reason_option, say_more
from detent.cli.session import Session
from detent.model.escape import line
from detent.model.records import Moved
from detent.model.service_records import CATCH_UP

__all__ = ["command"]

name = click.argument("name", metavar="NAME")


@click.group("schedules", cls=Group)
def command() -> None:
    """List, set, pause, resume, run and remove schedules."""


@command.command("list")
@paged
@click.pass_obj
def list_(session: Session, limit: int, after: str | None) -> None:
    """List schedules with their next tick.

    FROM says where a schedule comes from: `code` if a program declared it, `hand` if it was set at run time, and `left
    the code` if the application that --app names no longer declares it; `detent schedules prune` removes those.
    """
    with session.open() as app:
        found, origins = app.schedules.list(limit=limit, after=after), app.schedules.origins()
    say_more(found)
    if session.json:
        render.json_value([render.plain(one, origin=origins[one.name]) for one in found])
        return
    render.table(
        ["NAME", "STATE", "CRON", "ZONE", "TASK", "QUEUE", "CATCH UP", "NEXT", "LAST", "FROM", "PAUSED BY", "REASON"],
        [
            [
                *(one.name, "open" if one.paused_at is None else "paused", one.cron, one.zone, one.task, one.queue),
                *(one.catch_up, one.next_at, one.last_at, origins[one.name], one.paused_by, one.reason),
            ]
            for one in found
        ],
        empty="no schedules",
    )


@command.command()
@name
@click.pass_obj
def get(session: Session, name: str) -> None:
    """Show a schedule."""
    with session.open() as app:
        row = app.schedules.get(name)
    found = render.plain(row)
    if session.json:
        render.json_value(found)
    else:
        render.fields({field: str(value) for field, value in found.items() if value is not None})


@command.command("set")
@name
@click.argument("cron", metavar="CRON")
@click.argument("task", metavar="TASK")
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option("--zone", default="UTC", show_default=True, metavar="NAME", help="Time zone of the cron expression.")
@click.option("--catch-up", type=click.Choice(CATCH_UP), default="latest", show_default=True, help="Missed ticks.")
@click.option("--tenant", default="", metavar="NAME", help="Tenant of the jobs.")
@click.option("--queue", metavar="NAME", help="Queue of the jobs. Default: the task's own.")
@click.option("--priority", type=int, metavar="N", help="Priority of the jobs. Default: the task's own.")
@click.pass_obj
def set_(session: Session, /, name: str, cron: str, task: str, arguments: str, **options: Any) -> None:
    """Create a schedule, or change the one of that name. Needs an application.

    CRON has five fields. The arguments of the task are a JSON object.
    """
    with session.open_with_tasks() as app:
        row = app.schedules.set(name, cron, app.call_named(task, arguments), **options)
    if session.json:
        render.json_value(render.plain(row))
    else:
        render.out(f"schedule {line(row.name)}: next at {render.when(row.next_at)}")


@command.command("next")
@name
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="Number of ticks to show.")
@click.pass_obj
def next_(session: Session, name: str, count: int) -> None:
    """Say when the next ticks are, in UTC."""
    with session.open() as app:
        ticks = app.schedules.next(name, count)
    if session.json:
        render.json_value(ticks)
        return
    for tick in ticks:
        render.out(render.when(tick))


@command.command()
@name
@reason_option
@click.pass_obj
def pause(session: Session, name: str, reason: str | None) -> None:
    """Let no tick come until it is resumed."""
    with session.open() as app:
        _say(session, app.schedules.pause(name, reason=reason))


@command.command()
@name
@reason_option
@click.pass_obj
def resume(session: Session, name: str, reason: str | None) -> None:
    """Let ticks come again.

    Those of the pause are not made up for.
    """
    with session.open() as app:
        _say(session, app.schedules.resume(name, reason=reason))


@command.command("run-now")
@name
@reason_option
@click.pass_obj
def run_now(session: Session, name: str, reason: str | None) -> None:
    """Enqueue the job of a schedule now.

    The next tick stays where it is. A paused schedule can be run too.
    """
    with session.open() as app:
        job = app.schedules.run_now(name, reason=reason)
    if session.json:
        render.json_value({"schedule": name, "job_id": str(job.id), "created": job.created})
    else:
        render.out(f"schedule {line(name)}: job {job.id}" + ("" if job.created else " (it was waiting already)"))


@command.command()
@name
@reason_option
@click.pass_obj
def remove(session: Session, name: str, reason: str | None) -> None:
    """Remove a schedule; jobs that it enqueued stay.

    If the code still declares the schedule, `detent migrate --app` writes it again, and so does a worker that starts
    while no other worker runs. To stop a declared schedule, pause it.
    """
    with session.open() as app:
        _say(session, app.schedules.remove(name, reason=reason))


@command.command()
@reason_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(session: Session, reason: str | None, yes: bool) -> None:
    """Remove the schedules that the code no longer declares.

    These are schedules that code declared once, for tasks of the application that --app names, and that its code does
    not declare now. Jobs that they enqueued stay.
    """
    with session.open_with_tasks() as app:
        names = app.schedules.left()
        if names:
            confirm(session, f"remove {len(names)} schedules: {', '.join(map(line, names))}", yes=yes)
        moved = app.schedules.prune(reason=reason)
    if session.json:
        render.json_value([{"schedule": one.entity_id, "state": one.state} for one in moved])
        return
    for one in moved:
        render.out(f"schedule {line(one.entity_id)}: {one.state}")
    if not moved:
        render.note("the code declares every schedule of its tasks")


def _say(session: Session, moved: Moved) -> None:
    if session.json:
        render.json_value({"schedule": moved.entity_id, "state": moved.state, "changed": moved.changed})
    else:
        render.out(f"schedule {line(moved.entity_id)}: {moved.state}" + ("" if moved.changed else " (it was already)"))
