"""`detent queues`: how full they are, and whether claims may enter."""

from __future__ import annotations

from collections.abc import Sequence

import click

from detent.cli import render
from detent.cli.command import Group, duration, paged, reason_option, say_more
from detent.cli.session import Session
from detent.declare.limit import Limit
from detent.lifecycle.library import JOB
from detent.model.escape import line
from detent.model.limit_records import LimitRow
from detent.model.records import Moved
from detent.views.queues import Queue

__all__ = ["command"]

name = click.argument("name", metavar="QUEUE")


@click.group("queues", cls=Group)
def command() -> None:
    """List, pause, resume and limit queues."""


@command.command("list")
@paged
@click.pass_obj
def list_(session: Session, limit: int, after: str | None) -> None:
    """List queues with their jobs by state."""
    with session.open() as app:
        found = app.queues.list(limit=limit, after=after)
    _show(session, found)
    say_more(found)


@command.command()
@name
@click.pass_obj
def get(session: Session, name: str) -> None:
    """Show a queue."""
    with session.open() as app:
        found = app.queues.get(name)
    if session.json:
        render.json_value(render.plain(found))
    else:
        _show(session, [found])


def _show(session: Session, found: Sequence[Queue]) -> None:
    if session.json:
        render.json_value([render.plain(one) for one in found])
        return
    render.table(
        ["QUEUE", "CLAIMS", *(state.upper() for state in JOB.states), "PAUSED BY", "REASON"],
        [
            [
                one.name,
                "paused" if one.paused else "open",
                *(one.jobs[state] for state in JOB.states),
                one.paused_by,
                one.paused_reason,
            ]
            for one in found
        ],
        empty="no queues: nothing was ever enqueued here",
    )


@command.command()
@name
@reason_option
@click.pass_obj
def pause(session: Session, name: str, reason: str | None) -> None:
    """Let no claim enter a queue until it is resumed; what is running goes on."""
    with session.open() as app:
        is_new = all(one.name != name for one in app.queues.list(limit=10_000))
        _say(session, app.queues.pause(name, reason=reason))
    if is_new:
        render.note(f"no job has ever been in queue {line(name)}; `detent queues list` shows those there are")


@command.command()
@name
@reason_option
@click.pass_obj
def resume(session: Session, name: str, reason: str | None) -> None:
    """Let claims enter a queue again."""
    with session.open() as app:
        _say(session, app.queues.resume(name, reason=reason))


@command.command("limit")
@name
@click.option("--concurrency", type=int, metavar="N", help="Maximum number of jobs that run at once.")
@click.option("--rate", type=float, metavar="N", help="Average number of jobs that may start per --per.")
@click.option("--per", type=duration, default="1s", show_default=True, metavar="TIME", help="Period of --rate.")
@click.option(
    "--burst",
    type=float,
    metavar="N",
    help="Number of jobs that may start together after a quiet time. Default: 0.1 s of the rate, at least 1.",
)
@click.option("--none", "lift", is_flag=True, help="Lift the bounds again.")
@click.pass_obj
def limit_(
    session: Session,
    name: str,
    concurrency: int | None,
    rate: float | None,
    per: float,
    burst: float | None,
    lift: bool,
) -> None:
    """Bound the jobs of a queue, for all workers together.

    Its key is queue:QUEUE. The limits of tasks are in their code.
    """
    if lift == (concurrency is not None or rate is not None):
        raise click.UsageError("Say which: --concurrency, --rate or both, or --none to lift them.")
    if burst is not None and rate is None:
        raise click.UsageError("--burst goes with --rate.")
    with session.open() as app:
        row = app.queues.limit(name, Limit(concurrency=concurrency, rate=rate, per=per, burst=burst))
    if session.json:
        render.json_value(render.plain(row))
    else:
        bounds = [f"{concurrency} at once"] if concurrency is not None else []
        bounds += [f"{_rate(row)}, burst {row.burst:g}"] if rate is not None else []
        render.out(f"limit {line(row.key)}: {', '.join(bounds) or 'no bounds'}")


@command.command()
@name
@click.option("--automatic/--by-approval", default=None, help="Who recovers silent jobs (required).")
@click.option(
    "--stale-after", type=duration, default="5m", show_default=True, metavar="TIME", help="From the claim to the start."
)
@click.option(
    "--stalled-after", type=duration, default="10m", show_default=True, metavar="TIME", help="Since the last event."
)
@reason_option
@click.pass_obj
def recovery(
    session: Session, name: str, automatic: bool | None, stale_after: float, stalled_after: float, reason: str | None
) -> None:
    """Choose whether workers stop silent jobs of a queue and run them again, or leave them to a person."""
    if automatic is None:
        raise click.UsageError("Say which: --automatic or --by-approval.")
    with session.open() as app:
        moved = app.queues.recovery(
            name, automatic=automatic, stale_after=stale_after, stalled_after=stalled_after, reason=reason
        )
    if session.json:
        render.json_value({"queue": moved.entity_id, "recovery": moved.state, "changed": moved.changed})
    else:
        render.out(f"queue {line(moved.entity_id)}: {moved.state}" + ("" if moved.changed else " (it was already)"))


@command.command()
@click.pass_obj
def recoveries(session: Session) -> None:
    """List the queues whose silent jobs are stopped and run again automatically."""
    with session.open() as app:
        found = app.queues.recoveries()
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["QUEUE", "STALE AFTER", "STALLED AFTER", "BY", "SINCE", "REASON"],
        [[one.queue, one.stale_after, one.stalled_after, one.changed_by, one.changed_at, one.reason] for one in found],
        empty="none: silent jobs of every queue wait for approval",
    )


def _say(session: Session, moved: Moved) -> None:
    if session.json:
        render.json_value({"queue": moved.entity_id, "state": moved.state, "changed": moved.changed})
    else:
        render.out(f"queue {line(moved.entity_id)}: {moved.state}" + ("" if moved.changed else " (it was already)"))


def _rate(row: LimitRow) -> str | None:
    return None if row.rate is None else f"{row.rate:g} in {row.per:g} s"
