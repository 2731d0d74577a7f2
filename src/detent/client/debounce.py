"""Of many calls in a row under one key, the last one runs."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from detent.errors import DetentError, KeyConflict
from detent.model.records import Enqueued, Moved, NewJob
from detent.store.contract import Verbs

__all__ = ["debounced"]

_ACTOR = "debounce"
_ROUNDS_MAX = 10


def debounced(verbs: Verbs, item: NewJob, seconds: float) -> Enqueued | DetentError:
    """Enqueue a job that is due after so many seconds, and cancel the pending one under the same key, on record. To be
    called in one transaction.

    The payload of a job never changes, so a later call makes a new job. A job that a worker has claimed is left alone.
    """
    item = replace(item, due_at=verbs.now() + timedelta(seconds=seconds))
    answer: Enqueued | DetentError
    for _ in range(_ROUNDS_MAX):
        (answer,) = verbs.job_enqueue([item])
        match answer:
            case Enqueued(created=False) | KeyConflict() if answer.job_id != item.id:
                before = answer.job_id
            case _:
                return answer
        # A move to where it stands locks the job: a claim that has begun comes first, and it gives the key back.
        (found,) = verbs.job_move([before], None, None, _ACTOR)
        if isinstance(found, Moved):
            verbs.job_cancel([before], _ACTOR, f"replaced by job {item.id}")
    return answer
