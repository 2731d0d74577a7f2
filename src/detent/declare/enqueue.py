"""From a call and how it shall be sent to the job that the store accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from detent.declare.settings import Settings
from detent.declare.task import Call, check_priority
from detent.errors import InvalidInput
from detent.model import jsondoor
from detent.model.clock import to_micros
from detent.model.records import NewJob

__all__ = ["Sending", "new_job"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How one call is sent; None means the task's own choice."""

    key: str | None = None
    key_ttl: float | None = None
    due_at: datetime | None = None
    expires_at: datetime | None = None
    priority: int | None = None
    queue: str | None = None
    tenant: str = ""
    metadata: Mapping[str, Any] | None = None
    correlation_id: str | None = None
    traceparent: str | None = None


def new_job(call: Call[Any], sending: Sending, *, settings: Settings) -> NewJob:
    """The job to enqueue, still without its id. Refuses what the door does not let in, naming the field."""
    options = call.task.options
    name_max = settings.name_max
    fingerprint = call.fingerprint if sending.key is not None or options.unique else ""
    key = sending.key
    if key is not None:
        jsondoor.text(key, field="key", bytes_max=settings.key_max)
    elif options.unique == "pending":
        key = f"unique:{call.task.name[:300]}:{fingerprint}"
    if sending.key_ttl is not None and (key is None or not 0 < sending.key_ttl < 10**10):
        raise InvalidInput("key_ttl", repr(sending.key_ttl), "a positive number of seconds, together with a key")
    for name in ("due_at", "expires_at"):
        if (value := getattr(sending, name)) is not None:
            to_micros(value, field=name)
    metadata = None
    if sending.metadata is not None:
        if not isinstance(sending.metadata, Mapping):
            raise InvalidInput("metadata", f"a value of type {type(sending.metadata).__name__}", "a mapping")
        metadata = jsondoor.encode(
            dict(sending.metadata), field="metadata", size_max=settings.metadata_max, depth_max=settings.depth_max
        )
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
        due_at=sending.due_at,
        expires_at=sending.expires_at,
        key=key,
        key_ttl=sending.key_ttl,
        unique_pending=options.unique == "pending",
        metadata=metadata,
        correlation_id=_optional(sending.correlation_id, "correlation_id", name_max),
        traceparent=_optional(sending.traceparent, "traceparent", name_max),
        attempts_max=options.retry.attempts_max,
        dead_letter=options.dead_letter,
        idempotent=options.idempotent,
    )


def _optional(value: str | None, field: str, bytes_max: int) -> str | None:
    return None if value is None else jsondoor.text(value, field=field, bytes_max=bytes_max)
