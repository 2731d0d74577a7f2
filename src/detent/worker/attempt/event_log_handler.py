"""Standard logging inside a task becomes its lines."""

from __future__ import annotations

import logging

from detent.worker.attempt.context import current_attempt

__all__ = ["EventLogHandler"]


class EventLogHandler(logging.Handler):
    """Gives what a task's function logs to its attempt. What the engine itself logs stays out of it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Append the line; a line that cannot be written is no reason for the function to fail."""
        context = current_attempt.get()
        if context is None or record.name.startswith("detent."):
            return
        level = record.levelname.lower()
        if level not in ("debug", "info", "warning", "error"):
            level = "error" if record.levelno >= logging.ERROR else "info"
        try:
            context.event(self.format(record), level=level, logger=record.name)
        except Exception:
            self.handleError(record)
