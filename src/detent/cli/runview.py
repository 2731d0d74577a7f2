"""How runs look: a list of them, one with all that is on record about it, and one that somebody waits for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from detent.app.batch_run import BatchRun
from detent.app.pipeline_run import PipelineRun
from detent.app.reconciliation import Reconciliation
from detent.cli import render
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session
from detent.errors import RunTimeout
from detent.model import jsondoor
from detent.views.runs import run_view

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["json_text", "list_runs", "run_object", "show_run", "watch", "watch_look"]

_LOOK_EVERY = 0.5


def run_object(run: BatchRun, **more: Any) -> dict[str, Any]:
    """A run as the JSON object that every command gives for one."""
    told = {"kind": "batch", "counts": run.counts, "rests": run.rests, "tolerated": run.tolerated}
    return render.plain(run.row) | told | more


def list_runs(session: Session, runs: Sequence[BatchRun | PipelineRun]) -> None:
    """A table, or an array, of runs of either kind."""
    if session.json:
        render.json_value([run_object(run) if isinstance(run, BatchRun) else _pipeline_object(run) for run in runs])
        return
    render.table(
        ["ID", "KIND", "NAME", "STATE", "PARTS", "DONE", "FAILED", "BY", "CREATED", "FINISHED"],
        [_batch_line(run) if isinstance(run, BatchRun) else _pipeline_line(run) for run in runs],
        empty="no runs",
    )


def _batch_line(run: BatchRun) -> list[render.Cell]:
    row = run.row
    done = row.rolled_back if row.state == "rolled_back" else row.applied
    return [
        *(str(row.id), "batch", row.batch, row.state, row.total, done, row.failed),
        *(row.actor, row.created_at, row.finished_at),
    ]


def _pipeline_line(run: PipelineRun) -> list[render.Cell]:
    row = run.row
    return [
        *(str(row.id), "pipeline", row.name, row.state, row.partitions, row.parts_ended - row.parts_failed),
        *(row.parts_failed, row.started_by, row.created_at, row.finished_at),
    ]


def _pipeline_object(run: PipelineRun) -> dict[str, Any]:
    return render.plain(run.row) | {"kind": "pipeline"}


def show_run(session: Session, app: Detent, run: BatchRun) -> None:
    """One run with what failed, the looks at it and its moves."""
    view, history, looks = run_view(app.store, run.id), run.history(), run.reconciliations()
    if session.json:
        parts = {"causes": render.records(view.causes), "transitions": render.records(history)}
        looked = {"reconciliations": render.records(looks)}
        doing = {"doing": view.doing, "done": view.done, "of": view.of, "seconds": view.seconds}
        render.json_value(run_object(run, **doing, **parts, **looked))
        return
    row = run.row
    render.fields(
        {
            "id": str(row.id),
            "batch": row.batch,
            "state": row.state,
            "doing": f"{view.doing}: {view.done} of {view.of} in {view.seconds:.1f} s",
            "targets": ", ".join(f"{count} {state}" for state, count in run.counts.items()),
            "unchanged": row.unchanged or None,
            "not previewed": row.preview_failed or None,
            "reverts given up": row.revert_failed or None,
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
            "rollback asked by": row.rollback_requested_by,
            "rolled back": row.rolled_back_at,
            "next look": row.reconcile_at,
            "payload": row.payload,
            "metadata": row.metadata,
            "stopped by": row.critical,
            "error": row.error,
        }
    )
    _show_causes(view.causes)
    render.out("")
    render.table(
        ["AT", "FROM", "TO", "TRIGGER", "ACTOR", "REASON"],
        [[one.at, one.from_state, one.to_state, one.trigger, one.actor, one.reason] for one in history],
    )


def _show_causes(causes: Sequence[Any]) -> None:
    if causes:
        render.out("")
        render.table(
            ["TARGETS", "FAILED BECAUSE", "SUCH AS"], [[one.targets, one.error, one.example] for one in causes]
        )


def watch(session: Session, run: BatchRun, *, wait: bool, timeout: float | None, until: set[str] | None) -> int:
    """Say how the run stands, after waiting for it where that was asked; the exit code is how it went. Few enough
    failures are no failure."""
    if wait:
        _wait_with_bar(session, run, timeout, until)
    if session.json:
        render.json_value(run_object(run))
    else:
        said = [", ".join(f"{count} {state}" for state, count in run.counts.items()), *_worth_knowing(run)]
        render.out(f"run {run.id}: {run.state}" + (f" ({'; '.join(said)})" if said[0] else ""))
    if not wait:
        return OK
    asked_for = until is not None and run.state in until
    went_well = run.state in ("preview", "applied", "rolled_back") or (run.state == "partial" and run.tolerated)
    gave_up = run.row.revert_failed > 0
    return OK if (went_well or asked_for) and not gave_up else FAILED


def _worth_knowing(run: BatchRun) -> list[str]:
    """What the states of its targets do not say to whoever is about to apply it, or has asked for it back."""
    row = run.row
    notes = {"could not be reverted": row.revert_failed}
    if run.state == "preview":
        notes = {"would not change": row.unchanged, "could not be previewed": row.preview_failed}
    return [f"{count} {what}" for what, count in notes.items() if count]


def _wait_with_bar(session: Session, run: BatchRun, timeout: float | None, until: set[str] | None) -> None:
    """A bar for whoever watches; it begins anew with what the run does next."""
    if session.json or not sys.stderr.isatty():
        run.wait(timeout, until)
        return
    left = float("inf") if timeout is None else timeout
    label, bar = "", None
    while True:
        doing, done, of = _far(run)
        if bar is None or doing != label or bar.length != of:
            label, bar = doing, click.progressbar(length=max(of, 1), label=doing, file=sys.stderr)
        bar.pos = min(done, bar.length or 1)
        bar.render_progress()
        try:
            run.wait(min(_LOOK_EVERY, left), until)
            bar.pos = bar.length or 1
            bar.render_progress()
            bar.render_finish()
            click.echo(err=True)
            return
        except RunTimeout as late:
            left -= late.waited
            if left <= 0:
                raise


def _far(run: BatchRun) -> tuple[str, int, int]:
    row = run.row
    if row.state == "preview":
        return "preview", row.previewed + row.preview_failed, row.total
    if row.rollback_requested_at is not None:
        return "roll back", row.rolled_back, row.rolled_back + row.applied
    return "apply", row.applied + row.failed, row.applied + row.failed + row.queued + row.applying


def watch_look(session: Session, run: BatchRun, look: Reconciliation, timeout: float | None) -> int:
    """Wait for a look at the world and say what it found; 1 where something differs."""
    found = look.wait(timeout).mismatches()
    if session.json:
        render.json_value({"run_id": str(run.id), "checked": look.checked, "mismatches": render.records(found)})
    else:
        render.out(f"run {run.id}: {look.checked} targets looked at, {len(found)} are not what they were made")
        rows = [[one.ref, *(json_text(value) for value in (one.expected, one.actual))] for one in found]
        if rows:
            render.table(["REF", "EXPECTED", "ACTUAL"], rows)
    return FAILED if found else OK


def json_text(value: object) -> str:
    """A value as JSON on one line."""
    return jsondoor.encode(value, field="value", size_max=2**31)
