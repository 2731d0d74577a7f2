"""The async twin of: `app.alerts`: alerts, their policies, and where they are sent."""

# Generated from app/alerts.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from detent.alerts.sinks import Outcome
from detent.app.alerts import Alerts, Policies
from detent.client.list_page import ListPage
from detent.model.alert_records import AlertRow, DeliveryRow, Each, Measure, Policy, Severity
from detent.model.records import Moved

__all__ = ["AsyncAlerts", "AsyncPolicies"]


class AsyncAlerts:
    """The async twin of `Alerts`: the same verbs, awaited."""

    def __init__(self, sync: Alerts) -> None:
        self._sync = sync

    @property
    def policies(self) -> AsyncPolicies:
        """The policies that decide when an alert fires."""
        return AsyncPolicies(self._sync.policies)

    async def list(self, *, state: str | None = None, limit: int = 100, after: str | None = None) -> ListPage[AlertRow]:
        """List alerts: firing ones first, then resolved ones, the newest first. `.next` of the list is the `after` of
        the next page. `InvalidInput`.
        """
        return await asyncio.to_thread(self._sync.list, state=state, limit=limit, after=after)

    async def get(self, alert_id: str) -> AlertRow:
        """Return an alert by its id. `NotFound`."""
        return await asyncio.to_thread(self._sync.get, alert_id)

    async def acknowledge(self, alert_id: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Acknowledge an alert: no further reminders are sent. `NotFound`."""
        return await asyncio.to_thread(self._sync.acknowledge, alert_id, actor=actor, reason=reason)

    async def raise_(
        self,
        policy: str,
        message: str,
        *,
        scope: str = "",
        severity: Severity = "warning",
        facts: Mapping[str, Any] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Moved:
        """Raise an alert of your own. If it fires already, it is only counted, and not reported again. It is resolved
        by `resolve`, or a day after it was last raised. Without a `reason`, the record has the message. In a job,
        values of its secret fields are redacted in it. `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.raise_, policy, message, scope=scope, severity=severity, facts=facts, actor=actor, reason=reason
        )

    async def resolve(self, alert_id: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Resolve an alert by its id. A no-op if it does not fire. It fires again if its cause comes back."""
        return await asyncio.to_thread(self._sync.resolve, alert_id, actor=actor, reason=reason)

    async def deliveries(self, alert_id: str, *, limit: int = 100) -> ListPage[DeliveryRow]:
        """List the notifications about an alert and their outcome, the newest first. `NotFound`."""
        return await asyncio.to_thread(self._sync.deliveries, alert_id, limit=limit)

    async def judge(self) -> int | None:
        """Evaluate all policies once, and send the notifications. Workers do this by themselves; call it if none runs.
        Return how many alerts changed, or None if it was done within the last 15 seconds.
        """
        return await asyncio.to_thread(self._sync.judge)

    async def test(self) -> dict[str, Outcome]:
        """Send a test message to every sink in the settings, and return the answers by sink. The pager also gets a
        message that resolves it.
        """
        return await asyncio.to_thread(self._sync.test)


class AsyncPolicies:
    """The async twin of `Policies`: the same verbs, awaited."""

    def __init__(self, sync: Policies) -> None:
        self._sync = sync

    async def list(self) -> ListPage[Policy]:
        """List the policies in force: the defaults and those that were set, which replace defaults of the same name."""
        return await asyncio.to_thread(self._sync.list)

    async def get(self, name: str) -> Policy:
        """Return the policy of that name. `NotFound`."""
        return await asyncio.to_thread(self._sync.get, name)

    async def set(
        self,
        name: str,
        *,
        measure: Measure | None = None,
        each: Each | None = None,
        severity: Severity | None = None,
        threshold: float | None = None,
        window: float | None = None,
        count_min: int | None = None,
        calm: float | None = None,
        message: str | None = None,
        enabled: bool | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Policy:
        """Change a policy, or create one: `app.alerts.policies.set("dead_letters_many", threshold=20)`.

        Options you leave out keep their current value. A new policy needs a `measure`, and a `threshold` unless the
        measure is `event`. `window` and `calm` are in seconds. `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.set,
            name,
            measure=measure,
            each=each,
            severity=severity,
            threshold=threshold,
            window=window,
            count_min=count_min,
            calm=calm,
            message=message,
            enabled=enabled,
            actor=actor,
            reason=reason,
        )

    async def remove(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Remove the settings of a policy. Its default applies again; a policy of your own is gone."""
        return await asyncio.to_thread(self._sync.remove, name, actor=actor, reason=reason)
