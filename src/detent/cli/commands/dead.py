"""`detent dead`: dead jobs, which failed for good and wait for a person. Their state is `quarantined`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from detent.cli import render
from detent.cli.acting import act_on
from detent.cli.bulk import bulk
from detent.cli.command import Group, reason_option
from detent.cli.failures import NOT_FOUND, CommandFailed
from detent.cli.jobview import list_dead, show_job
from detent.cli.session import Session

__all__ = ["command"]

_STATE = "quarantined"


@click.group("dead", cls=Group)
def command() -> None:
    """List, retry and discard dead jobs: jobs that failed for good (state `quarantined`)."""


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for name in ("tenant", "queue", "task"):
        function = click.option(f"--{name}", metavar="NAME", help=f"Only dead jobs of this {name}.")(function)
    return function


def _many(function: Callable[..., Any]) -> Callable[..., Any]:
    """What retry and discard have in common: which ones, how sure, and why."""
    options = (
        click.argument("ids", nargs=-1, metavar="[ID]..."),
        click.option("--all", "every", is_flag=True, help="All of them (that fit the filters)."),
        _filters,
        click.option("--dry-run", is_flag=True, help="Only say how many it would affect."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        reason_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


@command.command("list")
@_filters
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of rows to list."
)
@click.option("--after", metavar="PLACE", help="Go on after this place, which the page before has named.")
@click.pass_obj
def list_(session: Session, /, **chosen: Any) -> None:
    """List dead jobs with the error of each, those created last first."""
    with session.open() as app:
        list_dead(session, app.jobs.list(state=_STATE, **chosen), where=app.store.name)


@command.command()
@_filters
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of groups to list."
)
@click.pass_obj
def report(session: Session, /, limit: int, **chosen: Any) -> None:
    """Summarise why jobs died.

    One line for each task and queue, the reason why there is no further attempt, and kind of error; the largest first,
    each with one job to look at.
    """
    with session.open() as app:
        groups = app.dead.report(limit=limit, **chosen)
        where = app.store.name
    if session.json:
        render.json_value(render.records(groups))
        return
    render.table(
        ["JOBS", "TASK", "QUEUE", "REASON", "ERROR", "ATTEMPTS", "OLDEST", "NEWEST", "FOR INSTANCE"],
        [
            [
                *(one.jobs, one.task, one.queue, one.reason, one.kind, one.attempts, one.oldest_at, one.newest_at),
                str(one.sample_id),
            ]
            for one in groups
        ],
        empty=f"no dead jobs in {where}",
    )
    if len(groups) == limit:
        render.note("there may be more: --limit")


@command.command()
@click.argument("job_id", metavar="ID")
@click.pass_obj
def show(session: Session, job_id: str) -> None:
    """Show a dead job with all its errors."""
    with session.open() as app:
        job = app.jobs.get(job_id)
        row = job.row
        if row.state != _STATE:
            raise CommandFailed(f"job {row.id} is not dead: it is {row.state}", NOT_FOUND)
        show_job(session, row, app.store.job_details([row.id]), job.executions(), job.history())


@command.command()
@_many
@click.pass_obj
def retry(session: Session, /, reason: str | None, **chosen: Any) -> int:
    """Retry dead jobs.

    Retries the jobs named, or those that match a filter, with all their attempts anew.
    """
    return _act(session, "retry", reason, **chosen)


@command.command()
@_many
@click.pass_obj
def discard(session: Session, /, reason: str | None, **chosen: Any) -> int:
    """Discard dead jobs.

    Moves the jobs named, or those that match a filter, to `cancelled`.
    """
    return _act(session, "discard", reason, **chosen)


def _act(
    session: Session,
    verb: str,
    reason: str | None,
    *,
    ids: tuple[str, ...],
    every: bool,
    task: str | None,
    queue: str | None,
    tenant: str | None,
    dry_run: bool,
    yes: bool,
) -> int:
    by_filter = every or any(value is not None for value in (task, queue, tenant))
    if bool(ids) == by_filter:
        raise click.UsageError("Say which: either IDs, or a filter (--task, --queue, --tenant), or --all.")
    with session.open() as app:
        if by_filter:
            chosen = {"state": _STATE, "task": task, "queue": queue, "tenant": tenant}
            return bulk(session, app, verb, chosen, what="dead jobs", reason=reason, dry_run=dry_run, yes=yes)
        if dry_run:
            raise click.UsageError("--dry-run counts what a filter would affect; of IDs you know how many.")

        def act(job_id: str) -> str:
            job = app.jobs.get(job_id)
            verb_of = job.retry if verb == "retry" else job.discard
            return verb_of(reason=reason).state

        return act_on(session, ids, act)
