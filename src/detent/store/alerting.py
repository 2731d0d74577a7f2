"""The contract's verbs of alerts: what is wrong, once each, on record, and told to whoever wants to know.

The words are those of `contract`, which has these verbs too. An alert is one row for a policy and a scope:
`queue:mail`, `task:report`, `limit:shop:7`, `run:17`, or empty for the whole. It is *firing* or *resolved*; each time
it begins anew is an episode of its own. Whoever changes it writes what is to be told in the same transaction (the
notice); so any number of callers may raise the same alert at once, and it is told once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from detent.errors import DetentError, NotFound
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
from detent.store.verb import verb

__all__ = ["AlertVerbs"]


class AlertVerbs(Protocol):
    """Alerts."""

    @verb("client")
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

    @verb("client")
    def alert_resolve(self, policy: str, scope: str, message: str, calm: float = 0.0, actor: str = "system") -> Moved:
        """It is well again: on record, and people are told; but only where it was last raised at least `calm` seconds
        ago, so that what comes and goes is told once. Not firing: nothing to do."""
        ...

    @verb("client", NotFound)
    def alert_ack(self, policy: str, scope: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Somebody looks after it: on record, and nobody is reminded of this episode any more. The first one stands; of
        what is resolved there is nothing to do. `NotFound`."""
        ...

    @verb("viewer")
    def alert_list(self, state: str | None = None, limit: int = 100) -> list[AlertRow]:
        """Alerts (of that state): those that fire first, the newest of each first."""
        ...

    # -- policies ----------------------------------------------------------------------------------------------

    @verb("admin")
    def alert_policy_put(self, item: Policy, actor: str, reason: str | None = None) -> Moved:
        """Set a policy, also one of the defaults; on record (entity `alert_policy`: `on`, `off`). The same again
        changes nothing. What fires by a policy that is switched off is resolved by that."""
        ...

    @verb("admin")
    def alert_policy_drop(self, name: str, actor: str, reason: str | None = None) -> Moved:
        """Take back what was set: the default holds again, or there is none. On record. Not set: nothing to do."""
        ...

    @verb("viewer")
    def alert_policy_list(self) -> list[PolicyRow]:
        """What was set, by name; the defaults are not among them."""
        ...

    # -- measuring ---------------------------------------------------------------------------------------------

    @verb("worker")
    def alert_tally(self, jobs_max: int) -> int:
        """Count the jobs that came to rest since the last tally, by queue, task and minute; how many. They are found
        through the leases that they ran under, so it is to be done more often than leases run out. At most about
        `jobs_max` are looked at: where more ended, some of them stand for all. Two at once count nothing twice; what
        was before the first tally is not counted, and counts older than a day go."""
        ...

    @verb("viewer")
    def alert_figures(self, measure: Measure, each: Each, window_seconds: float) -> list[Figure]:
        """What a policy looks at, by scope; nothing of what it is said of is left out but what is nought. Bounded
        whatever the size of the record: counts end at 10,000.

        success_rate: succeeded among those that came to rest in the window (by `alert_tally`), failed and quarantined
        the others. dead_letters: quarantined now. throttled: attempts in the window that the other side said no to.
        breaker_open: 1 for each limit whose breaker is not closed. oldest_ready: for how many seconds the oldest of the
        jobs that are due has been waiting, paused queues aside. untold: what is to be told of alerts and is not yet.
        event: nothing.
        """
        ...

    @verb("viewer")
    def alert_measure(self, asked: Sequence[Asked]) -> list[list[Figure]]:
        """`alert_figures` for each of these, in one trip."""
        ...

    # -- telling -----------------------------------------------------------------------------------------------

    @verb("worker")
    def alert_spread(self, routes: Sequence[Route]) -> int:
        """Let every sink have what is to be told and was not spread yet, as far as it wants to hear of it; how many
        deliveries that makes. Each notice is spread once."""
        ...

    @verb("worker")
    def alert_take(self, sink: str, minute_max: int, limit: int, seconds: float) -> tuple[list[Delivery], int]:
        """What this sink is to be told now, up to `limit`, in the order it happened, and how many messages there is
        room for: at most `minute_max` in any minute. Nobody else gets them for `seconds`; then, if nothing was said of
        them (`alert_told`), whoever asks. Nothing where somebody else is at it, where there is no room, or while the
        first of them is to be tried again later: so what comes after it stays after it."""
        ...

    @verb("worker")
    def alert_told(self, sink: str, items: Sequence[Told]) -> None:
        """What became of deliveries that were taken. Of one that is not pending any more nothing is changed."""
        ...

    @verb("viewer")
    def alert_deliveries(self, policy: str, scope: str, limit: int = 100) -> list[DeliveryRow]:
        """What was told, or is to be told, of an alert; the newest first."""
        ...

    @verb("worker")
    def alert_sweep(self, remind_after: float, keep: float) -> int:
        """Remind people of what has been firing for `remind_after` seconds since they were last told and that nobody
        has acknowledged; how many alerts. Whatever was resolved or told `keep` seconds ago goes."""
        ...
