"""Adds the ids of the running attempt to log records, for JSON logs."""

from __future__ import annotations

import logging

from detent.telemetry.tracing import current_traceparent
from detent.worker.attempt.context import current_attempt

__all__ = ["LogIds"]


class LogIds(logging.Filter):
    """Passes every record. One that a task's function logs gets the ids of its job, attempt, task and trace."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the ids, unless the record has some."""
        context = current_attempt.get()
        if context is not None and not hasattr(record, "ids"):
            claimed = context.claimed
            ids: dict[str, object] = {"job": str(claimed.job_id), "attempt": claimed.attempt, "task": claimed.task}
            if claimed.correlation_id is not None:
                ids["correlation_id"] = claimed.correlation_id
            parts = (current_traceparent() or claimed.traceparent or "").split("-")
            if len(parts) == 4:
                ids["trace_id"] = parts[1]
            record.ids = ids
        return True
