"""Group commit for `job_enqueue`."""

from __future__ import annotations

from detent.errors import DetentError
from detent.model.clock import Clock
from detent.model.records import Enqueued, NewJob
from detent.store.contract import Store
from detent.store.group_writer import GroupWriter

__all__ = ["EnqueueWriter"]


class EnqueueWriter(GroupWriter[NewJob, Enqueued | DetentError]):
    """The writer of jobs: `job_enqueue` recognizes jobs that exist already, so it may be repeated."""

    def __init__(self, store: Store, *, batch_max: int = 1000, clock: Clock | None = None) -> None:
        super().__init__(store, store.job_enqueue, send=store.job_enqueue_sent, batch_max=batch_max, clock=clock)
