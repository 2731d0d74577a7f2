"""Exit codes, and how an error is reported on stderr."""

from __future__ import annotations

import os
import sys
import traceback

import click

from detent.errors import TABLE, DetentError
from detent.model import terminal_text

__all__ = ["FAILED", "INTERRUPTED", "NOT_FOUND", "OK", "USAGE", "CommandFailed", "exit_code", "print_error", "report"]

_MESSAGE_MAX = 1_500
_HEAD, _TAIL = 1_000, 400

OK, FAILED, USAGE, NOT_FOUND, INTERRUPTED = 0, 1, 2, 3, 130


class CommandFailed(Exception):
    """An error of the command line itself: its message for stderr, and its exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error: that of the nearest class that has one."""
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
    """Print an error on one line of stderr, and return its exit code. With DETENT_DEBUG=1 the traceback comes first."""
    if os.environ.get("DETENT_DEBUG") == "1" and not isinstance(error, click.ClickException):
        traceback.print_exception(error)
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
        case click.UsageError():
            message = error.format_message()
            end = "" if message.endswith((".", "?")) else "."
            help_hint = f" See `{error.ctx.command_path} --help`." if error.ctx else ""
            print_error(f"{message}{end}{help_hint}")
        case click.ClickException():
            print_error(error.format_message())
        case KeyboardInterrupt() | click.Abort():
            pass
        case CommandFailed() | DetentError():
            print_error(str(error))
        case _:
            print_error(f"unexpected {type(error).__name__}: {error} (set DETENT_DEBUG=1 for the traceback)")
    return exit_code(error)


def print_error(message: str) -> None:
    """Print one line to stderr. A message that is too long loses its middle, since what was refused comes first and
    what is allowed comes last. A closed stderr is ignored."""
    text = terminal_text.line(" ".join(message.split()))
    if len(text) > _MESSAGE_MAX:
        text = f"{text[:_HEAD]} … {text[-_TAIL:]}"
    try:
        sys.stderr.write(f"detent: {text}\n")
        sys.stderr.flush()
    except OSError:
        pass
