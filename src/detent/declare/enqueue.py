"""Turns a call and the options of `enqueue` into the job that the store accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypedDict

from msgspec.structs import replace

from detent.declare.settings import Settings
from detent.declare.task import Call, check_priority, check_seconds
from detent.errors import InvalidInput
from detent.model import json_codec
from detent.model.clock import to_micros
from detent.model.records import NewJob
from detent.model.uniform_jobs import UniformJobs

__all__ = [
    "ENQUEUE_OPTIONS",
    "EnqueueKeywords",
    "EnqueueOptions",
    "checked",
    "encode_metadata",
    "enqueue_options",
    "new_job",
    "new_jobs",
]


class EnqueueKeywords(TypedDict, total=False):
    """The keywords of `enqueue`. See `EnqueueOptions` for what each means."""

    key: str | None
    key_ttl: float | None
    debounce: float | None
    due_at: datetime | None
    expires_at: datetime | None
    priority: int | None
    queue: str | None
    tenant: str
    metadata: Mapping[str, Any] | None
    correlation_id: str | None
    traceparent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueOptions:
    """The options of one call. None means what the task declares."""

    key: str | None = None  # per tenant: a second call with the same key returns the same job
    key_ttl: float | None = None  # seconds; None keeps the key for ever
    debounce: float | None = None  # seconds to wait; a later call with the same key replaces this one meanwhile
    due_at: datetime | None = None  # the earliest time to run; None is now
    expires_at: datetime | None = None  # cancelled if no worker has claimed it by then
    priority: int | None = None  # higher first
    queue: str | None = None
    tenant: str = ""  # tenants take turns
    metadata: Mapping[str, Any] | None = None  # passed to the function, and shown in lists
    correlation_id: str | None = None
    traceparent: str | None = None


_RESERVED = "detent:"
"""Prefix of Detent's own keys, such as those of ops runs. No key of a job may begin with it."""

_ACTIVE = f"{_RESERVED}active:"
"""Prefix of keys that count only while their job is pending or running. An enqueue may take over other ones."""
_ACTIVE_SECONDS = 30 * 86_400.0
"""Maximum age of such a key. Then retention deletes it, so their number is bounded."""

_AS_DECLARED = EnqueueOptions()
"""No options: everything as the task declares."""


def enqueue_options(options: EnqueueKeywords, *, many: bool = False) -> EnqueueOptions:
    """Return the options as an object. `InvalidInput` for an unknown option, and for one key for many jobs."""
    if not options:
        return _AS_DECLARED
    for name in options:
        if name not in ENQUEUE_OPTIONS:
            raise InvalidInput(name, "no option of enqueue", ", ".join(ENQUEUE_OPTIONS))
    if many and options.get("key") is not None:
        raise InvalidInput(
            "key", f"one key for many jobs: {options['key']!r}", "no key; enqueue jobs with keys one by one"
        )
    return EnqueueOptions(**options)


def new_jobs(calls: Sequence[Call[Any]], sending: EnqueueOptions, *, settings: Settings) -> Sequence[NewJob]:
    """Return one job for each call, as `new_job` does."""
    tasks = {id(checked(call).task) for call in calls}
    prototype = _prototype(calls[0], sending, settings) if len(tasks) == 1 else None
    if prototype is None:
        return [new_job(call, sending, settings=settings) for call in calls]
    if len(calls) == 1:
        return [replace(prototype, payload=calls[0].payload)]
    return UniformJobs(prototype, [prototype.id] * len(calls), [call.payload for call in calls])


def _prototype(call: Call[Any], sending: EnqueueOptions, settings: Settings) -> NewJob | None:
    """Return a job from which others of the task differ only by their arguments; None if the arguments decide on a key
    or a cost. Without options it is kept with the task."""
    task, options = call.task, call.task.options
    keyed = sending.key is not None or options.unique is not None
    if keyed or callable(options.limit_key) or callable(options.cost):
        return None
    if sending is not _AS_DECLARED:
        return new_job(call, sending, settings=settings)
    if task.prototype is None:
        task.prototype = new_job(call, sending, settings=settings)
    return task.prototype


