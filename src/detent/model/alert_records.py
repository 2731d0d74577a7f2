"""The records of alerts, their policies and their notifications. Frozen, as in `records`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from msgspec import Struct

__all__ = [
    "EACH",
    "MEASURES",
    "SEVERITIES",
    "AlertPlace",
    "AlertRow",
    "Asked",
    "Delivery",
    "DeliveryOutcome",
    "DeliveryRow",
    "Each",
    "Figure",
    "Measure",
    "Notice",
    "Policy",
    "PolicyRow",
    "Route",
    "Severity",
    "alert_id",
]

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
"""In ascending order."""
Measure = Literal["event", "success_rate", "dead_letters", "throttled", "breaker_open", "oldest_ready", "undelivered"]
MEASURES: tuple[Measure, ...] = (
    "event",
    "success_rate",
    "dead_letters",
    "throttled",
    "breaker_open",
    "oldest_ready",
    "undelivered",
)
Each = Literal["whole", "queue", "task", "limit"]
EACH: tuple[Each, ...] = ("whole", "queue", "task", "limit")
Asked = tuple[Measure, Each, float]
"""A measure, what it is measured for, and how many seconds back."""


class AlertPlace(NamedTuple):
    """A place in the list of alerts, after which the next page begins."""

    state: str
    since: datetime
    policy: str
    scope: str


class AlertRow(Struct, frozen=True, kw_only=True):
    """An alert: of a policy, about a scope (`queue:mail`, `run:17`; empty means the whole system).

    `episode` counts how often it has started to fire. Of the current or last episode: `since` is its start, `raised`
    counts how often it was raised, `last_at` is when it was last raised, with the message, facts (JSON) and value of
    that time, and `notified_at` is when the last notification was written.
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
    notified_at: datetime
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    acknowledged_reason: str | None

    @property
    def id(self) -> str:
        """Id of the alert: policy and scope, such as `queue_stalled/queue:mail`."""
        return alert_id(self.policy, self.scope)


def alert_id(policy: str, scope: str) -> str:
    """Return the id of an alert: its policy, and its scope if it has one."""
    return f"{policy}/{scope}" if scope else policy


class Policy(Struct, frozen=True, kw_only=True):
    """When an alert fires: if a measure is above a threshold (below it, for a success rate), for the whole system or
    each queue, task or limit. With the measure `event` nothing is measured: the alert is raised by what happens.

    `window_seconds`: how far back the measure looks. `count_min`: ignore windows with fewer jobs. `calm_seconds`: how
    long the condition must be over before the alert is resolved. `message` may contain {value}, {threshold}, {count},
    {scope} and {window}.
    """

    name: str
    measure: Measure
    each: Each
    severity: Severity
    threshold: float | None
    window_seconds: float
    count_min: int
    calm_seconds: float
    message: str
    enabled: bool = True


class PolicyRow(Policy, frozen=True, kw_only=True):
    """A policy that an operator has set."""

    changed_by: str
    reason: str | None
    changed_at: datetime


class Figure(Struct, frozen=True):
    """A measured value for a scope (the name of a queue, task or limit; empty for the whole), and from how many
    jobs."""

    scope: str
    value: float
    count: int


class Notice(Struct, frozen=True, kw_only=True):
    """A notification about an alert: it fires, still fires, or is resolved."""

    n: int
    policy: str
    scope: str
    episode: int
    kind: Literal["firing", "still", "resolved"]
    severity: Severity
    message: str
    facts: str | None
    value: float | None
    since: datetime
    at: datetime

    @property
    def alert_id(self) -> str:
        """The id of the alert."""
        return alert_id(self.policy, self.scope)


class Delivery(Struct, frozen=True):
    """A notice that was taken for sending; `tries` counts this try too."""

    notice: Notice
    tries: int


class Route(Struct, frozen=True):
    """A sink, and the severities that it receives."""

    sink: str
    severities: tuple[Severity, ...]


class DeliveryOutcome(Struct, frozen=True, kw_only=True):
    """The result of a delivery: sent, part of a summary, given up, or to be tried again after `delay` seconds. If
    `tried` is False, it was returned without being sent, which does not count as a try."""

    notice_n: int
    state: Literal["sent", "summarised", "failed", "pending"]
    error: str | None = None
    delay: float = 0.0
    tried: bool = True


class DeliveryRow(Struct, frozen=True, kw_only=True):
    """A notification about an alert, and its outcome at one sink."""

    sink: str
    kind: str
    episode: int
    message: str
    at: datetime
    state: Literal["pending", "sent", "summarised", "failed"]
    tries: int
    due_at: datetime
    sent_at: datetime | None
    error: str | None
