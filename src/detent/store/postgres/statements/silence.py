"""Jobs that nothing is heard of, and what becomes of them."""

from __future__ import annotations

from detent.model.records import Moved
from detent.model.service_records import RecoveryRow, SilentRow
from detent.store.postgres.statements.base import Statement, named

__all__ = ["job_silent", "recovery_list", "recovery_set"]

_SILENT = SilentRow.__struct_fields__
_RECOVERY = RecoveryRow.__struct_fields__
_FIND = f"""
SELECT {", ".join(_SILENT)}
  FROM detent.job_silent_v1(%s::text, %s::double precision, %s::double precision, %s::integer)
"""
_SET = "SELECT detent.recovery_set_v1(%s::text, %s::double precision, %s::double precision, %s::text, %s::text)"
_LIST = f"SELECT {', '.join(_RECOVERY)} FROM detent.recovery_list_v1()"


def job_silent(
    queue: str | None, stale_after: float | None, stalled_after: float | None, limit: int
) -> Statement[list[SilentRow]]:
    """The longest silent first."""
    params = (queue, stale_after, stalled_after, limit)
    return Statement(_FIND, params, lambda rows: [SilentRow(**named(_SILENT, row)) for row in rows], writes=False)


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
