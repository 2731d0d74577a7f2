"""The steps of workflows on PostgreSQL: what is on record, and recording more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from detent.errors import DetentError, LeaseLost
from detent.model.workflow_records import NewStep, StepBegun, StepRecorded, StepRow, WorkflowHistory
from detent.store.postgres.statement import Row, Statement, numbers, texts, utc
from detent.store.postgres.verb_base import VerbBase, runs, runs_each

__all__ = ["STEP_COLUMNS", "PostgresSteps", "flags_of", "ran_us", "step_record", "step_row"]

STEP_COLUMNS = ", ".join(StepRow.__struct_fields__)
_LOAD = """
SELECT what, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo, began_at, done_at, value,
       error, signal_name, signal_seq, version, parks, depth, cancelled, cause, forked_from, suspect
  FROM detent.workflow_load_v1(%s::bigint, %s::integer, %s::text, %s::integer)
"""
_LOAD_MANY = """
SELECT ord, what, generation, path, seq, kind, scope, attempt, fingerprint, beside, secret, undo, began_at, done_at,
       value, error, signal_name, signal_seq, version, parks, depth, cancelled, cause, forked_from, suspect
  FROM detent.workflow_load_many_v1(%s::bigint[], %s::integer[], %s::integer)
"""
_BEGIN = """
SELECT ord, first, tries, instead
  FROM detent.step_begin_v1(%s::bigint[], %s::integer[], %s::integer[], %s::integer[], %s::text[], %s::integer[])
"""
_RECORD = """
SELECT ord, created, kind, value, error, done_at, instead
  FROM detent.step_record_v1(%s::bigint[], %s::integer[], %s::integer[], %s::integer[], %s::text[], %s::integer[],
                             %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::integer[], %s::text[])
