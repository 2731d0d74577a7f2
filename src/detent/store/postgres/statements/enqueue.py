"""The way in: ids and new jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec.structs import astuple

from detent.errors import DetentError, IdConflict, InvalidInput, KeyConflict
from detent.model.alike import AlikeJobs, ids_of
from detent.model.records import Enqueued, NewJob
from detent.store.postgres.statements.base import Row, Statement, flags, moment, numbers, texts, times

__all__ = ["ids_reserve", "job_enqueue", "job_enqueue_one", "lanes_make", "may_go_alone", "new_jobs", "refusal"]

_ENQUEUE = "SELECT ord, answer, job_id, cause FROM detent.job_enqueue_v1({})"
_ENQUEUE_ONE = "SELECT detent.job_enqueue_one_v1({})"
_Written = Callable[[Sequence[Any]], str]
_FIELDS = NewJob.__struct_fields__
_SAID_ONCE = ("nonce", "task", "payload", "group")
_NOT_OF_ONE = ("unique_pending", "key", "fingerprint", "key_ttl", "group", "cost")


class _Column:
    """A field of a new job: where it stands there, the argument it becomes and its type, how it is written, and what
    the function takes for all of them where it is not said. What is not null, or need not be told from it, may be said
    once where all are equal. For a job by itself the argument has the field's own name."""

    def __init__(self, field: str, argument: str, kind: str, written: _Written, default: Any = None) -> None:
        self.field = field
        self.place = _FIELDS.index(field)
        self.said = f"{argument} => %s::{kind}"
        self.said_of_one = f"p_{field} => %s::{kind.removesuffix('[]')}"
        self.written = written
        self.default = default
        self.once = default is not None or field in _SAID_ONCE
        self.is_of_key = field == "fingerprint"


_COLUMNS = (
    _Column("id", "p_ids", "bigint[]", numbers),
    _Column("nonce", "p_nonces", "bigint[]", numbers),
    _Column("task", "p_tasks", "text[]", texts),
    _Column("payload", "p_payloads", "text[]", texts),
    _Column("queue", "p_queues", "text[]", texts, "default"),
    _Column("tenant", "p_tenants", "text[]", texts, ""),
    _Column("priority", "p_priorities", "smallint[]", numbers, 0),
    _Column("attempts_max", "p_attempts_max", "integer[]", numbers, 4),
    _Column("dead_letter", "p_dead_letters", "boolean[]", flags, True),
    _Column("idempotent", "p_idempotents", "boolean[]", flags, True),
    _Column("unique_pending", "p_unique_pendings", "boolean[]", flags, False),
    _Column("due_at", "p_due_ats", "timestamptz[]", partial(times, field="due_at")),
    _Column("expires_at", "p_expires_ats", "timestamptz[]", partial(times, field="expires_at")),
    _Column("metadata", "p_metadatas", "text[]", texts),
    _Column("correlation_id", "p_correlation_ids", "text[]", texts),
    _Column("traceparent", "p_traceparents", "text[]", texts),
    _Column("run_id", "p_run_ids", "bigint[]", numbers),
    _Column("limit_key", "p_limit_keys", "text[]", texts),
    _Column("key", "p_keys", "text[]", texts),
    _Column("fingerprint", "p_fingerprints", "text[]", texts),
    _Column("key_ttl", "p_key_ttls", "double precision[]", numbers),
    _Column("group", "p_groups", "bigint[]", numbers),
    _Column("cost", "p_costs", "integer[]", numbers),
)
_OF_ONE = tuple(column for column in _COLUMNS if column.field not in _NOT_OF_ONE)
_KEY = _FIELDS.index("key")

_LANES = "SELECT detent.lanes_make_v1(%s::text[], %s::text[], %s::text[], %s::smallint[], %s::text[])"


def ids_reserve(count: int) -> Statement[int]:
    """Refuses a negative count."""
    if count < 0:
        raise InvalidInput("count", str(count), "zero or more")
    # A lost answer leaves a gap in the ids and hides nothing.
    return Statement("SELECT detent.ids_reserve_v1(%s::integer)", (count,), lambda rows: int(rows[0][0]), writes=False)


