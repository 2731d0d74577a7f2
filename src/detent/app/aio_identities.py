"""The async twin of: `app.identities`: what tells this database from every other one."""

# Generated from app/identities.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio

from detent.app.identities import Identities
from detent.client.listing import ListPage
from detent.model.service_records import IdentityRow

__all__ = ["AsyncIdentities"]


class AsyncIdentities:
    """The async twin of `Identities`: the same verbs, awaited."""

    def __init__(self, sync: Identities) -> None:
        self._sync = sync

    async def list(self) -> ListPage[IdentityRow]:
        """List every identity that this database has had, the oldest first."""
        return await asyncio.to_thread(self._sync.list)

    async def current(self) -> str:
        """Return the identity of this database: a random text."""
        return await asyncio.to_thread(self._sync.current)

    async def renew(self, *, actor: str | None = None, reason: str | None = None) -> str:
        """Give this database a new identity, after it was restored from a backup or copied. Return the identity.

        Existing jobs keep their effect keys, so that a repeated effect is recognised. New jobs get keys that no other
        copy of the database uses. Workers read the identities when they start, so this is refused with `WrongPlace` if
        a worker was seen in the last minute.
        """
        return await asyncio.to_thread(self._sync.renew, actor=actor, reason=reason)
