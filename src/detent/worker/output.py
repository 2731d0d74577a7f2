"""What a worker's processes write to stderr: lines for people, or one JSON object a line.

As JSON, every line is one: what is logged, with its traceback inside; what the user's code prints; what nobody caught.
Only what is written past Python (by a program that a function starts, by the interpreter as it dies) stays as it is.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, TextIO

import msgspec

from detent.model import escape

__all__ = ["LogFormat", "set_up_output"]

LogFormat = Literal["text", "json"]

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up_output(format: LogFormat) -> None:
    """Log to stderr from INFO on. As JSON, printed lines and uncaught errors are logged too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if format == "json" else _Text(_TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    if format == "json":
        logging.captureWarnings(True)
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_uncaught_in_thread
        sys.stdout = _Printed("stdout", logging.INFO, sys.stdout)
        sys.stderr = _Printed("stderr", logging.WARNING, sys.stderr)


class _Text(logging.Formatter):
    """A line for people; a traceback keeps its lines."""

    def format(self, record: logging.LogRecord) -> str:
        return escape.block(super().format(record))


class _Json(logging.Formatter):
    """A line for programs."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return escape.json_safe(msgspec.json.encode(_storable(line)).decode())


def _storable(line: dict[str, object]) -> dict[str, object]:
    """Without lone surrogates, which no JSON can carry."""
    return {
        name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in line.items()
    }


class _Printed(io.TextIOBase):
    """A stream whose lines are logged. The file underneath stays for whoever asks for its number."""

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