"""
_RECORD_ONE = (
    "SELECT detent.step_record_one_v1(%s::bigint, %s::integer, %s::integer, %s::text, %s::integer, %s::text, %s::text, "
    "%s::bigint{})"
)


def workflow_load(
    job_id: int, attempt: int, *, after: str | None = None, limit: int = 1000
) -> Statement[WorkflowHistory | DetentError]:
    def decode(rows: Sequence[Row]) -> WorkflowHistory | DetentError:
        return _history(job_id, attempt, rows, limit)

    return Statement(_LOAD, (job_id, attempt, after, limit + 1), decode)


def workflow_load_many(
    items: Sequence[tuple[int, int]], limit: int = 1000
) -> Statement[list[WorkflowHistory | DetentError]]:
    def decode(rows: Sequence[Row]) -> list[WorkflowHistory | DetentError]:
        of_item: list[list[Row]] = [[] for _ in items]
        for row in rows:
            of_item[row[0] - 1].append(row[1:])
        return [_history(*item, found, limit) for item, found in zip(items, of_item, strict=True)]

    params = (numbers(job_id for job_id, _ in items), numbers(attempt for _, attempt in items), limit + 1)
    return Statement(_LOAD_MANY, params, decode)


def _history(job_id: int, attempt: int, rows: Sequence[Row], limit: int) -> WorkflowHistory | DetentError:
    """Return a workflow as it was read; one step more than asked for says that there are more."""
    head = rows[0]
    if head[0] == "lost":
        return LeaseLost(job_id, attempt, head[14])
    steps = [step_row((job_id, *row[1:17])) for row in rows if row[0] == "step"]
    begun = tuple(StepBegun(row[2], row[6], row[3]) for row in rows if row[0] == "begun")
    return WorkflowHistory(
        version=head[17],
        generation=head[1],
        now=utc(head[12]),
        steps=steps[:limit],
        next=steps[limit - 1].path if len(steps) > limit else None,
        begun=begun,
        cancelled=head[20],
        parks=head[18],
        undoing=head[10],
        depth=head[19],
        payload=head[13],
        cause=head[21],
        forked_from=head[22],
        seeds=head[7],
        suspect=head[23],
        undo_of=head[16],
        undone=bool(head[8]),
    )


def step_row(row: Row) -> StepRow:
    """Return a step as it was read, with the columns `STEP_COLUMNS`."""
    job_id, generation, path, seq, kind, scope, attempt, fingerprint, *rest = row
    beside, secret, undo, began_at, done_at, value, error, signal_name, signal_seq = rest
    return StepRow(
        job_id=job_id,
        generation=generation,
        path=path,
        seq=seq,
        kind=kind,
        scope=scope,
        attempt=attempt,
        fingerprint=fingerprint,
        beside=beside,
        secret=secret,
        undo=undo,
        began_at=utc(began_at),
        done_at=utc(done_at),
        value=value,
        error=error,
        signal_name=signal_name,
        signal_seq=signal_seq,
    )


def step_begin(items: Sequence[NewStep]) -> Statement[list[StepBegun | DetentError]]:
    def decode(rows: Sequence[Row]) -> list[StepBegun | DetentError]:
        answers: dict[int, StepBegun | DetentError] = {}
        for place, first, tries, instead in rows:
            item = items[place - 1]
            answers[place] = (
                StepBegun(item.path, first, tries) if instead is None else LeaseLost(item.job_id, item.attempt, instead)
            )
        return [answers[n] for n in range(1, len(items) + 1)]

    params = (
        numbers(item.job_id for item in items),
        numbers(item.attempt for item in items),
        numbers(item.version for item in items),
        numbers(item.generation for item in items),
        texts(item.path for item in items),
        numbers(flags_of(item) for item in items),
    )
    return Statement(_BEGIN, params, decode)


def flags_of(step: NewStep) -> int:
    """Return what is said about a step in one number."""
    return step.beside + 2 * step.secret + 4 * step.undo


def ran_us(step: NewStep) -> int:
    """Return how many microseconds a step took."""
    return round(step.ran_for * 1_000_000)


def step_record_one(item: NewStep) -> Statement[datetime | None]:
    """Return when the step was recorded; None if it was not: `step_record` has the answer."""
    params: list[Any] = [item.job_id, item.attempt, item.generation, item.path, item.seq, item.kind, item.value]
    params.append(ran_us(item))
    more = ""
    if item.scope:
        more += ", p_scope => %s::text"
        params.append(item.scope)
    if item.fingerprint is not None:
        more += ", p_fingerprint => %s::text"
        params.append(item.fingerprint)
    if flags := flags_of(item):
        more += ", p_flags => %s::integer"
        params.append(flags)
    if item.error is not None:
        more += ", p_error => %s::text"
        params.append(item.error)
    return Statement(_RECORD_ONE.format(more), tuple(params), lambda rows: rows[0][0])


def step_record(items: Sequence[NewStep]) -> Statement[list[StepRecorded | DetentError]]:
    """Rows come back only for steps that were not recorded now."""

    def decode(rows: Sequence[Row]) -> list[StepRecorded | DetentError]:
        now = utc(rows[0][5])
        answers: list[StepRecorded | DetentError] = [
            StepRecorded(item.path, True, item.kind, item.value, item.error, now) for item in items
        ]
        for place, created, kind, value, error, done_at, instead in rows[1:]:
            item = items[place - 1]
            if instead is not None:
                answers[place - 1] = LeaseLost(item.job_id, item.attempt, instead)
            else:
                answers[place - 1] = StepRecorded(item.path, created, kind, value, error, utc(done_at))
        return answers

    params = (
        numbers(item.job_id for item in items),
        numbers(_once([item.attempt for item in items])),
        numbers(_once([item.version for item in items])),
        numbers(_once([item.generation for item in items])),
        texts(item.path for item in items),
        numbers(item.seq for item in items),
        texts(_once([item.kind for item in items])),
        texts(item.value for item in items),
        numbers(_once([ran_us(item) for item in items])),
        texts(_once([item.scope for item in items])),
        texts(item.fingerprint for item in items),
        numbers(_once([flags_of(item) for item in items])),
        texts(item.error for item in items),
    )
    return Statement(_RECORD, params, decode)


def _once(values: list[Any]) -> list[Any]:
    """Return one value if all are the same."""
    return values[:1] if values.count(values[0]) == len(values) else values


class PostgresSteps(VerbBase):
    """`workflow_load`, `step_begin` and `step_record`."""

    workflow_load = runs(workflow_load)
    workflow_load_many = runs(workflow_load_many)
    step_begin = runs_each(step_begin)

    def step_record(self, items: Sequence[NewStep]) -> list[StepRecorded | DetentError]:
        """Record a single step the short way, and others as a set."""
        if not items:
            return []
        if len(items) == 1:
            (item,) = items
            done_at = self._session.run(step_record_one(item))
            if done_at is not None:
                return [StepRecorded(item.path, True, item.kind, item.value, item.error, utc(done_at))]
        return self._session.run(step_record(items))
