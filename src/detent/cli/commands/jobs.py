"""`detent jobs`: look at jobs, stop them, send them through again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import click

from detent.cli import render
from detent.cli.acting import act_on
from detent.cli.bulk import POSSIBLE, bulk, bulk_by_state
from detent.cli.command import Group, duration, moment, paged, reason_option
from detent.cli.failures import FAILED, OK
from detent.cli.filters import is_filtered, job_filters
from detent.cli.jobview import job_object, list_jobs, show_job, show_past
from detent.cli.session import Session
from detent.errors import essence
from detent.model import jsondoor
from detent.model.escape import block, line
from detent.model.records import EventRow

__all__ = ["command"]

job_id = click.argument("job_id", metavar="ID")
stale_after = click.option(
    "--stale-after", type=duration, default="5m", show_default=True, metavar="TIME", help="From the claim to the start."
)
stalled_after = click.option(
    "--stalled-after", type=duration, default="10m", show_default=True, metavar="TIME", help="Since the last event."
)


@click.group("jobs", cls=Group)
def command() -> None:
    """Look at jobs, stop them, send them through again."""


@command.command("list")
@job_filters
@paged
@click.pass_obj
def list_(session: Session, /, **chosen: Any) -> None:
    """List jobs, the newest first.

    A key, a run, a correlation id and times are found at once. The other filters are compared job by job, the newest
    first; after 100,000 jobs a page ends and names the place to go on after.
    """
    with session.open() as app:
        jobs = app.jobs.list(**chosen)
        list_jobs(session, jobs, app.store.job_details([job.id for job in jobs]), where=app.store.name)


@command.command()
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@stale_after
@stalled_after
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of rows to list."
)
@click.pass_obj
def silent(session: Session, queue: str | None, stale_after: float, stalled_after: float, limit: int) -> None:
    """List running jobs that are silent.

    Stale: claimed and not begun. Stalled: begun, and no event since. `detent jobs cancel` cancels one. The times of a
    task (stale_after, stalled_after) take precedence.
    """
    with session.open() as app:
        found = app.jobs.silent(queue=queue, stale_after=stale_after, stalled_after=stalled_after, limit=limit)
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["ID", "KIND", "SINCE", "TASK", "QUEUE", "ATTEMPT", "WORKER"],
        [[str(one.job_id), one.kind, one.since, one.task, one.queue, one.attempt, one.worker] for one in found],
        empty="no silent jobs",
    )


@command.command()
@job_id
@click.option("--at", type=moment, metavar="TIME", help="As it was then: a time, or how long ago (2h, 7d).")
@click.pass_obj
def get(session: Session, job_id: str, at: datetime | None) -> None:
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


def _many(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which jobs, how sure, and why: for commands that take ids or filters."""
    options: tuple[Callable[[Any], Any], ...] = (
        click.argument("ids", nargs=-1, metavar="[ID]..."),
        job_filters,
        click.option("--dry-run", is_flag=True, help="Only say how many it would affect."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        reason_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


@command.command()
@_many
@click.pass_obj
def cancel(session: Session, /, ids: tuple[str, ...], reason: str | None, **chosen: Any) -> int:
    """Stop jobs.

    Cancels pending jobs at once. A running job is told within a second or two; `detent jobs get` and `why` say what
    became of it. With a filter instead of ids, it says how many first, and is an operation that workers continue.
    """
    if _by_filter(ids, chosen):
        return _act_by_filter(session, "cancel", ("pending", "running"), reason, **chosen)
    with session.open() as app:
        words = {"running": "cancel requested; it is still running"}
        return act_on(session, ids, lambda one: app.jobs.get(one).cancel(reason=reason).state, words)


@command.command()
@_many
@click.pass_obj
def retry(session: Session, /, ids: tuple[str, ...], reason: str | None, **chosen: Any) -> int:
    """Retry jobs that failed, are quarantined or were cancelled, with all their attempts.

    With a filter instead of ids, it says how many first, and is an operation that workers continue; cancelled jobs are
    then retried only with --state cancelled.
    """
    if _by_filter(ids, chosen):
        return _act_by_filter(session, "retry", ("failed", "quarantined"), reason, **chosen)
    with session.open() as app:
        return act_on(session, ids, lambda one: app.jobs.get(one).retry(reason=reason).state)


@command.command()
@_many
@click.pass_obj
def discard(session: Session, /, ids: tuple[str, ...], reason: str | None, **chosen: Any) -> int:
    """Give up jobs that failed or are quarantined: they become cancelled.

    With a filter instead of ids, it says how many first, and is an operation that workers continue.
    """
    if _by_filter(ids, chosen):
        return _act_by_filter(session, "discard", ("failed", "quarantined"), reason, **chosen)
    with session.open() as app:
        return act_on(session, ids, lambda one: app.jobs.get(one).discard(reason=reason).state)


@command.command()
@job_filters
@click.option("--to-queue", metavar="NAME", help="Queue to move the jobs to.")
@click.option("--to-priority", type=int, metavar="N", help="Priority to give the jobs.")
@click.option("--dry-run", is_flag=True, help="Only say how many it would affect.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@reason_option
@click.pass_obj
def move(session: Session, /, to_queue: str | None, to_priority: int | None, reason: str | None, **chosen: Any) -> int:
    """Move pending jobs to another queue, or give them another priority.

    The filters choose the jobs. It says how many first, and is an operation that workers continue.
    """
    if to_queue is None and to_priority is None:
        raise click.UsageError("Say where to: --to-queue, --to-priority or both.")
    if not is_filtered(chosen):
        raise click.UsageError("Say which: a filter, such as --queue or --task.")
    where: dict[str, Any] = {"queue": to_queue, "priority": to_priority}
    where |= {"dry_run": chosen.pop("dry_run"), "yes": chosen.pop("yes")}
    with session.open() as app:
        return bulk(session, app, "move", chosen, what="jobs", reason=reason, **where)


def _by_filter(ids: tuple[str, ...], chosen: dict[str, Any]) -> bool:
    filters = is_filtered(chosen)
    if bool(ids) == filters:
        raise click.UsageError("Say which: either IDs, or a filter (--state, --task, --queue, --tenant, …).")
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
    if state is not None and state not in POSSIBLE[action]:
        raise click.UsageError(f"{action} is for jobs that are {', '.join(POSSIBLE[action])}; none that is {state}.")
    wanted = states if state is None else [state]
    with session.open() as app:
        return bulk_by_state(session, app, action, wanted, chosen, reason=reason, dry_run=dry_run, yes=yes)


@command.command()
@job_id
@click.argument("state", metavar="STATE")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for the record.")
@click.pass_obj
def force(session: Session, job_id: str, state: str, reason: str) -> int:
    """Move a job along a transition that is declared as `force`. It is marked as such on record."""
    with session.open() as app:
        return act_on(session, (job_id,), lambda one: app.jobs.get(one).force(state, reason=reason).state)


@command.command()
@job_id
@click.pass_obj
def history(session: Session, job_id: str) -> None:
    """List every transition of a job, with actor and reason."""
    with session.open() as app:
        render.moves(session.json, app.jobs.get(job_id).history())


@command.command()
@job_id
@click.pass_obj
def executions(session: Session, job_id: str) -> None:
    """List every attempt at a job, ended or in flight."""
    with session.open() as app:
        found = app.jobs.get(job_id).executions()
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["ATTEMPT", "WORKER", "CLAIMED", "OUTCOME", "ERROR"],
        [[one.attempt, one.worker, one.leased_at, one.outcome, essence(one.error)] for one in found],
        empty="no attempts",
    )


@command.command()
@job_id
@click.option("--done/--not-done", default=None, help="Whether the side effect has happened (required).")
@click.option("--result", metavar="JSON", help="Result to store, with --done.")
@click.option("--reason", metavar="TEXT", required=True, help="How you found out, for the record.")
@click.pass_obj
def settle(session: Session, /, job_id: str, done: bool | None, result: str | None, reason: str) -> int:
    """Record the outcome of a job whose side effect is unknown.

    For a dead job with the reason `unknown`: its worker was lost after the job had begun to act. With --done the job
    succeeds; with --not-done it runs again.
    """
    if done is None:
        raise click.UsageError("Say whether it has happened: --done or --not-done.")
    if result is not None and not done:
        raise click.UsageError("--result goes with --done.")
    with session.open() as app:
        value = None if result is None else jsondoor.decode(result, field="--result")
        return act_on(
            session, (job_id,), lambda one: app.jobs.get(one).settle(done=done, result=value, reason=reason).state
        )


@command.command()
@job_id
@click.argument("payload", metavar="JSON")
@click.option("--reason", required=True, metavar="TEXT", help="What was wrong with the arguments, for the record.")
@click.pass_obj
def replace(session: Session, job_id: str, payload: str, reason: str) -> None:
    """Enqueue a dead job's task with corrected arguments.

    JSON are all arguments by name. The dead job is discarded and stays on record, with the id of the new one. With
    --app the arguments must fit the task's signature.
    """
    with session.open() as app:
        job = app.jobs.get(job_id).replace(payload, reason=reason)
        if session.json:
            render.json_value(job_object(job.row))
        else:
            render.out(f"job {job_id}: replaced by job {job.id}")


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
