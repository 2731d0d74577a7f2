"""`detent figures`: success rates, durations and transitions."""

from __future__ import annotations

from datetime import datetime

import click

from detent.cli import render
from detent.cli.command import Command, moment
from detent.cli.session import Session
from detent.model.figure_records import Figures

__all__ = ["command"]


@click.command("figures", cls=Command)
@click.option(
    "--since",
    type=moment,
    metavar="TIME",
    help="Since the beginning of that hour: a time, or how long ago (2h, 7d), at most 31 days. Default: 24 hours ago.",
)
@click.option("--task", metavar="NAME", help="Only this task.")
@click.pass_obj
def command(session: Session, since: datetime | None, task: str | None) -> None:
    """Show success rates, durations and transitions.

    By task, how many jobs succeeded and failed; by task and outcome, how long attempts took; how often jobs moved from
    state to state and how long they had been in the state before; batch runs; ops runs. Attempts are counted when they
    end. Counts, means and maxima are exact; a percentile (P50, P95) is off by less than a quarter.
    """
    with session.open() as app:
        found = app.figures(since=since, task=task)
    if session.json:
        render.json_value(
            {
                "since": found.since,
                "until": found.until,
                **{
                    name: render.records(getattr(found, name))
                    for name in ("tasks", "attempts", "transitions", "batches", "ops")
                },
                "ops_success_rate": found.ops_success_rate,
            }
        )
        return
    render.out(f"from {render.when(found.since)} to {render.when(found.until)}")
    _tables(found)


def _tables(found: Figures) -> None:
    render.table(
        ["TASK", "SUCCEEDED", "FAILED", "SUCCESS", "RETRIES", "THROTTLED"],
        [
            [one.task, one.succeeded, one.failed, _share(one.success_rate), one.retries, one.throttled]
            for one in found.tasks
        ],
        empty="no attempt has ended",
    )
    if found.attempts:
        render.out("")
        render.table(
            ["TASK", "OUTCOME", "ATTEMPTS", "MEAN", "P50", "P95", "MAX"],
            [
                [
                    *(one.task, one.outcome, one.attempts),
                    *map(_seconds, (one.mean_seconds, one.p50_seconds, one.p95_seconds, one.max_seconds)),
                ]
                for one in found.attempts
            ],
        )
    if found.transitions:
        render.out("")
        render.table(
            ["TASK", "FROM", "TO", "MOVES", "MEAN BEFORE", "MAX BEFORE"],
            [
                [
                    *(one.task, one.from_state, one.to_state, one.moves),
                    *(_seconds(one.mean_seconds), _seconds(one.max_seconds)),
                ]
                for one in found.transitions
            ],
        )
    if found.batches:
        render.out("")
        render.table(
            ["BATCH", "APPLIES", "RUNS", "SUCCESS", "RETRIES", "MEAN", "P50", "P95", "MAX"],
            [
                [
                    *(one.batch, one.applies, one.runs, _share(one.success_rate), one.retries),
                    *map(_seconds, (one.mean_seconds, one.p50_seconds, one.p95_seconds, one.max_seconds)),
                ]
                for one in found.batches
            ],
        )
    if found.ops:
        render.out("")
        render.table(
            ["OPS RUNS", "RUNS", "MEAN", "MAX"],
            [[one.status, one.runs, _seconds(one.mean_seconds), _seconds(one.max_seconds)] for one in found.ops],
        )
        render.out(f"success of ops runs: {_share(found.ops_success_rate) or '-'}")


def _share(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.2f} %"


def _seconds(value: float | None) -> str | None:
    if value is None:
        return None
    return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.1f} s"
