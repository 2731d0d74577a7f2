"""Undoing steps on PostgreSQL, and settling them."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, LeaseLost, NotFound
from detent.model.records import Moved
from detent.model.workflow_records import NewUndo, UndoBegun, UndoStarted
from detent.store.postgres.statement import Row, Statement
from detent.store.postgres.verb_base import VerbBase, requeues, runs
from detent.store.workflows.rules import settled, undo_refused

__all__ = ["PostgresUndo"]

_UNDO = "SELECT instead, cause, waived FROM detent.undo_begin_v1(%s::bigint, %s::integer, %s::text)"
_START = """
SELECT answer, undo_id, detail
  FROM detent.undo_start_v1(%s::bigint, %s::bigint, %s::bigint, %s::text, %s::text)
"""
_SETTLE = """
SELECT from_state, dead_reason, settled, steps
  FROM detent.step_settle_v1(%s::bigint, %s::text, %s::boolean, %s::text, %s::text, %s::text)
"""


def undo_begin(job_id: int, attempt: int, cause: str) -> Statement[UndoBegun | DetentError]:
    def decode(rows: Sequence[Row]) -> UndoBegun | DetentError:
        instead, found, waived = rows[0]
        if instead is not None:
            return LeaseLost(job_id, attempt, instead)
        return UndoBegun(job_id, found or cause, waived)

    return Statement(_UNDO, (job_id, attempt, cause), decode)


def undo_start(item: NewUndo) -> Statement[UndoStarted | DetentError]:
    def decode(rows: Sequence[Row]) -> UndoStarted | DetentError:
        answer, undo_id, detail = rows[0]
        if answer in ("made", "found"):
            return UndoStarted(item.job_id, undo_id, answer == "made")
        return undo_refused(item.job_id, answer, detail)

    return Statement(_START, (item.job_id, item.id, item.nonce, item.metadata, item.cause), decode)


def step_settle(
    job_id: int, path: str, done: bool, actor: str, reason: str, value: str | None = None
) -> Statement[Moved | DetentError]:
    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        return settled(job_id, path, *rows[0]) if rows else NotFound("job", str(job_id))

    return Statement(_SETTLE, (job_id, path, done, value, actor, reason), decode)


class PostgresUndo(VerbBase):
    """`undo_begin`, `undo_start` and `step_settle`."""

    undo_begin = runs(undo_begin)
    undo_start = requeues(runs(undo_start))
    step_settle = requeues(runs(step_settle))
