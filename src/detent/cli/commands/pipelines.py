"""`detent pipelines`: runs that fetch a source page by page, and up to when each source is known."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from detent.app.pipeline_run import PipelineRun
from detent.cli import render
from detent.cli.command import Group, duration, reason_option
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session
from detent.lifecycle.library import PIPELINE_RUN
from detent.model.escape import line
from detent.model.pipeline_records import PipelineRunRow
from detent.views.pipelines import PipelineView, pipeline_view, share_done

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["command", "show_pipeline_run"]

run_id = click.argument("run_id", metavar="ID")


@click.group("pipelines", cls=Group)
def command() -> None:
    """Start pipeline runs, look at them, retry or force them; list watermarks."""


@command.command("list")
@click.option("--state", type=click.Choice(list(PIPELINE_RUN.states)), help="Only runs in this state.")
@click.option("--pipeline", "name", metavar="NAME", help="Only runs of this pipeline.")
@click.option("--tenant", metavar="NAME", help="Only runs of this tenant.")
@click.option("--before", type=click.IntRange(min=1), metavar="ID", help="Only runs with ids below this one.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of rows to list."
)
@click.pass_obj
def list_(
    session: Session, state: str | None, name: str | None, tenant: str | None, before: int | None, limit: int
) -> None:
    """List runs, the newest first."""
    with session.open() as app:
        runs = app.runs.list(
            kind="pipeline",
            state=state,
            name=name,
            tenant=tenant,
            limit=limit,
            after=None if before is None else str(before),
        )
    if session.json:
        render.json_value(render.records(run.row for run in runs))
        return
    render.table(
        ["ID", "PIPELINE", "STATE", "KIND", "PARTITIONS", "FAILED", "RECORDS", "CONSOLIDATED", "STARTED", "TOOK"],
        [_row(run.row) for run in runs],
        empty="no pipeline runs",
    )


def _row(row: PipelineRunRow) -> list[render.Cell]:
    took = (row.finished_at or row.moved_at) - row.created_at
    parts = f"{row.parts_ended}/{row.partitions}"
    kind = "full" if row.is_full else "incremental"
    return [
        *(str(row.id), row.name, row.state, kind, parts, row.parts_failed, row.records, row.consolidated),
        *(row.created_at, _seconds(took)),
    ]


@command.command()
@run_id
@click.pass_obj
def show(session: Session, run_id: str) -> None:
    """Show a run: how far it is, its partitions, how long it took, and what failed of what."""
    with session.open() as app:
        show_pipeline_run(session, app, app.runs.get(run_id, kind="pipeline"))


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
    render.table(
        ["WHEN", "FROM", "TO", "BY", "ACTOR", "REASON"],
        [
            [
                *(one.at, one.from_state, one.to_state, one.trigger + (", forced" if one.forced else "")),
                *(one.actor, one.reason),
            ]
            for one in moves
        ],
    )


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
    _say(session, run)
    return FAILED if wait and run.state == "failed" else OK


@command.command()
@run_id
@click.option("--reason", required=True, metavar="TEXT", help="Why, for the record.")
@click.pass_obj
def force(session: Session, run_id: str, reason: str) -> None:
    """Consolidate what is there of a run that was skipped, in spite of its failed partitions."""
    with session.open() as app:
        app.runs.get(run_id, kind="pipeline").force(reason=reason)
        _say(session, app.runs.get(run_id, kind="pipeline"))


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
    _say(session, run)
    return FAILED if wait and run.state == "failed" else OK


@command.command()
@click.pass_obj
def watermarks(session: Session) -> None:
    """List up to when each source is known."""
    with session.open() as app:
        found = app.watermarks.list()
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["NAME", "TENANT", "VALUE", "RUN", "MOVED"],
        [[one.name, one.tenant, one.value, str(one.run_id), one.moved_at] for one in found],
        empty="no watermarks: no pipeline run has completed yet",
    )


def _say(session: Session, run: PipelineRun) -> None:
    if session.json:
        render.json_value(render.plain(run.row))
    else:
        render.out(f"run {run.id}: {run.state}, {100 * share_done(run.row):.0f} % done")


def _seconds(took: timedelta) -> str:
    return str(timedelta(seconds=round(took.total_seconds())))
