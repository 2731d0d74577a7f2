"""The async twin of: `app.webhooks`: the webhooks that the code declares, incoming and outgoing."""

# Generated from app/webhooks.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio

from detent.app.webhooks import Webhooks
from detent.client.list_page import ListPage
from detent.model.webhook_records import WebhookRow, WebhookTargetRow

__all__ = ["AsyncWebhooks"]


class AsyncWebhooks:
    """The async twin of `Webhooks`: the same verbs, awaited."""

    def __init__(self, sync: Webhooks) -> None:
        self._sync = sync

    async def list(self, *, limit: int = 100, after: str | None = None) -> ListPage[WebhookRow]:
        """List incoming webhooks by name, with the path for their deliveries. `.next` of the list is the `after` of the
        next page.
        """
        return await asyncio.to_thread(self._sync.list, limit=limit, after=after)

    async def targets(self, *, limit: int = 100, after: str | None = None) -> ListPage[WebhookTargetRow]:
        """List the targets of outgoing webhooks by name, with the events that they are told of. `.next` of the list is
        the `after` of the next page.
        """
        return await asyncio.to_thread(self._sync.targets, limit=limit, after=after)
