"""`detent archive`: write finished jobs to files, and search these files."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from detent.cli import output
from detent.cli.command import Group, with_app
from detent.cli.failures import FAILED, NOT_FOUND, OK, USAGE, CommandFailed, print_error
from detent.cli.job_output import job_object, show_job
from detent.cli.options import (
    flag,
    job_filters,
    limit_option,
    option,
    past_time,
    reason_option,
    time_options,
    yes_option,
)
from detent.cli.session import Session
from detent.lifecycle.library import JOB

if TYPE_CHECKING:
    from msgspec import Struct

    from detent.app.detent import Detent
    from detent.archive.reader import ArchivedJob, Found
    from detent.archive.run import Report

__all__ = ["archive"]

archive = Group(
    "archive",
    help="Write finished jobs to files, and search these files.",
    examples=(
        "detent archive write /var/lib/shop/archive --older-than 30d",
        "detent archive grep /var/lib/shop/archive --tenant acme 'card declined'",
    ),
)


def directory_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument DIR: a directory that exists. It is checked when the command runs."""

    @click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
    @functools.wraps(function)
    def call(*arguments: Any, directory: Path, **options: Any) -> Any:
        if not directory.is_dir():
            raise CommandFailed(
                f"{directory} is not a directory; create it, or give the directory of the archive", USAGE
            )
        return function(*arguments, directory=directory, **options)

    return call


@archive.command()
@directory_argument
@option("--older-than", "Jobs that ended longer ago than 30d, or before a time.", past_time, required=True)
@option("--state", "Only jobs in this state.", sorted(JOB.rests))
@job_filters("queue", "tenant", "task")
@flag("--delete", "Delete the jobs that are archived. Needs --reason.")
@yes_option
@reason_option
@with_app
def write(
    session: Session,
    app: Detent,
    directory: Path,
    older_than: datetime,
    delete: bool,
    yes: bool,
    reason: str | None,
    **chosen: Any,
) -> None:
    """Write finished jobs to files in DIR, with their whole record.

    It takes the jobs that retention may delete: a job of a batch run, for instance, stays as long as its run. A file
    has up to 500 jobs. It is complete or not there, and has a checksum.

    With --delete, the jobs of a file are deleted when the file is on disk; that is on record with actor and reason.

    If it is interrupted, run it again: it continues. Without --delete, a later call writes the jobs once more.
    """
    from detent.archive.file import Unreadable
    from detent.archive.run import ArchiveRun, Chosen

    if older_than > app.store.now():
        raise click.UsageError("--older-than is in the future.")
    if delete and not reason:
        raise click.UsageError("--delete needs --reason: a deletion is on record with its reason.")
    drop = None
    if delete and reason:
        session.confirm(f"archive and delete jobs that ended before {output.format_time(older_than)}", yes=yes)
        drop = (session.actor_name, reason)
    try:
        with _progress() as watch:
            report = ArchiveRun(app.store, directory, older_than, Chosen(**chosen), drop, watch).run()
    except Unreadable as error:
        raise CommandFailed(str(error)) from None
    except OSError as error:
        found = f"{error.filename or directory}: {error.strerror}"
        raise CommandFailed(f"jobs cannot be archived, and those not archived stay: {found}") from None
    _show_report(session, report, directory)


