"""How a pipeline run looks."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from detent.app.pipeline_run import PipelineRun
from detent.cli import render
from detent.cli.session import Session
from detent.model.escape import line
from detent.views.pipelines import PipelineView, pipeline_view, share_done

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["say_pipeline_run", "show_pipeline_run"]


def show_pipeline_run(session: Session, app: Detent, run: PipelineRun) -> None:
    """Everything about one run."""
    view, moves = pipeline_view(app.store, run.id), run.history()
    if session.json:
        told = render.plain(view, run=render.plain(view.run), slowest=render.records(view.slowest))
        failures = render.records(view.failures)
        render.json_value(told | {"failures": failures, "transitions": render.records(moves)})
        return
    _show(view)
    render.out("")
    render.moves(False, moves)


def _show(view: PipelineView) -> None:
    run = view.run
    states = ", ".join(f"{count} {state}" for state, count in view.states.items()) or "none yet"
    rate = "" if view.records_per_second is None else f", {view.records_per_second:,.0f} a second"
    said: dict[str, render.Cell] = {
        "run": f"{run.id} of {line(run.name)}",
        "state": run.state,
        "kind": "full" if run.is_full else "incremental",
        "watermark": f"{line(run.watermark)}, since {render.when(run.since) or 'the beginning'}",
        "captured at": run.captured_at,
        "done": f"{100 * view.done:.0f} %",
        "elapsed": _seconds(timedelta(seconds=view.elapsed)),
        "partitions": f"{run.partitions}: {states}",
        "records": f"{run.records} in {run.pages} pages{rate}",
        "staged": run.staged,
        "consolidated": run.consolidated,
        "retired": run.retired,
        "error": run.error,
    }
    render.fields(said)
    if view.slowest:
        render.out("")
        render.table(
            ["PARTITION", "STATE", "OFFSET", "PAGES", "RECORDS", "LAST PAGE", "JOB"],
            [
                [*(part.key, part.state, part.next_offset, part.pages, part.records, part.paged_at), str(part.job_id)]
                for part in view.slowest
            ],
        )
    if view.failures:
        render.out("")
        render.table(
            ["FAILED", "OF", "FIRST", "AT OFFSET", "JOB"],
            [[one.partitions, one.error, one.key, one.offset, str(one.job_id)] for one in view.failures],
        )


def say_pipeline_run(session: Session, run: PipelineRun) -> None:
    """Print how far a run is, in one line or as JSON."""
    if session.json:
        render.json_value(render.plain(run.row))
    else:
        render.out(f"run {run.id}: {run.state}, {100 * share_done(run.row):.0f} % done")


def _seconds(took: timedelta) -> str:
    return str(timedelta(seconds=round(took.total_seconds())))