def new_job(call: Call[Any], sending: EnqueueOptions, *, settings: Settings) -> NewJob:
    """Return the job to enqueue, still without its id. `InvalidInput` names the field that is refused."""
    options = checked(call).task.options
    name_max = settings.name_max
    fingerprint = call.fingerprint if sending.key is not None or options.unique else ""
    key = sending.key
    if key is not None:
        json_codec.text(key, field="key", bytes_max=settings.key_max)
        if key.startswith(_RESERVED):
            raise InvalidInput(
                "key", repr(key)[:80], f"a key that does not begin with {_RESERVED!r}, which is reserved"
            )
    elif options.unique == "pending":
        key = json_codec.unique_key(call.task.name, fingerprint)
    elif options.unique == "active":
        key = f"{_ACTIVE}{json_codec.unique_key(call.task.name, fingerprint)}"
    if sending.debounce is not None:
        key = _debounce_key(call.task.name, sending, settings)
    if sending.key_ttl is not None:
        check_seconds("key_ttl", sending.key_ttl)
        if key is None:
            raise InvalidInput("key_ttl", f"{sending.key_ttl!r} without a key", "key_ttl together with key")
    return NewJob(
        id=0,
        task=call.task.name,
        payload=call.payload,
        nonce=0,
        fingerprint=fingerprint,
        tenant=json_codec.text(sending.tenant, field="tenant", bytes_max=name_max, allow_empty=True),
        queue=options.queue
        if sending.queue is None
        else json_codec.text(sending.queue, field="queue", bytes_max=name_max),
        priority=options.priority if sending.priority is None else check_priority(sending.priority),
        due_at=_moment(sending.due_at, "due_at"),
        expires_at=_moment(sending.expires_at, "expires_at"),
        key=key,
        key_ttl=_ACTIVE_SECONDS if key is not None and key.startswith(_ACTIVE) else sending.key_ttl,
        unique_pending=options.unique == "pending" or sending.debounce is not None,
        metadata=encode_metadata(sending.metadata, settings),
        correlation_id=_optional(sending.correlation_id, "correlation_id", name_max),
        traceparent=_optional(sending.traceparent, "traceparent", name_max),
        attempts_max=options.retry.attempts_max,
        dead_letter=options.dead_letter,
        idempotent=options.idempotent,
        limit_key=call.task.limit_key_of(call.payload),
        cost=call.task.cost_of(call.payload),
    )


def _debounce_key(task: str, sending: EnqueueOptions, settings: Settings) -> str:
    """Return the key of a debounced job: reserved, so that it never equals an ordinary key, and one per task."""
    check_seconds("debounce", sending.debounce or 0)
    if sending.key is None:
        raise InvalidInput("debounce", f"{sending.debounce!r} without a key", "debounce together with key")
    for name in ("due_at", "key_ttl"):
        if getattr(sending, name) is not None:
            raise InvalidInput("debounce", f"debounce and {name}", "one of them")
    key = f"{_RESERVED}debounce:{task}:{sending.key}"
    if len(key.encode()) <= settings.key_max:
        return key
    return f"{_RESERVED}debounce:{json_codec.fingerprint(key, 'null')}"


def encode_metadata(metadata: Mapping[str, Any] | None, settings: Settings) -> str | None:
    """Return metadata of a job or a move as it is stored. `InvalidInput`."""
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata", f"a value of type {type(metadata).__name__}", "a mapping")
    return json_codec.encode(
        dict(metadata), field="metadata", size_max=settings.metadata_max, depth_max=settings.depth_max
    )


def checked(call: Call[Any]) -> Call[Any]:
    """Return the call. `InvalidInput` for a task, or for the result of calling it, which would run the function
    here."""
    if not isinstance(call, Call):
        raise InvalidInput("call", f"a value of type {type(call).__name__}", "task.call(...), a described call")
    return call


def _moment(value: datetime | None, field: str) -> datetime | None:
    """Return the same time in UTC. `InvalidInput` for a time that UTC cannot express."""
    if value is None:
        return None
    to_micros(value, field=field)
    return value.astimezone(UTC)


ENQUEUE_OPTIONS = tuple(one.name for one in fields(EnqueueOptions))
"""The names of the options of `enqueue`."""


def _optional(value: str | None, field: str, bytes_max: int) -> str | None:
    return None if value is None else json_codec.text(value, field=field, bytes_max=bytes_max)
