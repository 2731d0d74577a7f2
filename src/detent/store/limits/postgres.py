"""Limits on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, InUse, LeaseLost, NotFound
from detent.model.limit_records import Charge, Charged, LimitFilter, LimitRow, NewLimit
from detent.model.records import Moved
from detent.model.service_records import LimitsPruned
from detent.store.limits.contract import ALL_LIMITS, LIMITS_MAX
from detent.store.postgres.statement import Row, Statement, named, numbers, texts
from detent.store.postgres.verb_base import VerbBase, runs, runs_each

__all__ = ["PostgresLimits"]

_PUT = """
SELECT detent.limit_put_v2(%s::text, %s::double precision, %s::double precision, %s::double precision, %s::integer,
                           %s::text[], %s::text[], %s::text, %s::text, %s::text)
"""
_LIST = f"""
SELECT {", ".join(LimitRow.__struct_fields__)}
  FROM detent.limit_list_v2(%s::text[], %s::text[], %s::text[], %s::text, %s::integer)
"""
_REFILL = "SELECT detent.limit_refill_v1(%s::text[], %s::text[])"
_CLOSE = "SELECT detent.limit_close_v1(%s::text, %s::integer)"
_PAUSE = "SELECT detent.limit_pause_v1(%s::text, %s::text, %s::text)"
_RESET = "SELECT detent.limit_reset_v1(%s::text, %s::text, %s::text)"
_REMOVE = "SELECT detent.limit_remove_v1(%s::text, %s::text, %s::text)"

_CHARGE = """
SELECT ord, tokens, instead FROM detent.limit_charge_v1(%s::bigint[], %s::integer[], %s::double precision[])
"""


def limit_put(item: NewLimit, actor: str = "client", reason: str | None = None) -> Statement[None]:
    bounds = (item.rate, float(item.per), float(item.burst), item.concurrency_max)
    params = (item.key, *bounds, texts(item.tasks), texts(item.queues), actor, reason, item.bounds_text)
    return Statement(_PUT, params, lambda rows: None)


def limit_list(chosen: LimitFilter = ALL_LIMITS, after: str = "", limit: int = LIMITS_MAX) -> Statement[list[LimitRow]]:
    lists = (None if names is None else texts(names) for names in (chosen.keys, chosen.tasks, chosen.queues))
    return Statement(_LIST, (*lists, after, limit), lambda rows: [_limit(row) for row in rows], writes=False)


def limit_refill(queues: Sequence[str] | None, tasks: Sequence[str]) -> Statement[float | None]:
    names = (None if queues is None else texts(queues), texts(tasks))
    return Statement(_REFILL, names, lambda rows: rows[0][0], writes=False)


def limit_close(after: str, limit: int) -> Statement[str | None]:
    return Statement(_CLOSE, (after, limit), lambda rows: rows[0][0])


def limit_pause(key: str, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    return Statement(
        _PAUSE,
        (key, actor, reason),
        lambda rows: NotFound("limit", key) if rows[0][0] is None else Moved(key, "paused", rows[0][0]),
    )


def limit_reset(key: str, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    return Statement(
        _RESET,
        (key, actor, reason),
        lambda rows: NotFound("limit", key) if rows[0][0] is None else Moved(key, "closed", rows[0][0]),
    )


def limit_remove(key: str, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        needing = rows[0][0]
        if needing is None:
            return NotFound("limit", key)
        return InUse("limit", key, needing) if needing else Moved(key, "removed", True)

    return Statement(_REMOVE, (key, actor, reason), decode)


def limit_charge(items: Sequence[Charge]) -> Statement[list[Charged | DetentError]]:

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


def limit_prune(after: str, limit: int) -> Statement[LimitsPruned]:
    sql = "SELECT limits, next_key FROM detent.limit_prune_v1(%s::text, %s::integer)"
    return Statement(sql, (after, limit), lambda rows: LimitsPruned(*rows[0]))


class PostgresLimits(VerbBase):
    """The verbs of limits."""

    limit_put = runs(limit_put)
    limit_list = runs(limit_list)
    limit_refill = runs(limit_refill)
    limit_close = runs(limit_close)
    limit_pause = runs(limit_pause)
    limit_reset = runs(limit_reset)
    limit_remove = runs(limit_remove)
    limit_charge = runs_each(limit_charge)
    limit_prune = runs(limit_prune)
