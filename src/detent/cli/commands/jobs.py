"""`detent jobs`: look at jobs, stop them, send them through again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import click
import msgspec

from detent.cli import render
from detent.cli.acting import act_on
from detent.cli.bulk import bulk_by_state
from detent.cli.command import Group, duration, moment, reason_option
from detent.cli.failures import FAILED, OK
from detent.cli.jobview import job_object, list_jobs, show_job, show_past
from detent.cli.session import Session
from detent.lifecycle.library import JOB
from detent.model.escape import block, line
from detent.model.records import EventRow

__all__ = ["command"]

job_id = click.argument("job_id", metavar="ID")
_FILTERS = ("task", "queue", "tenant")


@click.group("jobs", cls=Group)
def command() -> None:
    """Look at jobs, stop them, send them through again."""


@command.command("list")
@click.option("--state", type=click.Choice(list(JOB.states)), help="Only jobs in this state.")
@click.option("--task", metavar="NAME", help="Only jobs of this task.")
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.option("--tenant", metavar="NAME", help="Only jobs of this tenant.")
@click.option("--key", metavar="KEY", help="The job that was enqueued with this key (of --tenant, if it has one).")
@click.option("--correlation-id", metavar="ID", help="Only jobs with this correlation id.")
@click.option("--run", metavar="ID", help="Only jobs of this batch run or pipeline run.")
@click.option("--worker", metavar="NAME", help="Only jobs that this worker holds or has tried.")
@click.option("--error", metavar="TEXT", help="Only jobs with this text in their error, or in that of an attempt.")
@click.option(
    *("--metadata", "metadata"),
    multiple=True,
    metavar="NAME=VALUE",
    help="Only jobs with this metadata (repeatable). VALUE is text or JSON.",
)
@click.option("--since", type=moment, metavar="TIME", help="Only jobs created since: a time, or how long ago (2h, 7d).")
@click.option("--until", type=moment, metavar="TIME", help="Only jobs created before: a time, or how long ago.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of rows to list."
)
@click.option("--after", metavar="PLACE", help="Go on after this place, which the page before has named.")
@click.pass_obj
def list_(session: Session, /, metadata: tuple[str, ...], **chosen: Any) -> None:
    """List jobs, the newest first.

    A key, a run, a correlation id and times are found at once. The other filters are compared job by job, the newest
    first; after 100,000 jobs a page ends and names the place to go on after.
    """
    with session.open() as app:
        jobs = app.jobs.list(metadata=_metadata(metadata), **chosen)
        list_jobs(session, jobs, app.store.job_details([job.id for job in jobs]), where=app.store.name)


def _metadata(wanted: Sequence[str]) -> dict[str, Any]:
    """Each value as the text it is, and as the JSON value that it may be."""
    found: dict[str, Any] = {}
    for pair in wanted:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--metadata takes NAME=VALUE, not {pair!r}.")
        found[name] = (value,)
        with suppress(msgspec.DecodeError):
            decoded = msgspec.json.decode(value)
            found[name] = (value,) if isinstance(decoded, dict | list) else (value, decoded)
    return found


@command.command()
@job_id
@click.option("--at", type=moment, metavar="TIME", help="As it was then: a time, or how long ago (2h, 7d).")
@click.pass_obj
def show(session: Session, job_id: str, at: datetime | None) -> None:
    """Show all that is on record about a job.

    Its fields, its attempts and its transitions. With --at: its state at that time, and what had happened until then.
    """
    with session.open() as app:
        if at is not None:
            job = app.jobs.get(job_id)
            moves = [one for one in job.history() if one.at <= at]
            tried = [one for one in job.executions() if one.leased_at <= at]
            show_past(session, job.row, at, job.state_at(at), tried, moves)
            return
        job = app.jobs.get(job_id)
        details = app.store.job_details([job.id])
        show_job(session, job.row, details, job.executions(), job.history())


@command.command()
@click.option("--at", type=moment, metavar="TIME", help="At that time: a time, or how long ago (2h, 7d).")
@click.pass_obj
def counts(session: Session, at: datetime | None) -> None:
    """Count jobs by tenant, queue and state, now or at a past time within retention."""
    with session.open() as app:
        found = [one for one in app.jobs.counts(at=at) if one.jobs]
    if session.json:
        render.json_value(render.records(found))
        return
    head = ["QUEUE", "STATE", "JOBS"]
    tenants = any(one.tenant for one in found)
    render.table(
        ["TENANT", *head] if tenants else head,
        [[*([one.tenant] if tenants else []), one.queue, one.state, one.jobs] for one in found],
        empty="no jobs" + ("" if at is None else f" at {render.when(at)}"),
    )


@command.command()
@job_id
@click.option("--follow", "-f", is_flag=True, help="Go on with the lines to come, until the job rests.")
@click.pass_obj
def events(session: Session, job_id: str, follow: bool) -> None:
    """Print the lines a job wrote. With --json --follow: one JSON object a line."""
    with session.open() as app:
        lines = app.jobs.get(job_id).events(follow=follow)
        if session.json and not follow:
            render.json_value(render.records(lines))
            return
        for event in lines:
            if session.json:
                render.json_line(render.plain(event))
            else:
                _print_event(event, at_once=follow)


def _many(*states: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What cancel and retry have in common: which jobs, how sure, and why."""
    options: tuple[Callable[[Any], Any], ...] = (
        click.argument("ids", nargs=-1, metavar="[ID]..."),
        click.option("--state", type=click.Choice(states), help="All jobs in this state (that fit the other filters)."),
        *(click.option(f"--{name}", metavar="NAME", help=f"All jobs of this {name}.") for name in _FILTERS),
        click.option("--dry-run", is_flag=True, help="Only say how many it would affect."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        reason_option,
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@command.command()
@_many("pending", "running")
@click.pass_obj
def cancel(session: Session, /, ids: tuple[str, ...], reason: str | None, **chosen: Any) -> int:
    """Stop jobs.

    Cancels pending jobs at once. A running job is told within a second or two; `detent jobs show` and `why` say what
    became of it. With a filter instead of ids, it says how many first, and is an operation that workers continue.
    """
    if _by_filter(ids, chosen):
        return _act_by_filter(session, "cancel", ("pending", "running"), reason, **chosen)
    with session.open() as app:
        words = {"running": "cancel requested; it is still running"}
        return act_on(session, ids, lambda one: app.jobs.get(one).cancel(reason=reason).state, words)


@command.command()
@_many("failed", "quarantined", "cancelled")
@click.pass_obj
def retry(session: Session, /, ids: tuple[str, ...], reason: str | None, **chosen: Any) -> int:
    """Send jobs through again.

    Those that failed, are quarantined or were cancelled, with fresh attempts. Those named, or those that fit a filter:
    then it says how many first, and is an operation that goes on where a worker runs. Cancelled ones only with --state.
    """
    if _by_filter(ids, chosen):
        return _act_by_filter(session, "retry", ("failed", "quarantined"), reason, **chosen)
    with session.open() as app:
        return act_on(session, ids, lambda one: app.jobs.get(one).retry(reason=reason).state)


def _by_filter(ids: tuple[str, ...], chosen: dict[str, Any]) -> bool:
    filters = any(chosen[name] is not None for name in ("state", *_FILTERS))
    if bool(ids) == filters:
        raise click.UsageError("Say which: either IDs, or a filter (--state, --task, --queue, --tenant).")
    if ids and chosen["dry_run"]:
        raise click.UsageError("--dry-run counts what a filter would affect; of IDs you know how many.")
    return filters


def _act_by_filter(
    session: Session,
    action: str,
    states: Sequence[str],
    reason: str | None,
    *,
    state: str | None,
    dry_run: bool,
    yes: bool,
    **chosen: Any,
) -> int:
    wanted = states if state is None else [state]
    with session.open() as app:
        return bulk_by_state(session, app, action, wanted, chosen, reason=reason, dry_run=dry_run, yes=yes)


@command.command()
@job_id
@click.pass_obj
def why(session: Session, job_id: str) -> None:
    """Say in one sentence why a job is where it is."""
    with session.open() as app:
        job = app.jobs.get(job_id)
        sentence, state = job.why(), job.state
        if session.json:
            render.json_value({"id": job_id, "state": state, "why": sentence})
        else:
            render.out(line(sentence))


@command.command()
@job_id
@click.option("--timeout", type=duration, metavar="TIME", help="Give up after so long: 30s, 5m. Exit code 124.")
@click.pass_obj
def wait(session: Session, job_id: str, timeout: float | None) -> int:
    """Wait until a job rests. Exit code 0 when it succeeded, 1 when it rests otherwise, 124 when time is up."""
    with session.open() as app:
        row = app.jobs.get(job_id).wait(timeout).row
    if session.json:
        render.json_value(job_object(row))
    elif row.state == "succeeded":
        render.out(f"job {row.id} succeeded" + ("" if row.result is None else f": {line(row.result)}"))
    else:
        render.out(f"job {row.id} is {row.state}" + ("" if row.error is None else f":\n{block(row.error)}"))
    return OK if row.state == "succeeded" else FAILED


def _print_event(event: EventRow, *, at_once: bool) -> None:
    payload = "" if event.payload is None else f"  {line(event.payload)}"
    render.out(f"{render.when(event.at)}  {line(event.level):<8}  {line(event.message)}{payload}")
    if at_once:
        render.flush()
