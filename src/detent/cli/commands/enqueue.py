"""`detent enqueue`: enqueue one job by the name of its task."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.failures import USAGE, CommandFailed
from detent.cli.options import duration, option, tenant_option
from detent.cli.session import Session

__all__ = ["enqueue"]

_STDIN = "-"


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no ISO 8601 time, such as 2026-01-31T18:00:00+01:00") from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no time zone: add Z or an offset such as +01:00")
    return found


@click.command(cls=Command)
@click.argument("task", metavar="TASK")
@click.argument("arguments", metavar="[JSON]", default="{}")
@option("--key", "Idempotency key: the same key returns the same job.", "TEXT")
@option("--key-ttl", "How long the key is kept. Default: for ever.", duration)
@option("--debounce", "Wait this long; a later call with the same --key replaces this one while it waits.", duration)
@option("--due-at", "Earliest start: ISO 8601 with a time zone. Default: now.", _time)
@option("--expires-at", "Cancel the job if no worker has claimed it by then.", _time)
@option("--priority", "Priority; higher first. Default: the task's own.", int)
@option("--queue", "Queue. Default: the task's own.", "NAME")
@tenant_option
@option("--correlation-id", "Correlation id, kept with the job and its transitions.", "TEXT")
@click.pass_obj
def enqueue(session: Session, /, task: str, arguments: str, **options: Any) -> None:
    """Enqueue one job by the name of its task. Needs an application.

    The arguments are a JSON object; `-` reads them from stdin. Prints the id of the job, or of the earlier job with
    the same key.
    """
    given = {name: value for name, value in options.items() if value is not None}
    session.require_application()
    with session.open_or_create() as app:
        payload = _read_stdin(app.settings.payload_max) if arguments == _STDIN else arguments
        job = app.enqueue_named(task, payload, **given)
        row = job.refresh().row if session.json else None
    if row is not None:
        output.print_json({"id": str(job.id), "created": job.created, "task": row.task, "state": row.state})
        return
    output.print_text(str(job.id))
    if not job.created:
        output.print_note("the key belongs to this job already; nothing was enqueued")


def _read_stdin(most: int) -> str:
    """Read the arguments: at most one character more than is allowed, so that too many are refused."""
    try:
        return sys.stdin.read(most + 1)
    except UnicodeDecodeError as error:
        raise CommandFailed(f"stdin is not UTF-8: {error.reason} at byte {error.start}", USAGE) from None
