"""Logging of a process that runs for long: to stderr, as text or as one JSON object a line."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec

from detent.cli import escape

__all__ = ["set_up"]

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up(format: str) -> None:
    """Log to stderr from INFO on; `format` is text or json."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if format == "json" else _Text(_TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


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
        return escape.json_safe(msgspec.json.encode(line).decode())
