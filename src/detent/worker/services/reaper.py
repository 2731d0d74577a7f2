"""What the dead held: taken away when its lease has run out, but not while the living cannot renew.

After an outage of the database every lease may have run out though its holder lives. So whoever saw an outage itself
waits for one lease, in which holders renew first. Seen is: its own calls failed or were held up, or the server is
younger than a lease. Whoever stood still itself, as on a machine that was paused, waits for a third of one.

The database also spares, for one lease, what ran out in a gap in the heartbeats of all workers. A jump of its clock is
such a gap, and a worker that starts after the jump knows of it too. A fresh worker reaps everything else at once.
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
    """One for each worker: it remembers what it saw."""

    def __init__(self, store: Store, lease: float, clock: Clock | None = None, batch: int = _BATCH) -> None:
        self._store = store
        self._lease = lease
        self._clock = clock or SystemClock()
        self._batch = batch
        self._not_before = 0.0
        self._isolation = DamageIsolation("reap", store)

    def service(self) -> Service:
        """By every worker, as soon as a lease has run out: what a dead one held is to be at work a second later, and
        whoever claims it needs a part of that second."""
        return Service("reap", _EVERY, self.run, at=lambda agenda: agenda.reap_at)

    def saw_outage(self, now: float) -> None:
        """The database did not answer, or not in time, until `now`."""
        self._not_before = now + self._lease

    def stood_still(self, now: float) -> None:
        """This process, and perhaps the whole machine, did nothing until `now`. Nobody has to find the database again:
        who lives is late, and renews at once."""
        self._not_before = max(self._not_before, now + self._lease / 3)

    def run(self, now: float) -> None:
        """Take away every lease that has run out, however many stand before them that must stay."""
        if now < self._not_before:
            return
        # Asked every time: one that was away for a moment may have come back without any call of ours failing.
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
        """Reap one batch, job by job if a damaged row makes it fail. None where this very call stood in line for so
        long that holders may stand there too."""
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
