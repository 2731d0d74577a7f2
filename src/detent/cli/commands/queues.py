"""`detent queues`: how full they are, and whether claims may enter."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Group, reason_option
from detent.cli.session import Session
from detent.lifecycle.library import JOB
from detent.model.escape import line
from detent.model.records import Moved

__all__ = ["command"]

queue = click.argument("queue", metavar="QUEUE")


@click.group("queues", cls=Group)
def command() -> None:
    """Look at queues, pause and resume them."""


@command.command("list")
@click.pass_obj
def list_(session: Session) -> None:
    """List queues with their jobs by state."""
    with session.open() as app:
        found = app.queues.list()
    if session.json:
        render.json_value([render.plain(one) for one in found])
        return
    render.table(
        ["QUEUE", "CLAIMS", *(state.upper() for state in JOB.states), "PAUSED BY", "REASON"],
        [
            [
                one.name,
                "paused" if one.paused else "open",
                *(one.jobs[state] for state in JOB.states),
                one.paused_by,
                one.paused_reason,
            ]
            for one in found
        ],
        empty="no queues: nothing was ever enqueued here",
    )


@command.command()
@queue
@reason_option
@click.pass_obj
def pause(session: Session, queue: str, reason: str | None) -> None:
    """Let no claim enter a queue until it is resumed; what is running goes on."""
    with session.open() as app:
        is_new = all(one.name != queue for one in app.queues.list())
        _say(session, app.queues.pause(queue, reason=reason))
    if is_new:
        render.note(f"no job has ever been in queue {line(queue)}; `detent queues list` shows those there are")


@command.command()
@queue
@reason_option
@click.pass_obj
def resume(session: Session, queue: str, reason: str | None) -> None:
    """Let claims enter a queue again."""
    with session.open() as app:
        _say(session, app.queues.resume(queue, reason=reason))


def _say(session: Session, moved: Moved) -> None:
    if session.json:
        render.json_value({"queue": moved.entity_id, "state": moved.state, "changed": moved.changed})
    else:
        render.out(f"queue {line(moved.entity_id)}: {moved.state}" + ("" if moved.changed else " (it was already)"))
