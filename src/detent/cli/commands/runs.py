"""`detent runs`: runs of batches and pipelines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from detent.app.batch_run import BatchRun, TargetChange
from detent.app.export import FORMATS
from detent.app.pipeline_run import PipelineRun
from detent.cli import render
from detent.cli.acting import confirm
from detent.cli.command import Group, duration, paged, reason_option, say_more
from detent.cli.failures import FAILED, OK
from detent.cli.pipelineview import say_pipeline_run, show_pipeline_run
from detent.cli.runview import json_text, list_runs, show_run, watch, watch_look
from detent.cli.session import Session
from detent.lifecycle.library import BATCH_RUN, PARTITION, PIPELINE_RUN, TARGET
from detent.model import jsondoor
from detent.model.escape import line

__all__ = ["command"]

_KINDS = ("batch", "pipeline")
_STATES = list(dict.fromkeys((*BATCH_RUN.states, *PIPELINE_RUN.states)))
run_id = click.argument("run_id", metavar="ID")
_wait = click.option("--wait", is_flag=True, help="Wait for the end; the exit code is the outcome.")
_timeout = click.option("--timeout", type=duration, metavar="TIME", help="Give up waiting after so long.")
_overwrite = click.option("--overwrite", is_flag=True, help="Change targets even if others have changed them since.")
_yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def _chosen(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which targets, for what is looked at."""
    options = (
        click.option("--state", type=click.Choice(list(TARGET.states)), help="Only targets in this state."),
        click.option("--only", multiple=True, metavar="REF", help="Only this target; may be given often."),
        click.option("--changed/--unchanged", default=None, help="Only those that would change, or would not."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which targets, for what is done."""
    options = (
        click.option("--only", multiple=True, metavar="REF", help="Only this target; may be given often."),
        click.option(
            "--only-from", type=click.File(), metavar="FILE", help="Only these, a ref in each line; - is stdin."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group("runs", cls=Group)
def command() -> None:
    """Preview, apply and roll back batch runs; start, retry and force pipeline runs."""


@command.command("list")
@click.option("--kind", type=click.Choice(_KINDS), help="Only runs of this kind.")
@click.option("--state", type=click.Choice(_STATES), metavar="STATE", help="Only runs in this state.")
@click.option("--name", metavar="NAME", help="Only runs of this batch, or this pipeline.")
@click.option("--tenant", metavar="NAME", help="Only runs of this tenant.")
@paged
@click.pass_obj
def list_(
    session: Session,
    /,
    kind: str | None,
    state: str | None,
    name: str | None,
    tenant: str | None,
    limit: int,
    after: str | None,
) -> None:
    """List batch runs and pipeline runs, the newest first."""
    with session.open() as app:
        chosen: dict[str, Any] = {"kind": kind, "state": state, "name": name, "tenant": tenant}
        found = app.runs.list(**chosen, limit=limit, after=after)
    list_runs(session, found)
    say_more(found)


@command.command()
@run_id
@click.option("--kind", type=click.Choice(_KINDS), help="Only a run of this kind.")
@click.pass_obj
def get(session: Session, run_id: str, kind: Any) -> None:
    """Show a run: how far it is, what failed and why, and every transition of it."""
    with session.open() as app:
        run = app.runs.get(run_id, kind=kind)
        if isinstance(run, PipelineRun):
            show_pipeline_run(session, app, run)
        else:
            show_run(session, app, run)


@command.command()
@click.argument("batch", metavar="BATCH")
@click.argument("payload", metavar="[JSON]", default="{}")
@click.option("--tenant", metavar="NAME", default="", help="For this tenant.")
@click.option("--correlation-id", metavar="TEXT", help="Goes along with the run and all its jobs.")
@click.option("--metadata", metavar="JSON", help="A JSON object that is kept with the run.")
@_wait
@_timeout
@reason_option
@click.pass_obj
def preview(
    session: Session,
    /,
    batch: str,
    payload: str,
    metadata: str | None,
    wait: bool,
    timeout: float | None,
    **more: Any,
) -> int:
    """Begin a run of a batch: work out what would change, and change nothing.

    JSON are the batch's own fields. Needs an application.
    """
    with session.open_with_tasks() as app:
        told = None if metadata is None else jsondoor.decode(metadata, field="--metadata")
        run = app.runs.preview_named(batch, payload, metadata=told, **more)
        return watch(session, run, wait=wait, timeout=timeout, until={"previewed"})


@command.command()
@run_id
@_chosen
@click.option("--errors", is_flag=True, help="Only those with an error.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=100, show_default=True, help="Maximum number of rows to list."
)
@click.pass_obj
def changes(session: Session, /, run_id: str, errors: bool, limit: int, only: tuple[str, ...], **chosen: Any) -> None:
    """Show what a run would change, or has changed: before and after of its targets."""
    with session.open() as app:
        run = app.runs.get(run_id, kind="batch")
        fitting = (one for one in run.changes(only=only or None, **chosen) if one.error or not errors)
        found = [change for change, _ in zip(fitting, range(limit), strict=False)]
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(["REF", "STATE", "BEFORE", "AFTER", "ERROR"], map(_line, found), empty="no targets")
    if len(found) == limit:
        render.note(f"at most {limit} are shown of {run.total}: --limit, or `detent runs export`")


def _line(one: TargetChange) -> list[render.Cell]:
    same = "" if one.changed is not False else "(unchanged)"
    error = (one.error or "").strip().splitlines()
    return [one.ref, one.state, _json(one.before, one), same or _json(one.after, one), error[-1] if error else None]


def _json(value: object, one: TargetChange) -> str:
    return "" if one.changed is None else json_text(value)


@command.command()
@run_id
@click.argument("to", metavar="FILE")
@click.option("--format", type=click.Choice(FORMATS), help="As the name of FILE says, else csv.")
@_chosen
@click.pass_obj
def export(session: Session, /, run_id: str, to: str, format: str | None, only: tuple[str, ...], **chosen: Any) -> None:
    """Write the difference to a file, whole or not at all; - is stdout."""
    with session.open() as app:
        found = format or ("json" if to.endswith(".json") else "csv")
        file = sys.stdout if to == "-" else Path(to)
        count = app.runs.get(run_id, kind="batch").export(file, found, only=only or None, **chosen)
    if to != "-":
        render.note(f"{count} targets")


@command.command()
@run_id
@_only
@click.option("--unchanged", is_flag=True, help="Those that would stay as they are, too.")
@click.option("--leave-failed", is_flag=True, help="Leave out what could not be previewed.")
@click.option("--accept-changed", is_flag=True, help="Apply even if the batch's code has changed since the preview.")
@_overwrite
@_yes
@_wait
@_timeout
@reason_option
@click.pass_obj
def apply(session: Session, /, run_id: str, yes: bool, wait: bool, timeout: float | None, **more: Any) -> int:
    """Apply what the preview showed, all of it or a part; later, the rest. Needs an application."""
    return _act(session, run_id, "apply", yes=yes, wait=wait, timeout=timeout, **more)


@command.command("retry-failed")
@run_id
@_only
@_overwrite
@_yes
@_wait
@_timeout
@reason_option
@click.pass_obj
def retry_failed(session: Session, /, run_id: str, yes: bool, wait: bool, timeout: float | None, **more: Any) -> int:
    """Try the failed targets of a run again, all or some. Needs an application."""
    return _act(session, run_id, "retry_failed", yes=yes, wait=wait, timeout=timeout, **more)


@command.command("roll-back")
@run_id
@_overwrite
@_yes
@_wait
@_timeout
@reason_option
@click.pass_obj
def roll_back(session: Session, /, run_id: str, yes: bool, wait: bool, timeout: float | None, **more: Any) -> int:
    """Bring all that a run has applied back to what it was. Needs an application."""
    return _act(session, run_id, "roll_back", yes=yes, wait=wait, timeout=timeout, **more)


def _act(
    session: Session,
    run_id: str,
    action: str,
    *,
    only: tuple[str, ...] = (),
    only_from: Any = None,
    yes: bool,
    wait: bool,
    timeout: float | None,
    **more: Any,
) -> int:
    refs = [*only, *(text.rstrip("\n") for text in only_from or ())]
    with session.open_with_tasks() as app:
        run = app.runs.get(run_id, kind="batch")
        which = f"{len(refs)} targets" if refs else _all_of(run, action)
        for newer, changed in run.newer_runs().items() if action == "roll_back" else ():
            render.note(f"run {newer} has changed targets of run {run.id} since: {', '.join(changed)}")
        confirm(session, f"{action.replace('_', ' ')} {which} of run {run.id} ({run.batch})", yes=yes)
        do: Callable[..., BatchRun] = getattr(run, action)
        run = do(**({"only": refs} if refs else {}), **more)
        return watch(session, run, wait=wait, timeout=timeout, until=None)


def _all_of(run: BatchRun, action: str) -> str:
    row = run.row
    touched = row.queued + row.applying + row.applied + row.failed + row.rolled_back
    left = max(row.previewed - touched - row.unchanged, 0)
    counted = {"apply": left, "retry_failed": row.failed, "roll_back": row.applied}
    return f"all {counted[action]} targets"


@command.command()
@run_id
@_timeout
@reason_option
@click.pass_obj
def reconcile(session: Session, run_id: str, timeout: float | None, reason: str | None) -> int:
    """Look at every applied target of a run now, and wait for it. Needs an application.

    Exit code 1 where a target is not what it was made.
    """
    with session.open_with_tasks() as app:
        run = app.runs.get(run_id, kind="batch")
        return watch_look(session, run, run.reconcile(reason=reason), timeout)


@command.command()
@run_id
@click.option("--open-only/--all", default=True, help="Only mismatches that are open, or all of them.")
@click.pass_obj
def mismatches(session: Session, run_id: str, open_only: bool) -> None:
    """List targets that were found not to be what they were made."""
    with session.open() as app:
        found = app.runs.get(run_id, kind="batch").mismatches(open_only=open_only)
    if session.json:
        render.json_value(render.records(found))
        return
    rows = [[one.ref, json_text(one.expected), json_text(one.actual)] for one in found]
    render.table(["REF", "EXPECTED", "ACTUAL"], rows, empty="no mismatches")


@command.command()
@run_id
@_wait
@_timeout
@reason_option
@click.pass_obj
def correct(session: Session, run_id: str, wait: bool, timeout: float | None, reason: str | None) -> int:
    """Begin a run over what a look found to differ, back to what it should be. Needs an application.

    It is a preview: `detent runs apply` applies it.
    """
    with session.open_with_tasks() as app:
        run = app.runs.get(run_id, kind="batch").correct(reason=reason)
        return watch(session, run, wait=wait, timeout=timeout, until={"previewed"})


@command.command("discard-failed")
@run_id
@_only
@_yes
@reason_option
@click.pass_obj
def discard_failed(
    session: Session, run_id: str, only: tuple[str, ...], only_from: Any, yes: bool, reason: str | None
) -> int:
    """Let the dead jobs of a run go; its failed targets stay failed."""
    refs = [*only, *(text.rstrip("\n") for text in only_from or ())]
    with session.open() as app:
        run = app.runs.get(run_id, kind="batch")
        confirm(session, f"discard the dead jobs of run {run.id}", yes=yes)
        moved = run.discard_failed(reason=reason, only=refs or None)
    if session.json:
        render.json_value({"discarded": len(moved)})
    else:
        render.out(f"run {run.id}: {len(moved)} dead jobs discarded")
    return OK


@command.command()
@run_id
@click.option(
    "--until",
    multiple=True,
    metavar="STATE",
    help="State to wait for (repeatable). Default: wait until the run settles.",
)
@_timeout
@click.pass_obj
def wait(session: Session, run_id: str, until: tuple[str, ...], timeout: float | None) -> int:
    """Wait for a run. Exit code 0 where it did well, or as few targets failed as are tolerated; 124 after --timeout."""
    with session.open() as app:
        run = app.runs.get(run_id)
        if isinstance(run, PipelineRun):
            run.wait(timeout, set(until) or None)
            say_pipeline_run(session, run)
            return FAILED if run.state == "failed" else OK
        return watch(session, run, wait=True, timeout=timeout, until=set(until) or None)


@command.command()
@run_id
@_yes
@reason_option
@click.pass_obj
def cancel(session: Session, run_id: str, yes: bool, reason: str | None) -> None:
    """Stop a pipeline run by cancelling its jobs: it fails with the reason, and the watermark stays."""
    with session.open() as app:
        run = app.runs.get(run_id, kind="pipeline")
        confirm(session, f"cancel run {run.id} ({line(run.pipeline)})", yes=yes)
        run.cancel(reason=reason).wait()
        say_pipeline_run(session, run.refresh())


@command.command()
@run_id
@click.pass_obj
def history(session: Session, run_id: str) -> None:
    """List every transition of a run, with actor and reason."""
    with session.open() as app:
        render.moves(session.json, app.runs.get(run_id).history())


@command.command()
@run_id
@click.option("--only", multiple=True, metavar="REF", help="Only this target (repeatable).")
@click.pass_obj
def events(session: Session, run_id: str, only: tuple[str, ...]) -> None:
    """Print the events of the jobs of a batch run, target by target."""
    with session.open() as app:
        lines = app.runs.get(run_id, kind="batch").events(only=only or None)
        if session.json:
            render.json_value([render.plain(event, ref=ref) for ref, event in lines])
            return
        for ref, event in lines:
            render.out(f"{line(ref)}  {render.when(event.at)}  {line(event.level):<8}  {line(event.message)}")


@command.command()
@run_id
@click.option("--state", type=click.Choice(list(PARTITION.states)), help="Only partitions in this state.")
@click.pass_obj
def partitions(session: Session, run_id: str, state: str | None) -> None:
    """List the partitions of a pipeline run."""
    with session.open() as app:
        found = list(app.runs.get(run_id, kind="pipeline").partitions(state))
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["PARTITION", "STATE", "OFFSET", "PAGES", "RECORDS", "LAST PAGE", "JOB"],
        [
            [*(part.key, part.state, part.next_offset, part.pages, part.records, part.paged_at), str(part.job_id)]
            for part in found
        ],
        empty="no partitions",
    )


@command.command()
@click.argument("pipeline", metavar="PIPELINE")
@click.argument("payload", metavar="[JSON]", default="{}")
@click.option("--full", is_flag=True, help="Everything, as if there were no watermark.")
@click.option("--force", is_flag=True, help="Consolidate though partitions failed; needs --reason.")
@click.option("--tenant", metavar="NAME", default="", help="For this tenant.")
@click.option("--reason", metavar="TEXT", help="Why, for the record.")
@click.option("--wait", is_flag=True, help="Wait for the end; the exit code is the outcome.")
@click.option("--timeout", type=duration, metavar="TIME", help="Give up waiting after so long.")
@click.pass_obj
def start(
    session: Session,
    pipeline: str,
    payload: str,
    full: bool,
    force: bool,
    tenant: str,
    reason: str | None,
    wait: bool,
    timeout: float | None,
) -> int:
    """Start a run of a pipeline, with its fields as JSON."""
    with session.open_with_tasks() as app:
        run = app.runs.start_named(pipeline, payload, full=full, force=force, tenant=tenant, reason=reason)
        if wait:
            run.wait(timeout)
    say_pipeline_run(session, run)
    return FAILED if wait and run.state == "failed" else OK


@command.command()
@run_id
@click.option("--reason", required=True, metavar="TEXT", help="Why, for the record.")
@click.pass_obj
def force(session: Session, run_id: str, reason: str) -> None:
    """Consolidate what is there of a run that was skipped, in spite of its failed partitions."""
    with session.open() as app:
        app.runs.get(run_id, kind="pipeline").force(reason=reason)
        say_pipeline_run(session, app.runs.get(run_id, kind="pipeline"))


@command.command()
@run_id
@reason_option
@click.option("--wait", is_flag=True, help="Wait for the end; the exit code is the outcome.")
@click.option("--timeout", type=duration, metavar="TIME", help="Give up waiting after so long.")
@click.pass_obj
def retry(session: Session, run_id: str, reason: str | None, wait: bool, timeout: float | None) -> int:
    """Bring a failed or skipped run back to work.

    Only failed partitions are fetched again, from where they stopped; then the consolidation goes on. If records were
    consolidated already, only the consolidation goes on.
    """
    with session.open() as app:
        run = app.runs.get(run_id, kind="pipeline").retry(reason=reason)
        if wait:
            run.wait(timeout)
    say_pipeline_run(session, run)
    return FAILED if wait and run.state == "failed" else OK
