"""Retention of what belongs to no job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.model.service_records import KeysForgotten, LimitsPruned, LinesPruned
from detent.store.postgres.statements.base import Row, Statement, moment

__all__ = ["key_expire", "key_forget", "limit_prune", "log_prune"]

_FORGET = "SELECT keys, next_tenant, next_key FROM detent.key_forget_v1(%s::text, %s::text, %s::integer)"
_LIMITS = "SELECT limits, next_key FROM detent.limit_prune_v1(%s::text, %s::integer)"
_LINES = "SELECT lines, next_n FROM detent.log_prune_v1(%s::timestamptz, %s::bigint, %s::integer, %s::text)"


def key_expire(limit: int) -> Statement[int]:
    """How many went."""
    return Statement("SELECT detent.key_expire_v1(%s::integer)", (limit,), lambda rows: rows[0][0])


def key_forget(after: tuple[str, str], limit: int) -> Statement[KeysForgotten]:
    """How many went, and where to go on."""

    def decode(rows: Sequence[Row]) -> KeysForgotten:
        keys, tenant, key = rows[0]
        return KeysForgotten(keys, None if tenant is None else (tenant, key))

    return Statement(_FORGET, (*after, limit), decode)


def limit_prune(after: str, limit: int) -> Statement[LimitsPruned]:
    """How many went, and where to go on."""
    return Statement(_LIMITS, (after, limit), lambda rows: LimitsPruned(*rows[0]))


def log_prune(before: datetime, after: int, limit: int, actor: str) -> Statement[LinesPruned]:
    """How many went, and where to go on."""
    return Statement(_LINES, (moment(before, field="before"), after, limit, actor), lambda rows: LinesPruned(*rows[0]))
