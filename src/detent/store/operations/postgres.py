"""Operations on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, NotFound
from detent.model.records import Moved
from detent.model.service_records import NewOperation, OperationRow
from detent.store.jobs.move_rules import moved_to
from detent.store.operations.stored_request import COLUMNS, asked, operation_row, wanted_metadata
from detent.store.postgres.statement import Row, Statement, moment, named, texts
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresOperations"]

_ROW = f"SELECT {', '.join(COLUMNS)} FROM"
_START = f"{_ROW} detent.operation_start_v1(%s::bigint, %s::text, %s::text, %s::text, %s::text, %s::text)"
_STEP = f"""
{_ROW} detent.operation_step_v2(%s::bigint, %s::integer, %s::text, %s::text, %s::text, %s::text, %s::text, %s::smallint,
                                %s::text, %s::text, %s::text, %s::bigint, %s::text, %s::text, %s::text[], %s::text[],
                                %s::timestamptz, %s::timestamptz, %s::boolean)
"""
_SKIP = f"{_ROW} detent.operation_skip_v1(%s::bigint)"
_CANCEL = "SELECT detent.operation_cancel_v1(%s::bigint, %s::text, %s::text)"
_GET = f"{_ROW} detent.operation_get_v1(%s::bigint)"
_LIST = f"{_ROW} detent.operation_list_v2(%s::text, %s::integer, %s::bigint)"


def operation_start(item: NewOperation) -> Statement[OperationRow]:
    params = (item.id, item.action, *asked(item), item.actor, item.reason)
    return Statement(_START, params, lambda rows: _operations(rows)[0])


def _step(row: OperationRow, limit: int) -> Statement[OperationRow]:
    wanted = wanted_metadata(row.metadata) or None
    params = (
        *(row.id, limit, row.job_state, row.task, row.queue, row.tenant, row.to_queue, row.to_priority),
        *(moved_to(row.to_queue, row.to_priority), row.key, row.correlation_id, row.run_id, row.worker, row.error),
        *(wanted and texts(name for name, _ in wanted), wanted and texts(values for _, values in wanted)),
        *(one and moment(one, field="created") for one in (row.since, row.until)),
        row.undo,
    )
    return Statement(_STEP, params, lambda rows: _operations(rows)[0])


def operation_skip(operation_id: int) -> Statement[OperationRow | DetentError]:
    def decode(rows: Sequence[Row]) -> OperationRow | DetentError:
        return next(iter(_operations(rows)), None) or NotFound("operation", str(operation_id))

    return Statement(_SKIP, (operation_id,), decode)


def operation_cancel(operation_id: int, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        was = rows[0][0]
        if was is None:
            return NotFound("operation", str(operation_id))
        return Moved(str(operation_id), "cancelled" if was == "running" else was, was == "running")

    return Statement(_CANCEL, (operation_id, actor, reason), decode)


def operation_get(operation_id: int) -> Statement[OperationRow | None]:
    return Statement(_GET, (operation_id,), lambda rows: next(iter(_operations(rows)), None), writes=False)


def operation_list(
    state: str | None = None, limit: int = 100, before_id: int | None = None
) -> Statement[list[OperationRow]]:
    return Statement(_LIST, (state, limit, before_id), _operations, writes=False)


def _operations(rows: Sequence[Row]) -> list[OperationRow]:
    return [operation_row(named(COLUMNS, row)) for row in rows]


class PostgresOperations(VerbBase):
    """The verbs of operations."""

    operation_start = runs(operation_start)
    operation_skip = runs(operation_skip)
    operation_cancel = runs(operation_cancel)
    operation_get = runs(operation_get)
    operation_list = runs(operation_list)

    def operation_step(self, operation_id: int, limit: int) -> OperationRow | DetentError:
        """Read what the operation was asked to do first, which never changes, and pass it as arguments."""
        row = self.operation_get(operation_id)
        if row is None:
            return NotFound("operation", str(operation_id))
        stepped = self._session.run(_step(row, limit))
        self._forget_bounds()
        return stepped
