"""The verbs of limits."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, InUse, LeaseLost, NotFound
from detent.model.limit_records import Charge, Charged, LimitRow, NewLimit
from detent.model.records import Moved
from detent.store.postgres.statements.base import Row, Statement, named, numbers, texts

__all__ = ["limit_charge", "limit_list", "limit_pause", "limit_put", "limit_remove", "limit_reset"]

_PUT = """
SELECT detent.limit_put_v1(%s::text, %s::double precision, %s::double precision, %s::double precision, %s::integer,
                           %s::text[], %s::text[])
"""
_LIST = f"SELECT {', '.join(LimitRow.__struct_fields__)} FROM detent.limit_list_v1()"
_PAUSE = "SELECT detent.limit_pause_v1(%s::text, %s::text, %s::text)"
_RESET = "SELECT detent.limit_reset_v1(%s::text, %s::text, %s::text)"
_REMOVE = "SELECT detent.limit_remove_v1(%s::text, %s::text, %s::text)"

_CHARGE = """
SELECT ord, tokens, instead FROM detent.limit_charge_v1(%s::bigint[], %s::integer[], %s::double precision[])
"""


def limit_put(item: NewLimit) -> Statement[None]:
    """One row, and one for each task and queue."""
    bounds = (item.rate, float(item.per), float(item.burst), item.concurrency_max)
    return Statement(_PUT, (item.key, *bounds, texts(item.tasks), texts(item.queues)), lambda rows: None)


def limit_list() -> Statement[list[LimitRow]]:
    """By key."""
    return Statement(_LIST, (), lambda rows: [_limit(row) for row in rows], writes=False)


def limit_pause(key: str, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """Whether it was not paused by hand before."""
    return Statement(
        _PAUSE,
        (key, actor, reason),
        lambda rows: NotFound("limit", key) if rows[0][0] is None else Moved(key, "paused", rows[0][0]),
    )


def limit_reset(key: str, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """Whether there was anything to end."""
    return Statement(
        _RESET,
        (key, actor, reason),
        lambda rows: NotFound("limit", key) if rows[0][0] is None else Moved(key, "closed", rows[0][0]),
    )


def limit_remove(key: str, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """Gone, or who needs it."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        needing = rows[0][0]
        if needing is None:
            return NotFound("limit", key)
        return InUse("limit", key, needing) if needing else Moved(key, "removed", True)

    return Statement(_REMOVE, (key, actor, reason), decode)


def limit_charge(items: Sequence[Charge]) -> Statement[list[Charged | DetentError]]:
    """One row per item, in order."""

    def decode(rows: Sequence[Row]) -> list[Charged | DetentError]:
        return [
            Charged(item.job_id, item.attempt, tokens)
            if instead is None
            else LeaseLost(item.job_id, item.attempt, instead)
            for item, (_, tokens, instead) in zip(items, sorted(rows), strict=True)
        ]

    params = (
        numbers(item.job_id for item in items),
        numbers(item.attempt for item in items),
        numbers(float(item.cost) for item in items),
    )
    return Statement(_CHARGE, params, decode)


def _limit(row: Row) -> LimitRow:
    fields = named(LimitRow.__struct_fields__, row)
    return LimitRow(**fields | {name: tuple(fields[name]) for name in ("tasks", "queues")})
