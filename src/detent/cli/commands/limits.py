"""`detent limits`: how much may be done at once, and in which time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from detent.cli import render
from detent.cli.command import Group, reason_option
from detent.cli.session import Session
from detent.model.escape import line
from detent.model.limit_records import LimitRow
from detent.model.records import Moved, TransitionRow
from detent.views.limits import paused_by

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["command"]

key = click.argument("key", metavar="KEY")


@click.group("limits", cls=Group)
def command() -> None:
    """List, pause, resume and remove limits."""


@command.command("list")
@click.option("--waiting", is_flag=True, help="Only those that let nothing begin now.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of rows to list."
)
@click.option("--after", default="", metavar="KEY", help="Only limits with keys after this one.")
@click.pass_obj
def list_(session: Session, waiting: bool, limit: int, after: str) -> None:
    """List limits with what runs under them.

    STATE is open where jobs may begin; full, spent (its rate), paused or breaker where they may not; half open where
    one tries for all. TOKENS is what is left of its burst: each job takes one, or what it costs; below zero, that much
    was spent in advance.
    """
    with session.open() as app:
        now = app.store.now()
        fitting = (one for one in _pages(app, after) if not waiting or one.state(now) != "open")
        found = list(islice(fitting, limit))
        held = {one.key: paused_by(app.store, one.key) for one in found if one.held_at is not None}
    if session.json:
        render.json_value([_object(one, held.get(one.key), state=one.state(now)) for one in found])
        return
    render.table(
        [
            *("KEY", "STATE", "RUNNING", "AT ONCE", "RATE", "TOKENS", "UNTIL", "THROTTLED", "TASKS", "QUEUES"),
            *("BOUNDS OF", "PAUSED BY", "REASON"),
        ],
        [
            [
                *(one.key, one.state(now), one.running, one.concurrency_max, _rate(one)),
                *(None if one.rate is None else f"{one.tokens:.1f}/{one.burst:g}", one.until(now), one.throttled),
                *(",".join(one.tasks), ",".join(one.queues), one.template),
                *((by.actor, by.reason) if (by := held.get(one.key)) else (None, None)),
            ]
            for one in found
        ],
        empty="no limits" if not waiting else "no limit keeps anybody waiting",
    )
    if len(found) == limit:
        render.note(f"at most {limit} limits are shown: see --limit and --after")


@command.command()
@key
@click.pass_obj
def get(session: Session, key: str) -> None:
    """Show a limit."""
    with session.open() as app:
        row, now = app.limits.get(key), app.store.now()
        by = paused_by(app.store, row.key) if row.held_at is not None else None
    found = _object(row, by, state=row.state(now))
    if session.json:
        render.json_value(found)
    else:
        render.fields({name: _cell(value) for name, value in found.items()})


def _cell(value: Any) -> render.Cell:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


@command.command()
@key
@reason_option
@click.pass_obj
def pause(session: Session, key: str, reason: str | None) -> None:
    """Let no job begin under a limit until it is resumed; what runs goes on.

    KEY is that of a limit, or one that jobs have, such as shop:7.
    """
    with session.open() as app:
        _say(session, app.limits.pause(key, reason=reason))


@command.command()
@key
@reason_option
@click.pass_obj
def resume(session: Session, key: str, reason: str | None) -> None:
    """Let jobs begin under a limit again.

    Ends a pause of any origin, closes the breaker and fills the bucket.
    """
    with session.open() as app:
        _say(session, app.limits.resume(key, reason=reason))


@command.command()
@key
@reason_option
@click.pass_obj
def remove(session: Session, key: str, reason: str | None) -> None:
    """Take a limit away that no code declares any more.

    Refused while jobs wait or run under it. If the code still declares the limit, `detent migrate --app` writes it
    again, and so does a worker that starts while no other worker runs. `queues limit QUEUE --none` lifts the limit of
    a queue.
    """
    with session.open() as app:
        _say(session, app.limits.remove(key, reason=reason))


def _pages(app: Detent, after: str) -> Iterator[LimitRow]:
    """Yield every limit after a key, page by page."""
    while page := app.limits.list(after=after):
        yield from page
        after = page[-1].key


def _object(row: LimitRow, by: TransitionRow | None, *, state: str) -> dict[str, Any]:
    who = {"paused_by": None, "reason": None} if by is None else {"paused_by": by.actor, "reason": by.reason}
    return render.plain(row, state=state) | who


def _rate(row: LimitRow) -> str | None:
    return None if row.rate is None else f"{row.rate:g} in {row.per:g} s"


def _say(session: Session, moved: Moved) -> None:
    state = "open" if moved.state == "closed" else moved.state
    if session.json:
        render.json_value({"limit": moved.entity_id, "state": state, "changed": moved.changed})
    else:
        render.out(f"limit {line(moved.entity_id)}: {state}" + ("" if moved.changed else " (it was already)"))
