"""Records of webhooks."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["WebhookRow"]


class WebhookRow(Struct, frozen=True):
    """A declared incoming webhook: `path` takes its deliveries, `verify` says how they are signed. It is off if its
    secret is missing. Secrets are never shown."""

    name: str
    path: str
    verify: str
    is_on: bool
    size_max: int
