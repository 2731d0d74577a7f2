"""Ids of the running job in the logs of structlog.

structlog.configure(processors=[add_job_ids, structlog.processors.JSONRenderer()])
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from detent.declare.running_attempt import running_attempt

__all__ = ["add_job_ids"]


def add_job_ids(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add `job_id`, `attempt` and `task` to what the function of a job logs, and `tenant` and `correlation_id` if the
    job has them. A processor of structlog. Fields that the line has already stay as they are."""
    context = running_attempt.get()
    if context is not None:
        event.setdefault("job_id", context.job_id)
        event.setdefault("attempt", context.attempt)
        event.setdefault("task", context.task)
        if context.tenant:
            event.setdefault("tenant", context.tenant)
        if context.correlation_id is not None:
            event.setdefault("correlation_id", context.correlation_id)
    return event
