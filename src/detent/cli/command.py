"""Commands and groups that know the common options, so that these may stand anywhere on the line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from detent.cli import render
from detent.cli.session import Session
from detent.client.listing import ListPage
from detent.errors import DetentError
from detent.model.clock import SystemClock

__all__ = ["COMMON", "EXAMPLES", "Command", "Group", "duration", "moment", "paged", "reason_option", "say_more"]


def _remember(context: click.Context, option: click.Parameter, value: Any) -> Any:
    if value is not None and value is not False:
        session = context.find_object(Session)
        assert session is not None
        assert option.name is not None
        setattr(session, option.name, value)
    return value


def _common() -> list[click.Parameter]:
    def option(*names: str, **more: Any) -> click.Option:
        return click.Option(names, expose_value=False, callback=_remember, **more)

    return [
        option("--database", metavar="URL", help="Where the record is; else DETENT_DATABASE_URL, else the settings."),
        option("--app", metavar="MODULE:APP", help="Application to import. Default: DETENT_APP."),
        option("--actor", metavar="NAME", help="Who acts, for the record; else the login name."),
        option("--json", is_flag=True, help="Answer in JSON."),
    ]


COMMON = tuple(one.name for one in _common())


class Command(click.Command):
    """A command with the common options. Its function returns the exit code; None is 0."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        taken = {one.name for one in self.params}
        self.params += [one for one in _common() if one.name not in taken]


EXAMPLES = {
    "alerts": ("detent alerts list --firing", "detent alerts acknowledge dead_letters_many --reason 'on it'"),
    "dead": ("detent dead report", "detent dead list --task shop.welcome"),
    "identities": ("detent identities list", "detent identities renew --reason 'restored from a backup'"),
    "jobs": ("detent jobs list --state quarantined", "detent jobs retry --task shop.welcome --reason 'fixed'"),
    "lifecycles": ("detent lifecycles diagram job", "detent lifecycles history order 17 --app shop:app"),
    "limits": ("detent limits list --waiting", "detent limits resume shop-api"),
    "operations": ("detent operations list", "detent operations cancel 17"),
    "ops": ("detent ops queue shop staging --git-sha abc", "detent ops follow run-17"),
    "policies": ("detent alerts policies list", "detent alerts policies set dead_letters_many --threshold 20"),
    "queues": ("detent queues list", "detent queues pause mail --reason 'the provider is down'"),
    "record": ("detent record search --actor ana --since 7d", "detent record search --entity job --id 17"),
    "runs": ("detent runs list", "detent runs get 17"),
    "schedules": ("detent schedules list", "detent schedules run-now nightly"),
    "watermarks": ("detent watermarks list", "detent watermarks get diamonds"),
    "workers": ("detent workers list", "detent workers list --within 1h"),
}
"""The two most common commands of each group."""


class Group(click.Group):
    """A noun: its verbs are commands. Alone it says what they are."""

    command_class = Command

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += _common()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.name in EXAMPLES:
            with formatter.section("Examples"):
                for example in EXAMPLES[self.name]:
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] == "ls" and "list" in self.commands:
            args = ["list", *args[1:]]
        return super().resolve_command(context, args)


def duration(text: str) -> float:
    """For an option: `30s`, `500ms`, `5m`, `2h`, `1d` or plain seconds."""
    from detent.worker.options import parse_duration

    try:
        return parse_duration(text)
    except DetentError as error:
        raise click.BadParameter(str(error)) from None


def moment(text: str) -> datetime:
    """For an option: a time such as `2026-11-17T09:30:00Z` or `2026-11-17`, or how long ago, such as `15m` or `7d`."""
    with suppress(ValueError):
        found = datetime.fromisoformat(text)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    try:
        return SystemClock().now() - timedelta(seconds=duration(text))
    except (click.BadParameter, OverflowError):
        said = f"{text!r} is neither a time such as 2026-11-17T09:30:00Z nor how long ago, such as 2h"
        raise click.BadParameter(said) from None


def reason_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--reason`, for what goes on record."""
    return click.option("--reason", metavar="TEXT", help="Why, for the record.")(function)


def paged(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--limit` and `--after`, for lists."""
    after = click.option("--after", metavar="PLACE", help="Go on after this place, which the page before has named.")
    limit = click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=100,
        show_default=True,
        help="Maximum number of rows to list.",
    )
    return limit(after(function))


def say_more(page: ListPage[Any]) -> None:
    """Name the place to go on after, on stderr, if the page is not the last one."""
    if page.next is not None:
        render.note(f"there may be more: --after {page.next}")
