"""Rewinding and forking workflows: a new generation, or a new job, that begins with copies of recorded steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from detent.client.actor import actor_and_reason
from detent.client.job_verbs import reason_needed, unwrap
from detent.declare.enqueue import EnqueueOptions, new_job
from detent.declare.settings import Settings
from detent.declare.task import Call, Task
from detent.errors import InvalidInput, NotFound
from detent.model import json_codec
from detent.model.copy_records import FORKED_FROM, Fork, Forked, Rewind, Rewound
from detent.model.ids import Ids
from detent.model.records import JobRow, NewJob
from detent.store.contract import Store, Verbs
from detent.views.workflows import unread_signals

__all__ = ["fork_job", "rewind_job"]

_METADATA_MORE = 500
"""Bytes that the metadata of a fork may have more than those of a job: the name of the other job."""


def rewind_job(
    store: Store, job_id: int, to: str, force: bool, actor: str | None, reason: str | None, settings: Settings
) -> Rewound:
    """Let a workflow continue from an earlier step. `CopyRefused`, `NotFound`, `InvalidInput`."""
    who, why = _who_and_why(force, actor, reason, settings)
    path = _path("to", to)
    (row,) = store.job_get([job_id])
    if row is None:
        raise NotFound("job", str(job_id))
    item = Rewind(job_id=job_id, to=path, actor=who, reason=why, force=force, seed=_seed(store, row))
    return unwrap(store.workflow_rewind(item))


def fork_job(
    store: Store,
    ids: Ids,
    task: Task[..., Any, Any] | None,
    job_id: int,
    at: str | None,
    replaced: Mapping[str, Any] | None,
    payload: Mapping[str, Any] | None,
    force: bool,
    actor: str | None,
    reason: str | None,
    settings: Settings,
) -> Forked:
    """Enqueue another job of the same task that begins with copies of recorded steps, in one transaction.
    `CopyRefused`, `NotFound`, `InvalidInput`, `InvalidPayload`, `InvalidArguments`."""
    who, why = _who_and_why(force, actor, reason, settings)
    path = None if at is None else _path("at", at)
    values = tuple(
        (_path("replace", name), _value(name, value, settings)) for name, value in _mapping("replace", replaced).items()
    )
    given = None if payload is None else _mapping("payload", payload)
    (number,), nonce = ids.take(1), ids.nonce()

    def work(verbs: Verbs) -> Forked:
        (row,) = verbs.job_get([job_id])
        if row is None:
            raise NotFound("job", str(job_id))
        if row.run_id is not None:
            raise InvalidInput("job id", f"job {job_id}, which is part of run {row.run_id}", "a job of no run")
        arguments = row.payload if given is None else _arguments(row, task, given, settings)
        job = replace(_new_job(row, task, arguments, settings), id=number, nonce=nonce)
        unwrap(verbs.job_enqueue([job])[0])
        item = Fork(
            job_id=job_id,
            new_id=number,
            at=path,
            actor=who,
            reason=why,
            force=force,
            seed=_seed(store, row),
            replaced=values,
            keeps_payload=given is None,
            metadata=_about(verbs, job_id, path, values, given is not None, force),
        )
        return unwrap(verbs.workflow_fork(item))

    return store.together(work)


def _who_and_why(force: bool, actor: str | None, reason: str | None, settings: Settings) -> tuple[str, str | None]:
    if not isinstance(force, bool):
        raise InvalidInput("force", repr(force)[:80], "True or False")
    if force:
        return reason_needed(
            actor, reason, settings, "a reason: why steps that have happened for good may happen again"
        )
    return actor_and_reason(actor, reason, settings)


def _path(field: str, path: str) -> str:
    return json_codec.text(path, field=field, bytes_max=1000)


def _mapping(field: str, found: Mapping[str, Any] | None) -> Mapping[str, Any]:
    given: object = found
    if given is not None and not isinstance(given, Mapping):
        allowed = (
            "an object: the values by the names of their steps" if field == "replace" else "an object: the arguments"
        )
        raise InvalidInput(field, f"a value of type {type(given).__name__}", allowed)
    return found or {}


def _value(path: str, value: Any, settings: Settings) -> str:
    """Return the value that a copy gets, checked like the value of a step."""
    field = f"value of step {path!r}"
    return json_codec.encode(value, field=field, size_max=settings.step_max, depth_max=settings.depth_max)


def _seed(store: Store, row: JobRow) -> str:
    """Return the key of a job among all databases, from which `ctx.random` and `ctx.uuid` follow."""
    return f"{store.identity_of(row.id)}/{row.tenant}/job/{row.id}"


def _arguments(row: JobRow, task: Task[..., Any, Any] | None, given: Mapping[str, Any], settings: Settings) -> str:
    """Return the arguments that were given for the fork. They must fit the task, if the application knows it."""
    text = json_codec.encode(dict(given), field=row.task, size_max=settings.payload_max, depth_max=settings.depth_max)
    if task is not None:
        task.decode(text)
    return text


def _new_job(row: JobRow, task: Task[..., Any, Any] | None, arguments: str, settings: Settings) -> NewJob:
    """Return the fork as a job: like the other one, with what its task derives from the arguments, and without key."""
    before = {} if row.metadata is None else json_codec.decode(row.metadata, field="metadata")
    more = settings.metadata_max + _METADATA_MORE
    metadata = json_codec.encode({**before, FORKED_FROM: str(row.id)}, field="metadata", size_max=more)
    if task is not None:
        sending = EnqueueOptions(tenant=row.tenant, queue=row.queue, priority=row.priority)
        # A key of `unique=` would find the other job.
        made = replace(
            new_job(Call(task, arguments), sending, settings=settings), key=None, key_ttl=None, unique_pending=False
        )
    else:
        made = NewJob(
            id=0,
            task=row.task,
            payload=arguments,
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


def _about(
    verbs: Verbs, job_id: int, at: str | None, values: tuple[tuple[str, str], ...], has_payload: bool, force: bool
) -> str:
    """Return what the record says about a fork: no values, since they may be secret."""
    unread = dict(Counter(unread_signals(verbs, job_id)).most_common(20))
    about: dict[str, Any] = {FORKED_FROM: str(job_id), "at": at, "replaced": [path for path, _ in values][:100]}
    about |= {"payload": has_payload, "force": force, "unread": unread}
    return msgspec.json.encode({name: value for name, value in about.items() if value}).decode()
