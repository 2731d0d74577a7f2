"""Doing one thing to all jobs that fit: how many first, then a tracked operation, watched to its end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from detent.cli import render
from detent.cli.acting import confirm
from detent.cli.failures import OK
from detent.cli.session import Session
from detent.client.operation import Operation

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["bulk", "say_operation"]

_LONG = 1000


def bulk(
    session: Session,
    app: Detent,
    action: str,
    chosen: dict[str, Any],
    *,
    what: str,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    **where: Any,
) -> int:
    """Count, ask, do it and say what became of it. `where` is where a move goes."""
    jobs = app.jobs(limit=1, **chosen)
    count = jobs.count()
    if dry_run:
        _say_how_many(session, count)
        return OK
    if not count:
        render.note(f"no {what}")
        if session.json:
            render.json_value(None)
        return OK
    confirm(session, f"{action} {count} {what}", yes=yes)
    operation: Operation = getattr(jobs, action)(actor=session.who, reason=reason, **where)
    _watch(operation)
    say_operation(session, operation)
    return OK


def _watch(operation: Operation) -> None:
    hidden = operation.row.until_id < _LONG or not sys.stderr.isatty()
    with click.progressbar(length=operation.row.until_id, file=sys.stderr, hidden=hidden) as bar:
        while operation.state == "running":
            before = operation.row.after_id
            bar.update(operation.step().row.after_id - before)


def say_operation(session: Session, operation: Operation) -> None:
    """One operation, as it stands."""
    if session.json:
        render.json_value(render.plain(operation.row))
        return
    refused = f", {operation.refused} refused" if operation.refused else ""
    said = f"operation {operation.id}: {operation.row.action} {operation.state}, {operation.changed} changed{refused}"
    render.out(said)


def _say_how_many(session: Session, count: int) -> None:
    if session.json:
        render.json_value({"would_affect": count})
    else:
        render.out(f"would affect {count}")
