"""Tokens on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, NameTaken, NotFound
from detent.model.records import Moved
from detent.model.token_records import NewToken, TokenRow
from detent.store.postgres.statement import Row, Statement, moment, named
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresTokens"]

_FIELDS = TokenRow.__struct_fields__
_ROW = f"SELECT {', '.join(_FIELDS)} FROM"
_CREATE = f"""
{_ROW} detent.token_create_v1(%s::bigint, %s::text, %s::text, %s::text, %s::text, %s::timestamptz, %s::text, %s::text)
"""


def token_create(item: NewToken) -> Statement[TokenRow | DetentError]:
    expires_at = item.expires_at and moment(item.expires_at, field="expires_at")
    params = (item.id, item.name, item.hash, item.role, item.tenant, expires_at, item.actor, item.reason)
    return Statement(_CREATE, params, lambda rows: next(iter(_tokens(rows)), None) or NameTaken("token", item.name))


def token_revoke(name: str, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        was = rows[0][0]
        return NotFound("token", name) if was is None else Moved(name, "revoked", was == "usable")

    sql = "SELECT detent.token_revoke_v1(%s::text, %s::text, %s::text)"
    return Statement(sql, (name, actor, reason), decode)


def token_list(revoked: bool, before: int, limit: int) -> Statement[list[TokenRow]]:
    sql = f"{_ROW} detent.token_list_v1(%s::boolean, %s::bigint, %s::integer)"
    return Statement(sql, (revoked, before, limit), _tokens, writes=False)


def token_find(hash: str) -> Statement[TokenRow | None]:
    sql = f"{_ROW} detent.token_find_v1(%s::text)"
    return Statement(sql, (hash,), lambda rows: next(iter(_tokens(rows)), None), writes=False)


def token_used(token_id: int) -> Statement[bool]:
    return Statement("SELECT detent.token_used_v1(%s::bigint)", (token_id,), lambda rows: rows[0][0])


def _tokens(rows: Sequence[Row]) -> list[TokenRow]:
    return [TokenRow(**named(_FIELDS, row)) for row in rows]


class PostgresTokens(VerbBase):
    """The verbs of tokens."""

    token_create = runs(token_create)
    token_revoke = runs(token_revoke)
    token_list = runs(token_list)
    token_find = runs(token_find)
    token_used = runs(token_used)
