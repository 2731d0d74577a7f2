"""`detent`: finds the commands, runs one, and turns whatever becomes of it into an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from detent.cli import commands
from detent.cli.command import Group
from detent.cli.failures import FAILED, OK, report
from detent.cli.session import Session

__all__ = ["main", "root"]


class _Root(Group):
    """Every module in `commands` that has a `command` is a command: adding a file adds it."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(module.name.rstrip("_") for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        command: click.Command = importlib.import_module(f"{commands.__name__}.{name}").command
        return command


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="detent", message="detent %(version)s")
def root() -> None:
    """Detent, a durable run engine.

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict or illegal transition, 5 database unreachable,
    124 timed out, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Nothing is raised, whatever happens."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a letter gets its escape instead of an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = root.main(
            None if arguments is None else list(arguments), prog_name="detent", standalone_mode=False, obj=Session()
        )
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except BrokenPipeError:
        return _reader_left()
    except OSError as error:
        if error.errno == errno.EPIPE:
            return _reader_left()
        return _failed(error)
    except (Exception, KeyboardInterrupt, click.Abort) as error:
        return _failed(error)


def _failed(error: BaseException) -> int:
    """What was answered before the error is still said, and said first."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout)
    return report(error)


def _reader_left() -> int:
    """Whoever read our output has gone (`| head`): nothing to say, and nobody to say it to."""
    _silence(sys.stdout)
    return FAILED


def _silence(stream: TextIO) -> None:
    """Let the interpreter's own flush at the end go nowhere instead of complaining."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
