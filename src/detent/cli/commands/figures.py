"""`detent figures`: success rates, durations and transitions."""

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

__all__ = ["figures"]


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


_MEAN, _MAX = _seconds("mean_seconds"), _seconds("max_seconds")
_DURATIONS = (("MEAN", _MEAN), ("P50", _seconds("p50_seconds")), ("P95", _seconds("p95_seconds")), ("MAX", _MAX))
_SUCCESS = ("SUCCESS", lambda one: _share(one.success_rate))
_STEP = (("FROM", "from_state"), ("TO", "to_state"), ("TRANSITIONS", "moves"))
_TASKS = output.columns("task", "succeeded", "failed", _SUCCESS, "retries", "throttled")
_ATTEMPTS = output.columns("task", "outcome", "attempts", *_DURATIONS)
_TRANSITIONS = output.columns("task", *_STEP, ("MEAN BEFORE", _MEAN), ("MAX BEFORE", _MAX))
_BATCHES = output.columns("batch", "applies", "runs", _SUCCESS, "retries", *_DURATIONS)
_OPS = output.columns(("OPS RUNS", "status"), "runs", ("MEAN", _MEAN), ("MAX", _MAX))


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
