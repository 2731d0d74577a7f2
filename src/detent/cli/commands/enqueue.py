"""`detent enqueue`: send one job by the name of its task."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from detent.cli import render
from detent.cli.command import Command, duration
from detent.cli.failures import USAGE, CommandFailed
from detent.cli.session import Session

__all__ = ["command"]

_STDIN = "-"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no ISO 8601 time, such as 2026-01-31T18:00:00+01:00") from None
    if moment.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no zone: add Z or an offset such as +01:00")
    return moment


@click.command("enqueue", cls=Command)
@click.argument("task", metavar="TASK")
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option("--key", metavar="TEXT", help="The same key answers the same job.")
@click.option("--key-ttl", type=duration, metavar="TIME", help="How long the key is kept; else for ever.")
@click.option(
    "--debounce",
    type=duration,
    metavar="TIME",
    help="Wait this long; a later call with the same --key replaces this one while it waits.",
)
@click.option("--due-at", type=_moment, metavar="TIME", help="Not before this time: ISO 8601 with a zone.")
@click.option("--expires-at", type=_moment, metavar="TIME", help="Cancel the job if no worker has claimed it by then.")
@click.option("--priority", type=int, metavar="N", help="Higher first; else the task's own.")
@click.option("--queue", metavar="NAME", help="Else the task's own.")
@click.option("--tenant", metavar="NAME", default="", help="Whose job it is.")
@click.option("--correlation-id", metavar="TEXT", help="Goes along with the job and all its transitions.")
@click.pass_obj
def command(session: Session, /, task: str, arguments: str, **options: Any) -> None:
    """Enqueue one job by the name of its task.

    Needs an application. The arguments are a JSON object; `-` reads them from stdin. Prints the id of the job, or of
    the earlier job that has the key.
    """
    given = {name: value for name, value in options.items() if value is not None}
    session.require_application()
    with session.open_or_new() as app:
        job = app.enqueue_named(
            task, _from_stdin(app.settings.payload_max) if arguments == _STDIN else arguments, **given
        )
        if session.json:
            row = job.refresh().row
            render.json_value({"id": str(job.id), "created": job.created, "task": row.task, "state": row.state})
            return
        render.out(str(job.id))
        if not job.created:
            render.note("the key found this job; nothing was enqueued")


def _from_stdin(most: int) -> str:
    """No more than can be taken, and one letter, so that too much is refused as such."""
    try:
        return sys.stdin.read(most + 1)
    except UnicodeDecodeError as error:
        raise CommandFailed(f"stdin is not UTF-8: {error.reason} at byte {error.start}", USAGE) from None
