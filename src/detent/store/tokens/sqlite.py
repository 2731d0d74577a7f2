"""Tokens on SQLite."""

from __future__ import annotations

from detent.errors import DetentError, NameTaken, NotFound
from detent.model.clock import from_micros, to_micros
from detent.model.records import Moved
from detent.model.token_records import NewToken, TokenRow
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import VerbBase, micros

__all__ = ["SqliteTokens"]

_FIELDS = TokenRow.__struct_fields__
_TIMES = tuple(name for name in _FIELDS if name.endswith("_at"))
_ROW = f"SELECT {', '.join(_FIELDS)} FROM detent_token"
_NEW = """
INSERT INTO detent_token (id, name, hash, role, tenant, expires_at, created_at, created_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_LOG = """
INSERT INTO detent_transition_log (tenant, entity, entity_id, from_state, to_state, trigger, actor, reason, at)
VALUES (?, 'token', ?, ?, ?, ?, ?, ?, ?)
"""
_OF_ID = f"{_ROW} WHERE id = ? AND hash = ?"
_OF_HASH = f"{_ROW} WHERE hash = ?"
_OF_NAME = f"{_ROW} WHERE name = ? AND revoked_at IS NULL"
_REVOKED = "SELECT 1 FROM detent_token WHERE name = ? LIMIT 1"
_REVOKE = "UPDATE detent_token SET revoked_at = max(?, created_at), revoked_by = ? WHERE id = ?"
_LIST = f"{_ROW} WHERE id < ? ORDER BY id DESC LIMIT ?"
_LIST_USABLE = f"{_ROW} WHERE id < ? AND revoked_at IS NULL ORDER BY id DESC LIMIT ?"
_USED = "UPDATE detent_token SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ?)"
_NOTED_EVERY = micros(60)


class SqliteTokens(VerbBase):
    """The verbs of tokens."""

    def token_create(self, item: NewToken) -> TokenRow | DetentError:
        if found := self._db.rows(_OF_ID, (item.id, item.hash)):
            return _token(found[0])
        if self._db.rows(_OF_NAME, (item.name,)):
            return NameTaken("token", item.name)
        now = self._now()
        expires_at = None if item.expires_at is None else to_micros(item.expires_at, field="expires_at")
        row = (item.id, item.name, item.hash, item.role, item.tenant, expires_at, now, item.actor)
        self._db.change(_NEW, row)
        self._db.change(_LOG, (item.tenant or "", item.name, None, "usable", "create", item.actor, item.reason, now))
        return _token(self._db.rows(_OF_ID, (item.id, item.hash))[0])

    def token_revoke(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        found = self._db.rows(_OF_NAME, (name,))
        if not found:
            return Moved(name, "revoked", False) if self._db.rows(_REVOKED, (name,)) else NotFound("token", name)
        was, now = _token(found[0]), self._now()
        self._db.change(_REVOKE, (now, actor, was.id))
        self._db.change(_LOG, (was.tenant or "", name, "usable", "revoked", "revoke", actor, reason, now))
        return Moved(name, "revoked", True)

    def token_list(self, revoked: bool, before: int, limit: int) -> list[TokenRow]:
        return [_token(row) for row in self._db.rows(_LIST if revoked else _LIST_USABLE, (before, limit))]

    def token_find(self, hash: str) -> TokenRow | None:
        found = self._db.rows(_OF_HASH, (hash,))
        return _token(found[0]) if found else None

    def token_used(self, token_id: int) -> bool:
        now = self._now()
        return self._db.change(_USED, (now, token_id, now - _NOTED_EVERY)) > 0


def _token(row: Row) -> TokenRow:
    fields = dict(zip(_FIELDS, row, strict=True))
    return TokenRow(**fields | {name: from_micros(fields[name]) for name in _TIMES if fields[name] is not None})
