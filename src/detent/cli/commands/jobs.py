"""`detent jobs`: list, examine, cancel, retry, discard and move jobs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from detent.cli import output
from detent.cli.command import Group, with_app
from detent.cli.failures import FAILED, OK
from detent.cli.job_actions import act_on_ids, act_on_jobs, act_on_matches
from detent.cli.job_output import EXECUTIONS, job_object, parked_for, show_job, show_jobs, show_past_job
from detent.cli.options import (
    bulk_options,
    flag,
    is_filtered,
    job_filters,
    limit_option,
    option,
    page_options,
    past_time,
    required_reason_option,
    silence_options,
    timeout_option,
)
from detent.cli.session import Session, redaction_of
from detent.model import json_codec
from detent.model.terminal_text import block, line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["jobs"]

jobs = Group(
    "jobs",
    help="List, examine, cancel, retry, discard and move jobs.",
    examples=("detent jobs list --state quarantined", "detent jobs retry --task shop.welcome --reason 'fixed'"),
)
job_id_argument = click.argument("job_id", metavar="ID")
ids_argument = click.argument("ids", nargs=-1, metavar="[ID]...")


@jobs.command("list")
@job_filters()
@page_options
@with_app
def list_(session: Session, app: Detent, **chosen: Any) -> None:
    """List jobs, the newest first.

    Filters by key, run, correlation id and time use an index. The other filters read job by job, the newest first; a
    page ends after 100,000 jobs and prints the place to continue after.
    """
    found = app.jobs.list(**chosen)
    rows = found.each(lambda job: redaction_of(app).job(job.row))
    details = redaction_of(app).listed(app.store.job_details([job.id for job in found]))
    show_jobs(session, rows, details, parked_for(app, rows), database=app.store.name)


@jobs.command()
@job_filters("queue")
@silence_options
@limit_option()
@with_app
def silent(session: Session, app: Detent, **chosen: Any) -> None:
    """List running jobs that are silent.

    A stale job is claimed but has not started; a stalled job has started but writes no events. `stale_after` and
    `stalled_after` of a task take precedence over the options. `detent jobs cancel` cancels such a job.
    """
    columns = output.columns(("ID", "job_id"), "kind", "since", "task", "queue", "attempt", "worker")
    session.show_rows(app.jobs.silent(**chosen), columns, empty="no silent jobs")


@jobs.command()
@job_id_argument
@option("--at", "As it was at this time, or 2h or 7d ago.", past_time)
@with_app
def get(session: Session, app: Detent, job_id: str, at: datetime | None) -> None:
    """Show a job with its attempts and transitions.

    With --at: its state at that time, and the attempts and transitions until then.
    """
    job = app.jobs.get(job_id)
    redaction, row = redaction_of(app), redaction_of(app).job(job.row)
    executions = redaction.of_job(job.id, job.executions())
    transitions = redaction.of_job(job.id, job.history())
    if at is None:
        details = redaction.of_job(job.id, app.store.job_details([job.id]))
        show_job(session, row, details, executions, transitions, parked_for(app, [row]))
        return
    until = [one for one in transitions if one.at <= at]
    show_past_job(session, row, at, job.state_at(at), [one for one in executions if one.leased_at <= at], until)


@jobs.command()
@option("--at", "At this time, or 2h or 7d ago. Default: now.", past_time)
@option("--tenant", "Only this tenant.", "NAME")
@flag("--by-tenant", "Count by tenant too.")
@with_app
def counts(session: Session, app: Detent, at: datetime | None, tenant: str | None, by_tenant: bool) -> None:
    """Count jobs by queue and state.

    With --at: at a past time, as far back as retention keeps jobs. This reads the whole record.
    """
    found = [one for one in app.jobs.counts(at=at, tenant=tenant, by_tenant=by_tenant) if one.jobs]
    tenants = ["tenant"] if any(one.tenant for one in found) else []
    empty = "no jobs" + ("" if at is None else f" at {output.format_time(at)}")
    session.show_rows(found, output.columns(*tenants, "queue", "state", "jobs"), empty=empty)


@jobs.command()
@job_id_argument
@flag("--follow", "Wait for more events until the job has ended.", short="-f")
@with_app
def events(session: Session, app: Detent, job_id: str, follow: bool) -> None:
    """Print the events of a job. With --json --follow: one JSON object per line."""
    job = app.jobs.get(job_id)
    found = (redaction_of(app).of_job(job.id, event) for event in job.events(follow=follow))
    if follow:
        for event in found:
            if session.json:
                output.print_json_line(output.to_object(event))
            else:
                output.print_event(event)
                output.flush()
    elif session.json:
        output.print_json(output.records(found))
    else:
        output.print_events(("", event) for event in found)


@jobs.command()
@ids_argument
@bulk_options
@flag("--no-undo", "Do not undo the steps of workflows. Needs --reason.")
@click.pass_obj
def cancel(session: Session, /, no_undo: bool, **chosen: Any) -> int:
    """Cancel jobs.

    Takes job ids or a filter. A pending job is cancelled at once. A running job is told within a second or two; `detent
    jobs get` shows how it ended. A workflow undoes its steps first. Workers cancel its children; `detent jobs why`
    tells whether any are left. A filter prints the number of jobs first, and starts an operation that workers continue.
    """
    states = {
        "running": "cancel requested; it is still running",
        "pending": "cancel requested; a worker undoes its steps first",
    }
    more = {"undo": False} if no_undo else {}
    return act_on_jobs(session, "cancel", states=states, more=more, **chosen)


@jobs.command()
@ids_argument
@bulk_options
@click.pass_obj
def retry(session: Session, /, **chosen: Any) -> int:
    """Retry jobs that are failed, quarantined or cancelled.

    They get all their attempts again. Takes job ids or a filter. A filter prints the number of jobs first, and starts
    an operation that workers continue. It leaves cancelled jobs alone, unless it is --state cancelled.
    """
    return act_on_jobs(session, "retry", states={}, **chosen)


@jobs.command()
@ids_argument
@bulk_options
@click.pass_obj
def discard(session: Session, /, **chosen: Any) -> int:
    """Discard jobs that are failed or quarantined.

    They become cancelled. Takes job ids or a filter. A filter prints the number of jobs first, and starts an operation
    that workers continue.
    """
    return act_on_jobs(session, "discard", states={}, **chosen)


@jobs.command()
@bulk_options
@option("--to-queue", "Queue to move the jobs to.", "NAME")
@option("--to-priority", "Priority to give the jobs.", int)
@click.pass_obj
def move(session: Session, /, to_queue: str | None, to_priority: int | None, **chosen: Any) -> int:
    """Move pending jobs to another queue or priority.

    The filter chooses the jobs. It prints their number first, and starts an operation that workers continue.
    """
    if to_queue is None and to_priority is None:
        raise click.UsageError("Give a destination: --to-queue, --to-priority or both.")
    if not is_filtered(chosen):
        raise click.UsageError("Give a filter, such as --queue or --task.")
    return act_on_matches(session, "move", more={"queue": to_queue, "priority": to_priority}, **chosen)


@jobs.command()
@job_id_argument
@click.argument("state", metavar="STATE")
@required_reason_option
@with_app
def force(session: Session, app: Detent, job_id: str, state: str, reason: str) -> int:
    """Move a job by a transition that is declared as `force`. The record marks it as forced."""
    return act_on_ids(session, (job_id,), lambda one: app.jobs.get(one).force(state, reason=reason).state)


@jobs.command()
@job_id_argument
@with_app
def history(session: Session, app: Detent, job_id: str) -> None:
    """List every transition of a job, with actor and reason."""
    job = app.jobs.get(job_id)
    session.show_rows(redaction_of(app).of_job(job.id, job.history()), output.TRANSITIONS, empty="no transitions")


@jobs.command()
@job_id_argument
@with_app
def executions(session: Session, app: Detent, job_id: str) -> None:
    """List every attempt at a job, ended or still running."""
    job = app.jobs.get(job_id)
    session.show_rows(redaction_of(app).of_job(job.id, job.executions()), EXECUTIONS, empty="no attempts")


@jobs.command()
@job_id_argument
@flag("--done/--not-done", "Whether the side effect has happened (required).")
@option("--result", "Result to store, with --done.", "JSON")
@option("--step", "The step of a workflow that is unknown, or whose undo has failed.", "STEP")
@required_reason_option
@click.pass_obj
def settle(session: Session, job_id: str, done: bool | None, result: str | None, step: str | None, reason: str) -> int:
    """Record the outcome of a job whose side effect is unknown.

    For a quarantined job with the reason `unknown`: its worker was lost after the job had begun to act. With --done
    the job succeeds; with --not-done it runs again.

    A workflow goes on after its --step is settled: with --done the step, or its undo, is on record; with --not-done it
    is called again.
    """
    if done is None:
        raise click.UsageError("Give the outcome: --done or --not-done.")
    if result is not None and not done:
        raise click.UsageError("--result goes with --done.")
    value = None if result is None else json_codec.decode(result, field="--result")
    with session.open() as app:
        return act_on_ids(
            session,
            (job_id,),
            lambda one: app.jobs.get(one).settle(done=done, result=value, step=step, reason=reason).state,
        )


@jobs.command()
@job_id_argument
@click.argument("payload", metavar="JSON")
@required_reason_option
@with_app
def replace(session: Session, app: Detent, job_id: str, payload: str, reason: str) -> None:
    """Replace a quarantined job by one with corrected arguments.

    JSON is an object with all arguments by name. The old job is discarded, and its record names the new one. With
    --app the arguments must fit the task's signature.
    """
    job = app.jobs.get(job_id).replace(payload, reason=reason)
    session.answer(job_object(job.row), f"job {job_id}: replaced by job {job.id}")


@jobs.command()
@job_id_argument
@with_app
def why(session: Session, app: Detent, job_id: str) -> None:
    """Explain in one sentence why a job is in its state."""
    job = app.jobs.get(job_id)
    sentence = redaction_of(app).of_job(job.id, job.why())
    session.answer({"id": job_id, "state": job.state, "why": sentence}, line(sentence))


@jobs.command()
@job_id_argument
@timeout_option
@with_app
def wait(session: Session, app: Detent, job_id: str, timeout: float | None) -> int:
    """Wait until a job has ended. Exit code 0 if it succeeded, 1 if not, 124 after --timeout."""
    row = redaction_of(app).job(app.jobs.get(job_id).wait(timeout).row)
    if row.state == "succeeded":
        text = f"job {row.id} succeeded" + ("" if row.result is None else f": {line(row.result)}")
    else:
        text = f"job {row.id} is {row.state}" + ("" if row.error is None else f":\n{block(row.error)}")
    session.answer(job_object(row), text)
    return OK if row.state == "succeeded" else FAILED
