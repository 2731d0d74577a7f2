"""The verbs of alerts, as one statement each."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError
from detent.model.alert_records import (
    AlertRow,
    Asked,
    Delivery,
    DeliveryRow,
    Each,
    Figure,
    Measure,
    Policy,
    PolicyRow,
    Route,
    Severity,
    Told,
)
from detent.model.records import Moved
from detent.store.postgres.statements import alerting
from detent.store.postgres.verb_base import VerbBase

__all__ = ["PostgresAlerting"]


class PostgresAlerting(VerbBase):
    """The contract's words hold."""

    def alert_raise(
        self,
        policy: str,
        scope: str,
        severity: Severity,
        message: str,
        facts: str | None = None,
        value: float | None = None,
    ) -> Moved:
        """One row, and where it begins its line and its notice."""
        return self._session.run(alerting.alert_raise(policy, scope, severity, message, facts, value))

    def alert_resolve(self, policy: str, scope: str, message: str, calm: float = 0.0, actor: str = "system") -> Moved:
        """On record."""
        return self._session.run(alerting.alert_resolve(policy, scope, message, calm, actor))

    def alert_ack(self, policy: str, scope: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        return self._session.run(alerting.alert_ack(policy, scope, actor, reason))

    def alert_list(self, state: str | None = None, limit: int = 100) -> list[AlertRow]:
        """Those that fire first."""
        return self._session.run(alerting.alert_list(state, limit))

    def alert_policy_put(self, item: Policy, actor: str, reason: str | None = None) -> Moved:
        """On record."""
        return self._session.run(alerting.alert_policy_put(item, actor, reason))

    def alert_policy_drop(self, name: str, actor: str, reason: str | None = None) -> Moved:
        """On record."""
        return self._session.run(alerting.alert_policy_drop(name, actor, reason))

    def alert_policy_list(self) -> list[PolicyRow]:
        """By name."""
        return self._session.run(alerting.alert_policy_list())

    def alert_tally(self, jobs_max: int) -> int:
        """Through the leases, which outlive what ran under them."""
        return self._session.run(alerting.alert_tally(jobs_max))

    def alert_figures(self, measure: Measure, each: Each, window_seconds: float) -> list[Figure]:
        """Each by an index, and none beyond its bound."""
        return self._session.run(alerting.alert_figures(measure, each, window_seconds))

    def alert_measure(self, asked: Sequence[Asked]) -> list[list[Figure]]:
        """All in one statement."""
        return self._session.run(alerting.alert_measure(asked)) if asked else []

    def alert_spread(self, routes: Sequence[Route]) -> int:
        """One row a notice and sink."""
        return self._session.run(alerting.alert_spread(routes))

    def alert_take(self, sink: str, minute_max: int, limit: int, seconds: float) -> tuple[list[Delivery], int]:
        """In the order it happened."""
        return self._session.run(alerting.alert_take(sink, minute_max, limit, seconds))

    def alert_told(self, sink: str, items: Sequence[Told]) -> None:
        """Only of what is pending."""
        if items:
            self._session.run(alerting.alert_told(sink, items))

    def alert_deliveries(self, policy: str, scope: str, limit: int = 100) -> list[DeliveryRow]:
        """The newest first."""
        return self._session.run(alerting.alert_deliveries(policy, scope, limit))

    def alert_sweep(self, remind_after: float, keep: float) -> int:
        """Reminders first."""
        return self._session.run(alerting.alert_sweep(remind_after, keep))
