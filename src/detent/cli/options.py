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
    "flag",
    "is_filtered",
    "job_filters",
    "limit_option",
    "option",
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


def option(
    name: str,
    help: str,
    value: Any,
    *,
    to: str | None = None,
    metavar: str | None = None,
    default: Any = None,
    **more: Any,
) -> Decorator:
    """Return an option with a value. `value` is the metavar of a text, the type of another value, or the choices. `to`
    is the name of the argument, if it differs from that of the option. A default is shown in the help."""
    kind: Any = None
    if isinstance(value, str):
        metavar = value
    elif isinstance(value, Sequence):
        kind = click.Choice(value)
    else:
        kind = value
        metavar = metavar or ("N" if value in (int, float) or isinstance(value, click.IntRange) else "TIME")
    if default is not None:
        more |= {"default": default, "show_default": default != ""}
    return click.option(name, *([to] if to else []), help=help, type=kind, metavar=metavar, **more)


def flag(name: str, help: str, *, short: str | None = None, to: str | None = None, default: bool = False) -> Decorator:
    """Return an option without a value. A pair, such as `--x/--no-x`, is None if it is not given."""
    names = [one for one in (name, short, to) if one]
    return click.option(*names, is_flag=True, default=default or (None if "/" in name else False), help=help)


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
    return option("--limit", "Maximum number of rows to list.", limit, default=100)


page_options = combined(
    limit_option(),
    option("--after", "Continue after this place, which the previous page printed.", "PLACE"),
)
reason_option = option("--reason", "Reason, for the record.", "TEXT")
required_reason_option = option("--reason", "Reason, for the record.", "TEXT", required=True)
tenant_option = option("--tenant", "Tenant. Default: none.", "NAME", default="")
yes_option = flag("--yes", "Do not ask for confirmation.", short="-y")
timeout_option = option("--timeout", "Stop waiting after this time, such as 30s or 5m. Exit code 124.", duration)
wait_options = combined(flag("--wait", "Wait for the end; the exit code is the outcome."), timeout_option)
silence_options = combined(
    option("--stale-after", "Maximum time from claim to start.", duration, default="5m"),
    option("--stalled-after", "Maximum time without an event.", duration, default="10m"),
)


def time_options(noun: str) -> Decorator:
    """Return `--since` and `--until`, for lists of that noun."""
    since = f"Only {noun} since this time, or in the last 2h or 7d."
    until = f"Only {noun} before this time, or more than 2h or 7d ago."
    return combined(
        option("--since", since, past_time),
        option("--until", until, past_time),
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
    "state": option("--state", "Only jobs in this state.", list(JOB.states)),
    "task": option("--task", "Only jobs of this task.", "NAME"),
    "queue": option("--queue", "Only jobs of this queue.", "NAME"),
    "tenant": option("--tenant", "Only jobs of this tenant.", "NAME"),
    "key": option("--key", "Only the job enqueued with this key (of --tenant, if given).", "KEY"),
    "correlation_id": option("--correlation-id", "Only jobs with this correlation id.", "ID"),
    "run": option("--run", "Only jobs of this batch run or pipeline run.", "ID"),
    "worker": option("--worker", "Only jobs that this worker holds or has attempted.", "NAME"),
    "error": option("--error", "Only jobs with this text in one of their errors.", "TEXT"),
    "metadata": option(
        "--metadata",
        "Only jobs with this metadata (repeatable). VALUE is text or JSON.",
        "NAME=VALUE",
        multiple=True,
        callback=_metadata,
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
    flag("--dry-run", "Only print how many jobs it would affect."),
    yes_option,
    reason_option,
)
