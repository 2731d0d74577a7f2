"""The async twin of: `app.webhooks`: the webhooks that the code declares."""

# Generated from app/webhooks.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio

from detent.app.webhooks import Webhooks
from detent.client.list_page import ListPage
from detent.model.webhook_records import WebhookRow

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
