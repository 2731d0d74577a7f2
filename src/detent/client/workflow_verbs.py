"""The verbs on one workflow: signals, by id, by key, and together with its start; and the undo of its steps."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from detent.client.actor import actor_and_reason
from detent.client.job_verbs import unwrap
from detent.declare.enqueue import EnqueueOptions, new_job
from detent.declare.settings import Settings
from detent.declare.task import Call
from detent.declare.workflow import check_name
from detent.errors import InvalidInput, KeyConflict, NotFound
from detent.model import json_codec
from detent.model.ids import Ids
from detent.model.workflow_records import NewSignal, NewUndo, SignalSent
from detent.store.contract import Store, Verbs
from detent.store.jobs.filters import JobSearch

__all__ = ["find_by_key", "new_signal", "signal_job", "signal_or_start", "undo_job"]

_MARK_MAX = 100
"""Bytes that the mark of an undo may add to the metadata of a job."""


def new_signal(
    job_id: int,
    name: str,
    payload: Any,
    dedupe: str | None,
    actor: str | None,
    reason: str | None,
    settings: Settings,
) -> NewSignal:
    """Return a signal, checked. `InvalidInput`, `InvalidPayload`."""
    who, why = actor_and_reason(actor, reason, settings)
    check_name("signal", name)
    text = json_codec.encode(
        payload, field=f"payload of signal {name!r}", size_max=settings.payload_max, depth_max=settings.depth_max
    )
    if dedupe is not None:
        json_codec.text(dedupe, field="dedupe", bytes_max=settings.key_max)
    return NewSignal(job_id=job_id, name=name, payload=text, actor=who, dedupe=dedupe, reason=why)


def signal_job(verbs: Verbs, signal: NewSignal, *, apart: bool = False) -> SignalSent:
    """Send a signal to a workflow. `JobEnded`, `KeyConflict`, `MailboxFull`, `NotFound`."""
    return unwrap(verbs.signal_send([signal], apart=apart)[0])


def find_by_key(verbs: Verbs, key: str, tenant: str, settings: Settings) -> int:
    """Return the job that has a key within a tenant. `NotFound`, `InvalidInput`."""
    json_codec.text(key, field="key", bytes_max=settings.key_max)
    json_codec.text(tenant, field="tenant", bytes_max=settings.name_max, allow_empty=True)
    for row in verbs.job_list(JobSearch(key=key, tenant=tenant), limit=1).rows:
        return row.id
    raise NotFound("job with the key", key)


def signal_or_start(
    store: Store, ids: Ids, call: Call[Any], key: str, tenant: str, signal: NewSignal, settings: Settings
) -> SignalSent:
    """Enqueue a call under a key unless a job has it already, and send that job a signal, in one transaction."""
    if not isinstance(call, Call):
        raise InvalidInput("start", repr(call)[:80], "a call of a workflow, such as order.call(order_id=17)")
    if call.task.workflow is None:
        raise InvalidInput("start", f"a call of task {call.task.name!r}", "a call of a workflow (@app.workflow)")
    checked = new_job(call, EnqueueOptions(key=key, tenant=tenant), settings=settings)
    (number,), nonce = ids.take(1), ids.nonce()
    job = replace(checked, id=number, nonce=nonce)

    def work(verbs: Verbs) -> SignalSent:
        (made,) = verbs.job_enqueue([job])
        # A job that was started with other arguments is still the one with this key.
        if isinstance(made, KeyConflict) and _task_of(verbs, made.job_id) == job.task:
            return signal_job(verbs, replace(signal, job_id=made.job_id))
        return signal_job(verbs, replace(signal, job_id=unwrap(made).job_id))

    return store.together(work)


def _task_of(verbs: Verbs, job_id: int) -> str | None:
    (row,) = verbs.job_get([job_id])
    return None if row is None else row.task


def undo_job(
    store: Store, ids: Ids, job_id: int, actor: str | None, reason: str | None, settings: Settings
) -> tuple[int, bool]:
    """Enqueue a job that undoes the steps of another one; return its id, and whether this call has made it. The worker
    sees from its metadata that it has a record to read. `UndoRefused`, `NotFound`."""
    who, why = actor_and_reason(actor, reason, settings)
    (row,) = store.job_get([job_id])
    if row is None:
        raise NotFound("job", str(job_id))
    before = {} if row.metadata is None else json_codec.decode(row.metadata, field="metadata")
    most = settings.metadata_max + _MARK_MAX
    metadata = json_codec.encode({**before, "undo_of": str(job_id)}, field="metadata", size_max=most)
    cause = f"requested by {who}" if why is None else f"requested by {who}: {why}"
    (number,), nonce = ids.take(1), ids.nonce()
    started = unwrap(store.undo_start(NewUndo(job_id=job_id, id=number, nonce=nonce, cause=cause, metadata=metadata)))
    return started.undo_id, started.created