def lanes_make(lanes: Sequence[tuple[str, str, str, int, str]]) -> Statement[None]:
    """Each a queue, a task, a tenant, a priority and the key of a limit."""
    queues, tasks, tenants, priorities, limit_keys = zip(*lanes, strict=True)
    params = (texts(queues), texts(tasks), texts(tenants), numbers(priorities), texts(limit_keys))
    return Statement(_LANES, params, lambda rows: None)


def job_enqueue(items: Sequence[NewJob], *, notify: bool) -> Statement[list[Enqueued | DetentError]]:
    """Only what was not simply created comes back. `notify` whoever may wait; otherwise look first whether somebody
    does."""

    def decode(rows: Sequence[Row]) -> list[Enqueued | DetentError]:
        answers: list[Enqueued | DetentError] = [Enqueued(job_id, True) for job_id in ids_of(items)]
        for place, answer, job_id, cause in rows:
            answers[place - 1] = (
                Enqueued(job_id, False) if answer == "found" else refusal(items[cause - 1], answer, job_id)
            )
        return answers

    places, values = new_jobs(items)
    return Statement(_ENQUEUE.format(f"{places}, p_notify => {notify}"), values, decode)


def job_enqueue_one(item: NewJob, *, notify: bool) -> Statement[bool]:
    """Whether it was simply created; where it was not, `job_enqueue` has the answer. For jobs that `may_go_alone`."""
    found = astuple(item)
    said: list[str] = []
    values: list[Any] = []
    for column in _OF_ONE:
        value = found[column.place]
        if value != column.default:
            said.append(column.said_of_one)
            values.append(moment(value, field=column.field) if isinstance(value, datetime) else value)
    sql = _ENQUEUE_ONE.format(f"{', '.join(said)}, p_notify => {notify}")
    return Statement(sql, tuple(values), lambda rows: bool(rows[0][0]))


def may_go_alone(item: NewJob) -> bool:
    """Whether there is nothing to judge about it but its id."""
    return item.key is None and item.cost is None and item.group is None and not item.unique_pending


def new_jobs(items: Sequence[NewJob]) -> tuple[str, tuple[str, ...]]:
    """New jobs as arguments by name, one array per column, and their values. Only what differs from the default is
    said: to read a short call costs the server a fraction."""
    if not items:
        return "", ()
    if isinstance(items, AlikeJobs):
        return _alike(items)
    total = len(items)
    columns = [(value,) for value in astuple(items[0])] if total == 1 else list(zip(*map(astuple, items), strict=True))
    keyless = columns[_KEY].count(None) == total
    said: list[str] = []
    values: list[str] = []
    for column in _COLUMNS:
        found = columns[column.place]
        is_alike = total == 1 or found.count(found[0]) == total
        if (is_alike and found[0] == column.default) or (keyless and column.is_of_key):
            continue
        said.append(column.said)
        values.append(column.written(found[:1] if is_alike and column.once else found))
    return ", ".join(said), tuple(values)


def _alike(items: AlikeJobs) -> tuple[str, tuple[str, ...]]:
    """The same for many of one kind."""
    like = astuple(items.like)
    said: list[str] = []
    values: list[str] = []
    for column in _COLUMNS:
        found: Sequence[Any]
        if column.field == "id":
            found = items.ids
        elif column.field == "payload":
            found = items.payloads
            if found.count(found[0]) == len(items):
                found = found[:1]
        elif like[column.place] == column.default or column.is_of_key:
            continue
        else:
            found = (like[column.place],) * (1 if column.once else len(items))
        said.append(column.said)
        values.append(column.written(found))
    return ", ".join(said), tuple(values)


def refusal(item: NewJob, answer: str, job_id: int) -> DetentError:
    """Why an item was refused, in the name of the item that caused it."""
    if answer == "id_conflict":
        return IdConflict(job_id)
    return KeyConflict(item.key or "", item.tenant, job_id)
