"""The program `detent`: finds the command, runs it, and turns its result or error into an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from detent.cli import output
from detent.cli.command import Command, Group
from detent.cli.failures import FAILED, OK, report
from detent.cli.session import Session

__all__ = ["COMMANDS", "main", "root"]

COMMANDS = {
    "alerts": ("alerts", "List, acknowledge and resolve alerts; set their policies."),
    "archive": ("archive", "Write finished jobs to files, and search these files."),
    "backup": ("backup", "Copy a SQLite database that is in use."),
    "dead": ("dead", "List dead jobs: jobs that failed for good and are quarantined."),
    "demo": ("demo", "Run a small load on two workers, and kill one of them."),
    "dev": ("dev", "Run a server, a worker and a local database, for development."),
    "doctor": ("doctor", "Check the database, disk, record, queues, workers and alerts."),
    "enqueue": ("enqueue", "Enqueue one job by the name of its task."),
    "figures": ("figures", "Show success rates, durations and transitions."),
    "identities": ("record", "Show and renew the identity of the database."),
    "jobs": ("jobs", "List, examine, cancel, retry, discard and move jobs."),
    "lifecycles": ("lifecycles", "Draw lifecycles; move entities of your own."),
    "limits": ("queues", "List, pause, resume and remove limits."),
    "migrate": ("migrate", "Bring the schema up to date."),
    "move": ("move", "Move a whole database into another one, with its whole record."),
    "operations": ("operations", "List, examine, cancel and wait for operations."),
    "ops": ("ops", "Queue, claim, log and finish ops runs."),
    "queues": ("queues", "List, pause, resume and limit queues."),
    "rates": ("figures", "Show how many jobs moved in each minute or hour."),
    "record": ("record", "Search the record of changes."),
    "repair": ("record", "Bring the database back in line with its record."),
    "runs": ("runs", "Preview, apply and roll back batch runs; start pipelines."),
    "schedules": ("schedules", "List, set, pause, resume, run and remove schedules."),
    "server": ("server", "Serve the HTTP API and the console."),
    "tokens": ("tokens", "Create, list and revoke tokens of the HTTP API."),
    "top": ("top", "Watch jobs by queue and state."),
    "verify": ("record", "Check every invariant of the record."),
    "watermarks": ("runs", "List watermarks: how far each source has been ingested."),
    "webhooks": ("webhooks", "List the declared webhooks, and send a test delivery."),
    "worker": ("worker", "Claim jobs and run them."),
    "workers": ("worker", "List the workers that are alive, and drain one."),
    "workflows": ("workflows", "List and examine workflows, send them signals, and undo them."),
}
"""Each command's module in `detent.cli.commands`, and its line in the list of commands."""


class _Root(Group):
    """The commands of `COMMANDS`. A module is imported when its command is run; the list of commands needs none."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*self.commands, *COMMANDS])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return super().get_command(context, name)
        module, _ = COMMANDS[name]
        command: click.Command = getattr(importlib.import_module(f"detent.cli.commands.{module}"), name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        own = {name: command.get_short_help_str(formatter.width) for name, command in self.commands.items()}
        listed = own | {name: summary for name, (_, summary) in COMMANDS.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(listed.items()))


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="detent", message="detent %(version)s")
def root() -> None:
    """Detent, a durable run engine.

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict or illegal transition, 5 database unreachable,
    124 timed out, 130 interrupted.
    """


@root.command(cls=Command)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def completion(session: Session, shell: str) -> None:
    """Print the completion script for a shell.

    SHELL is bash, zsh or fish. Put this line into the start-up file of the shell: `eval "$(detent completion bash)"`.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, "detent", "_DETENT_COMPLETE").source()
    session.answer({"shell": shell, "script": script}, script.rstrip("\n"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Never raises."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Characters that the terminal's encoding lacks are printed as escapes instead of raising an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = root.main(
            None if arguments is None else list(arguments), prog_name="detent", standalone_mode=False, obj=Session()
        )
        output.flush()
        return code if isinstance(code, int) else OK
    except BrokenPipeError:
        return _reader_closed()
    except OSError as error:
        return _reader_closed() if error.errno == errno.EPIPE else _failed(error)
    except (Exception, KeyboardInterrupt, click.Abort) as error:
        return _failed(error)


def _failed(error: BaseException) -> int:
    """Report an error, after the output that was written before it."""
    try:
        output.flush()
    except OSError:
        _discard(sys.stdout)
    return report(error)


def _reader_closed() -> int:
    """Return quietly if the reader of our output has closed it, as `| head` does."""
    _discard(sys.stdout)
    return FAILED


def _discard(stream: TextIO) -> None:
    """Let the interpreter's flush at exit write to nowhere, so that it does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
