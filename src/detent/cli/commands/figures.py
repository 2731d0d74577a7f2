"""`detent figures` and `detent rates`: success rates, durations and transitions, of a period or over time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from detent.cli import output
from detent.cli.command import Command, with_app
from detent.cli.options import option, past_time
from detent.cli.session import Session

if TYPE_CHECKING:
    from detent.app.detent import Detent
    from detent.views.rates import Step

__all__ = ["figures", "rates"]


def _share(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.2f} %"


def _seconds(name: str) -> Callable[[Any], str | None]:
    """Return a column: a duration in seconds, or in milliseconds if it is short."""

    def text(row: Any) -> str | None:
        value = getattr(row, name)
        if value is None:
            return None
        return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.1f} s"

    return text


def _seconds_of(name: str, field: str) -> Callable[[Any], str | None]:
    column = _seconds(field)
    return lambda point: column(getattr(point, name))


_PERCENTILES = (("P50", "p50_seconds"), ("P95", "p95_seconds"))
_MEAN, _MAX = _seconds("mean_seconds"), _seconds("max_seconds")
_DURATIONS = (("MEAN", _MEAN), ("P50", _seconds("p50_seconds")), ("P95", _seconds("p95_seconds")), ("MAX", _MAX))
_SUCCESS = ("SUCCESS", lambda one: _share(one.success_rate))
_STEP = (("FROM", "from_state"), ("TO", "to_state"), ("TRANSITIONS", "moves"))
_TASKS = output.columns("task", "succeeded", "failed", _SUCCESS, "retries", "throttled")
_ATTEMPTS = output.columns("task", "outcome", "attempts", *_DURATIONS)
_TRANSITIONS = output.columns("task", *_STEP, ("MEAN BEFORE", _MEAN), ("MAX BEFORE", _MAX))
_BATCHES = output.columns("batch", "applies", "runs", _SUCCESS, "retries", *_DURATIONS)
_OPS = output.columns(("OPS RUNS", "status"), "runs", ("MEAN", _MEAN), ("MAX", _MAX))


_RATES = output.columns(
    ("TIME", lambda one: output.format_time(one.at)),
    ("SUCCEEDED", lambda one: one.moves.get("succeeded", 0)),
    ("RETRIED", lambda one: one.moves.get("pending", 0)),
    ("FAILED", lambda one: one.moves.get("failed", 0) + one.moves.get("quarantined", 0)),
    ("CANCELLED", lambda one: one.moves.get("cancelled", 0)),
    *(
        (f"{name.upper()} {text}", _seconds_of(name, field))
        for name in ("waited", "ran")
        for text, field in _PERCENTILES
    ),
)


@click.command(cls=Command)
@option(
    "--since", "Begin with the hour of this time, or 2h or 7d ago; at most 31 days. Default: 24 hours ago.", past_time
)
@option("--task", "Only this task.", "NAME")
@with_app
def figures(session: Session, app: Detent, since: datetime | None, task: str | None) -> None:
    """Show success rates, durations and transitions.

    By task: how many jobs succeeded and failed. By task and outcome: how long attempts took. By transition: how often
    jobs made it, and how long they had been in the state before. Then batch runs and ops runs. Attempts are counted
    when they end. Counts, means and maxima are exact; percentiles (P50, P95) are off by less than a quarter.
    """
    found = app.figures(since=since, task=task)
    if session.json:
        tables = {name: getattr(found, name) for name in ("tasks", "attempts", "transitions", "batches", "ops")}
        lists = output.lists(**tables)
        period = {"since": found.since, "until": found.until}
        output.print_json({**period, **lists, "ops_success_rate": found.ops_success_rate})
        return
    output.print_text(f"from {output.format_time(found.since)} to {output.format_time(found.until)}")
    output.print_rows(found.tasks, _TASKS, empty="no attempt has ended in this time")
    output.print_section(found.attempts, _ATTEMPTS)
    output.print_section(found.transitions, _TRANSITIONS)
    output.print_section(found.batches, _BATCHES)
    output.print_section(found.ops, _OPS)
    if found.ops:
        output.print_text(f"success of ops runs: {_share(found.ops_success_rate) or '-'}")


@click.command(cls=Command)
@option(
    "--since", "Begin at this time, or 30m or 7d ago. Default: 1 hour ago, or 24 hours with `--step hour`.", past_time
)
@option("--step", "Minutes of the last 6 hours, or hours of the last 31 days.", ("minute", "hour"), default="minute")
@with_app
def rates(session: Session, app: Detent, since: datetime | None, step: Step) -> None:
    """Show how many jobs moved in each minute or hour.

    For each step: how many jobs succeeded, were retried, failed or were cancelled, and how long they waited and ran.
    Jobs are counted when an attempt ends. Counts are exact as of ten seconds ago at most; percentiles are off by less
    than a quarter.
    """
    found = app.rates(since=since, step=step)
    if session.json:
        output.print_json(found)
        return
    output.print_rows([point for point in found.points if point.moves], _RATES, empty="no job has moved in this time")
    if found.success_rate is not None:
        output.print_text(f"success: {_share(found.success_rate)}")
