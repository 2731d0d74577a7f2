"""The filters of jobs, for lists and for bulk commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

from detent.cli.command import moment
from detent.lifecycle.library import JOB

__all__ = ["is_filtered", "job_filters"]

_NAMES = (
    *("state", "task", "queue", "tenant", "key", "correlation_id", "run", "worker", "error", "metadata"),
    *("since", "until"),
)


def job_filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Every filter that `app.jobs.list` and `app.jobs.where` take."""
    options = (
        click.option("--state", type=click.Choice(list(JOB.states)), help="Only jobs in this state."),
        click.option("--task", metavar="NAME", help="Only jobs of this task."),
        click.option("--queue", metavar="NAME", help="Only jobs of this queue."),
        click.option("--tenant", metavar="NAME", help="Only jobs of this tenant."),
        click.option("--key", metavar="KEY", help="The job that was enqueued with this key (of --tenant, if any)."),
        click.option("--correlation-id", metavar="ID", help="Only jobs with this correlation id."),
        click.option("--run", metavar="ID", help="Only jobs of this batch run or pipeline run."),
        click.option("--worker", metavar="NAME", help="Only jobs that this worker holds or has tried."),
        click.option("--error", metavar="TEXT", help="Only jobs with this text in an error of theirs."),
        click.option(
            *("--metadata", "metadata"),
            multiple=True,
            callback=_metadata,
            metavar="NAME=VALUE",
            help="Only jobs with this metadata (repeatable). VALUE is text or JSON.",
        ),
        click.option("--since", type=moment, metavar="TIME", help="Only jobs created since: a time, or 2h, 7d ago."),
        click.option("--until", type=moment, metavar="TIME", help="Only jobs created before: a time, or 2h, 7d ago."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def is_filtered(chosen: dict[str, Any]) -> bool:
    """Whether any filter was given."""
    return any(chosen.get(name) not in (None, {}) for name in _NAMES)


def _metadata(context: click.Context, option: click.Parameter, wanted: Sequence[str]) -> dict[str, Any]:
    """Each value as the text it is, and as the JSON value that it may be."""
    found: dict[str, Any] = {}
    for pair in wanted:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--metadata takes NAME=VALUE, not {pair!r}.")
        found[name] = (value,)
        with suppress(msgspec.DecodeError):
            decoded = msgspec.json.decode(value)
            found[name] = (value,) if isinstance(decoded, dict | list) else (value, decoded)
    return found
