"""A logging handler that turns what a task's function logs into events of its job."""

from __future__ import annotations

import logging

from detent.worker.attempt.context import current_attempt

__all__ = ["EventLogHandler"]


class EventLogHandler(logging.Handler):
    """Adds log records of a task's function to its attempt as events. Records of Detent itself are left out."""

    def emit(self, record: logging.LogRecord) -> None:
        """Add the record as an event. A record that cannot be written does not make the function fail."""
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
