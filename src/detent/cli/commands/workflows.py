"""`detent workflows`: list and examine workflows, send them signals, rewind and fork them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from detent.cli import output
from detent.cli.command import Group, with_app, with_tasks
from detent.cli.failures import FAILED, OK
from detent.cli.options import flag, job_filters, option, page_options, past_time, reason_option, tenant_option
from detent.cli.session import Session, redaction_of
from detent.errors import essence
from detent.lifecycle.library import JOB
from detent.model import json_codec
from detent.model.terminal_text import block, line

if TYPE_CHECKING:
    from detent.app.detent import Detent
    from detent.client.job import Job
    from detent.model.workflow_records import StepRow, Undo, Workflow

__all__ = ["workflows"]

workflows = Group(
    "workflows",
    help="List and examine workflows, send them signals, and undo them.",
    examples=("detent workflows list --state parked", "detent workflows signal 17 decision '{\"approved\": true}'"),
)
job_id_argument = click.argument("job_id", metavar="ID")
task_option = option("--task", "Only workflows of this task.", "NAME")
force_option = flag("--force", "Repeat transactions and steps that happen once; needs --reason.")


@workflows.command("list")
@task_option
@option("--version", "Only workflows that began under this version.", click.IntRange(0))
@option("--state", "Only workflows in this state; parked ones wait without a worker.", [*JOB.states, "parked"])
@job_filters("tenant")
@option("--since", "Only workflows created since this time, or in the last 2h or 7d.", past_time)
@page_options
@with_app
def list_(session: Session, app: Detent, **chosen: Any) -> None:
    """List workflows that have begun, the newest first.

    A parked workflow waits without a worker; PARKED FOR says for what. A workflow begins with its first
    recorded step; `detent jobs list` has those that have not begun yet.
    """
    found = app.workflows.list(**chosen)
    rows = redaction_of(app).listed(found)
    tenant = ["tenant"] if any(row.tenant for row in rows) else []
    columns = output.columns(
        *("id", "state", "task"), *tenant, "version", "steps", "parked_for", ("UNTIL", "due_at"), "created_at",
        "finished_at",
    )  # fmt: skip
    session.show_rows(rows, columns, empty=f"no workflows to show in {app.store.name}", objects=map(_object, rows))


@workflows.command()
@job_id_argument
@with_app
def get(session: Session, app: Detent, job_id: str) -> None:
    """Show a workflow and what it waits for.

    With its status, and how many signals it has not read.
    """
    found = app.workflows.get(job_id)
    session.show_record(_object(redaction_of(app).of_job(found.id, found)))


@workflows.command()
@option("--signal", "Only those that wait for this signal.", "NAME")
@job_filters("tenant")
@option("--job-id", "Only those of this job.", "ID")
@page_options
@with_app
def waits(session: Session, app: Detent, **chosen: Any) -> None:
    """List what workflows wait for: signals, children, times."""
    rows = app.workflows.waits(**chosen)
    tenant = ["tenant"] if any(row.tenant for row in rows) else []
    columns = output.columns("job_id", "task", *tenant, "kind", "name", "since", ("UNTIL", "due_at"), "version")
    session.show_rows(rows, columns, empty=f"no workflow waits in {app.store.name}")


@workflows.command()
@task_option
@with_app
def versions(session: Session, app: Detent, task: str | None) -> None:
    """Count unfinished workflows by task and version.

    Only workflows that have begun are counted. The version is that under which they began; 0 if a child has not begun
    yet. A version that is not listed needs no code any more.
    """
    rows = app.workflows.versions(task=task)
    session.show_rows(rows, output.columns("task", "version", "workflows"), empty="no workflows in progress")


@workflows.command()
@task_option
@page_options
@with_tasks
def check(session: Session, app: Detent, **chosen: Any) -> int:
    """Check what becomes of parked workflows under this code.

    Each is replayed without effects up to its first step that is not on record. The exit code is 1 if one of them would
    not continue.
    """
    rows = app.workflows.check(**chosen)
    columns = output.columns("job_id", "task", "version", "verdict", "detail")
    session.show_rows(rows, columns, empty=f"no parked workflows in {app.store.name}")
    return FAILED if any(row.verdict != "continues" for row in rows) else OK


@workflows.command()
@click.argument("job_id", metavar="[ID]", required=False)
@click.argument("name", metavar="NAME", required=False)
@click.argument("payload", metavar="[JSON]", required=False)
@option("--key", "Send it to the workflow with this key, instead of to an ID.", "KEY")
@tenant_option
@option("--start", "Start this workflow under --key if there is none. Needs an application.", "TASK")
@option("--arguments", "Arguments of --start, as a JSON object.", "JSON", default="{}")
@option("--dedupe", "Text that identifies the signal: a second one with the same text is the same.", "TEXT")
@reason_option
@click.pass_obj
def signal(
    session: Session,
    /,
    job_id: str | None,
    name: str | None,
    payload: str | None,
    key: str | None,
    tenant: str,
    start: str | None,
    arguments: str,
    **options: Any,
) -> None:
    """Send a signal to a workflow, by its ID or by its key.

    The payload is JSON; without one it is null. The signal waits in the mailbox until the workflow takes it. With
    --start the workflow is started if there is none with the key.
    """
    if key is not None:
        if payload is not None:
            raise click.UsageError("Give an ID or --key, not both.")
        job_id, name, payload = "", job_id, name
    if job_id is None:
        raise click.UsageError("Give the ID of the workflow, or its --key, and the name of the signal.")
    if not name:
        raise click.UsageError("Give the name of the signal.")
    if start is not None and key is None:
        raise click.UsageError("--start goes with --key.")
    value = None if payload is None else json_codec.decode(payload, field="JSON")
    if start is not None:
        session.require_application()
    with session.open() as app:
        if key is None:
            sent = app.jobs.get(job_id).signal(name, value, **options)
        else:
            call = None if start is None else app.call_named(start, arguments)
            sent = app.workflows.signal(key, name, value, tenant=tenant, start=call, **options)
    known = "" if sent.created else " (it was there already)"
    session.answer(output.to_object(sent), f"job {sent.job_id}: signal {line(name)} is in the mailbox{known}")


@workflows.command()
@click.argument("token", metavar="TOKEN")
@click.argument("payload", metavar="[JSON]", required=False)
@reason_option
@with_app
def redeem(session: Session, app: Detent, token: str, payload: str | None, **options: Any) -> None:
    """Send the signal of a token that `ctx.token` made.

    The payload is JSON; without one it is null. A token counts once. TOKEN may be the whole link that has it.
    """
    value = None if payload is None else json_codec.decode(payload, field="JSON")
    sent = app.workflows.redeem(token.rstrip("/").rpartition("/")[2].partition("?")[0], value, **options)
    known = "" if sent.created else " (it was used before, with the same payload)"
    session.answer(output.to_object(sent), f"job {sent.job_id}: the signal is in the mailbox{known}")


@workflows.command()
@job_id_argument
@option("--at", "Those on record at this time, or 2h or 7d ago.", past_time)
@option("--since", "Only those that a rewind to this step, or a fork at it, would repeat.", "STEP")
@option("--generation", "Those of this generation. Default: the current one.", click.IntRange(1))
@page_options
@with_app
def steps(session: Session, app: Detent, job_id: str, at: datetime | None, **chosen: Any) -> None:
    """List the steps of a workflow in the order of their records.

    Each step runs once; a retry continues after the last one. The values of secret steps are redacted.
    """
    job = app.jobs.get(job_id)
    rows = redaction_of(app).of_job(job.id, job.steps(at=at, **chosen))
    outcome = ("VALUE", lambda row: f"failed: {essence(row.error)}" if row.error else row.value)
    columns = output.columns("path", "kind", "attempt", ("RECORDED", "done_at"), ("SECONDS", _seconds), outcome)
    session.show_rows(rows, columns, empty="no steps on record", objects=map(_step_object, rows))


@workflows.command("preview-undo")
@job_id_argument
@with_app
def preview_undo(session: Session, app: Detent, job_id: str) -> None:
    """List the steps that an undo would undo, in its order.

    It is read from the record; no code is run. UNDONE says when a step was undone.
    """
    job = app.jobs.get(job_id)
    rows = redaction_of(app).of_job(job.id, job.preview_undo())
    columns = output.columns("path", "value", ("RECORDED", "done_at"), ("UNDONE", "undone_at"))
    session.show_rows(rows, columns, empty="no step on record has an undo", objects=map(_undo_object, rows))


@workflows.command()
@job_id_argument
@reason_option
@with_app
def undo(session: Session, app: Detent, job_id: str, reason: str | None) -> None:
    """Undo the steps of a workflow that has ended.

    Also of one that has succeeded. A job of its own calls the undo functions, the last step first; a worker of the
    workflow's queue runs it. `preview-undo` lists them before. Cancel a workflow that has not ended.
    """
    job = app.jobs.get(job_id).undo(reason=reason)
    known = "" if job.created else " (it was there already)"
    session.answer(
        {"id": str(job.id), "undo_of": str(app.jobs.get(job_id).id), "created": job.created, "state": job.state},
        f"job {job.id} undoes the steps of job {line(job_id)}{known}",
    )


@workflows.command()
@job_id_argument
@click.argument("name", metavar="[NAME]", required=False)
@flag("--follow", "Wait for more text until the job has ended.", short="-f")
@with_app
def stream(session: Session, app: Detent, job_id: str, name: str | None, follow: bool) -> None:
    """Print what a workflow has written to a stream.

    Without NAME: to all of its streams. An attempt that starts over says so. With --json: one JSON object per line.
    """
    job, attempt = app.jobs.get(job_id), None
    for found in job.stream(name, follow=follow):
        row = redaction_of(app).of_job(job.id, found)
        if session.json:
            output.print_json_line(output.to_object(row))
            continue
        if attempt not in (None, row.attempt):
            click.echo(f"\n-- attempt {row.attempt} --")
        attempt = row.attempt
        click.echo(block(row.text), nl=False)
        output.flush()
    if attempt is not None:
        click.echo()


@workflows.command()
@job_id_argument
@option("--to", "The first step to repeat: its path, or that of a scope.", "STEP", required=True)
@force_option
@reason_option
@with_app
def rewind(session: Session, app: Detent, job_id: str, to: str, **options: Any) -> None:
    """Let a workflow continue from an earlier step.

    It must be parked, failed, quarantined or cancelled. The steps before are kept. That step and all that were recorded
    after it are called again: detent workflows steps ID --since STEP lists them.
    """
    job = app.jobs.get(job_id).rewind(to=to, **options)
    answer = {"id": str(job.id), "state": job.state, "to": to}
    session.answer(answer, f"job {job.id} is {job.state}: it continues with {line(to)}")


@workflows.command()
@job_id_argument
@option("--at", "The first step that is not copied. Default: everything on record is.", "STEP")
@option("--replace", "Values of steps before, by their paths, as a JSON object.", "JSON")
@option("--payload", "Other arguments, as a JSON object.", "JSON")
@force_option
@reason_option
@with_app
def fork(
    session: Session, app: Detent, job_id: str, at: str | None, replace: str | None, payload: str | None, **options: Any
) -> None:
    """Start another workflow with the first steps of this one.

    It begins with copies of the steps that this one recorded before STEP; this one is left as it is, with its unread
    signals.
    """
    values = None if replace is None else json_codec.decode(replace, field="--replace")
    arguments = None if payload is None else json_codec.decode(payload, field="--payload")
    job = app.jobs.get(job_id).fork(at=at, replace=values, payload=arguments, **options)
    unread = _unread(job)
    stays = ""
    if unread:
        count = output.count_of(sum(unread.values()), "unread signal")
        stays = f", which keeps its {count}: {', '.join(map(line, unread))}"
    answer = {"id": str(job.id), "state": job.state, "forked_from": job_id, "unread": unread}
    session.answer(answer, f"job {job.id} is a fork of job {job_id}{stays}")


@workflows.command()
@job_id_argument
@with_app
def tree(session: Session, app: Detent, job_id: str) -> None:
    """Show a workflow with its children, and theirs.

    At most 1,000 jobs, and 100 children of each.
    """
    found = redaction_of(app).tree(app.jobs.get(job_id).tree())
    if session.json:
        lists = output.lists(nodes=found.nodes, groups=found.groups)
        output.print_json({"root_id": str(found.root_id), **lists, "complete": found.complete})
        return
    columns = output.columns(
        ("JOB", lambda node: f"{'  ' * node.depth}{node.id}"),
        *("state", "task", ("STEP", "path"), "parked_for"),
        ("ERROR", lambda node: essence(node.error)),
    )
    output.print_rows(found.nodes, columns)
    if not found.complete:
        output.print_note("There are more jobs than these: detent workflows tree of a child shows its own.")


def _object(row: Workflow) -> dict[str, Any]:
    status = None if row.status is None else output.stored_json(row.status)
    return output.to_object(row, status=status)


def _step_object(row: StepRow) -> dict[str, Any]:
    return output.to_object(row, value=None if row.value is None else output.stored_json(row.value))


def _undo_object(row: Undo) -> dict[str, Any]:
    return output.to_object(row, value=None if row.value is None else output.stored_json(row.value))


def _unread(job: Job[Any]) -> dict[str, int]:
    """Return how many unread signals were left to the workflow from which this one was forked, by name."""
    about = next((one.metadata for one in job.history() if one.trigger == "fork"), None)
    found: dict[str, int] = {} if about is None else json_codec.decode(about, field="metadata").get("unread", {})
    return found


def _seconds(row: StepRow) -> float:
    return round((row.done_at - row.began_at).total_seconds(), 3)
