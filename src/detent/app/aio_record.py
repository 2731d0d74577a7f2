"""The async twin of: `app.record` and `app.identities`: the record of changes, and the identity of the database."""

# Generated from app/record.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from datetime import datetime

from detent.app.record import Identities, Invariant, Record
from detent.client.list_page import ListPage
from detent.model.records import RepairStep, TransitionRow, Violation
from detent.model.service_records import IdentityRow

__all__ = ["AsyncIdentities", "AsyncRecord"]


class AsyncRecord:
    """The async twin of `Record`: the same verbs, awaited."""

    def __init__(self, sync: Record) -> None:
        self._sync = sync

    async def search(
        self,
        *,
        actor: str | None = None,
        entity: str | None = None,
        entity_id: object = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[TransitionRow]:
        """List changes that people and programs requested, the newest first, with actor, time and reason.

        `entity` is the kind: job, queue, schedule, limit, batch_run, pipeline_run, operation, alert, or the name of a
        lifecycle of yours. `entity_id` is which one. `.next` of the list is the `after` of the next page. The ordinary
        steps of attempts (claim, start, commit, finish) are not included; `job.history()` has them. `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.search,
            actor=actor,
            entity=entity,
            entity_id=entity_id,
            since=since,
            until=until,
            limit=limit,
            after=after,
        )

    async def verify(self) -> ListPage[Violation]:
        """Check every invariant, and list the violations. An empty list means that the database is healthy."""
        return await asyncio.to_thread(self._sync.verify)

    async def invariants(self) -> ListPage[Invariant]:
        """List the invariants that `verify` checks, by name, with what they say."""
        return await asyncio.to_thread(self._sync.invariants)

    async def repair(
        self, *, apply: bool = False, actor: str | None = None, reason: str | None = None
    ) -> ListPage[RepairStep]:
        """List what a repair would do; with `apply`, do it, on record. A reason is required."""
        return await asyncio.to_thread(self._sync.repair, apply=apply, actor=actor, reason=reason)


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
