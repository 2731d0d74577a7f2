"""Options that several commands share, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import msgspec

from detent.errors import DetentError
from detent.lifecycle.library import JOB
from detent.model.clock import SystemClock

__all__ = [
    "bulk_options",
    "combined",
    "duration",
    "is_filtered",
    "job_filters",
    "limit_option",
    "page_options",
    "past_time",
    "reason_option",
    "required_reason_option",
    "silence_options",
    "tenant_option",
    "time_options",
    "timeout_option",
    "wait_options",
    "yes_option",
]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def duration(text: str) -> float:
    """Parse the value of an option: `30s`, `500ms`, `5m`, `2h`, `1d` or plain seconds."""
    from detent.worker.options import parse_duration

    try:
        return parse_duration(text)
    except DetentError as error:
        raise click.BadParameter(str(error)) from None


def past_time(text: str) -> datetime:
    """Parse the value of an option: a time such as `2026-11-17T09:30:00Z` or `2026-11-17`, or an age such as `15m`."""
    with suppress(ValueError):
        found = datetime.fromisoformat(text)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    try:
        return SystemClock().now() - timedelta(seconds=duration(text))
    except (click.BadParameter, OverflowError):
        refused = f"{text!r} is neither a time such as 2026-11-17T09:30:00Z nor an age such as 2h"
        raise click.BadParameter(refused) from None


def combined(*options: Decorator) -> Decorator:
    """Return one decorator that adds all of these options, in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def limit_option(most: int = 10_000) -> Decorator:
    """Return `--limit`, for lists of at most that many rows."""
    limit = click.IntRange(1, most)
    return click.option("--limit", type=limit, default=100, show_default=True, help="Maximum number of rows to list.")


page_options = combined(
    limit_option(),
    click.option("--after", metavar="PLACE", help="Continue after this place, which the previous page printed."),
)
reason_option = click.option("--reason", metavar="TEXT", help="Reason, for the record.")
required_reason_option = click.option("--reason", metavar="TEXT", required=True, help="Reason, for the record.")
tenant_option = click.option("--tenant", metavar="NAME", default="", help="Tenant. Default: none.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
timeout_option = click.option(
    "--timeout", type=duration, metavar="TIME", help="Stop waiting after this time, such as 30s or 5m. Exit code 124."
)
wait_options = combined(
    click.option("--wait", is_flag=True, help="Wait for the end; the exit code is the outcome."), timeout_option
)
silence_options = combined(
    click.option(
        "--stale-after",
        type=duration,
        default="5m",
        show_default=True,
        metavar="TIME",
        help="Maximum time from claim to start.",
    ),
    click.option(
        "--stalled-after",
        type=duration,
        default="10m",
        show_default=True,
        metavar="TIME",
        help="Maximum time without an event.",
    ),
)


def time_options(noun: str) -> Decorator:
    """Return `--since` and `--until`, for lists of that noun."""
    since = f"Only {noun} since this time, or in the last 2h or 7d."
    until = f"Only {noun} before this time, or more than 2h or 7d ago."
    return combined(
        click.option("--since", type=past_time, metavar="TIME", help=since),
        click.option("--until", type=past_time, metavar="TIME", help=until),
    )


def _metadata(context: click.Context, option: click.Parameter, pairs: Sequence[str]) -> dict[str, Any]:
    """Return the values to look for by name: each as text, and as the JSON value that it may be."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--metadata takes NAME=VALUE, not {pair!r}.")
        found[name] = (value,)
        with suppress(msgspec.DecodeError):
            decoded = msgspec.json.decode(value)
            found[name] = (value,) if isinstance(decoded, dict | list) else (value, decoded)
    return found


_FILTERS = {
    "state": click.option("--state", type=click.Choice(list(JOB.states)), help="Only jobs in this state."),
    "task": click.option("--task", metavar="NAME", help="Only jobs of this task."),
    "queue": click.option("--queue", metavar="NAME", help="Only jobs of this queue."),
    "tenant": click.option("--tenant", metavar="NAME", help="Only jobs of this tenant."),
    "key": click.option("--key", metavar="KEY", help="Only the job enqueued with this key (of --tenant, if given)."),
    "correlation_id": click.option("--correlation-id", metavar="ID", help="Only jobs with this correlation id."),
    "run": click.option("--run", metavar="ID", help="Only jobs of this batch run or pipeline run."),
    "worker": click.option("--worker", metavar="NAME", help="Only jobs that this worker holds or has attempted."),
    "error": click.option("--error", metavar="TEXT", help="Only jobs with this text in one of their errors."),
    "metadata": click.option(
        "--metadata",
        multiple=True,
        callback=_metadata,
        metavar="NAME=VALUE",
        help="Only jobs with this metadata (repeatable). VALUE is text or JSON.",
    ),
}
_FILTER_NAMES = (*_FILTERS, "since", "until")


def job_filters(*names: str) -> Decorator:
    """Return these filters of `app.jobs.list` and `app.jobs.where`; all of them if no name is given."""
    if names:
        return combined(*(_FILTERS[name] for name in names))
    return combined(*_FILTERS.values(), time_options("jobs created"))


def is_filtered(chosen: dict[str, Any]) -> bool:
    """Return whether any filter was given."""
    return any(chosen.get(name) not in (None, {}) for name in _FILTER_NAMES)


bulk_options = combined(
    job_filters(),
    click.option("--dry-run", is_flag=True, help="Only print how many jobs it would affect."),
    yes_option,
    reason_option,
)
