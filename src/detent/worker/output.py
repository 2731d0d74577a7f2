"""What the processes of a worker write to stderr: text lines, or one JSON object per line.

With JSON, log records (with their tracebacks), printed lines and uncaught errors all become JSON lines. Only output
that does not pass through Python stays as it is: that of programs a function starts, and of a dying interpreter.
"""

from __future__ import annotations

import functools
import io
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, TextIO

import msgspec

from detent.model import terminal_text

__all__ = ["LogFormat", "LogLevel", "OwnCode", "set_up_output"]

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Return the directories of installed packages and of Python itself. Imported late: supervisors never need it."""
    import sysconfig

    names = ("purelib", "platlib", "stdlib", "platstdlib")
    return tuple(f"{os.path.realpath(sysconfig.get_path(name))}{os.sep}" for name in names)


class OwnCode(logging.Filter):
    """Passes records of Detent and of the user's own code, and warnings of libraries.

    Code belongs to a library if it is in the installed packages or in Python itself. The package that holds the
    application is the user's own, wherever it is.
    """

    def __init__(self, package: str) -> None:
        super().__init__()
        self._own = {"detent", "stdout", "stderr", package}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is to be logged."""
        if record.levelno >= logging.WARNING or record.name.partition(".")[0] in self._own:
            return True
        return not os.path.realpath(record.pathname).startswith(_libraries())


def set_up_output(
    format: LogFormat, level: LogLevel | None = None, package: str = "", *, worker: str = "", prints: bool = True
) -> None:
    """Log to stderr. With JSON, uncaught errors are logged too, and printed lines if `prints`.

    Without a level, records from INFO on are logged, and those of libraries from WARNING on. `package` is the top-level
    package of the application, for `OwnCode`. JSON lines name the `worker`, and the ids that a record has in `ids`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(worker) if format == "json" else _Text(_TEXT))
    if level is None:
        handler.addFilter(OwnCode(package))
    logging.basicConfig(level=(level or "info").upper(), handlers=[handler], force=True)
    if format == "json":
        logging.captureWarnings(True)
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_uncaught_in_thread
    if format == "json" and prints:
        sys.stdout = _Printed("stdout", logging.INFO, sys.stdout)
        sys.stderr = _Printed("stderr", logging.WARNING, sys.stderr)


class _Text(logging.Formatter):
    """Formats a text line; a traceback keeps its lines."""

    def format(self, record: logging.LogRecord) -> str:
        return terminal_text.block(super().format(record))


class _Json(logging.Formatter):
    """Formats a line of JSON."""

    def __init__(self, worker: str) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._worker:
            line["worker"] = self._worker
        line |= getattr(record, "ids", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return terminal_text.json_safe(msgspec.json.encode(_storable(line)).decode())


def _storable(line: dict[str, object]) -> dict[str, object]:
    """Replace lone surrogates, which JSON cannot contain."""
    return {
        name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in line.items()
    }


class _Printed(io.TextIOBase):
    """A stream whose lines are logged. `fileno` still gives the file underneath."""

    def __init__(self, name: str, level: int, beneath: TextIO) -> None:
        self._log = logging.getLogger(name)
        self._level = level
        self._beneath = beneath
        self._begun = threading.local()

    def write(self, text: str) -> int:
        *whole, rest = (getattr(self._begun, "line", "") + text).split("\n")
        self._begun.line = rest
        for line in whole:
            if line.strip():
                self._log.log(self._level, "%s", line)
        return len(text)

    def flush(self) -> None:
        self._beneath.flush()

    def fileno(self) -> int:
        return self._beneath.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger("detent.worker").critical("%s: %s", kind.__name__, error, exc_info=(kind, error, trace))


def _log_uncaught_in_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is not None:
        _log_uncaught(told.exc_type, told.exc_value, told.exc_traceback)
