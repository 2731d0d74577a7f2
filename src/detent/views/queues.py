"""Queues, with their jobs by state and their pauses."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from detent.lifecycle.library import JOB
from detent.store.contract import Verbs

__all__ = ["Queue", "queues"]


class Queue(Struct, frozen=True, kw_only=True):
    """A queue: whether it is paused, since when, by whom and why, the number of its jobs in each state, and since when
    the oldest ready job has been due (None if no job is ready)."""

    name: str
    paused: bool
    paused_at: datetime | None
    paused_by: str | None
    paused_reason: str | None
    jobs: dict[str, int]
    oldest_at: datetime | None


def queues(verbs: Verbs) -> list[Queue]:
    """Return every queue that has a job on record or is paused, by name."""
    paused = {row.name: row for row in verbs.queue_list() if row.paused_at is not None}
    jobs = {name: dict.fromkeys(JOB.states, 0) for name in paused}
    oldest: dict[str, datetime] = {}
    for one in verbs.ready_oldest():
        oldest[one.queue] = min(oldest.get(one.queue, one.ready_at), one.ready_at)
    for count in verbs.queue_depths():
        states = jobs.setdefault(count.queue, dict.fromkeys(JOB.states, 0))
        states[count.state] = states.get(count.state, 0) + count.jobs
    return [
        Queue(
            name=name,
            paused=name in paused,
            paused_at=paused[name].paused_at if name in paused else None,
            paused_by=paused[name].paused_by if name in paused else None,
            paused_reason=paused[name].reason if name in paused else None,
            jobs=jobs[name],
            oldest_at=oldest.get(name),
        )
        for name in sorted(jobs)
    ]
