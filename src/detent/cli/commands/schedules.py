"""`detent schedules`: what is enqueued by the clock."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.acting import confirm
from detent.cli.command import Group, reason_option
from detent.cli.session import Session
from detent.model.escape import line
from detent.model.records import Moved

__all__ = ["command"]

name = click.argument("name", metavar="NAME")


@click.group("schedules", cls=Group)
def command() -> None:
    """List schedules, pause, resume, run and remove them."""


@command.command("list")
@click.pass_obj
def list_(session: Session) -> None:
    """List schedules with their next tick.

    FROM says where a schedule comes from: `code` if a program declared it, `hand` if it was set at run time, and `left
    the code` if the application that --app names no longer declares it; `detent schedules prune` removes those.
    """
    with session.open() as app:
        found, origins = app.schedules.list(), app.schedules.origins()
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
