"""`detent workers`: who is alive."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Group, duration, paged, say_more
from detent.cli.session import Session

__all__ = ["command"]


@click.group("workers", cls=Group)
def command() -> None:
    """Look at workers."""


@command.command("list")
@click.option(
    "--within", type=duration, default="10s", show_default=True, metavar="TIME", help="Seen in the last so long."
)
@paged
@click.pass_obj
def list_(session: Session, within: float, limit: int, after: str | None) -> None:
    """List the workers that live.

    Each shows itself once a second, with what it knows and holds.
    """
    with session.open() as app:
        found = app.workers.list(within=within, limit=limit, after=after)
    say_more(found)
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["ID", "NAME", "HOST", "PID", "STATE", "RUNNING", "SLOTS", "QUEUES", "TASKS", "STARTED", "SEEN"],
        [
            [
                *(str(one.id), one.name, one.host, one.pid, "stopping" if one.stopping else "open"),
                *(one.running, one.slots, "every" if one.queues is None else ",".join(one.queues)),
                *(len(one.tasks), one.started_at, one.seen_at),
            ]
            for one in found
        ],
        empty="no workers",
    )
