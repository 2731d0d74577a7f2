"""`detent worker`, which runs jobs, and `detent workers`, which lists the workers that are alive."""

from __future__ import annotations

import logging
import os
import signal
import socket
from typing import TYPE_CHECKING, Any, NoReturn

import click

from detent.cli import output
from detent.cli.command import Command, Group, with_app
from detent.cli.failures import OK, CommandFailed, exit_code
from detent.cli.options import duration, flag, option, page_options, reason_option
from detent.cli.session import Session
from detent.errors import DetentError, InvalidInput
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent
    from detent.worker.options import WorkerOptions
    from detent.worker.output import LogFormat, LogLevel

__all__ = ["worker", "workers"]

_TASKS_NAMED = 20
_log = logging.getLogger("detent.worker")
worker_id_argument = click.argument("worker_id", metavar="ID")

workers = Group(
    "workers",
    help="List the workers that are alive, and drain one.",
    examples=("detent workers list", 'detent workers drain 17 --reason "the machine is replaced"'),
)


@workers.command("list")
@option("--within", "Maximum time since the last heartbeat.", duration, default="10s")
@page_options
@with_app
def list_(session: Session, app: Detent, within: float, limit: int, after: str | None) -> None:
    """List the workers that are alive.

    Each worker sends a heartbeat every second.
    """
    queues = ("QUEUES", lambda one: "every" if one.queues is None else ",".join(one.queues))
    tasks = ("TASKS", lambda one: len(one.tasks))
    times = ("started_at", "seen_at")
    columns = output.columns("id", "name", "host", "pid", "state", "running", "slots", queues, tasks, *times)
    found = app.workers.list(within=within, limit=limit, after=after)
    session.show_rows(found, columns, empty="no workers", objects=output.records(one.row for one in found))


@workers.command()
@worker_id_argument
@with_app
def get(session: Session, app: Detent, worker_id: str) -> None:
    """Show a worker, its queues and tasks, and who asked it to drain."""
    (record,) = output.records([app.workers.get(worker_id).row])
    session.show_record(record)


@workers.command()
@worker_id_argument
@reason_option
@with_app
def drain(session: Session, app: Detent, worker_id: str, reason: str | None) -> None:
    """Ask a worker to end, on whatever machine it runs.

    It stops claiming in a second or two, finishes its jobs within its --grace, hands back the rest, and exits.
    """
    found = app.workers.get(worker_id).drain(reason=reason)
    (record,) = output.records([found.row])
    session.answer(record, f"worker {found.id} ({line(found.name)}): {found.state}, {found.running} running")


@click.command(cls=Command)
@click.argument("application", metavar="[MODULE:APP]", required=False)
@option("--queues", "Only these queues; A:4 runs at most 4 jobs of A at once. Default: every queue.", "A,B:4")
@option("--slots", "Jobs at once in each process.", int, default=16)
@option("--processes", "Number of processes.", int, default=1)
@option("--name", "Name of the worker. Default: host name and process id.", "NAME")
@option("--lease", "Duration of a lease on a job.", duration, default="30s")
@option("--grace", "Time for running jobs to finish.", duration, default="30s")
@option("--cancel-grace", "Time for a cancelled job to stop before its process is killed.", duration, default="10s")
@option(
    "--held-up-max",
    "Maximum time that a process may hold the lock of an SQLite database while its interpreter is held.",
    duration,
    default="10s",
)
@flag("--drain", "End when no job is left; parked workflows do not count.")
@option("--max-jobs", "Replace a process after this many jobs; 0 is never.", int, default=0)
@option("--metrics-port", "Serve metrics for Prometheus on this port; 0 takes any. Default: none.", int)
@option("--metrics-host", "Address to serve metrics on. They need no password.", "ADDRESS", default="127.0.0.1")
@flag("--metrics-all", "Also show the metrics of the database, as the server does.")
@option("--log-format", "Format of the log on stderr.", ["text", "json"], default="text")
@option(
    "--log-level",
    "Lowest level of log lines and of the events made from them. Default: info, and warning for libraries.",
    ["debug", "info", "warning", "error"],
)
@click.pass_obj
def worker(
    session: Session,
    /,
    application: str | None,
    queues: str | None,
    name: str | None,
    log_format: LogFormat,
    log_level: LogLevel | None,
    **chosen: Any,
) -> int:
    """Claim jobs and run them.

    The argument, --app or DETENT_APP names the application. SIGTERM or Ctrl-C stops the worker: it claims no more jobs,
    running jobs may finish within --grace, and the rest is handed back without losing an attempt. A second signal
    stops it at once.
    """
    from detent.worker.log_limit import limit_log
    from detent.worker.options import WorkerOptions, parse_queues
    from detent.worker.output import set_up_output

    session.app = application or session.app
    where = session.require_application()
    names, queue_slots = parse_queues(queues)
    options = WorkerOptions(
        app=where,
        name=f"{socket.gethostname()}-{os.getpid()}" if name is None else name,
        queues=names,
        queue_slots=queue_slots,
        log_format=log_format,
        log_level=log_level,
        debug=os.environ.get("DETENT_DEBUG") == "1",
        **chosen,
    )
    if options.metrics_port is not None:
        require_metrics(options.metrics_host, options.metrics_port)
    set_up_output(log_format, log_level, options.package, worker=options.name)
    limit_log(options)
    stop = _Stop()
    signal.signal(signal.SIGTERM, stop.handle)
    try:
        if log_format == "text":
            _work(session, options, stop)
        return _work_and_log(session, options, stop)
    except BaseException:
        if not stop.requested:
            raise
        _log.info("Worker %s was told to stop before it had started.", options.name)
        return OK