def _show_report(session: Session, report: Report, directory: Path) -> None:
    if session.json:
        figures = {"files": report.files, "jobs": report.jobs, "deleted": report.deleted}
        output.print_json({"before": report.before, "continued": report.continued, **figures})
    else:
        written = f"{output.count_of(report.jobs, 'job')} written to {output.count_of(report.files, 'file')}"
        output.print_text(f"{written} in {directory}" + (f", {report.deleted} deleted" if report.deleted else ""))
    if report.continued:
        output.print_note(
            "It continued a call that was interrupted, which writes jobs that ended before "
            f"{output.format_time(report.before)}. Run it again for jobs that ended since."
        )


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """On a terminal, show how many jobs are written."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    yield lambda jobs: click.echo(f"\r{jobs:,} jobs", nl=False, err=True)
    click.echo("", err=True)


@archive.command("list")
@directory_argument
@flag("--check", "Read the files whole, and compare their checksums.")
@click.pass_obj
def list_(session: Session, directory: Path, check: bool) -> int:
    """List the files in DIR.

    Each with the number of its jobs, when they ended, and the identity of their database. Exit code 1 if a file is
    damaged.
    """
    from detent.archive.file import Unreadable, find_files, read_header

    rows, damaged = [], 0
    for path in find_files(directory):
        try:
            rows.append((path.relative_to(directory), read_header(path, whole=check)))
        except Unreadable as error:
            print_error(str(error))
            damaged += 1
    columns = output.columns(
        ("FILE", lambda row: str(row[0])),
        *((name.replace("_", " ").upper(), _field(name)) for name in ("jobs", "first_end", "last_end", "identity")),
    )
    objects = [{"file": str(path), **output.to_object(header)} for path, header in rows]
    session.show_rows(rows, columns, objects=objects, empty=f"no files in {directory}")
    return FAILED if damaged else OK


def _field(name: str) -> Callable[[Any], output.Cell]:
    return lambda row: getattr(row[1], name)


@archive.command()
@directory_argument
@click.argument("text", required=False)
@option("--id", "Only the job with this id.", int, metavar="ID")
@job_filters("key", "task", "queue", "tenant", "state", "correlation_id")
@time_options("jobs that ended")
@limit_option()
@flag("--lines", "Print the whole record of each job as a line of JSON, without a limit.")
@click.pass_obj
def grep(session: Session, /, directory: Path, limit: int, lines: bool, **chosen: Any) -> int:
    """Search the files in DIR for jobs.

    TEXT is looked for in errors and events. Exit code 1 if a file is damaged; the other files are searched.
    """
    from detent.archive.reader import Wanted, search

    rows: list[Found] = []
    damaged = False
    for found in search(directory, Wanted(**chosen)):
        if found.archived is None:
            print_error(found.damage or "")
            damaged = True
        elif lines:
            output.print_json_line(_whole(found.archived))
        elif len(rows) == limit:
            output.print_note(f"There are more than {limit}: raise --limit, narrow the search, or add --lines")
            break
        else:
            rows.append(found)
    if not lines:
        _show_found(session, rows, directory)
    return FAILED if damaged else OK


def _show_found(session: Session, rows: list[Found], directory: Path) -> None:
    def of_job(name: str) -> Callable[[Found], output.Cell]:
        return lambda row: None if row.archived is None else getattr(row.archived.job, name)

    columns = output.columns(
        ("ID", lambda row: str(row.archived.job.id)),
        *((name.removesuffix("_at").upper(), of_job(name)) for name in ("state", "task", "queue", "tenant")),
        ("KEY", lambda row: row.archived.details.key),
        ("FINISHED", of_job("finished_at")),
        ("FILE", lambda row: str(row.path.relative_to(directory))),
    )
    objects = [
        job_object(row.archived.job, key=row.archived.details.key, file=str(row.path.relative_to(directory)))
        for row in rows
        if row.archived is not None
    ]
    session.show_rows(rows, columns, objects=objects, empty=f"no such job in {directory}")


def _whole(found: ArchivedJob) -> dict[str, Any]:
    history = output.lists(executions=found.executions, transitions=found.transitions, events=found.events)
    return job_object(found.job, key=found.details.key, **history, **_more(found))


def _more(found: ArchivedJob) -> dict[str, Any]:
    """What only workflows have."""
    return output.lists(steps=found.steps, signals=found.signals) if found.steps or found.signals else {}


@archive.command()
@directory_argument
@click.argument("job_id", metavar="ID", type=int)
@flag("--history", "Only the transitions, as `detent jobs history` shows them.")
@flag("--events", "Only the events, as `detent jobs events` shows them.")
@click.pass_obj
def show(session: Session, directory: Path, job_id: int, history: bool, events: bool) -> int:
    """Show an archived job as `detent jobs get` shows it. With --json also its events, steps and signals.

    If several files have the job, the newest of them is shown. Exit code 3 if none has it.
    """
    if history and events:
        raise CommandFailed("give --history or --events, not both", USAGE)
    from detent.archive.reader import Wanted, search

    damaged = False
    for file in search(directory, Wanted(id=job_id), newest_first=True):
        if (found := file.archived) is None:
            print_error(file.damage or "")
            damaged = True
            continue
        if history:
            session.show_rows(found.transitions, output.TRANSITIONS, empty="no transitions")
        elif events and session.json:
            output.print_json(output.records(found.events))
        elif events:
            output.print_events(("", event) for event in found.events)
        else:
            more: dict[str, Sequence[Struct]] = (
                {"steps": found.steps, "signals": found.signals} if found.steps or found.signals else {}
            )
            show_job(
                session,
                found.job,
                [found.details],
                found.executions,
                found.transitions,
                {},
                events=found.events,
                **more,
            )
        return FAILED if damaged else OK
    where = "the files that can be read" if damaged else str(directory)
    raise CommandFailed(f"no job {job_id} in {where}", NOT_FOUND)
