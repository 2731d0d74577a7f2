"""The way in: ids and new jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from detent.errors import DetentError, IdConflict, InvalidInput, KeyConflict
from detent.model.records import Enqueued, NewJob
from detent.store.postgres.statements.base import Row, Statement, flags, numbers, texts, times

__all__ = ["ids_reserve", "job_enqueue", "lanes_make", "new_jobs", "refusal"]

_ENQUEUE = "SELECT ord, answer, job_id, cause FROM detent.job_enqueue_v1({})"
_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("p_ids", "bigint[]", "{}"),
    ("p_nonces", "bigint[]", "{}"),
    ("p_tasks", "text[]", "{}"),
    ("p_payloads", "text[]", "{}"),
    ("p_queues", "text[]", '{"default"}'),
    ("p_tenants", "text[]", '{""}'),
    ("p_priorities", "smallint[]", "{0}"),
    ("p_attempts_max", "integer[]", "{4}"),
    ("p_dead_letters", "boolean[]", "{t}"),
    ("p_idempotents", "boolean[]", "{t}"),
    ("p_unique_pendings", "boolean[]", "{f}"),
    ("p_due_ats", "timestamptz[]", "{}"),
    ("p_expires_ats", "timestamptz[]", "{}"),
    ("p_metadatas", "text[]", "{}"),
    ("p_correlation_ids", "text[]", "{}"),
    ("p_traceparents", "text[]", "{}"),
    ("p_run_ids", "bigint[]", "{}"),
    ("p_limit_keys", "text[]", "{}"),
    ("p_keys", "text[]", "{}"),
    ("p_fingerprints", "text[]", "{}"),
    ("p_key_ttls", "double precision[]", "{}"),
    ("p_groups", "bigint[]", "{}"),
    ("p_costs", "integer[]", "{}"),
)
"""Each with its type and what a function takes where it is not said."""

_LANES = "SELECT detent.lanes_make_v1(%s::text[], %s::text[], %s::text[], %s::smallint[], %s::text[])"


def ids_reserve(count: int) -> Statement[int]:
    """Refuses a negative count."""
    if count < 0:
        raise InvalidInput("count", str(count), "zero or more")
    return Statement("SELECT detent.ids_reserve_v1(%s::integer)", (count,), lambda rows: int(rows[0][0]))


def lanes_make(lanes: Sequence[tuple[str, str, str, int, str]]) -> Statement[None]:
    """Each a queue, a task, a tenant, a priority and the key of a limit."""
    queues, tasks, tenants, priorities, limit_keys = zip(*lanes, strict=True)
    params = (texts(queues), texts(tasks), texts(tenants), numbers(priorities), texts(limit_keys))
    return Statement(_LANES, params, lambda rows: None)


def job_enqueue(items: Sequence[NewJob], *, notify: bool) -> Statement[list[Enqueued | DetentError]]:
    """Only what was not simply created comes back. `notify` whoever may wait; otherwise look first whether somebody
    does."""

    def decode(rows: Sequence[Row]) -> list[Enqueued | DetentError]:
        answers: list[Enqueued | DetentError] = [Enqueued(item.id, True) for item in items]
        for place, answer, job_id, cause in rows:
            answers[place - 1] = (
                Enqueued(job_id, False) if answer == "found" else refusal(items[cause - 1], answer, job_id)
            )
        return answers

    places, values = new_jobs(items)
    return Statement(_ENQUEUE.format(f"{places}, p_notify => {notify}"), values, decode)


def new_jobs(items: Sequence[NewJob]) -> tuple[str, tuple[str, ...]]:
    """New jobs as arguments by name, and their values. Only what differs from the default is said: to read a short call
    costs the server a fraction."""
    if not items:
        return "", ()
    said = [
        (f"{name} => %s::{kind}", value)
        for (name, kind, default), value in zip(_COLUMNS, _columns(items), strict=True)
        if value != default
    ]
    return ", ".join(place for place, _ in said), tuple(value for _, value in said)


def refusal(item: NewJob, answer: str, job_id: int) -> DetentError:
    """Why an item was refused, in the name of the item that caused it."""
    if answer == "id_conflict":
        return IdConflict(job_id)
    return KeyConflict(item.key or "", item.tenant, job_id)


def _columns(items: Sequence[NewJob]) -> tuple[str, ...]:
    """New jobs as one array per column: single where all are equal, empty where all are null."""
    keyed = any(item.key is not None for item in items)
    return (
        numbers([item.id for item in items]),
        _same(numbers, [item.nonce for item in items]),
        _same(texts, [item.task for item in items]),
        _same(texts, [item.payload for item in items]),
        _same(texts, [item.queue for item in items]),
        _same(texts, [item.tenant for item in items]),
        _same(numbers, [item.priority for item in items]),
        _same(numbers, [item.attempts_max for item in items]),
        _same(flags, [item.dead_letter for item in items]),
        _same(flags, [item.idempotent for item in items]),
        _same(flags, [item.unique_pending for item in items]),
        _some(lambda values: times(values, field="due_at"), [item.due_at for item in items]),
        _some(lambda values: times(values, field="expires_at"), [item.expires_at for item in items]),
        _some(texts, [item.metadata for item in items]),
        _some(texts, [item.correlation_id for item in items]),
        _some(texts, [item.traceparent for item in items]),
        _some(numbers, [item.run_id for item in items]),
        _some(texts, [item.limit_key for item in items]),
        _some(texts, [item.key for item in items]),
        texts([item.fingerprint for item in items]) if keyed else "{}",
        _some(numbers, [item.key_ttl for item in items]),
        _some(numbers, [item.group for item in items]),
        _some(numbers, [item.cost for item in items]),
    )


def _same(written: Callable[[Iterable[Any]], str], values: list[Any]) -> str:
    return written(values[:1] if values.count(values[:1][0] if values else None) == len(values) else values)


def _some(written: Callable[[Iterable[Any]], str], values: list[Any]) -> str:
    return "{}" if values.count(None) == len(values) else written(values)
