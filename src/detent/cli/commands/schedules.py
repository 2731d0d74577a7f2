"""`detent schedules`: what is enqueued by the clock."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Group, reason_option
from detent.cli.session import Session
from detent.model.escape import line
from detent.model.records import Moved

__all__ = ["command"]

name = click.argument("name", metavar="NAME")


@click.group("schedules", cls=Group)
def command() -> None:
    """Look at schedules, pause, resume and remove them."""


@command.command("list")
@click.pass_obj
def list_(session: Session) -> None:
    """List schedules with their next tick."""
    with session.open() as app:
        found = app.schedules()
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["NAME", "STATE", "CRON", "ZONE", "TASK", "QUEUE", "CATCH UP", "NEXT", "LAST", "PAUSED BY", "REASON"],
        [
            [
                *(one.name, "open" if one.paused_at is None else "paused", one.cron, one.zone, one.task, one.queue),
                *(one.catch_up, one.next_at, one.last_at, one.paused_by, one.reason),
            ]
            for one in found
        ],
        empty="no schedules",
    )


@command.command("next")
@name
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="So many.")
@click.pass_obj
def next_(session: Session, name: str, count: int) -> None:
    """Say when the next ticks are, in UTC."""
    with session.open() as app:
        ticks = app.next_ticks(name, count)
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
        _say(session, app.pause_schedule(name, actor=session.who, reason=reason))


@command.command()
@name
@reason_option
@click.pass_obj
def resume(session: Session, name: str, reason: str | None) -> None:
    """Let ticks come again.

    Those of the pause are not made up for.
    """
    with session.open() as app:
        _say(session, app.resume_schedule(name, actor=session.who, reason=reason))


@command.command()
@name
@reason_option
@click.pass_obj
def remove(session: Session, name: str, reason: str | None) -> None:
    """Take a schedule away; jobs that it made stay."""
    with session.open() as app:
        _say(session, app.unschedule(name, actor=session.who, reason=reason))


def _say(session: Session, moved: Moved) -> None:
    if session.json:
        render.json_value({"schedule": moved.entity_id, "state": moved.state, "changed": moved.changed})
    else:
        render.out(f"schedule {line(moved.entity_id)}: {moved.state}" + ("" if moved.changed else " (it was already)"))
