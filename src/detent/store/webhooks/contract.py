"""The verbs of outgoing webhooks."""

from __future__ import annotations

from typing import Protocol

from detent.store.verb import verb

__all__ = ["WebhookVerbs"]


class WebhookVerbs(Protocol):
    """The place in the record up to which each target has been told."""

    @verb("worker", reads=True)
    def webhook_place(self, target: str) -> str | None:
        """Return the place of a target, as `record_feed` takes it; None for a target that has none yet."""
        ...

    @verb("worker")
    def webhook_move(self, target: str, before: str | None, after: str) -> bool:
        """Move the place of a target from `before` (None: it has none yet) to `after`. Return whether it was there; if
        not, another worker has moved it, and nothing is changed."""
        ...
