"""The async twin of: `app.tokens`."""

# Generated from app/tokens.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio

from detent.app.tokens import Tokens
from detent.client.list_page import ListPage
from detent.model.records import Moved
from detent.model.token_records import CreatedToken, Role, TokenRow

__all__ = ["AsyncTokens"]


class AsyncTokens:
    """The async twin of `Tokens`: the same verbs, awaited."""

    def __init__(self, sync: Tokens) -> None:
        self._sync = sync

    async def create(
        self,
        name: str,
        *,
        role: Role = "viewer",
        tenant: str | None = None,
        expires_in: float | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> CreatedToken:
        """Create a token. Its text is returned now and never again: the database has only a hash of it.

        - `name`: the actor of the changes that are made with it.
        - `role`: `viewer` reads, `operator` also acts on jobs, runs and queues, `admin` may do everything.
        - `tenant`: the only tenant that it reaches; default: all.
        - `expires_in`: seconds after which it expires; default: never.

        `NameTaken` if a token of that name has not been revoked, `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.create, name, role=role, tenant=tenant, expires_in=expires_in, actor=actor, reason=reason
        )

    async def list(self, *, revoked: bool = False, limit: int = 100, after: str | None = None) -> ListPage[TokenRow]:
        """List tokens, the newest first, without their texts; with `revoked` also those that were revoked. `.next` of
        the list is the `after` of the next page. `InvalidInput`.
        """
        return await asyncio.to_thread(self._sync.list, revoked=revoked, limit=limit, after=after)

    async def revoke(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Revoke a token for good. Open streams end within ten seconds. A no-op if it is revoked already.
        `NotFound`.
        """
        return await asyncio.to_thread(self._sync.revoke, name, actor=actor, reason=reason)
