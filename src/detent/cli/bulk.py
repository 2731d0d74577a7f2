"""Doing one thing to all jobs that fit: how many first, then a tracked operation, watched to its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from detent.cli import render
from detent.cli.acting import confirm
from detent.cli.failures import OK
from detent.cli.session import Session
from detent.client.operation import Operation

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["POSSIBLE", "bulk", "bulk_by_state", "say_operation"]

_LONG = 1000
POSSIBLE = {
    "cancel": ("pending", "running"),
    "retry": ("failed", "quarantined", "cancelled"),
    "discard": ("failed", "quarantined"),
    "move": ("pending",),
}


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
    done = _each(session, app, action, [chosen], what=what, reason=reason, dry_run=dry_run, yes=yes, **where)
    if session.json and done is not None:
        render.json_value(render.plain(done[0].row) if done else None)
    return OK


def bulk_by_state(
    session: Session,
    app: Detent,
    action: str,
    states: Sequence[str],
    chosen: dict[str, Any],
    *,
    reason: str | None,
    dry_run: bool,
    yes: bool,
) -> int:
    """The same for jobs in any of these states: one operation for each of them, so that no job is looked at that it
    could not be done to."""
    each = [{**chosen, "state": state} for state in states]
    done = _each(session, app, action, each, what="jobs", reason=reason, dry_run=dry_run, yes=yes)
    if session.json and done is not None:
        render.json_value([render.plain(one.row) for one in done])
    return OK


def _each(
    session: Session,
    app: Detent,
    action: str,
    each: Sequence[dict[str, Any]],
    *,
    what: str,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    **where: Any,
) -> list[Operation] | None:
    """The operations that were carried out; None where it was only asked how many it would affect."""
    fits = [(app.jobs.where(**chosen), _affected(app, action, chosen)) for chosen in each]
    count = sum(many for _, many in fits)
    if dry_run:
        _say_how_many(session, count)
        return None
    if not count:
        render.note(f"no {what}")
        return []
    confirm(session, f"{action} {count} {what}", yes=yes)
    done = []
    for jobs, many in fits:
        if many:
            operation: Operation = getattr(jobs, action)(reason=reason, **where)
            _watch(operation)
            if not session.json:
                say_operation(session, operation)
            done.append(operation)
    return done


def _affected(app: Detent, action: str, chosen: dict[str, Any]) -> int:
    """How many of those that fit are in a state in which it can be done to them."""
    asked = chosen.get("state")
    states = [state for state in POSSIBLE[action] if asked in (None, state)]
    return sum(app.jobs.where(**{**chosen, "state": state}).count() for state in states)


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
