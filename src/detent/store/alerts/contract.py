"""The verbs of alerts.

An alert is one row for a policy and a scope: `queue:mail`, `task:report`, `limit:shop:7`, `run:17`, or empty for the
whole database. It is *firing* or *resolved*; each time it fires again is a new episode. A change of an alert and the
notice that is to be delivered are written in one transaction. So any number of callers may raise the same alert at
once, and it is delivered once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from detent.errors import DetentError, NotFound
from detent.model.alert_records import (
    AlertPlace,
    AlertRow,
    Asked,
    Delivery,
    DeliveryOutcome,
    DeliveryRow,
    Each,
    Figure,
    Measure,
    Policy,
    PolicyRow,
    Route,
    Severity,
)
from detent.model.records import Moved
from detent.store.verb import verb

__all__ = ["AlertVerbs"]


class AlertVerbs(Protocol):
    """Alerts, their policies, and their deliveries."""

    @verb("client")
    def alert_raise(
        self,
        policy: str,
        scope: str,
        severity: Severity,
        message: str,
        facts: str | None = None,
        value: float | None = None,
        actor: str = "system",
        reason: str | None = None,
    ) -> Moved:
        """Raise an alert, with one sentence and `facts` as a JSON object. Without a `reason`, the record has the
        sentence.

        - Not firing yet: it fires, on record (entity `alert`), and a notice is written.
        - Firing already: it is counted, and keeps the newest message. There is no further notice.
        - Its policy is switched off: nothing happens, and the state is `off`.

        A severity that was set on the policy takes precedence. It locks only the alert's own row until the transaction
        ends. So call it last, and once for a run, not for each of its parts. Messages are cut at 2,000 characters.
        """
        ...

    @verb("client")
    def alert_resolve(self, policy: str, scope: str, message: str, calm: float = 0.0, actor: str = "system") -> Moved:
        """Resolve an alert, on record, with a notice; but only if it was last raised at least `calm` seconds ago, so
        that an alert that comes and goes is delivered once. Not firing: a no-op."""
        ...

    @verb("client", NotFound)
    def alert_ack(self, policy: str, scope: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Acknowledge an alert, on record: there are no more reminders of this episode. The first acknowledgement
        stays. Resolved: a no-op. Refuses with `NotFound`."""
        ...

    @verb("viewer")
    def alert_get(self, policy: str, scope: str) -> AlertRow | None:
        """Return an alert, None if it is not on record."""
        ...

    @verb("viewer")
    def alert_list(self, state: str | None = None, limit: int = 100, after: AlertPlace | None = None) -> list[AlertRow]:
        """Return up to `limit` alerts (in that state) after a place: firing ones first, the newest of each first."""
        ...

    # -- policies ----------------------------------------------------------------------------------------------

    @verb("admin")
    def alert_policy_put(self, item: Policy, actor: str, reason: str | None = None) -> Moved:
        """Set a policy, also one of the defaults, on record (entity `alert_policy`: `on`, `off`). Setting the same
        again is a no-op. Switching a policy off resolves its alerts."""
        ...

    @verb("admin")
    def alert_policy_drop(self, name: str, actor: str, reason: str | None = None) -> Moved:
        """Remove what was set, on record: the default applies again, if there is one. Not set: a no-op."""
        ...

    @verb("viewer")
    def alert_policy_list(self) -> list[PolicyRow]:
        """Return the policies that were set, by name, without the defaults."""
        ...

    # -- measures ----------------------------------------------------------------------------------------------

    @verb("worker")
    def alert_tally(self, jobs_max: int) -> int:
        """Count the jobs that ended since the last tally, by queue, task and minute. Return how many.

        Jobs are found through their leases, so call it more often than leases expire. It reads at most about `jobs_max`
        jobs; if more ended, these are a sample. Two concurrent tallies count no job twice. Jobs that ended before the
        first tally are not counted, and counts older than a day are deleted.
        """
        ...

    @verb("viewer")
    def alert_figures(self, measure: Measure, each: Each, window_seconds: float) -> list[Figure]:
        """Return the figures of a measure by scope, without zeros. Bounded for any size of the record: counts end at
        10,000.

        - `success_rate`: succeeded among the jobs that ended in the window (see `alert_tally`)
        - `dead_letters`: quarantined now
        - `throttled`: attempts in the window that the other side throttled
        - `breaker_open`: 1 for each limit whose breaker is not closed
        - `oldest_ready`: seconds that the oldest due job has waited, without paused queues
        - `undelivered`: notices that are not delivered yet
        - `event`: nothing
        """
        ...

    @verb("viewer")
    def alert_measure(self, asked: Sequence[Asked]) -> list[list[Figure]]:
        """Return `alert_figures` for each of these, in one round trip."""
        ...

    # -- deliveries --------------------------------------------------------------------------------------------

    @verb("worker")
    def alert_spread(self, routes: Sequence[Route]) -> int:
        """Create a delivery of each new notice for every sink that wants its severity. Return how many. Each notice is
        spread once."""
        ...

    @verb("worker")
    def alert_take(self, sink: str, minute_max: int, limit: int, seconds: float) -> tuple[list[Delivery], int]:
        """Take up to `limit` deliveries for a sink, in order, and return how many messages it may send now: at most
        `minute_max` in any minute.

        No other caller gets them for `seconds`; after that they are free again unless `alert_outcomes_put` was called.
        Empty if another caller has some, if no message may be sent now, or while the first one waits to be retried: the
        order is kept.
        """
        ...

    @verb("worker")
    def alert_outcomes_put(self, sink: str, items: Sequence[DeliveryOutcome]) -> None:
        """Record the outcome of deliveries that were taken. One that is no longer pending stays as it is."""
        ...

    @verb("viewer")
    def alert_deliveries(self, policy: str, scope: str, limit: int = 100) -> list[DeliveryRow]:
        """Return the deliveries of an alert, sent or pending, the newest first."""
        ...

    @verb("worker")
    def alert_sweep(self, remind_after: float, keep: float) -> int:
        """Write reminders of alerts that have been firing for `remind_after` seconds since the last notice and are not
        acknowledged. Return how many. Delete what was resolved or delivered `keep` seconds ago."""
        ...
