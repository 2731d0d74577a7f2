"""Enqueueing on PostgreSQL: ids and new jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec.structs import astuple

from detent.errors import DetentError, IdConflict, InvalidInput, KeyConflict
from detent.model.records import Enqueued, NewJob
from detent.model.uniform_jobs import UniformJobs, as_uniform, ids_of, representatives
from detent.store.postgres.statement import Row, Statement, flags, moment, numbers, texts, times
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = [
    "PostgresEnqueue",
    "ids_reserve",
    "is_plain",
    "job_enqueue",
    "job_enqueue_one",
    "lanes_make",
    "new_jobs",
    "refusal",
]

_ENQUEUE = "SELECT ord, answer, job_id, cause FROM detent.job_enqueue_v1({})"
_ENQUEUE_ONE = "SELECT detent.job_enqueue_one_v1({})"
_Write = Callable[[Sequence[Any]], str]
Answers = list[Enqueued | DetentError]
_FIELDS = NewJob.__struct_fields__
_NEVER_NULL = ("nonce", "task", "payload", "group", "parent_id")
_NOT_OF_SINGLE = ("unique_pending", "key", "fingerprint", "key_ttl", "group", "cost", "parent_id")


class _Column:
    """A field of a new job as an argument of the SQL functions: its position, type, how an array of it is written, and
    the function's default. If all jobs have one value, a field that has a default, or is never null, is passed once.
    For a single job the argument has the name of the field."""

    def __init__(self, field: str, argument: str, kind: str, write: _Write, default: Any = None) -> None:
        self.field = field
        self.position = _FIELDS.index(field)
        self.array_argument = f"{argument} => %s::{kind}"
        self.single_argument = f"p_{field} => %s::{kind.removesuffix('[]')}"
        self.write = write
        self.default = default
        self.once = default is not None or field in _NEVER_NULL
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
    _Column("parent_id", "p_parent_ids", "bigint[]", numbers),
)
_OF_SINGLE = tuple(column for column in _COLUMNS if column.field not in _NOT_OF_SINGLE)
_KEY = _FIELDS.index("key")

_LANES = "SELECT detent.lanes_make_v1(%s::text[], %s::text[], %s::text[], %s::smallint[], %s::text[])"


def ids_reserve(count: int) -> Statement[int]:
    if count < 0:
        raise InvalidInput("count", str(count), "zero or more")
    # A lost answer leaves a gap in the ids and hides no change.
    return Statement("SELECT detent.ids_reserve_v1(%s::integer)", (count,), lambda rows: int(rows[0][0]), writes=False)


def lanes_make(lanes: Sequence[tuple[str, str, str, int, str]]) -> Statement[None]:
    """Create the lanes, each a queue, a task, a tenant, a priority and the key of a limit."""
    queues, tasks, tenants, priorities, limit_keys = zip(*lanes, strict=True)
    params = (texts(queues), texts(tasks), texts(tenants), numbers(priorities), texts(limit_keys))
    return Statement(_LANES, params, lambda rows: None)


def job_enqueue(items: Sequence[NewJob], *, notify: bool) -> Statement[list[Enqueued | DetentError]]:
    """Rows come back only for jobs that were not created. With `notify` waiters are always notified; otherwise only if
    a worker has announced that it waits."""

    def decode(rows: Sequence[Row]) -> list[Enqueued | DetentError]:
        answers: list[Enqueued | DetentError] = [Enqueued(job_id, True) for job_id in ids_of(items)]
        for place, answer, job_id, cause in rows:
            answers[place - 1] = (
                Enqueued(job_id, False) if answer == "found" else refusal(items[cause - 1], answer, job_id)
            )
        return answers

    arguments, values = new_jobs(items)
    return Statement(_ENQUEUE.format(f"{arguments}, p_notify => {notify}"), values, decode)


def job_enqueue_one(item: NewJob, *, notify: bool) -> Statement[bool]:
    """Return whether a job that `is_plain` was created; if not, `job_enqueue` has the answer."""
    found = astuple(item)
    arguments: list[str] = []
    values: list[Any] = []
    for column in _OF_SINGLE:
        value = found[column.position]
        if value != column.default:
            arguments.append(column.single_argument)
            values.append(moment(value, field=column.field) if isinstance(value, datetime) else value)
    sql = _ENQUEUE_ONE.format(f"{', '.join(arguments)}, p_notify => {notify}")
    return Statement(sql, tuple(values), lambda rows: bool(rows[0][0]))


def is_plain(item: NewJob) -> bool:
    """Return whether nothing has to be checked for a job but its id."""
    return (
        item.key is None
        and item.cost is None
        and item.group is None
        and item.parent_id is None
        and not item.unique_pending
    )


def new_jobs(items: Sequence[NewJob]) -> tuple[str, tuple[str, ...]]:
    """Return new jobs as named arguments, one array per column, and their values. Only fields that differ from the
    default are passed, because the server parses a short call in a fraction of the time."""
    if not items:
        return "", ()
    if isinstance(items, UniformJobs):
        return _alike(items)
    total = len(items)
    columns = [(value,) for value in astuple(items[0])] if total == 1 else list(zip(*map(astuple, items), strict=True))
    keyless = columns[_KEY].count(None) == total
    arguments: list[str] = []
    values: list[str] = []
    for column in _COLUMNS:
        found = columns[column.position]
        is_alike = total == 1 or found.count(found[0]) == total
        if (is_alike and found[0] == column.default) or (keyless and column.is_of_key):
            continue
        arguments.append(column.array_argument)
        values.append(column.write(found[:1] if is_alike and column.once else found))
    return ", ".join(arguments), tuple(values)


def _alike(items: UniformJobs) -> tuple[str, tuple[str, ...]]:
    """Return the arguments for jobs that differ in id and payload only."""
    like = astuple(items.prototype)
    arguments: list[str] = []
    values: list[str] = []
    for column in _COLUMNS:
        found: Sequence[Any]
        if column.field == "id":
            found = items.ids
        elif column.field == "payload":
            found = items.payloads
            if found.count(found[0]) == len(items):
                found = found[:1]
        elif like[column.position] == column.default or column.is_of_key:
            continue
        else:
            found = (like[column.position],) * (1 if column.once else len(items))
        arguments.append(column.array_argument)
        values.append(column.write(found))
    return ", ".join(arguments), tuple(values)


def refusal(item: NewJob, answer: str, job_id: int) -> DetentError:
    """Return the error that refused an item. `item` is the one that caused it."""
    if answer == "id_conflict":
        return IdConflict(job_id)
    return KeyConflict(item.key or "", item.tenant, job_id)


class PostgresEnqueue(VerbBase):
    """`ids_reserve` and `job_enqueue`."""

    ids_reserve = runs(ids_reserve)

    def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        """Enqueue a single plain job the short way, and others as a set."""
        if not items:
            return []
        items = as_uniform(items)
        if self._lanes is not None:
            self._lanes.ensure(representatives(items))
        if len(items) == 1 and is_plain(items[0]):
            created = self._session.run(job_enqueue_one(items[0], notify=self._callers_own))
            if created:
                return self._admitted(items, [Enqueued(items[0].id, True)])
        return self._admitted(items, self._session.run(job_enqueue(items, notify=self._callers_own)))

    def _admitted(self, items: Sequence[NewJob], answers: Answers) -> Answers:
        """Note that new jobs may be before the bounds of claims."""
        if self._bounds is not None:
            self._bounds.admit(ids_of(items))
        return answers
