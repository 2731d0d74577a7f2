"""Records of webhooks."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["WebhookRow", "WebhookTargetRow"]


class WebhookRow(Struct, frozen=True):
    """A declared incoming webhook: `path` takes its deliveries, `verify` says how they are signed. It is off if its
    secret is missing. Secrets are never shown."""

    name: str
    path: str
    verify: str
    is_on: bool
    size_max: int


class WebhookTargetRow(Struct, frozen=True):
    """A declared target of outgoing webhooks: the types of events it is told of, and the tasks whose jobs count (none:
    all). `origin` is its URL without the path, which may hold a secret. It is off if its secret or URL is missing."""

    name: str
    origin: str
    events: tuple[str, ...]
    tasks: tuple[str, ...]
    is_on: bool
