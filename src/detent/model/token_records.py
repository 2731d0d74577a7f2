"""Tokens: what a request to the HTTP API carries to say who sends it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

import msgspec

__all__ = ["ROLES", "Role", "TokenRow"]

Role = Literal["viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Roles of tokens, the weakest first. Each may do what the ones before it may."""


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
