"""`app.webhooks`: the webhooks that the code declares, incoming and outgoing."""

from __future__ import annotations

from detent.app.registry import Registry
from detent.client.list_page import ListPage, page_by_name
from detent.model.webhook_records import WebhookRow, WebhookTargetRow

__all__ = ["Webhooks"]


class Webhooks:
    """The webhooks that the application declares."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def list(self, *, limit: int = 100, after: str | None = None) -> ListPage[WebhookRow]:
        """List incoming webhooks by name, with the path for their deliveries. `.next` of the list is the `after` of the
        next page."""
        rows = [
            WebhookRow(name, hook.path, hook.verifier.name, hook.is_on, hook.size_max)
            for name, hook in sorted(self._registry.webhooks.items())
        ]
        return page_by_name(rows, lambda row: row.name, after, limit)

    def targets(self, *, limit: int = 100, after: str | None = None) -> ListPage[WebhookTargetRow]:
        """List the targets of outgoing webhooks by name, with the events that they are told of. `.next` of the list is
        the `after` of the next page."""
        rows = [
            WebhookTargetRow(name, one.origin, tuple(sorted(one.events)), tuple(sorted(one.tasks)), one.is_on)
            for name, one in sorted(self._registry.targets.items())
        ]
        return page_by_name(rows, lambda row: row.name, after, limit)
