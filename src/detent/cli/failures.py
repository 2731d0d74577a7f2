"""From an error to its exit code and its one line on stderr."""

from __future__ import annotations

import os
import sys
import traceback

import click

from detent.errors import TABLE, DetentError
from detent.model import escape

__all__ = ["FAILED", "INTERRUPTED", "NOT_FOUND", "OK", "USAGE", "CommandFailed", "exit_code", "report"]

_MESSAGE_MAX = 1_500
_HEAD, _TAIL = 1_000, 400

OK, FAILED, USAGE, NOT_FOUND, INTERRUPTED = 0, 1, 2, 3, 130


class CommandFailed(Exception):
    """What a command refuses on its own account: the line for stderr, and the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def exit_code(error: BaseException) -> int:
    """The code of the nearest class that has one."""
    match error:
        case CommandFailed():
            return error.code
        case DetentError():
            return next(TABLE[kind].exit for kind in type(error).__mro__ if kind in TABLE)
        case click.ClickException():
            return error.exit_code
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED
        case _:
            return FAILED


def report(error: BaseException) -> int:
    """Say what was refused, in one line; the exit code. With DETENT_DEBUG=1 the traceback comes first."""
    if os.environ.get("DETENT_DEBUG") == "1" and not isinstance(error, click.ClickException):
        traceback.print_exception(error)
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
        case click.UsageError():
            where = f" See `{error.ctx.command_path} --help`." if error.ctx else ""
            say(error.format_message() + where)
        case click.ClickException():
            say(error.format_message())
        case KeyboardInterrupt() | click.Abort():
            pass
        case CommandFailed() | DetentError():
            say(str(error))
        case _:
            say(f"unexpected {type(error).__name__}: {error} (DETENT_DEBUG=1 shows where)")
    return exit_code(error)


def say(message: str) -> None:
    """Write one line to stderr. A message that is too long loses its middle: what was refused stands at the beginning,
    what is allowed at the end. A stderr that is closed is ignored."""
    words = escape.line(" ".join(message.split()))
    if len(words) > _MESSAGE_MAX:
        words = f"{words[:_HEAD]} … {words[-_TAIL:]}"
    try:
        sys.stderr.write(f"detent: {words}\n")
        sys.stderr.flush()
    except OSError:
        pass
