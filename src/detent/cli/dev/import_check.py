"""Import an application in a process of its own, bring its database up to date, and tell what was found.

Run as `python -m detent.cli.dev.import_check MODULE:APP FD`; the answer is written to the file descriptor as JSON. The
program that watches the source files never imports the application itself, so it can do this again after every change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from detent.cli.failures import CommandFailed

__all__ = ["Application", "ImportFailed", "check_import"]

_NOT_OURS = ("site-packages", "dist-packages")


class Application(NamedTuple):
    """An application that can be imported: its database, the directory that its package is in, and its files."""

    database_url: str
    directory: Path
    files: tuple[Path, ...]


class ImportFailed(CommandFailed):
    """An application that cannot be imported. `files` are those that were read until then."""

    def __init__(self, message: str, files: tuple[Path, ...]) -> None:
        super().__init__(message)
        self.files = files


def check_import(where: str, environment: dict[str, str], *, migrate: bool) -> Application:
    """Import an application in another process. `ImportFailed` with the reason if that fails."""
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as answer:
        try:
            command = [sys.executable, "-m", __name__, where, str(theirs), *(["migrate"] if migrate else [])]
            # What the application prints when it is imported is printed by the server and the worker, too.
            process = subprocess.Popen(
                command, pass_fds=(theirs,), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        finally:
            os.close(theirs)
        with process:
            text = answer.read()
    if not text:
        raise ImportFailed(f"{where} cannot be imported: its process ended with exit code {process.returncode}", ())
    found = json.loads(text)
    files = tuple(map(Path, found["files"]))
    if "error" in found:
        raise ImportFailed(found["error"], files)
    return Application(found["database_url"], Path(found["directory"]), files)


def _check(where: str, *, migrate: bool) -> dict[str, Any]:
    from detent.worker.child.application import describe_import_error, load_app

    try:
        app = load_app(where)
        if migrate:
            app.migrate()
    except (Exception, SystemExit) as error:
        at_fault = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
        if isinstance(error, SyntaxError) and error.filename:
            at_fault.add(error.filename)
        files = _source_files(Path.cwd()) | {str(Path(file).resolve()) for file in at_fault if Path(file).is_file()}
        return {"error": describe_import_error(where, error), "files": sorted(files)}
    top = sys.modules[where.partition(":")[0].partition(".")[0]]
    file = Path(getattr(top, "__file__", None) or Path.cwd() / "app.py").resolve()
    directory = file.parent.parent if file.name == "__init__.py" else file.parent
    return {
        "database_url": app.settings.database_url,
        "directory": str(directory),
        "files": sorted(_source_files(directory)),
    }


def _source_files(directory: Path) -> set[str]:
    """Return the files of all imported modules below a directory, except those of installed packages."""
    found = set()
    for module in list(sys.modules.values()):
        file = Path(getattr(module, "__file__", None) or os.devnull).resolve()
        if file.is_relative_to(directory) and file.suffix == ".py" and _is_own(file):
            found.add(str(file))
    return found


def _is_own(file: Path) -> bool:
    return not file.is_relative_to(Path(sys.prefix).resolve()) and not any(part in _NOT_OURS for part in file.parts)


if __name__ == "__main__":
    result = _check(sys.argv[1], migrate="migrate" in sys.argv[3:])
    with os.fdopen(int(sys.argv[2]), "w") as to_parent:
        json.dump(result, to_parent)
