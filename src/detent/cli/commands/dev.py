"""`detent dev`: a server, a worker and a local database for one application, started again when its code changes."""

from __future__ import annotations

import importlib.util
import os
import signal
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.failures import OK, USAGE, CommandFailed
from detent.cli.options import flag, option
from detent.cli.session import Session
from detent.declare.settings import Settings
from detent.model.clock import SystemClock

if TYPE_CHECKING:
    from detent.cli.dev.programs import Programs
    from detent.cli.dev.source_files import SourceFiles

__all__ = ["dev"]

_LOOK_SECONDS = 0.5
_DATABASE_URL = "DETENT_DATABASE_URL"
_FILE = "detent-dev.db"


@click.command(cls=Command)
@click.argument("application", metavar="[MODULE:APP]", required=False)
@option("--host", "Address of this machine to listen on.", "ADDRESS", default="127.0.0.1")
@option("--port", "Port to listen on; 0 takes any free one.", int, default=8321)
@flag("--open", "Open the console in a browser.", to="opens")
@click.pass_obj
def dev(session: Session, application: str | None, host: str, port: int, opens: bool) -> int:
    """Run a server, a worker and a local database, for development.

    If neither the application nor the settings name a database, it is the file detent-dev.db beside the application.
    When a source file of the application changes, the worker finishes its running jobs, and both start again with the
    new code. If the new code cannot be imported, the old code stays until the file is mended. Ctrl-C stops everything.
    """
    from detent.cli.dev.import_check import check_import
    from detent.cli.dev.programs import Programs
    from detent.cli.dev.source_files import SourceFiles

    if importlib.util.find_spec("uvicorn") is None or importlib.util.find_spec("fastapi") is None:
        raise CommandFailed("the server needs more packages. Run `pip install 'detent[server]'`", USAGE)
    session.app = application or session.app
    where = session.require_application()
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # two changes within a second must not look like one
    if session.database is not None:
        environment[_DATABASE_URL] = session.database
    if _DATABASE_URL not in environment:
        found = check_import(where, environment, migrate=False)
        if found.database_url == Settings().database_url:
            environment[_DATABASE_URL] = f"sqlite:///{found.directory / _FILE}"
    found = check_import(where, environment, migrate=True)
    programs = Programs(where, environment, SystemClock(), host=host, port=port, actor=session.actor_name)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        url = programs.start()
        _announce(session, url, found.database_url, found.directory)
        if opens:
            webbrowser.open(url)
        _run(session, programs, SourceFiles(found.files), where, environment)
    except KeyboardInterrupt:
        output.print_note("Stopping.")
    finally:
        programs.close()
    return OK


def _run(session: Session, programs: Programs, files: SourceFiles, where: str, environment: dict[str, str]) -> None:
    """Watch the files until a signal comes, and start again with new code."""
    from detent.cli.dev.import_check import ImportFailed, check_import

    clock = SystemClock()
    while True:
        clock.sleep(_LOOK_SECONDS)
        changed = files.changed()
        if not changed:
            programs.check()
            continue
        names = ", ".join(sorted(file.name for file in changed))
        try:
            found = check_import(where, environment, migrate=True)
        except ImportFailed as error:
            files.add(error.files)
            output.print_note(f"{names} changed, and the old code stays until it is mended: {error}")
            continue
        files.add(found.files)
        output.print_note(f"{names} changed: starting again.")
        programs.stop()
        try:
            _report(session, programs.start(), "Started again with the new code.")
        except CommandFailed as error:
            # It was changed once more just now, perhaps.
            programs.stop()
            output.print_note(f"{error}. Waiting for the next change.")


def _announce(session: Session, url: str, database: str, directory: Path) -> None:
    from detent.store.open import open_store

    name = open_store(database).name
    if session.json:
        output.print_json_line({"url": url, "database": name, "directory": str(directory)})
    else:
        output.print_text(f"Console: {url}/\nHTTP API: {url}/api/v1\nDatabase: {name}\nStop with Ctrl-C.")
    output.flush()


def _report(session: Session, url: str, text: str) -> None:
    if session.json:
        output.print_json_line({"url": url})
    else:
        output.print_text(text)
    output.flush()
