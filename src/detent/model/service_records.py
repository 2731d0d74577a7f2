"""The records of what is around the jobs: who works, and what is done besides working.

Frozen, without behaviour, as in `records`.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

__all__ = ["WorkerRow", "WorkerSeen"]


class WorkerSeen(Struct, frozen=True, kw_only=True):
    """What a worker says of itself. `queues` None is every queue; `running` is how many jobs it holds."""

    id: int
    name: str
    host: str
    pid: int
    queues: tuple[str, ...] | None
    tasks: tuple[str, ...]
    slots: int
    running: int = 0
    stopping: bool = False


class WorkerRow(Struct, frozen=True, kw_only=True):
    """A worker as it was last seen."""

    id: int
    name: str
    host: str
    pid: int
    queues: tuple[str, ...] | None
    tasks: tuple[str, ...]
    slots: int
    running: int
    stopping: bool
    started_at: datetime
    seen_at: datetime
