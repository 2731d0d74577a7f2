"""The contract's verbs of alerts: what is wrong, once each, on record, and told to whoever wants to know.

The words are those of `contract`, which has these verbs too. An alert is one row for a policy and a scope:
`queue:mail`, `task:report`, `limit:shop:7`, `run:17`, or empty for the whole. It is *firing* or *resolved*; each time
it begins anew is an episode of its own. Whoever changes it writes what is to be told in the same transaction (the
notice); so any number of callers may raise the same alert at once, and it is told once.
"""

from __future__ import annotations

from typing import Protocol

from detent.errors import DetentError, NotFound
from detent.model.alert_records import AlertRow, Severity
from detent.model.records import Moved
from detent.store.words import Verb

__all__ = ["ALERTING", "AlertVerbs"]


class AlertVerbs(Protocol):
    """Alerts."""

    def alert_raise(
        self,
        policy: str,
        scope: str,
        severity: Severity,
        message: str,
        facts: str | None = None,
        value: float | None = None,
    ) -> Moved:
        """Something is wrong, in one sentence, with `facts` as a JSON object. Not firing yet: it is from now on, on
        record (entity `alert`), and people are told. Firing already: only counted, with the newest message; nobody is
        told again. Where its policy is switched off nothing is done, and the state is `off`. Where the policy was given
        another severity, that one counts.

        Fit for any transaction: it locks the alert's own row alone, until that transaction ends; so it comes last, and
        for a run, not for each of its parts. Messages are cut at 2,000 letters.
        """
        ...

    def alert_resolve(self, policy: str, scope: str, message: str, calm: float = 0.0, actor: str = "system") -> Moved:
        """It is well again: on record, and people are told; but only where it was last raised at least `calm` seconds
        ago, so that what comes and goes is told once. Not firing: nothing to do."""
        ...

    def alert_ack(self, policy: str, scope: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Somebody looks after it: on record, and nobody is reminded of this episode any more. The first one stands; of
        what is resolved there is nothing to do. `NotFound`."""
        ...

    def alert_list(self, state: str | None = None, limit: int = 100) -> list[AlertRow]:
        """Alerts (of that state): those that fire first, the newest of each first."""
        ...


ALERTING = (
    Verb("alert_raise", "worker"),
    Verb("alert_resolve", "worker"),
    Verb("alert_ack", "client", (NotFound,)),
    Verb("alert_list", "viewer"),
)
