"""Takes away expired leases of dead workers, but not while living workers cannot renew theirs.

After an outage of the database every lease may have expired although its holder lives. So a worker that saw an outage
waits for the time of one lease, in which holders renew first. It saw an outage if its own calls failed or were delayed,
or if the server was started less than a lease ago. A worker that stood still itself, as on a machine that was paused,
waits for a third of a lease.

The database also spares, for the time of one lease, leases that expired in a gap in the heartbeats of all workers. A
jump of its clock is such a gap, and a worker that starts after the jump knows of it too. A fresh worker reaps
everything else at once.
"""

from __future__ import annotations

from collections.abc import Callable

from detent.model.clock import Clock, SystemClock
from detent.model.records import Reaped
from detent.store.contract import Store, Verbs
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["Reaper"]

_EVERY = 0.4
_BATCH = 500
_ROUNDS_MAX = 100


class Reaper:
    """The reaper of one worker. It remembers outages that the worker saw."""

    def __init__(self, store: Store, lease: float, clock: Clock | None = None, batch: int = _BATCH) -> None:
        self._store = store
        self._lease = lease
        self._clock = clock or SystemClock()
        self._batch = batch
        self._not_before = 0.0
        self._isolation = DamageIsolation("reap", store)

    def service(self) -> Service:
        """Return the service: by every worker, as soon as a lease has expired. The jobs of a dead worker should run
        again a second later, and claiming them takes a part of that second."""
        return Service("reap", _EVERY, self.run, at=lambda agenda: agenda.reap_at)

    def saw_outage(self, now: float) -> None:
        """Note that the database did not answer, or not in time, until `now`."""
        self._not_before = now + self._lease

    def stood_still(self, now: float) -> None:
        """Note that this process, and perhaps the whole machine, stood still until `now`. Living workers are late but
        still connected, and renew at once."""
        self._not_before = max(self._not_before, now + self._lease / 3)

    def run(self, now: float) -> None:
        """Take away every expired lease, however many leases come first that must be spared."""
        if now < self._not_before:
            return
        # Asked every time: the server may have restarted without any of our calls failing.
        up_for = self._store.up_for()
        if up_for is not None and up_for < self._lease:
            self._not_before = now + self._lease - up_for
            return
        limit = self._batch
        for _ in range(_ROUNDS_MAX):
            reaped = self._reap(limit, now)
            if reaped is None:
                return
            bad = len({row.skip_id for row in reaped.bad})
            if reaped.leases + reaped.passed_over + bad < limit:
                return
            limit = self._batch + reaped.passed_over

    def _reap(self, limit: int, now: float) -> Reaped | None:
        """Reap one batch, job by job if a damaged row makes it fail. Return None if this call waited so long for the
        database that renewals may be waiting too."""
        return self._isolation.run(
            now,
            lambda: self._unless_held_up(lambda verbs: verbs.lease_reap(limit, self._lease)),
            lambda skip: self._unless_held_up(lambda verbs: verbs.lease_reap_each(limit, skip, self._lease)),
            lambda reaped: () if reaped is None else reaped.bad,
        )

    def _unless_held_up(self, reap: Callable[[Verbs], Reaped]) -> Reaped | None:
        asked_at = self._clock.monotonic()

        def unless_held_up(verbs: Verbs) -> Reaped | None:
            held_up = self._clock.monotonic() - asked_at > self._lease / 3
            return None if held_up else reap(verbs)

        reaped = self._store.together(unless_held_up)
        if reaped is None:
            self.saw_outage(self._clock.monotonic())
        return reaped
