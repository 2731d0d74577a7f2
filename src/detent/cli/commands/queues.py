"""`detent queues` and `detent limits`: how many jobs there are, and how many may run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from detent.cli import output
from detent.cli.command import Group, with_app
from detent.cli.options import duration, flag, option, page_options, reason_option, silence_options
from detent.cli.session import Session
from detent.client.list_page import ListPage
from detent.declare.limit import Limit
from detent.lifecycle.library import JOB
from detent.model.limit_records import LimitRow
from detent.model.records import Moved, TransitionRow
from detent.model.terminal_text import line
from detent.views.job_explanation import paused_by

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["QUEUE_COLUMNS", "limits", "queues"]

queues = Group(
    "queues",
    help="List, pause, resume and limit queues.",
    examples=("detent queues list", "detent queues pause mail --reason 'the provider is down'"),
)
limits = Group(
    "limits",
    help="List, pause, resume and remove limits.",
    examples=("detent limits list --waiting", "detent limits resume shop-api"),
)
name_argument = click.argument("name", metavar="QUEUE")
key_argument = click.argument("key", metavar="KEY")


def _jobs_in(state: str) -> Any:
    return lambda queue: queue.jobs[state]


QUEUE_COLUMNS = output.columns(
    ("QUEUE", "name"),
    ("CLAIMS", lambda queue: "paused" if queue.paused else "open"),
    *((state.upper(), _jobs_in(state)) for state in JOB.states),
)
"""The columns of a list of queues: their jobs by state."""
_QUEUES = {**QUEUE_COLUMNS, **output.columns("paused_by", ("REASON", "paused_reason"))}


@queues.command("list")
@page_options
@with_app
def list_queues(session: Session, app: Detent, limit: int, after: str | None) -> None:
    """List queues with their jobs by state."""
    found = app.queues.list(limit=limit, after=after)
    session.show_rows(found, _QUEUES, empty="no queues: no job has been enqueued yet")


@queues.command("get")
@name_argument
@with_app
def get_queue(session: Session, app: Detent, name: str) -> None:
    """Show a queue with its jobs by state."""
    found = app.queues.get(name)
    if session.json:
        output.print_json(output.to_object(found))
    else:
        output.print_rows([found], _QUEUES)


@queues.command("pause")
@name_argument
@reason_option
@with_app
def pause_queue(session: Session, app: Detent, name: str, reason: str | None) -> None:
    """Start no job of a queue until it is resumed. Running jobs go on."""
    _show_claims(session, app, name, app.queues.pause(name, reason=reason))


@queues.command("resume")
@name_argument
@reason_option
@with_app
def resume_queue(session: Session, app: Detent, name: str, reason: str | None) -> None:
    """Let jobs of a queue start again."""
    _show_claims(session, app, name, app.queues.resume(name, reason=reason))


def _show_claims(session: Session, app: Detent, name: str, moved: Moved) -> None:
    """Print whether a queue is paused, with a note if it has never had a job: its name may be mistyped."""
    session.show_moved("queue", moved)
    if not any(one.name == name and any(one.jobs.values()) for one in app.queues.list(limit=10_000)):
        output.print_note(f"Queue {line(name)} has no jobs on record. `detent queues list` lists the queues that have.")


@queues.command("limit")
@name_argument
@option("--concurrency", "Maximum number of jobs that run at once.", int)
@option("--rate", "Average number of jobs that may start per --per.", float)
@option("--per", "Period of --rate.", duration, default="1s")
@option(
    "--burst",
    "Number of jobs that may start together after a quiet time. Default: 0.1 s of the rate, at least 1.",
    float,
)
@flag("--none", "Lift the limit.", to="lift")
@reason_option
@click.pass_obj
def limit_queue(
    session: Session,
    name: str,
    concurrency: int | None,
    rate: float | None,
    per: float,
    burst: float | None,
    lift: bool,
    reason: str | None,
) -> None:
    """Limit the jobs of a queue, for all workers together.

    The key of this limit is queue:QUEUE. The limits of tasks are declared in code.
    """
    if lift == (concurrency is not None or rate is not None):
        raise click.UsageError("Give --concurrency, --rate or both; or --none to lift the limit.")
    if burst is not None and rate is None:
        raise click.UsageError("--burst goes with --rate.")
    with session.open() as app:
        row = app.queues.limit(name, Limit(concurrency=concurrency, rate=rate, per=per, burst=burst), reason=reason)
    bounds = [f"{concurrency} at once"] if concurrency is not None else []
    bounds += [f"{_rate(row)}, burst {row.burst:g}"] if rate is not None else []
    session.answer(output.to_object(row), f"limit {line(row.key)}: {', '.join(bounds) or 'no bounds'}")


@queues.command()
@name_argument
@flag("--automatic/--by-approval", "Run silent jobs again, or leave them to a person (required).")
@silence_options
@reason_option
@click.pass_obj
def recovery(session: Session, /, name: str, automatic: bool | None, **chosen: Any) -> None:
    """Choose what happens to silent jobs of a queue.

    Either workers stop them and run them again, or they wait for a person.
    """
    if automatic is None:
        raise click.UsageError("Give either --automatic or --by-approval.")
    with session.open() as app:
        moved = app.queues.recovery(name, automatic=automatic, **chosen)
    session.show_moved("queue", moved)


@queues.command()
@with_app
def recoveries(session: Session, app: Detent) -> None:
    """List the queues with automatic recovery of silent jobs."""
    changed = (("BY", "changed_by"), ("SINCE", "changed_at"), "reason")
    columns = output.columns("queue", "stale_after", "stalled_after", *changed)
    session.show_rows(app.queues.recoveries(), columns, empty="none: silent jobs of every queue wait for approval")


# -- limits ----------------------------------------------------------------------------------------------------


@limits.command("list")
@flag("--waiting", "Only limits under which no job may start now.")
@page_options
@with_app
def list_limits(session: Session, app: Detent, waiting: bool, limit: int, after: str | None) -> None:
    """List limits with the jobs that run under them.

    STATE is open if jobs may start; full, spent (its rate), paused or breaker if they may not; half open if one job
    is tried. TOKENS is what is left of the burst: a job takes one, or its cost. Below zero, the bucket is in debt.
    """
    now = app.store.now()
    matching = (one for one in _all_limits(app, after) if not waiting or one.state(now) != "open")
    found = ListPage(islice(matching, limit))
    found.next = found[-1].key if len(found) == limit else None
    pauses = {one.key: paused_by(app.store, one.key) for one in found if one.held_at is not None}
    columns = output.columns(
        "key",
        ("STATE", lambda one: one.state(now)),
        "running",
        ("AT ONCE", "concurrency_max"),
        ("RATE", _rate),
        ("TOKENS", lambda one: None if one.rate is None else f"{one.tokens:.1f}/{one.burst:g}"),
        ("UNTIL", lambda one: one.until(now)),
        "throttled",
        ("TASKS", lambda one: ",".join(one.tasks)),
        ("QUEUES", lambda one: ",".join(one.queues)),
        ("BOUNDS OF", "template"),
        ("PAUSED BY", lambda one: by.actor if (by := pauses.get(one.key)) else None),
        ("REASON", lambda one: by.reason if (by := pauses.get(one.key)) else None),
    )
    objects = (_limit_object(one, pauses.get(one.key), state=one.state(now)) for one in found)
    session.show_rows(found, columns, empty="no limits" if not waiting else "no limit is reached", objects=objects)


@limits.command("get")
@key_argument
@with_app
def get_limit(session: Session, app: Detent, key: str) -> None:
    """Show a limit."""
    row = app.limits.get(key)
    by = paused_by(app.store, row.key) if row.held_at is not None else None
    session.show_record(_limit_object(row, by, state=row.state(app.store.now())))


@limits.command("pause")
@key_argument
@reason_option
@with_app
def pause_limit(session: Session, app: Detent, key: str, reason: str | None) -> None:
    """Start no job under a limit until it is resumed. Running jobs go on.

    KEY is the key of a limit, or a key that jobs have, such as shop:7.
    """
    session.show_moved("limit", app.limits.pause(key, reason=reason))


@limits.command("resume")
@key_argument
@reason_option
@with_app
def resume_limit(session: Session, app: Detent, key: str, reason: str | None) -> None:
    """Let jobs start under a limit again.

    Ends a pause of any origin, closes the breaker and fills the bucket.
    """
    moved: Moved = app.limits.resume(key, reason=reason)
    session.show_moved("limit", replace(moved, state="open") if moved.state == "closed" else moved)


@limits.command("remove")
@key_argument
@reason_option
@with_app
def remove_limit(session: Session, app: Detent, key: str, reason: str | None) -> None:
    """Remove a limit that no code declares any more.

    Refused while jobs wait or run under it. If the code still declares the limit, `detent migrate --app` writes it
    again, and so does a worker that starts while no other worker runs. `detent queues limit QUEUE --none` lifts the
    limit of a queue.
    """
    session.show_moved("limit", app.limits.remove(key, reason=reason))


def _all_limits(app: Detent, after: str | None) -> Iterator[LimitRow]:
    """Yield every limit after a key, page by page."""
    while page := app.limits.list(after=after):
        yield from page
        after = page[-1].key


def _limit_object(row: LimitRow, by: TransitionRow | None, *, state: str) -> dict[str, Any]:
    pause = {"paused_by": None, "reason": None} if by is None else {"paused_by": by.actor, "reason": by.reason}
    return output.to_object(row, state=state) | pause


def _rate(row: LimitRow) -> str | None:
    return None if row.rate is None else f"{row.rate:g} in {row.per:g} s"
