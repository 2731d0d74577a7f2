"""The page about the command line, written from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from detent.cli.command import COMMON, Group
from detent.cli.main import root

__all__ = ["cli_page"]

_HEADING = """\
# The command line

`detent NOUN VERB`, or `python -m detent.cli`. Data goes to stdout, messages go to stderr.

- **Database**: `--database URL`, else `DETENT_DATABASE_URL`, else `database_url` in `detent.toml` or in
  `[tool.detent]` of `pyproject.toml`, else `sqlite:///detent.db`. Only `migrate`, `move` (its
  target), `worker`, `enqueue`, `dev` and `demo` create a database. Every other command refuses one that does not exist
  (exit code 5), so a mistyped path is noticed.
- **Application**: `--app MODULE:APP`, else `DETENT_APP`. Commands that need tasks refuse to run without one.
- **`--json`** on every command prints one object or array: ids are strings, times are ISO 8601 in UTC, and there is
  never any colour. Commands that stream (`jobs events --follow`, `top`) print one object per line.
- **Exit codes**: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict or illegal transition, 5 database unreachable,
  124 timed out, 130 interrupted. With several jobs, all are tried, and the first refusal decides.
- **Errors** are one line on stderr. `DETENT_DEBUG=1` adds the traceback.
- **Confirmations** are asked for only at a terminal. Elsewhere, commands that need one refuse to run without `--yes`.
- **Colour** is used only on a terminal, and not if `NO_COLOR` is set. Control characters in stored text are shown as
  escapes.

These options may stand anywhere on the line:

{common}

This page is generated from the commands; `python -m tests.docs.pages` writes it again.
"""


def cli_page() -> str:
    """Return the whole page: every command with its arguments and options."""
    common = _options([one for one in root.params if one.name in COMMON])
    return "\n".join([_HEADING.format(common=common.rstrip("\n")), *_sections(root, "detent")])


def _sections(group: click.Group, path: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, Group):
            yield f"## {path} {name}\n\n{inspect.cleandoc(command.help or '')}\n"
            yield "\n".join(["```sh", *command.examples, "```", ""])
            yield from _sections(command, f"{path} {name}")
            continue
        own = [one for one in command.params if one.expose_value]
        arguments = [one.metavar or (one.name or "").upper() for one in own if isinstance(one, click.Argument)]
        yield f"## {' '.join([path, name, *arguments])}\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
        if options := _options(own):
            yield options


def _options(params: list[click.Parameter]) -> str:
    return "".join(_option(one) for one in params if isinstance(one, click.Option))


def _option(option: click.Option) -> str:
    """Return the line of one option. Both halves of a pair such as `--x/--no-x` are shown."""
    names = ", ".join(f"`{name}`" for name in option.opts)
    pair = "".join(f" / `{name}`" for name in option.secondary_opts)
    choices = " | ".join(option.type.choices) if isinstance(option.type, click.Choice) else None
    value = "" if option.is_flag else f" `{option.metavar or choices or 'N'}`"
    default = f" Default: `{option.default}`." if option.show_default else ""
    return f"- {names}{pair}{value}: {option.help}{default}\n"
