"""Workers for tests, as they describe themselves."""

from __future__ import annotations

from typing import Any

from detent.model.service_records import WorkerSeen

__all__ = ["worker"]


def worker(worker_id: int = 7, **overrides: Any) -> WorkerSeen:
    """A worker as it would say of itself."""
    fields: dict[str, Any] = {
        "name": "ana",
        "host": "h",
        "pid": 12,
        "queues": ("mail", 'q"\\ü'),
        "tasks": ("mail.send",),
    }
    return WorkerSeen(id=worker_id, slots=16, **fields | overrides)
