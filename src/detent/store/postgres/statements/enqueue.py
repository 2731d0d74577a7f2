"""The way in: ids and new jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import astuple

from detent.errors import DetentError, IdConflict, InvalidInput, KeyConflict
from detent.model.records import Enqueued, NewJob
from detent.store.postgres.statements.base import Row, Statement, flags, numbers, texts, times

__all__ = ["ids_reserve", "job_enqueue", "lanes_make", "new_jobs", "refusal"]

_ENQUEUE = "SELECT ord, answer, job_id, cause FROM detent.job_enqueue_v1({})"
_Written = Callable[[tuple[Any, ...]], str]


def _single(written: _Written) -> _Written:
    """One for all where all are equal."""
    return lambda values: written(values[:1] if values.count(values[0]) == len(values) else values)


def _if_any(written: _Written) -> _Written:
    """Nothing where all are null."""
    return lambda values: "{}" if values.count(None) == len(values) else written(values)


def _times_of(field: str) -> _Written:
    return _if_any(lambda values: times(values, field=field))


_COLUMNS: tuple[tuple[str, str, str, _Written, str], ...] = (
    ("id", "p_ids", "bigint[]", numbers, "{}"),
    ("nonce", "p_nonces", "bigint[]", _single(numbers), "{}"),
    ("task", "p_tasks", "text[]", _single(texts), "{}"),
    ("payload", "p_payloads", "text[]", _single(texts), "{}"),
    ("queue", "p_queues", "text[]", _single(texts), '{"default"}'),
    ("tenant", "p_tenants", "text[]", _single(texts), '{""}'),
    ("priority", "p_priorities", "smallint[]", _single(numbers), "{0}"),
    ("attempts_max", "p_attempts_max", "integer[]", _single(numbers), "{4}"),
    ("dead_letter", "p_dead_letters", "boolean[]", _single(flags), "{t}"),
    ("idempotent", "p_idempotents", "boolean[]", _single(flags), "{t}"),
    ("unique_pending", "p_unique_pendings", "boolean[]", _single(flags), "{f}"),
    ("due_at", "p_due_ats", "timestamptz[]", _times_of("due_at"), "{}"),
    ("expires_at", "p_expires_ats", "timestamptz[]", _times_of("expires_at"), "{}"),
    ("metadata", "p_metadatas", "text[]", _if_any(texts), "{}"),
    ("correlation_id", "p_correlation_ids", "text[]", _if_any(texts), "{}"),
    ("traceparent", "p_traceparents", "text[]", _if_any(texts), "{}"),
    ("run_id", "p_run_ids", "bigint[]", _if_any(numbers), "{}"),
    ("limit_key", "p_limit_keys", "text[]", _if_any(texts), "{}"),
    ("key", "p_keys", "text[]", _if_any(texts), "{}"),
    ("fingerprint", "p_fingerprints", "text[]", _if_any(texts), "{}"),
    ("key_ttl", "p_key_ttls", "double precision[]", _if_any(numbers), "{}"),
    ("group", "p_groups", "bigint[]", _if_any(numbers), "{}"),
    ("cost", "p_costs", "integer[]", _if_any(numbers), "{}"),
)
"""Each field of a new job: the argument, its type, how it is written, and what the function takes where it is not
said."""

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
    """New jobs as arguments by name, one array per column, and their values. Only what differs from the default is
    said: to read a short call costs the server a fraction."""
    if not items:
        return "", ()
    columns = dict(zip(NewJob.__struct_fields__, zip(*map(astuple, items), strict=True), strict=True))
    if columns["key"].count(None) == len(items):
        columns["fingerprint"] = ()
    places: list[str] = []
    said: list[str] = []
    for field, argument, kind, written, default in _COLUMNS:
        if (value := written(columns[field])) != default:
            places.append(f"{argument} => %s::{kind}")
            said.append(value)
    return ", ".join(places), tuple(said)


def refusal(item: NewJob, answer: str, job_id: int) -> DetentError:
    """Why an item was refused, in the name of the item that caused it."""
    if answer == "id_conflict":
        return IdConflict(job_id)
    return KeyConflict(item.key or "", item.tenant, job_id)
