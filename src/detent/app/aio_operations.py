"""The async twin of: `app.operations`: operations on many jobs."""

# Generated from app/operations.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio

from detent.app.operations import Operations
from detent.client.aio_operation import AsyncOperation
from detent.client.listing import ListPage

__all__ = ["AsyncOperations"]


class AsyncOperations:
    """The async twin of `Operations`: the same verbs, awaited."""

    def __init__(self, sync: Operations) -> None:
        self._sync = sync

    async def get(self, operation_id: int | str) -> AsyncOperation:
        """Return the handle of an operation. `NotFound`."""
        return AsyncOperation.like(await asyncio.to_thread(self._sync.get, operation_id))

    async def list(
        self, *, state: str | None = None, limit: int = 100, after: str | None = None
    ) -> ListPage[AsyncOperation]:
        """List operations, the newest first. `.next` of the list is the `after` of the next page. `InvalidInput`."""
        return (await asyncio.to_thread(self._sync.list, state=state, limit=limit, after=after)).each(
            AsyncOperation.like
        )
