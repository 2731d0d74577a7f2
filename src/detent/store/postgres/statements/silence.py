"""Jobs that nothing is heard of, what becomes of them, and what tasks say of themselves."""

from __future__ import annotations

from collections.abc import Sequence

from detent.model.records import Moved, ResultsDropped
from detent.model.service_records import RecoveryRow, SilentRow, TaskTimes
from detent.store.postgres.statements.base import Statement, named, numbers, texts

__all__ = [
    "job_silent",
    "recovery_list",
    "recovery_set",
    "result_drop",
    "times_list",
    "times_put",
]

_SILENT = SilentRow.__struct_fields__
_RECOVERY = RecoveryRow.__struct_fields__
_FIND = f"""
SELECT {", ".join(_SILENT)}
  FROM detent.job_silent_v2(%s::text, %s::double precision, %s::double precision, %s::integer, %s::bigint[])
"""
_SET = "SELECT detent.recovery_set_v1(%s::text, %s::double precision, %s::double precision, %s::text, %s::text)"
_LIST = f"SELECT {', '.join(_RECOVERY)} FROM detent.recovery_list_v1()"

_TIMES = TaskTimes.__struct_fields__
_PUT_TIMES = """
SELECT detent.times_put_v1(%s::text[], %s::double precision[], %s::double precision[], %s::double precision[])
"""
_LIST_TIMES = f"SELECT {', '.join(_TIMES)} FROM detent.times_list_v1()"
_DROP = "SELECT results, next_id FROM detent.result_drop_v1(%s::bigint, %s::integer)"


def job_silent(
    queue: str | None,
    stale_after: float | None,
    stalled_after: float | None,
    limit: int,
    lease_ids: Sequence[int] | None = None,
) -> Statement[list[SilentRow]]:
    """The longest silent first."""
    params = (queue, stale_after, stalled_after, limit, None if lease_ids is None else numbers(lease_ids))
    return Statement(_FIND, params, lambda rows: [SilentRow(**named(_SILENT, row)) for row in rows], writes=False)


def times_put(items: Sequence[TaskTimes]) -> Statement[None]:
    """A row for each that says something."""
    columns = [[getattr(item, name) for item in items] for name in ("stale_after", "stalled_after", "result_ttl")]
    return Statement(_PUT_TIMES, (texts([item.task for item in items]), *columns), lambda rows: None)


def times_list() -> Statement[list[TaskTimes]]:
    """By name."""
    return Statement(_LIST_TIMES, (), lambda rows: [TaskTimes(**named(_TIMES, row)) for row in rows], writes=False)


def result_drop(after_id: int, limit: int) -> Statement[ResultsDropped]:
    """How many, and where to go on."""
    return Statement(_DROP, (after_id, limit), lambda rows: ResultsDropped(*rows[0]))


def recovery_set(
    queue: str, stale_after: float | None, stalled_after: float | None, actor: str, reason: str | None
) -> Statement[Moved]:
    """So now, by this call or before."""
    state = "approval" if stale_after is None and stalled_after is None else "automatic"
    params = (queue, stale_after, stalled_after, actor, reason)
    return Statement(_SET, params, lambda rows: Moved(queue, state, bool(rows[0][0])))


def recovery_list() -> Statement[list[RecoveryRow]]:
    """By name."""
    return Statement(_LIST, (), lambda rows: [RecoveryRow(**named(_RECOVERY, row)) for row in rows], writes=False)
