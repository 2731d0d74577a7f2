"""Jobs that nothing is heard of (R1).

A lease that is renewed says that a process lives, not that the job gets on. Where a queue allows it, a job that has not
begun in time, or has fallen silent, is asked to stop with the reason `stale` or `stalled`: its own supervisor hears it
with the next renewal and ends it. Nothing is taken away from anybody, so nothing runs twice. Elsewhere a person looks
at the list, and decides. After how long is the queue's to say, and its task's before it.
"""

from __future__ import annotations

import logging

from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["recovery"]

log = logging.getLogger("detent.worker")

_EVERY = 10.0
_BATCH = 500


def recovery(store: Store) -> Service:
    """Every ten seconds, by one worker."""

    def run(_now: float) -> None:
        for queue in store.recovery_list():
            for row in store.job_silent(queue.queue, queue.stale_after, queue.stalled_after, _BATCH):
                log.warning("job %d of %s is %s since %s", row.job_id, row.worker, row.kind, row.since.isoformat())
                store.job_cancel([row.job_id], "recovery", row.kind)

    return Service("recovery", _EVERY, run, alone=True, at=lambda agenda: agenda.now if agenda.recovery else None)
