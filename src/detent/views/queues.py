"""Looking at queues."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from detent.lifecycle.library import JOB
from detent.store.contract import Verbs

__all__ = ["QueueView", "queues"]


class QueueView(Struct, frozen=True, kw_only=True):
    """A queue: whether claims may enter it, and its jobs by state, every state named."""

    name: str
    paused: bool
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    jobs: dict[str, int]


def queues(verbs: Verbs) -> list[QueueView]:
    """Every queue that has a job on record, by name."""
    jobs: dict[str, dict[str, int]] = {}
    for count in verbs.counts():
        states = jobs.setdefault(count.queue, dict.fromkeys(JOB.states, 0))
        states[count.state] = states.get(count.state, 0) + count.jobs
    return [_queue(verbs, name, jobs[name]) for name in sorted(jobs)]


def _queue(verbs: Verbs, name: str, jobs: dict[str, int]) -> QueueView:
    moves = verbs.transitions("queue", name)
    last = moves[-1] if moves and moves[-1].to_state == "paused" else None
    return QueueView(
        name=name,
        paused=last is not None,
        paused_at=last.at if last else None,
        paused_by=last.actor if last else None,
        paused_reason=last.reason if last else None,
        jobs=jobs,
    )
