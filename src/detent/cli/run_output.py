"""How batch runs and pipeline runs are printed: in lists, alone, and while a command waits for them."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from detent.app.batch_run import BatchRun
from detent.app.pipeline_run import PipelineRun
from detent.app.reconciliation import Reconciliation
from detent.cli import output
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session
from detent.client.list_page import ListPage
from detent.errors import RunTimeout
from detent.model import json_codec
from detent.model.terminal_text import line
from detent.views.batch_progress import run_view
from detent.views.pipeline_progress import pipeline_view, share_done

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = [
    "MISMATCHES",
    "PARTITIONS",
    "json_text",
    "show_batch_run",
    "show_outcome",
    "show_pipeline_outcome",
    "show_pipeline_run",
    "show_reconciliation",
    "show_runs",
]

_REDRAW_SECONDS = 0.5

PARTITIONS = output.columns(
    ("PARTITION", "key"), "state", ("OFFSET", "next_offset"), "pages", "records", ("LAST PAGE", "paged_at"), "job_id"
)
"""The columns of a list of partitions."""


def json_text(value: object) -> str:
    """Return a value as JSON on one line."""
    return json_codec.encode(value, field="value", size_max=2**31)


MISMATCHES = output.columns(
    "ref", ("EXPECTED", lambda one: json_text(one.expected)), ("ACTUAL", lambda one: json_text(one.actual))
)
"""The columns of a list of mismatches."""


def _run_object(run: BatchRun | PipelineRun, **more: Any) -> dict[str, Any]:
    """Return a run as the JSON object that every command prints for one."""
    if isinstance(run, PipelineRun):
        return output.to_object(run.row) | {"kind": "pipeline"} | more
    derived = {"kind": "batch", "counts": run.counts, "rests": run.rests, "tolerated": run.tolerated}
    return output.to_object(run.row) | derived | more


def show_runs(session: Session, runs: ListPage[BatchRun | PipelineRun]) -> None:
    """Print a list of runs of either kind."""
    columns = output.columns(
        "id",
        ("KIND", lambda run: "pipeline" if isinstance(run, PipelineRun) else "batch"),
        ("NAME", lambda run: run.row.name if isinstance(run, PipelineRun) else run.row.batch),
        "state",
        ("PARTS", lambda run: run.row.partitions if isinstance(run, PipelineRun) else run.row.total),
        ("DONE", _parts_done),
        ("FAILED", lambda run: run.row.parts_failed if isinstance(run, PipelineRun) else run.row.failed),
        ("BY", lambda run: run.row.started_by if isinstance(run, PipelineRun) else run.row.actor),
        ("CREATED", lambda run: run.row.created_at),
        ("FINISHED", lambda run: run.row.finished_at),
    )
    session.show_rows(runs, columns, empty="no runs", objects=map(_run_object, runs))


def _parts_done(run: BatchRun | PipelineRun) -> int:
    if isinstance(run, PipelineRun):
        return run.row.parts_ended - run.row.parts_failed
    return run.row.rolled_back if run.row.state == "rolled_back" else run.row.applied


# -- batch runs ------------------------------------------------------------------------------------------------


def show_batch_run(session: Session, app: Detent, run: BatchRun) -> None:
    """Print one batch run: its progress, why targets failed, its reconciliations and its transitions."""
    view, history = run_view(app.store, run.id), run.history()
    if session.json:
        progress = {"doing": view.doing, "done": view.done, "of": view.of, "seconds": view.seconds}
        lists = output.lists(causes=view.causes, transitions=history, reconciliations=run.reconciliations())
        output.print_json(_run_object(run, **progress, **lists))
        return
    row = run.row
    output.print_fields(
        {
            "id": str(row.id),
            "batch": row.batch,
            "state": row.state,
            "progress": f"{view.doing}: {view.done} of {view.of} in {view.seconds:.1f} s",
            "targets": _counts(run),
            "unchanged": row.unchanged or None,
            "not previewed": row.preview_failed or None,
            "not reverted": row.revert_failed or None,
            "conflicts": row.conflicts or None,
            "mismatches": row.mismatches or None,
            "tenant": row.tenant,
            "by": row.actor,
            "reason": row.reason,
            "created": row.created_at,
            "previewed": row.previewed_at,
            "queued": row.queued_at,
            "started": row.started_at,
            "finished": row.finished_at,
            "roll-back requested by": row.rollback_requested_by,
            "rolled back": row.rolled_back_at,
            "next reconciliation": row.reconcile_at,
            "payload": row.payload,
            "metadata": row.metadata,
            "stopped by": row.critical,
            "error": row.error,
        }
    )
    output.print_section(view.causes, output.columns("targets", "error", "example"))
    output.print_section(history, output.TRANSITIONS)


def _counts(run: BatchRun) -> str:
    return ", ".join(f"{count} {state}" for state, count in run.counts.items())


def show_outcome(session: Session, run: BatchRun, *, wait: bool, timeout: float | None, until: set[str] | None) -> int:
    """Print the state of a batch run, after waiting for it if `wait` is set. Return the exit code: 1 if it was waited
    for and went wrong. Failures within the tolerance of the batch are no failure."""
    if wait:
        _wait_with_bar(session, run, timeout, until)
    counts = "; ".join([_counts(run), *_notes(run)]) if run.counts else ""
    session.answer(_run_object(run), f"run {run.id}: {run.state}" + (f" ({counts})" if counts else ""))
    if not wait:
        return OK
    reached = until is not None and run.state in until
    went_well = run.state in ("preview", "applied", "rolled_back") or (run.state == "partial" and run.tolerated)
    return OK if (went_well or reached) and not run.row.revert_failed else FAILED


def _notes(run: BatchRun) -> list[str]:
    """Return counts that the states of the targets do not show."""
    row = run.row
    notes = {"could not be reverted": row.revert_failed}
    if run.state == "preview":
        notes = {"would not change": row.unchanged, "could not be previewed": row.preview_failed}
    return [f"{count} {what}" for what, count in notes.items() if count]


def _wait_with_bar(session: Session, run: BatchRun, timeout: float | None, until: set[str] | None) -> None:
    """Wait for a run. On a terminal, show a progress bar, which restarts with each phase of the run."""
    if session.json or not sys.stderr.isatty():
        run.wait(timeout, until)
        return
    left = float("inf") if timeout is None else timeout
    label, bar = "", None
    while True:
        phase, done, total = _phase(run)
        if bar is None or phase != label or bar.length != total:
            label, bar = phase, click.progressbar(length=max(total, 1), label=phase, file=sys.stderr)
        bar.pos = min(done, bar.length or 1)
        bar.render_progress()
        try:
            run.wait(min(_REDRAW_SECONDS, left), until)
            bar.pos = bar.length or 1
            bar.render_progress()
            bar.render_finish()
            click.echo(err=True)
            return
        except RunTimeout as late:
            left -= late.waited
            if left <= 0:
                raise


def _phase(run: BatchRun) -> tuple[str, int, int]:
    """Return the phase of a run, the number of targets that are done in it, and their total."""
    row = run.row
    if row.state == "preview":
        return "preview", row.previewed + row.preview_failed, row.total
    if row.rollback_requested_at is not None:
        return "roll back", row.rolled_back, row.rolled_back + row.applied
    return "apply", row.applied + row.failed, row.applied + row.failed + row.queued + row.applying


def show_reconciliation(session: Session, run: BatchRun, found: Reconciliation, timeout: float | None) -> int:
    """Wait for a reconciliation and print the mismatches. Return the exit code: 1 if there are any."""
    mismatches = found.wait(timeout).mismatches()
    if session.json:
        answer = {"run_id": str(run.id), "checked": found.checked, "mismatches": output.records(mismatches)}
        output.print_json(answer)
    else:
        count = output.count_of(found.checked, "target")
        output.print_text(f"run {run.id}: {len(mismatches)} of {count} no longer match what was applied")
        output.print_section(mismatches, MISMATCHES)
    return FAILED if mismatches else OK


# -- pipeline runs ---------------------------------------------------------------------------------------------


def show_pipeline_run(session: Session, app: Detent, run: PipelineRun) -> None:
    """Print one pipeline run: its progress, its slowest and failed partitions, and its transitions."""
    view, history = pipeline_view(app.store, run.id), run.history()
    if session.json:
        lists = output.lists(slowest=view.slowest, failures=view.failures, transitions=history)
        output.print_json(output.to_object(view, run=output.to_object(view.run)) | lists)
        return
    row = view.run
    states = ", ".join(f"{count} {state}" for state, count in view.states.items()) or "none yet"
    rate = "" if view.records_per_second is None else f", {view.records_per_second:,.0f} per second"
    output.print_fields(
        {
            "run": f"{row.id} of {line(row.name)}",
            "state": row.state,
            "kind": "full" if row.is_full else "incremental",
            "watermark": f"{line(row.watermark)}, since {output.format_time(row.since) or 'the beginning'}",
            "captured at": row.captured_at,
            "done": f"{100 * view.done:.0f} %",
            "elapsed": str(timedelta(seconds=round(view.elapsed))),
            "partitions": f"{row.partitions}: {states}",
            "records": f"{row.records} in {row.pages} pages{rate}",
            "staged": row.staged,
            "consolidated": row.consolidated,
            "retired": row.retired,
            "error": row.error,
        }
    )
    output.print_section(view.slowest, PARTITIONS)
    failures = output.columns(("FAILED", "partitions"), "error", ("FIRST", "key"), ("AT OFFSET", "offset"), "job_id")
    output.print_section(view.failures, failures)
    output.print_section(history, output.TRANSITIONS)


def show_pipeline_outcome(session: Session, run: PipelineRun, *, waited: bool = False) -> int:
    """Print how far a pipeline run is. Return the exit code: 1 if it was waited for and has failed or
    was cancelled."""
    session.answer(output.to_object(run.row), f"run {run.id}: {run.state}, {100 * share_done(run.row):.0f} % done")
    return FAILED if waited and run.state in ("failed", "cancelled") else OK
