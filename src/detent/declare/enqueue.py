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
from detent.model import jsondoor
from detent.model.alike import AlikeJobs
from detent.model.clock import to_micros
from detent.model.records import NewJob

__all__ = ["SENDING", "Sending", "SendingOptions", "checked", "encode_metadata", "new_job", "new_jobs", "sending_of"]


class SendingOptions(TypedDict, total=False):
    """The keywords of `enqueue`; each is explained in `Sending`."""

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
class Sending:
    """The options of `enqueue`; None means that the option of the task applies."""

    key: str | None = None  # unique per tenant: the same key returns the same job
    key_ttl: float | None = None  # seconds; None keeps the key for ever
    debounce: float | None = None  # seconds; a later call with the same key replaces this one while it waits
    due_at: datetime | None = None  # not before this time; None is now
    expires_at: datetime | None = None  # cancelled if no worker has claimed it by then
    priority: int | None = None  # higher first
    queue: str | None = None
    tenant: str = ""  # tenants take turns
    metadata: Mapping[str, Any] | None = None  # passed to the function, and shown with the job
    correlation_id: str | None = None
    traceparent: str | None = None


_RESERVED = "detent:"
"""Prefix of Detent's own keys, such as those of ops runs. No key of a job may begin with it."""

_ACTIVE = f"{_RESERVED}active:"
"""Prefix of keys that count only while their job is pending or running. An enqueue may take over other ones."""
_ACTIVE_SECONDS = 30 * 86_400.0
"""How long such a key counts at most. Retention deletes it then, so their number is bounded."""

_AS_DECLARED = Sending()
"""No options were given."""


def sending_of(options: SendingOptions, *, many: bool = False) -> Sending:
    """Return the options of `enqueue`, checked. `InvalidInput` for an unknown option, or one key for many jobs."""
    if not options:
        return _AS_DECLARED
    for name in options:
        if name not in SENDING:
            raise InvalidInput(name, "no option of enqueue", ", ".join(SENDING))
    if many and options.get("key") is not None:
        raise InvalidInput("key", f"one key for many jobs: {options['key']!r}", "keyed jobs one by one")
    return Sending(**options)


def new_jobs(calls: Sequence[Call[Any]], sending: Sending, *, settings: Settings) -> Sequence[NewJob]:
    """Return one job for each call, as `new_job` does."""
    tasks = {id(checked(call).task) for call in calls}
    like = _like(calls[0], sending, settings) if len(tasks) == 1 else None
    if like is None:
        return [new_job(call, sending, settings=settings) for call in calls]
    if len(calls) == 1:
        return [replace(like, payload=calls[0].payload)]
    return AlikeJobs(like, [like.id] * len(calls), [call.payload for call in calls])


def _like(call: Call[Any], sending: Sending, settings: Settings) -> NewJob | None:
    """Return the job that others of the same task equal except for their arguments; None if arguments determine a key
    or a cost. Without options, it is kept with the task."""
    task, options = call.task, call.task.options
    keyed = sending.key is not None or options.unique is not None
    if keyed or callable(options.limit_key) or callable(options.cost):
        return None
    if sending is not _AS_DECLARED:
        return new_job(call, sending, settings=settings)
    if task.alike is None:
        task.alike = new_job(call, sending, settings=settings)
    return task.alike


def new_job(call: Call[Any], sending: Sending, *, settings: Settings) -> NewJob:
    """Return the job to enqueue, still without its id. `InvalidInput` names the field that is refused."""
    options = checked(call).task.options
    name_max = settings.name_max
    fingerprint = call.fingerprint if sending.key is not None or options.unique else ""
    key = sending.key
    if key is not None:
        jsondoor.text(key, field="key", bytes_max=settings.key_max)
        if key.startswith(_RESERVED):
            raise InvalidInput(
                "key", repr(key)[:80], f"a key that does not begin with {_RESERVED!r}, which is reserved"
            )
    elif options.unique == "pending":
        key = jsondoor.unique_key(call.task.name, fingerprint)
    elif options.unique == "active":
        key = f"{_ACTIVE}{jsondoor.unique_key(call.task.name, fingerprint)}"
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
        tenant=jsondoor.text(sending.tenant, field="tenant", bytes_max=name_max, allow_empty=True),
        queue=options.queue
        if sending.queue is None
        else jsondoor.text(sending.queue, field="queue", bytes_max=name_max),
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


def _debounce_key(task: str, sending: Sending, settings: Settings) -> str:
    """Return the key of a debounced job: reserved, so that no ordinary key is in its way, and one for each task."""
    check_seconds("debounce", sending.debounce or 0)
    if sending.key is None:
        raise InvalidInput("debounce", f"{sending.debounce!r} without a key", "debounce together with key")
    for name in ("due_at", "key_ttl"):
        if getattr(sending, name) is not None:
            raise InvalidInput("debounce", f"debounce and {name}", "one of them")
    key = f"{_RESERVED}debounce:{task}:{sending.key}"
    if len(key.encode()) <= settings.key_max:
        return key
    return f"{_RESERVED}debounce:{jsondoor.fingerprint(key, 'null')}"


def encode_metadata(metadata: Mapping[str, Any] | None, settings: Settings) -> str | None:
    """What is attached to a job or a move, as it is stored."""
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata", f"a value of type {type(metadata).__name__}", "a mapping")
    return jsondoor.encode(
        dict(metadata), field="metadata", size_max=settings.metadata_max, depth_max=settings.depth_max
    )


def checked(call: Call[Any]) -> Call[Any]:
    """Not a task, and not what calling one gave: that would have run the function here and now."""
    if not isinstance(call, Call):
        raise InvalidInput("call", f"a value of type {type(call).__name__}", "task.call(...), a described call")
    return call


def _moment(value: datetime | None, field: str) -> datetime | None:
    """The same moment in UTC, where every reader of the record can follow."""
    if value is None:
        return None
    to_micros(value, field=field)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(field, value.isoformat(), "a time between the years 1 and 9999 in UTC") from None


SENDING = tuple(one.name for one in fields(Sending))
"""The names of the options of `enqueue`."""


def _optional(value: str | None, field: str, bytes_max: int) -> str | None:
    return None if value is None else jsondoor.text(value, field=field, bytes_max=bytes_max)
