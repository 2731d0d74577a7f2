"""The async twin of: `app.record`: the record of changes, and whether the database agrees with it."""

# Generated from app/record.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from datetime import datetime

from detent.app.record import Record
from detent.client.listing import ListPage
from detent.model.records import RepairStep, TransitionRow, Violation

__all__ = ["AsyncRecord"]


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

    async def repair(
        self, *, apply: bool = False, actor: str | None = None, reason: str | None = None
    ) -> ListPage[RepairStep]:
        """List the steps of a repair; with `apply`, carry them out, on record. A reason is required."""
        return await asyncio.to_thread(self._sync.repair, apply=apply, actor=actor, reason=reason)
