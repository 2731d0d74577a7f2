"""`detent record`: who changed what, when and why."""

from __future__ import annotations

from typing import Any

import click

from detent.cli import render
from detent.cli.command import Group, moment
from detent.cli.session import Session

__all__ = ["command"]


@click.group("record", cls=Group)
def command() -> None:
    """Search the record of changes."""


@command.command()
@click.option("--actor", metavar="NAME", help="Only changes by this actor.")
@click.option("--entity", metavar="KIND", help="Only changes of this kind of thing: job, queue, schedule, batch_run, …")
@click.option("--id", "entity_id", metavar="ID", help="Only changes of this one; goes with --entity.")
@click.option("--since", type=moment, metavar="TIME", help="Only changes since: a time, or how long ago (2h, 7d).")
@click.option("--until", type=moment, metavar="TIME", help="Only changes before: a time, or how long ago.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of rows to list."
)
@click.option("--after", metavar="PLACE", help="Go on after this place, which the page before has named.")
@click.pass_obj
def search(session: Session, /, **chosen: Any) -> None:
    """List the changes that people and programs requested, the newest first.

    Who, when, what and why: cancels, retries, pauses, forced moves, changes of schedules and limits, moves of runs. The
    ordinary steps of attempts are in `detent jobs get`.
    """
    with session.open() as app:
        found, where = app.record.search(**chosen), app.store.name
    if session.json:
        render.json_value(render.records(found))
    else:
        render.table(
            ["AT", "ACTOR", "ENTITY", "ID", "TRIGGER", "FROM", "TO", "REASON"],
            [
                [
                    *(one.at, one.actor, one.entity, one.entity_id, one.trigger + (" (forced)" if one.forced else "")),
                    *(one.from_state, one.to_state, one.reason),
                ]
                for one in found
            ],
            empty=f"no changes to show in {where}",
        )
    if found.next is not None:
        render.note(f"there may be more: --after {found.next}")