def require_metrics(host: str, port: int) -> None:
    """`InvalidInput` if metrics cannot be served: a package is missing, or the port is taken."""
    import importlib.util

    if importlib.util.find_spec("prometheus_client") is None:
        raise InvalidInput("metrics_port", "no package prometheus-client", "`pip install 'detent[metrics]'`")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            raise InvalidInput("metrics_port", f"{host} port {port}: {error.strerror}", "a free port") from None


class _StopRequested(BaseException):
    """SIGTERM came while the application was imported or the database was waited for."""


class _Stop:
    """Handles a SIGTERM that comes before the supervisor runs. It interrupts whatever is waited for. Code that swallows
    the exception or turns it into another error (SQLite does, inside a callback) cannot lose it: `requested` stays."""

    def __init__(self) -> None:
        self.requested = False

    def handle(self, _number: int, _frame: object) -> NoReturn:
        self.requested = True
        raise _StopRequested

    def check(self) -> None:
        """Block SIGTERM until the supervisor unblocks it, and raise if it has come already."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        if self.requested:
            raise _StopRequested


def _work_and_log(session: Session, options: WorkerOptions, stop: _Stop) -> int:
    """Run the worker. An error that keeps it from starting is logged, in the format of the log."""
    try:
        _work(session, options, stop)
    except (CommandFailed, DetentError) as error:
        if stop.requested:
            raise
        _log.error("%s", error)
        return exit_code(error)


def _declare(app: Detent) -> None:
    """Write what the code declares. Log what was not written, and the schedules that the code no longer declares.

    A declaration that newer code has replaced is written only if no other worker runs: in a rolling deploy, an older
    program that restarts must not take the newer schedule back.
    """
    found = app.put_declared(again=not app.workers.list())
    if found.written:
        _log.info("Declarations written: %s.", ", ".join(found.written))
    if found.replaced:
        _log.warning(
            "Declarations not written, since newer code or a person has replaced or removed them: %s. "
            "`detent migrate --app` writes them.",
            ", ".join(found.replaced),
        )
    if found.left:
        _log.warning(
            "The code no longer declares schedules that still run: %s. `detent schedules prune` removes them.",
            ", ".join(found.left),
        )


def _announce(session: Session, app: Detent, options: WorkerOptions) -> None:
    """Log the database, the queues and the tasks: a worker on the wrong database looks like an idle one."""
    queues = "all queues" if options.queues is None else f"queues {', '.join(options.queues)}"
    tasks = sorted({task.name for task in app.tasks.values()})
    more = f" and {len(tasks) - _TASKS_NAMED} more" if len(tasks) > _TASKS_NAMED else ""
    known = f"tasks {', '.join(tasks[:_TASKS_NAMED])}{more}" if tasks else "no tasks"
    _log.info("Worker %s: database %s; %s; %s.", options.name, app.store_as_found.name, queues, known)
    if ignored := session.ignored_url(app):
        _log.warning("%s", ignored)


def _work(session: Session, options: WorkerOptions, stop: _Stop) -> NoReturn:
    from msgspec.structs import replace

    from detent.alerts.sink_options import sink_options
    from detent.archive.writer import check_directory
    from detent.model.clock import SystemClock
    from detent.worker.database_wait import wait_for_database
    from detent.worker.supervisor.assignment import Assignment, become_supervisor

    with session.open_or_create() as found:
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
    # Removed from the environment, since processes that jobs start must not notify systemd on our behalf.
    become_supervisor(Assignment(options, url, worker_id, waited, os.environ.pop("NOTIFY_SOCKET", None), sinks))
