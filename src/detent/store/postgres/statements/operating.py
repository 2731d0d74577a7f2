"""What is done to many jobs at once."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, NotFound
from detent.model.records import Moved
from detent.model.service_records import DeadGroup, NewOperation, OperationRow
from detent.store.operations import asked, moved_to, operation_row, wanted_metadata
from detent.store.postgres.statements.base import Row, Statement, moment, named, numbers, texts, undeclared
from detent.store.words import JobFilter

__all__ = [
    "counts_fold",
    "dead_report",
    "job_count",
    "job_move",
    "operation_cancel",
    "operation_get",
    "operation_list",
    "operation_skip",
    "operation_start",
    "operation_step",
]

_FIELDS = (
    *("id", "action", "state", "filter", "argument", "actor", "reason", "until_id", "after_id", "looked_at"),
    *("changed", "refused", "created_at", "finished_at"),
)
_DEAD = DeadGroup.__struct_fields__
_REPORT = f"""
SELECT {", ".join(_DEAD)} FROM detent.dead_report_v1(%s::text, %s::text, %s::text, %s::integer)
"""
_ROW = f"SELECT {', '.join(_FIELDS)} FROM"
_FOLD = "SELECT detent.counts_fold_v1(%s::integer)"
_COUNT = "SELECT detent.job_count_v1(%s::text, %s::text, %s::text, %s::text)"
_MOVE = """
SELECT ord, from_state, moved
  FROM detent.job_move_v1(%s::bigint[], %s::text, %s::smallint, %s::text, %s::text, %s::text)
"""
_START = f"{_ROW} detent.operation_start_v1(%s::bigint, %s::text, %s::text, %s::text, %s::text, %s::text)"
_STEP = f"""
{_ROW} detent.operation_step_v2(%s::bigint, %s::integer, %s::text, %s::text, %s::text, %s::text, %s::text, %s::smallint,
                                %s::text, %s::text, %s::text, %s::bigint, %s::text, %s::text, %s::text[], %s::text[],
                                %s::timestamptz, %s::timestamptz)
"""
_SKIP = f"{_ROW} detent.operation_skip_v1(%s::bigint)"
_CANCEL = "SELECT detent.operation_cancel_v1(%s::bigint, %s::text, %s::text)"
_GET = f"{_ROW} detent.operation_get_v1(%s::bigint)"
_LIST = f"{_ROW} detent.operation_list_v1(%s::text, %s::integer)"


def job_count(chosen: JobFilter) -> Statement[int]:
    """From the jobs themselves."""
    params = (chosen.state, chosen.task, chosen.queue, chosen.tenant)
    return Statement(_COUNT, params, lambda rows: int(rows[0][0]), writes=False)


def dead_report(task: str | None, queue: str | None, tenant: str | None, limit: int) -> Statement[list[DeadGroup]]:
    """The largest groups first."""
    params = (task, queue, tenant, limit)
    return Statement(_REPORT, params, lambda rows: [DeadGroup(**named(_DEAD, row)) for row in rows], writes=False)


def job_move(
    ids: Sequence[int], queue: str | None, priority: int | None, actor: str, reason: str | None
) -> Statement[list[Moved | DetentError]]:
    """One row per item, in the order of the jobs."""

    def decode(rows: Sequence[Row]) -> list[Moved | DetentError]:
        found = {place: rest for place, *rest in rows}
        return [_moved(job_id, *found[n]) for n, job_id in enumerate(ids, start=1)]

    params = (numbers(ids), queue, priority, actor, reason, moved_to(queue, priority))
    return Statement(_MOVE, params, decode)


def _moved(job_id: int, from_state: str | None, moved: bool) -> Moved | DetentError:
    if from_state is None:
        return NotFound("job", str(job_id))
    return (
        Moved(str(job_id), "pending", moved) if from_state == "pending" else undeclared(job_id, from_state, "pending")
    )


def operation_start(item: NewOperation) -> Statement[OperationRow]:
    """The operation as it begins."""
    params = (item.id, item.action, *asked(item), item.actor, item.reason)
    return Statement(_START, params, lambda rows: _operations(rows)[0])


def operation_step(row: OperationRow, limit: int) -> Statement[OperationRow]:
    """The operation as it stands then. What it was asked for never changes, so it may have been read before."""
    wanted = wanted_metadata(row.metadata) or None
    params = (
        *(row.id, limit, row.job_state, row.task, row.queue, row.tenant, row.to_queue, row.to_priority),
        *(moved_to(row.to_queue, row.to_priority), row.key, row.correlation_id, row.run_id, row.worker, row.error),
        *(wanted and texts(name for name, _ in wanted), wanted and texts(values for _, values in wanted)),
        *(one and moment(one, field="created") for one in (row.since, row.until)),
    )
    return Statement(_STEP, params, lambda rows: _operations(rows)[0])


def operation_skip(operation_id: int) -> Statement[OperationRow | DetentError]:
    """The operation as it stands then."""

    def decode(rows: Sequence[Row]) -> OperationRow | DetentError:
        return next(iter(_operations(rows)), None) or NotFound("operation", str(operation_id))

    return Statement(_SKIP, (operation_id,), decode)


def operation_cancel(operation_id: int, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """Ended now, by this call or before."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        was = rows[0][0]
        if was is None:
            return NotFound("operation", str(operation_id))
        return Moved(str(operation_id), "cancelled" if was == "running" else was, was == "running")

    return Statement(_CANCEL, (operation_id, actor, reason), decode)


def operation_get(operation_id: int) -> Statement[OperationRow | None]:
    """None where there is none."""
    return Statement(_GET, (operation_id,), lambda rows: next(iter(_operations(rows)), None), writes=False)


def operation_list(state: str | None, limit: int) -> Statement[list[OperationRow]]:
    """The newest first."""
    return Statement(_LIST, (state, limit), _operations, writes=False)


def _operations(rows: Sequence[Row]) -> list[OperationRow]:
    return [operation_row(named(_FIELDS, row)) for row in rows]


def counts_fold(limit: int) -> Statement[int]:
    """How many changes were added."""
    return Statement(_FOLD, (limit,), lambda rows: rows[0][0])
