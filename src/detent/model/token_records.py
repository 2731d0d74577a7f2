"""Tokens: what a request to the HTTP API carries to say who sends it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

import msgspec

__all__ = ["ROLES", "CreatedToken", "NewToken", "Role", "TokenRow", "hash_token"]

Role = Literal["viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Roles of tokens, the weakest first. Each may do what the ones before it may."""


def hash_token(token: str) -> str:
    """Return what the database has of a token. A plain hash is enough: a token has 256 random bits."""
    import hashlib  # not loaded into every worker

    return hashlib.sha256(token.encode()).hexdigest()


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token to create."""

    id: int
    name: str
    hash: str
    role: Role
    tenant: str | None = None
    expires_at: datetime | None = None
    actor: str
    reason: str | None = None


class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """A token. The text of the token itself is shown once, when it is created; the database has only its hash."""

    id: int
    name: str
    role: Role
    tenant: str | None
    """The only tenant that it reaches; None is all."""
    expires_at: datetime | None
    created_at: datetime
    created_by: str
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None
    """To the minute."""


class CreatedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was created, with its text, which cannot be read again."""

    token: str
    id: int
    name: str
    role: Role
    tenant: str | None
    expires_at: datetime | None

    def __repr__(self) -> str:
        return f"CreatedToken(name={self.name!r}, role={self.role!r}, token='dtn_…')"
