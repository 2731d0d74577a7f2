"""The records of alerts: what is wrong now, what people said about it, and what was told to whom.

Frozen, as in `records`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

__all__ = ["SEVERITIES", "AlertRow", "Severity", "alert_id"]

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
"""The mildest first."""


class AlertRow(Struct, frozen=True, kw_only=True):
    """An alert as it stands: of a policy, about a scope (`queue:mail`, `run:17`; empty is the whole).

    `episode`: how often it has begun. In the present or last episode: `since` when, `raised` how often, `last_at` when
    last, with the message, facts (JSON) and value of that time; `told_at` when people were last told.
    """

    policy: str
    scope: str
    severity: Severity
    state: Literal["firing", "resolved"]
    episode: int
    message: str
    facts: str | None
    value: float | None
    raised: int
    since: datetime
    last_at: datetime
    told_at: datetime
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    acknowledged_reason: str | None

    @property
    def id(self) -> str:
        """What it is called on record, and by people."""
        return alert_id(self.policy, self.scope)


def alert_id(policy: str, scope: str) -> str:
    """The name of an alert: its policy, and its scope where it has one."""
    return f"{policy}/{scope}" if scope else policy
