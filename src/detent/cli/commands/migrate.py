"""`detent migrate`: bring the schema of a database up to date."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Command
from detent.cli.session import Session

__all__ = ["command"]


@click.command("migrate", cls=Command)
@click.pass_obj
def command(session: Session) -> None:
    """Bring the schema up to date.

    With --app, the guards of its attached tables too. Safe when many do it at once, and when there is nothing to do.
    """
    with session.open() as app:
        applied = app.migrate()
    if session.json:
        render.json_value({"applied": applied})
        return
    for name in applied:
        render.out(f"applied {name}")
    if not applied:
        render.note("the schema is up to date")
