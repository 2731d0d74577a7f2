"""`detent worker`: take jobs and do them."""

from __future__ import annotations

import logging
import os
import signal
import socket
from typing import TYPE_CHECKING, NoReturn

import click

from detent.cli.command import Command, duration
from detent.cli.failures import OK, CommandFailed, exit_code
from detent.cli.session import Session
from detent.errors import DetentError

if TYPE_CHECKING:
    from detent.app.detent import Detent
    from detent.worker.options import WorkerOptions
    from detent.worker.output import LogFormat, LogLevel

__all__ = ["command"]

_TASKS_NAMED = 20


@click.command("worker", cls=Command)
@click.argument("app", metavar="[MODULE:APP]", required=False)
@click.option("--queues", metavar="A,B:4", help="Only these queues, some with a cap of their own; else every queue.")
@click.option("--slots", type=int, metavar="N", default=16, show_default=True, help="Jobs at once in each process.")
@click.option("--processes", type=int, metavar="N", default=1, show_default=True, help="Processes that work.")
@click.option("--name", metavar="NAME", help="Its name on record; else host and process id.")
@click.option(
    "--lease", type=duration, metavar="TIME", default="30s", show_default=True, help="How long a claim lasts."
)
@click.option(
    "--grace", type=duration, metavar="TIME", default="30s", show_default=True, help="How long a stop may take."
)
@click.option("--drain", is_flag=True, help="End when nothing is left to do.")
@click.option(
    "--max-jobs", type=int, metavar="N", default=0, help="Number of jobs after which a process is replaced; 0 is never."
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="On stderr.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="Least level of log lines and of the events made from them. Default: info, and warning for libraries.",
)
@click.pass_obj
def command(
    session: Session,
    app: str | None,
    queues: str | None,
    slots: int,
    processes: int,
    name: str | None,
    lease: float,
    grace: float,
    drain: bool,
    max_jobs: int,
    log_format: LogFormat,
    log_level: LogLevel | None,
) -> int:
    """Claim jobs and run them.

    The application is named here, by --app or by DETENT_APP. The worker runs jobs of its tasks until told to stop.
    SIGTERM or Ctrl-C: no more claims, running jobs may finish within the grace, the rest is handed back and loses no
    attempt. A second one stops at once.
    """
    from detent.worker.log_limit import limit_log
    from detent.worker.options import WorkerOptions, parse_queues
    from detent.worker.output import set_up_output

    session.app = app or session.app
    where = session.require_application()
    names, queue_slots = parse_queues(queues)
    options = WorkerOptions(
        app=where,
        name=f"{socket.gethostname()}-{os.getpid()}" if name is None else name,
        queues=names,
        queue_slots=queue_slots,
        slots=slots,
        processes=processes,
        lease=lease,
        grace=grace,
        drain=drain,
        max_jobs=max_jobs,
        log_format=log_format,
        log_level=log_level,
        debug=os.environ.get("DETENT_DEBUG") == "1",
    )
    set_up_output(log_format, log_level, options.package)
    limit_log(options)
    stop = _Stop()
    signal.signal(signal.SIGTERM, stop.told)
    try:
        if log_format == "text":
            _work(session, options, stop)
        return _work_and_log(session, options, stop)
    except BaseException:
        if not stop.asked:
            raise
        logging.getLogger("detent.worker").info("worker %s ends, told to stop before it had begun", options.name)
        return OK


class _ToldToStop(BaseException):
    """A stop while there is nothing to be finished yet: the application is loaded, or the database waited for."""


class _Stop:
    """A stop that comes before the supervisor is there to hear it. It breaks off whatever is waited for; where somebody
    swallows that (SQLite does, inside a callback) or makes an error of it, it is remembered."""

    def __init__(self) -> None:
        self.asked = False

    def told(self, _number: int, _frame: object) -> NoReturn:
        self.asked = True
        raise _ToldToStop

    def check(self) -> None:
        """The last moment: from now on a stop waits for the supervisor."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        if self.asked:
            raise _ToldToStop


def _work_and_log(session: Session, options: WorkerOptions, stop: _Stop) -> int:
    """What stands in the way is a line of the log, as all else is."""
    try:
        _work(session, options, stop)
    except (CommandFailed, DetentError) as error:
        if stop.asked:
            raise
        logging.getLogger("detent.worker").error("%s", error)
        return exit_code(error)


def _declare(app: Detent) -> None:
    """Write what the code declares, and log what was not written, and which schedules the code no longer declares.

    A declaration that newer code has replaced is written only if no other worker runs: in a rolling deploy an older
    program that starts again must not take the newer schedule back.
    """
    log = logging.getLogger("detent.worker")
    found = app.put_declared(again=not app.workers.list())
    if found.written:
        log.info("declarations written: %s", ", ".join(found.written))
    if found.replaced:
        log.warning(
            "declarations not written, newer code or a person has replaced or removed them: %s; "
            "`detent migrate --app` writes them",
            ", ".join(found.replaced),
        )
    if found.left:
        log.warning(
            "the code no longer declares schedules that still run: %s; `detent schedules prune` removes them",
            ", ".join(found.left),
        )


def _announce(session: Session, app: Detent, options: WorkerOptions) -> None:
    """Log what the worker works on: a worker on the wrong database, or without the task, looks like one at rest."""
    queues = "all queues" if options.queues is None else f"queues {', '.join(options.queues)}"
    tasks = sorted({task.name for task in app.tasks.values()})
    more = f" and {len(tasks) - _TASKS_NAMED} more" if len(tasks) > _TASKS_NAMED else ""
    known = f"tasks {', '.join(tasks[:_TASKS_NAMED])}{more}" if tasks else "no tasks"
    log = logging.getLogger("detent.worker")
    log.info("worker %s: database %s; %s; %s", options.name, app.store_as_found.name, queues, known)
    if ignored := session.ignored_url(app):
        log.warning("%s", ignored)


def _work(session: Session, options: WorkerOptions, stop: _Stop) -> NoReturn:
    from msgspec.structs import replace

    from detent.alerts.settings import sink_options
    from detent.model.clock import SystemClock
    from detent.worker.database_wait import wait_for_database
    from detent.worker.services.archive import check_directory
    from detent.worker.supervisor.assignment import Assignment, become_supervisor

    with session.open_or_new() as found:
        kept = found.settings
        if kept.retention_archive:
            check_directory(kept.retention_archive)
        options = replace(
            options,
            keep_succeeded=kept.keep_succeeded,
            keep_others=kept.keep_others,
            archive=kept.retention_archive and os.path.abspath(kept.retention_archive),
            keep_staged=kept.keep_staged,
            keep_log=kept.keep_log,
            keep_keys=kept.keep_keys,
        )
        (worker_id,), waited = wait_for_database(SystemClock(), found.ids.take)
        url = found.settings.database_url
        _announce(session, found, options)
        sinks = sink_options(kept, found.store_as_found.name)
        wait_for_database(SystemClock(), lambda: _declare(found))
    stop.check()
    # Taken out of the environment: what the children start must not speak for us.
    become_supervisor(Assignment(options, url, worker_id, waited, os.environ.pop("NOTIFY_SOCKET", None), sinks))
