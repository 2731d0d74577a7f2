"""`detent runs` and `detent watermarks`: runs of batches and pipelines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from detent.app.batch_run import BatchRun, TargetChange
from detent.app.export import FORMATS
from detent.app.pipeline_run import PipelineRun
from detent.cli import output
from detent.cli.command import Group, with_app, with_tasks
from detent.cli.failures import NOT_FOUND, CommandFailed
from detent.cli.options import (
    combined,
    flag,
    limit_option,
    option,
    page_options,
    reason_option,
    required_reason_option,
    tenant_option,
    timeout_option,
    wait_options,
    yes_option,
)
from detent.cli.run_output import (
    MISMATCHES,
    PARTITIONS,
    json_text,
    show_batch_run,
    show_outcome,
    show_pipeline_outcome,
    show_pipeline_run,
    show_reconciliation,
    show_runs,
)
from detent.cli.session import Session
from detent.lifecycle.library import BATCH_RUN, PARTITION, PIPELINE_RUN, TARGET
from detent.model import json_codec
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["runs", "watermarks"]

runs = Group(
    "runs",
    help="Preview, apply and roll back batch runs; start pipelines.",
    examples=("detent runs list", "detent runs get 17"),
)
watermarks = Group(
    "watermarks",
    help="List watermarks: how far each source has been ingested.",
    examples=("detent watermarks list", "detent watermarks get diamonds"),
)
_KINDS = ("batch", "pipeline")
_STATES = list(dict.fromkeys((*BATCH_RUN.states, *PIPELINE_RUN.states)))
run_id_argument = click.argument("run_id", metavar="ID")
payload_argument = click.argument("payload", metavar="[JSON]", default="{}")
only_option = option("--only", "Only this target (repeatable).", "REF", multiple=True)
overwrite_option = flag("--overwrite", "Change targets even if others have changed them since.")
target_filters = combined(
    option("--state", "Only targets in this state.", list(TARGET.states)),
    only_option,
    flag("--changed/--unchanged", "Only targets that the run changes, or that it leaves as they are."),
)
only_options = combined(
    only_option,
    option("--only-from", "Only the targets in this file, one per line; - is stdin.", click.File(), metavar="FILE"),
)
change_options = combined(yes_option, wait_options, reason_option)


@runs.command("list")
@option("--kind", "Only runs of this kind.", _KINDS)
@option("--state", "Only runs in this state.", _STATES, metavar="STATE")
@option("--name", "Only runs of this batch or pipeline.", "NAME")
@option("--tenant", "Only runs of this tenant.", "NAME")
@page_options
@with_app
def list_(session: Session, app: Detent, **chosen: Any) -> None:
    """List batch runs and pipeline runs, the newest first."""
    show_runs(session, app.runs.list(**chosen))


@runs.command()
@run_id_argument
@option("--kind", "Only a run of this kind.", _KINDS)
@with_app
def get(session: Session, app: Detent, run_id: str, kind: Any) -> None:
    """Show a run: its progress, failures and transitions."""
    run = app.runs.get(run_id, kind=kind)
    if isinstance(run, PipelineRun):
        show_pipeline_run(session, app, run)
    else:
        show_batch_run(session, app, run)


@runs.command()
@run_id_argument
@with_app
def history(session: Session, app: Detent, run_id: str) -> None:
    """List every transition of a run, with actor and reason."""
    session.show_rows(app.runs.get(run_id).history(), output.TRANSITIONS, empty="no transitions")


@runs.command()
@run_id_argument
@option("--until", "State to wait for (repeatable). Default: wait until the run settles.", "STATE", multiple=True)
@timeout_option
@with_app
def wait(session: Session, app: Detent, run_id: str, until: tuple[str, ...], timeout: float | None) -> int:
    """Wait for a run. Exit code 0 if it went well, with at most the tolerated failures; 124 after --timeout."""
    run = app.runs.get(run_id)
    if isinstance(run, PipelineRun):
        return show_pipeline_outcome(session, run.wait(timeout, set(until) or None), waited=True)
    return show_outcome(session, run, wait=True, timeout=timeout, until=set(until) or None)


def _batch_run(app: Detent, run_id: str) -> BatchRun:
    """Return a batch run. `CommandFailed` if it is a pipeline run, `NotFound`."""
    run = app.runs.get(run_id)
    if isinstance(run, PipelineRun):
        raise CommandFailed(f"run {run.id} is a pipeline run; this command is for batch runs", NOT_FOUND)
    return run


def _pipeline_run(app: Detent, run_id: str) -> PipelineRun:
    """Return a pipeline run. `CommandFailed` if it is a batch run, `NotFound`."""
    run = app.runs.get(run_id)
    if isinstance(run, BatchRun):
        raise CommandFailed(f"run {run.id} is a batch run; this command is for pipeline runs", NOT_FOUND)
    return run


# -- batch runs ------------------------------------------------------------------------------------------------


@runs.command()
@click.argument("batch", metavar="BATCH")
@payload_argument
@tenant_option
@option("--correlation-id", "Correlation id of the run and all its jobs.", "TEXT")
@option("--metadata", "JSON object to keep with the run.", "JSON")
@wait_options
@reason_option
@with_tasks
def preview(
    session: Session,
    app: Detent,
    batch: str,
    payload: str,
    metadata: str | None,
    wait: bool,
    timeout: float | None,
    **more: Any,
) -> int:
    """Begin a run of a batch: compute what it would change.

    Nothing is changed before `detent runs apply`. JSON is an object with the batch's own fields. Needs an application.
    """
    decoded = None if metadata is None else json_codec.decode(metadata, field="--metadata")
    run = app.runs.preview_named(batch, payload, metadata=decoded, **more)
    return show_outcome(session, run, wait=wait, timeout=timeout, until={"previewed"})


@runs.command()
@run_id_argument
@target_filters
@flag("--errors", "Only targets with an error.")
@limit_option(1_000_000)
@with_app
def changes(
    session: Session, app: Detent, run_id: str, errors: bool, limit: int, only: tuple[str, ...], **chosen: Any
) -> None:
    """Show the targets of a batch run, before and after."""
    run = _batch_run(app, run_id)
    matching = (one for one in run.changes(only=only or None, **chosen) if one.error or not errors)
    found = [change for change, _ in zip(matching, range(limit), strict=False)]
    columns = output.columns(
        *("ref", "state"),
        ("BEFORE", lambda one: _value(one, one.before)),
        ("AFTER", lambda one: "(unchanged)" if one.changed is False else _value(one, one.after)),
        ("ERROR", lambda one: (one.error or "").strip().rpartition("\n")[2] or None),
    )
    session.show_rows(found, columns, empty="no targets")
    if len(found) == limit:
        output.print_note(f"There may be more: --limit. `detent runs export` writes all {run.total} to a file.")


def _value(one: TargetChange, value: object) -> str:
    return "" if one.changed is None else json_text(value)


@runs.command()
@run_id_argument
@click.argument("to", metavar="FILE")
@option("--format", "Format. Default: json if FILE ends so, else csv.", FORMATS)
@target_filters
@with_app
def export(
    session: Session, app: Detent, run_id: str, to: str, format: str | None, only: tuple[str, ...], **chosen: Any
) -> None:
    """Write the changes of a batch run to a file.

    The file is written whole or not at all; - is stdout.
    """
    chosen_format = format or ("json" if to.endswith(".json") else "csv")
    file = sys.stdout if to == "-" else Path(to)
    count = _batch_run(app, run_id).export(file, chosen_format, only=only or None, **chosen)
    if to != "-":
        output.print_note(f"{output.count_of(count, 'target')} written to {line(to)}")


@runs.command()
@run_id_argument
@only_options
@flag("--unchanged", "Also apply targets that would stay as they are.")
@flag("--leave-failed", "Leave out targets that could not be previewed.")
@flag("--accept-changed", "Apply even if the batch's code has changed since the preview.")
@overwrite_option
@change_options
@with_tasks
def apply(session: Session, app: Detent, run_id: str, **chosen: Any) -> int:
    """Apply what the preview showed. Needs an application.

    Applies all of it, or with --only a part; the rest can be applied later.
    """
    return _change(session, app, run_id, "apply", **chosen)


@runs.command("retry-failed")
@run_id_argument
@only_options
@overwrite_option
@change_options
@with_tasks
def retry_failed(session: Session, app: Detent, run_id: str, **chosen: Any) -> int:
    """Retry the failed targets of a batch run, all or some. Needs an application."""
    return _change(session, app, run_id, "retry_failed", **chosen)


@runs.command("roll-back")
@run_id_argument
@overwrite_option
@change_options
@with_tasks
def roll_back(session: Session, app: Detent, run_id: str, **chosen: Any) -> int:
    """Revert everything that a batch run has applied. Needs an application."""
    return _change(session, app, run_id, "roll_back", **chosen)


def _change(
    session: Session,
    app: Detent,
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
    refs = _refs(only, only_from)
    run = _batch_run(app, run_id)
    affected = output.count_of(len(refs) or _affected(run, action), "target")
    for newer, changed in run.newer_runs().items() if action == "roll_back" else ():
        output.print_note(f"Run {newer} has changed targets of run {run.id} since: {', '.join(map(line, changed))}")
    session.confirm(f"{action.replace('_', ' ')} {affected} of run {run.id} ({line(run.batch)})", yes=yes)
    do: Callable[..., BatchRun] = getattr(run, action)
    run = do(**({"only": refs} if refs else {}), **more)
    return show_outcome(session, run, wait=wait, timeout=timeout, until=None)


def _refs(only: tuple[str, ...], only_from: Any) -> list[str]:
    return [*only, *(text.rstrip("\n") for text in only_from or ())]


def _affected(run: BatchRun, action: str) -> int:
    row = run.row
    touched = row.queued + row.applying + row.applied + row.failed + row.rolled_back
    left = max(row.previewed - touched - row.unchanged, 0)
    return {"apply": left, "retry_failed": row.failed, "roll_back": row.applied}[action]


@runs.command("discard-failed")
@run_id_argument
@only_options
@yes_option
@reason_option
@with_app
def discard_failed(
    session: Session, app: Detent, run_id: str, only: tuple[str, ...], only_from: Any, yes: bool, reason: str | None
) -> None:
    """Discard the dead jobs of a batch run. Its failed targets stay failed."""
    run = _batch_run(app, run_id)
    session.confirm(f"discard the dead jobs of run {run.id}", yes=yes)
    count = len(run.discard_failed(reason=reason, only=_refs(only, only_from) or None))
    session.answer({"discarded": count}, f"run {run.id}: {output.count_of(count, 'dead job')} discarded")


@runs.command()
@run_id_argument
@timeout_option
@reason_option
@with_tasks
def reconcile(session: Session, app: Detent, run_id: str, timeout: float | None, reason: str | None) -> int:
    """Compare applied targets with what was applied. Needs an application.

    Waits for the result. Exit code 1 if a target no longer matches.
    """
    run = _batch_run(app, run_id)
    return show_reconciliation(session, run, run.reconcile(reason=reason), timeout)


@runs.command()
@run_id_argument
@flag("--open-only/--all", "Only open mismatches, or all of them. Default: --open-only.", default=True)
@with_app
def mismatches(session: Session, app: Detent, run_id: str, open_only: bool) -> None:
    """List targets that no longer matched what was applied."""
    found = _batch_run(app, run_id).mismatches(open_only=open_only)
    session.show_rows(found, MISMATCHES, empty="no mismatches")


@runs.command()
@run_id_argument
@wait_options
@reason_option
@with_tasks
def correct(session: Session, app: Detent, run_id: str, wait: bool, timeout: float | None, reason: str | None) -> int:
    """Begin a run that corrects mismatches. Needs an application.

    It brings the targets back to what was applied. It is a preview: `detent runs apply` applies it.
    """
    run = _batch_run(app, run_id).correct(reason=reason)
    return show_outcome(session, run, wait=wait, timeout=timeout, until={"previewed"})


@runs.command()
@run_id_argument
@only_option
@with_app
def events(session: Session, app: Detent, run_id: str, only: tuple[str, ...]) -> None:
    """Print the events of a batch run, target by target."""
    found = _batch_run(app, run_id).events(only=only or None)
    if session.json:
        output.print_json([output.to_object(event, ref=ref) for ref, event in found])
    else:
        output.print_events((f"{line(ref)}  ", event) for ref, event in found)


# -- pipeline runs ---------------------------------------------------------------------------------------------


@runs.command()
@click.argument("pipeline", metavar="PIPELINE")
@payload_argument
@flag("--full", "Fetch everything, as if there were no watermark.")
@flag("--force", "Consolidate even if partitions fail; needs --reason.")
@tenant_option
@wait_options
@reason_option
@with_tasks
def start(
    session: Session, app: Detent, pipeline: str, payload: str, wait: bool, timeout: float | None, **more: Any
) -> int:
    """Start a run of a pipeline.

    JSON is an object with the pipeline's own fields. Needs an application.
    """
    run = app.runs.start_named(pipeline, payload, **more)
    return show_pipeline_outcome(session, run.wait(timeout) if wait else run, waited=wait)


@runs.command()
@run_id_argument
@wait_options
@reason_option
@with_app
def retry(session: Session, app: Detent, run_id: str, wait: bool, timeout: float | None, reason: str | None) -> int:
    """Retry a pipeline run that failed or was skipped.

    Failed partitions are fetched again, from where they stopped; then the consolidation continues. If records were
    consolidated already, only the consolidation continues.
    """
    run = _pipeline_run(app, run_id).retry(reason=reason)
    return show_pipeline_outcome(session, run.wait(timeout) if wait else run, waited=wait)


@runs.command()
@run_id_argument
@required_reason_option
@with_app
def force(session: Session, app: Detent, run_id: str, reason: str) -> None:
    """Consolidate a pipeline run in spite of failed partitions.

    The run must be in the state consolidation_skipped.
    """
    show_pipeline_outcome(session, _pipeline_run(app, run_id).force(reason=reason))


@runs.command()
@run_id_argument
@yes_option
@reason_option
@with_app
def cancel(session: Session, app: Detent, run_id: str, yes: bool, reason: str | None) -> None:
    """Cancel a run and its jobs.

    A batch run is cancelled at once if no target is being applied. Otherwise those finish, and the others are
    cancelled. Targets that were applied stay applied. The watermark of a pipeline run stays.
    """
    run = app.runs.get(run_id)
    if isinstance(run, PipelineRun):
        session.confirm(f"cancel run {run.id} ({line(run.pipeline)})", yes=yes)
        show_pipeline_outcome(session, run.cancel(reason=reason))
    else:
        session.confirm(f"cancel run {run.id} ({line(run.batch)})", yes=yes)
        show_outcome(session, run.cancel(reason=reason), wait=False, timeout=None, until=None)


@runs.command()
@run_id_argument
@option("--state", "Only partitions in this state.", list(PARTITION.states))
@with_app
def partitions(session: Session, app: Detent, run_id: str, state: str | None) -> None:
    """List the partitions of a pipeline run."""
    session.show_rows(_pipeline_run(app, run_id).partitions(state), PARTITIONS, empty="no partitions")


@watermarks.command("list")
@option("--tenant", "Only watermarks of this tenant.", "NAME")
@page_options
@with_app
def list_watermarks(session: Session, app: Detent, **chosen: Any) -> None:
    """List watermarks, each with the run that set it."""
    columns = output.columns("name", "tenant", "value", "run_id", ("SET", "moved_at"))
    empty = "no watermarks: no pipeline run has completed yet"
    session.show_rows(app.watermarks.list(**chosen), columns, empty=empty)


@watermarks.command("get")
@click.argument("name", metavar="NAME")
@tenant_option
@with_app
def get_watermark(session: Session, app: Detent, name: str, tenant: str) -> None:
    """Print how far a source has been ingested."""
    value = app.watermarks.get(name, tenant=tenant)
    if value is None and not session.json:
        output.print_note(f"no watermark {line(name)}: no run of it has completed yet")
        return
    session.answer({"name": name, "tenant": tenant, "value": value}, output.format_time(value))
