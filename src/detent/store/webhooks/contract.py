"""The verbs of outgoing webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from detent.store.verb import verb

__all__ = ["WebhookVerbs"]


class WebhookVerbs(Protocol):
    """The place in the record up to which each target has been told, and the tasks whose successes are events."""

    @verb("worker", reads=True)
    def webhook_place(self, target: str) -> str | None:
        """Return the place of a target, as `record_feed` takes it; None for a target that has none yet."""
        ...

    @verb("worker")
    def webhook_move(self, target: str, before: str | None, after: str) -> bool:
        """Move the place of a target from `before` (None: it has none yet) to `after`. Return whether it was there; if
        not, another worker has moved it, and nothing is changed."""
        ...

    @verb("client")
    def announced_put(self, announced: Sequence[str], tasks: Sequence[str]) -> None:
        """Say which of `tasks` are `announced`: their successes are put on the list of `failure_report_take` when they
        are counted (`counts_fold`). Other tasks stay as they are. Repeating it is a no-op."""
        ...
