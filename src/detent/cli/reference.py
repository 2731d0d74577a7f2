"""The page about the command line, written from the commands themselves.

`python -m detent.cli.reference [FILE]` writes it, by default to `docs/cli.md`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from detent.cli.command import COMMON
from detent.cli.main import root

__all__ = ["PAGE", "page"]

PAGE = Path("docs/cli.md")

_HEADING = """\
# The command line

`detent NOUN VERB`, or `python -m detent.cli`. Data goes to stdout, messages to stderr.

- **Database**: `--database URL`, else `DETENT_DATABASE_URL`, else `database_url` in `detent.toml` or in
  `[tool.detent]` of `pyproject.toml`, else `sqlite:///detent.db`. Only `migrate`, `worker`, `enqueue` and `demo` make
  one that is not there; every other command refuses (exit code 5), so that a mistyped path is no empty database.
- **Application**: `--app MODULE:APP`, else `DETENT_APP`. Commands that need tasks refuse without one.
- **`--json`** on every command gives one object or array: ids are strings, times are ISO 8601 in UTC, and there is
  never any colour. What streams (`jobs events --follow`, `top`) gives one object a line.
- **Exit codes**: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict or illegal transition, 5 database unreachable,
  124 timed out, 130 interrupted. Of several jobs, the first refusal decides; the others are done all the same.
- **Errors** are one line on stderr that says what was refused. `DETENT_DEBUG=1` adds the traceback.
- **Questions** are asked only at a terminal. Elsewhere, what needs a yes is refused without `--yes`.
- **Colour** only on a terminal, and not where `NO_COLOR` is set. Control characters in stored text are shown as
  escapes.

These options stand anywhere on the line:

{common}

This page is written by `python -m detent.cli.reference` from the commands.
"""


def page() -> str:
    """The whole page: every command with its arguments and options."""
    common = _options([one for one in root.params if one.name in COMMON])
    return "\n".join([_HEADING.format(common=common.rstrip("\n")), *_sections(root, "detent")])


def _sections(group: click.Group, path: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _sections(command, f"{path} {name}")
            continue
        own = [one for one in command.params if one.name not in COMMON or isinstance(one, click.Argument)]
        arguments = [one.metavar or (one.name or "").upper() for one in own if isinstance(one, click.Argument)]
        yield f"## {' '.join([path, name, *arguments])}\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
        if options := _options(own):
            yield options


def _options(params: list[click.Parameter]) -> str:
    return "".join(_option(one) for one in params if isinstance(one, click.Option))


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    choices = " | ".join(option.type.choices) if isinstance(option.type, click.Choice) else None
    value = "" if option.is_flag else f" `{option.metavar or choices or 'N'}`"
    default = f" Default: `{option.default}`." if option.show_default else ""
    return f"- {names}{value}: {option.help}{default}\n"


def main(arguments: list[str]) -> None:
    """Writes the page to the file named, or to where the documentation is."""
    target = Path(arguments[0]) if arguments else PAGE
    target.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
