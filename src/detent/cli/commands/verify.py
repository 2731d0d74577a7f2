"""`detent verify`: check every invariant."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session

__all__ = ["command"]


@click.command("verify", cls=Command)
@click.pass_obj
def command(session: Session) -> int:
    """Check every invariant of the record.

    Exit code 1 where one is violated; `detent repair` shows what can be done.
    """
    with session.open() as app:
        found = app.verify()
    if session.json:
        render.json_value(render.records(found))
    elif found:
        render.table(
            ["INVARIANT", "WHAT", "ID", "DETAIL"],
            [[one.invariant, one.entity, one.entity_id, one.detail] for one in found],
        )
        render.note(f"{len(found)} violations; `detent repair` shows what can be done about them")
    else:
        render.out("healthy: no invariant is violated")
    return FAILED if found else OK
