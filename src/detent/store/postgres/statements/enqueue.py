"""The way in: ids and new jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import astuple

from detent.errors import DetentError, IdConflict, InvalidInput, KeyConflict
from detent.model.records import Enqueued, NewJob
from detent.store.postgres.statements.base import Row, Statement, flags, numbers, texts, times

__all__ = ["ids_reserve", "job_enqueue", "lanes_make", "new_jobs", "refusal"]

_ENQUEUE = "SELECT ord, answer, job_id, cause FROM detent.job_enqueue_v1({})"
_Written = Callable[[tuple[Any, ...]], str]
_COLUMNS: tuple[tuple[str, str, str, _Written, Any], ...] = (
    ("id", "p_ids", "bigint[]", numbers, None),
    ("nonce", "p_nonces", "bigint[]", numbers, None),
    ("task", "p_tasks", "text[]", texts, None),
    ("payload", "p_payloads", "text[]", texts, None),
    ("queue", "p_queues", "text[]", texts, "default"),
    ("tenant", "p_tenants", "text[]", texts, ""),
    ("priority", "p_priorities", "smallint[]", numbers, 0),
    ("attempts_max", "p_attempts_max", "integer[]", numbers, 4),
    ("dead_letter", "p_dead_letters", "boolean[]", flags, True),
    ("idempotent", "p_idempotents", "boolean[]", flags, True),
    ("unique_pending", "p_unique_pendings", "boolean[]", flags, False),
    ("due_at", "p_due_ats", "timestamptz[]", partial(times, field="due_at"), None),
    ("expires_at", "p_expires_ats", "timestamptz[]", partial(times, field="expires_at"), None),
    ("metadata", "p_metadatas", "text[]", texts, None),
    ("correlation_id", "p_correlation_ids", "text[]", texts, None),
    ("traceparent", "p_traceparents", "text[]", texts, None),
    ("run_id", "p_run_ids", "bigint[]", numbers, None),
    ("limit_key", "p_limit_keys", "text[]", texts, None),
    ("key", "p_keys", "text[]", texts, None),
    ("fingerprint", "p_fingerprints", "text[]", texts, None),
    ("key_ttl", "p_key_ttls", "double precision[]", numbers, None),
    ("group", "p_groups", "bigint[]", numbers, None),
    ("cost", "p_costs", "integer[]", numbers, None),
)
"""Each field of a new job: the argument, its type, how it is written, and what the function takes for all of them where
it is not said."""
_ONE_FOR_ALL = {"nonce", "task", "payload", *(field for field, *_, default in _COLUMNS if default is not None)}
"""What is never null, and may be said once where all are equal."""

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
    keyless = columns["key"].count(None) == len(items)
    places: list[str] = []
    said: list[str] = []
    for field, argument, kind, written, default in _COLUMNS:
        values = columns[field]
        alike = values.count(values[0]) == len(values)
        if (alike and values[0] == default) or (keyless and field == "fingerprint"):
            continue
        places.append(f"{argument} => %s::{kind}")
        said.append(written(values[:1] if alike and field in _ONE_FOR_ALL else values))
    return ", ".join(places), tuple(said)


def refusal(item: NewJob, answer: str, job_id: int) -> DetentError:
    """Why an item was refused, in the name of the item that caused it."""
    if answer == "id_conflict":
        return IdConflict(job_id)
    return KeyConflict(item.key or "", item.tenant, job_id)
