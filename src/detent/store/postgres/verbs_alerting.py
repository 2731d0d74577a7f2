"""The verbs of alerts, as one statement each."""

from __future__ import annotations

from detent.errors import DetentError
from detent.model.alert_records import AlertRow, Severity
from detent.model.records import Moved
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statements import alerting

__all__ = ["PostgresAlerting"]


class PostgresAlerting:
    """The contract's words hold."""

    _session: Session

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
