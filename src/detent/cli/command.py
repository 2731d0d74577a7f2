"""The classes of commands and groups. Both know the common options, so these may stand anywhere on the line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from detent.cli.session import Session

__all__ = ["COMMON", "Command", "Group", "with_app", "with_tasks"]


def _set_on_session(context: click.Context, option: click.Parameter, value: Any) -> Any:
    if value is not None and value is not False:
        session = context.find_object(Session)
        assert session is not None
        assert option.name is not None
        setattr(session, option.name, value)
    return value


def _common_options() -> list[click.Parameter]:
    def option(*names: str, **more: Any) -> click.Option:
        return click.Option(names, expose_value=False, callback=_set_on_session, **more)

    return [
        option("--database", metavar="URL", help="Database. Default: DETENT_DATABASE_URL, else the settings."),
        option("--app", metavar="MODULE:APP", help="Application to import. Default: DETENT_APP."),
        option("--actor", metavar="NAME", help="Name of the actor, for the record. Default: the login name."),
        option("--json", is_flag=True, help="Print JSON."),
    ]


COMMON = tuple(one.name for one in _common_options())


class Command(click.Command):
    """A command with the common options. Its function returns the exit code; None is 0."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        taken = {one.name for one in self.params}
        self.params += [one for one in _common_options() if one.name not in taken]


class Group(click.Group):
    """A noun, with its verbs as commands. Its help ends with its two most common commands as examples."""

    command_class = Command

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.examples = examples
        self.params += _common_options()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] == "ls" and "list" in self.commands:
            args = ["list", *args[1:]]
        return super().resolve_command(context, args)


def with_app(function: Callable[..., Any], *, tasks: bool = False) -> Callable[..., Any]:
    """Call a command's function with the session and the application, opened on an existing database."""

    @click.pass_obj
    @functools.wraps(function)
    def call(session: Session, /, **arguments: Any) -> Any:
        if tasks:
            session.require_application()
        with session.open() as app:
            return function(session, app, **arguments)

    return call


with_tasks = functools.partial(with_app, tasks=True)
"""Like `with_app`, for commands that need the tasks of an application: refused if none is named."""
