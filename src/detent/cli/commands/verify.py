"""`detent verify`: check every invariant."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from detent.cli import render
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session
from detent.model.records import Violation

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["command"]


@click.command("verify", cls=Command)
@click.pass_obj
def command(session: Session) -> int:
    """Check every invariant of the record.

    Exit code 1 where one is violated; `detent repair` shows what can be done.
    """
    with session.open() as app:
        found = _watched(app)
        not_checked = app.store.pages_not_checked()
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
    if not_checked is not None:
        render.note(not_checked)
    return FAILED if found else OK


def _watched(app: Detent) -> list[Violation]:
    """How far it is, on a terminal: many jobs take minutes."""
    if not sys.stderr.isatty():
        return app.record.verify()
    with click.progressbar(length=1, label="invariants", show_pos=True, file=sys.stderr) as bar:

        def watch(left: int) -> None:
            bar.length = max(bar.length or 1, left)
            bar.update(bar.length - left - bar.pos)

        found = app.store.verify(watch)
        bar.update((bar.length or 1) - bar.pos)
    return found
