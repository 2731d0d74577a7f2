"""A dead job, and the job with corrected arguments that takes its place.

The arguments of a job are written once: they are what its attempts, its key and its effect key stand for. So a
correction is a new job. The old one is discarded in the same transaction, on record, and each names the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from detent.client.moves import one
from detent.declare.enqueue import Sending, new_job
from detent.declare.settings import Settings
from detent.declare.task import Call, Task
from detent.errors import InvalidInput, InvalidTransition, NotFound
from detent.lifecycle.library import JOB
from detent.model import jsondoor
from detent.model.ids import Ids
from detent.model.records import Enqueued, JobRow, NewJob
from detent.store.contract import Store, Verbs

__all__ = ["replace_job"]

_DEAD = ("quarantined", "failed")


def replace_job(
    store: Store,
    ids: Ids,
    task: Task[..., Any, Any] | None,
    job_id: int,
    payload: Mapping[str, Any] | str,
    who: str,
    why: str,
    settings: Settings,
) -> int:
    """Enqueue the corrected job and discard the old one, in one transaction. Return the id of the new job.

    `task` is the task if the application knows it: then the arguments must fit its signature (`InvalidArguments`).
    """
    (number,), nonce = ids.take(1), ids.nonce()

    def work(verbs: Verbs) -> Enqueued:
        row = _replaceable(verbs, job_id)
        job = replace(_corrected(row, task, payload, settings), id=number, nonce=nonce)
        made = one(verbs.job_enqueue([job])[0])
        discarded = one(verbs.job_discard([job_id], who, f"replaced by job {made.job_id}: {why}")[0])
        if not discarded.changed:
            raise _not_dead(job_id, discarded.state)
        return made

    return store.together(work).job_id


def _replaceable(verbs: Verbs, job_id: int) -> JobRow:
    """The job, which must be dead or failed, stand by itself, and have done nothing."""
    (row,) = verbs.job_get([job_id])
    if row is None:
        raise NotFound("job", str(job_id))
    if row.state not in _DEAD:
        raise _not_dead(job_id, row.state)
    if row.run_id is not None:
        found = f"job {job_id}, which is part of run {row.run_id}"
        raise InvalidInput("job id", found, "a job that stands by itself; start another run with other input")
    attempts = verbs.job_executions(job_id)
    if attempts and attempts[-1].outcome == "unknown":
        found = f"job {job_id}, whose effect may have happened"
        raise InvalidInput(
            "job id", found, f"a job without an effect; settle this one first: detent jobs settle {job_id}"
        )
    return row


def _not_dead(job_id: int, state: str) -> InvalidTransition:
    return InvalidTransition("job", str(job_id), state, "cancelled", JOB.allowed(state), "discard", _DEAD)


def _corrected(
    row: JobRow, task: Task[..., Any, Any] | None, payload: Mapping[str, Any] | str, settings: Settings
) -> NewJob:
    """The new job: like the old one but for its arguments, and for what its task makes of them."""
    limits = {"size_max": settings.payload_max, "depth_max": settings.depth_max}
    if isinstance(payload, str):
        text = jsondoor.check_text(payload, field=row.task, **limits)
    else:
        text = jsondoor.encode(dict(payload), field=row.task, **limits)
    told = {} if row.metadata is None else jsondoor.decode(row.metadata, field="metadata")
    metadata = jsondoor.encode({**told, "replaces": str(row.id)}, field="metadata", size_max=settings.metadata_max)
    if task is not None:
        task.decode(text)
        sending = Sending(tenant=row.tenant, queue=row.queue, priority=row.priority)
        made = new_job(Call(task, text), sending, settings=settings)
    elif not text.startswith("{"):
        raise InvalidInput("payload", text[:80], "a JSON object: the arguments by name")
    else:
        made = NewJob(
            id=0,
            task=row.task,
            payload=text,
            nonce=0,
            fingerprint="",
            tenant=row.tenant,
            queue=row.queue,
            priority=row.priority,
            attempts_max=row.attempts_max,
            dead_letter=row.dead_letter,
            idempotent=row.idempotent,
            limit_key=row.limit_key,
            cost=row.cost,
        )
    return replace(
        made, metadata=metadata, correlation_id=row.correlation_id or str(row.id), traceparent=row.traceparent
    )
