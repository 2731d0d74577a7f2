"""The thread of a supervisor that renews the leases of its children, and ends the leases of those that died."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from detent.errors import DatabaseError, DatabaseUnreachable, OutcomeUnknown
from detent.model.clock import Clock
from detent.model.records import Aborted, Renewal
from detent.store.contract import Store
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.outcome_counts import count_outcomes
from detent.worker.services.service_set import ServiceSet
from detent.worker.supervisor.child_process import ChildProcess
from detent.worker.supervisor.dead_child import DeadLease, end_lease

__all__ = ["LeaseRenewals"]

_CANCELS_EVERY = 1.0
"""Seconds between two questions to the database whether running jobs are to be cancelled."""
_ANSWER_MIN = 0.5
"""Minimum number of seconds that a renewal waits for its answer, however short the lease is."""
_FINISH_MAX = 5.0
_FAILED = ("quarantined", "failed")


class LeaseRenewals:
    """Renews every third of a lease. `run` is for one thread; everything else is safe from any thread.

    `children` gives the living children. `failures_found` is called if a job of a dead child has failed for good.
    """

    def __init__(
        self,
        store: Store,
        options: WorkerOptions,
        clock: Clock,
        backoff: OutageBackoff,
        services: ServiceSet,
        *,
        children: Callable[[], list[ChildProcess]],
        failures_found: Callable[[], None],
    ) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._backoff = backoff
        self._services = services
        self._children = children
        self._failures_found = failures_found
        self._lock = threading.Lock()
        self._dead: list[DeadLease] = []
        self._woken = threading.Event()
        self._cancels_due = False
        self._cancels_asked_at = -math.inf
        self._renewed_at = clock.monotonic()
        self._waiting_since: float | None = None
        self.tally: Counter[str] = Counter()
        """How the attempts of dead children ended."""

    def run(self, over: threading.Event) -> None:
        """Renew leases, find cancels and end dead leases until `over` is set."""
        while not over.is_set():
            due = self._renewed_at + self._options.lease / 3
            self._woken.wait(max(0.0, due - self._clock.monotonic()))
            self._woken.clear()
            jumped = self._services.heartbeat.jumped
            if self._clock.monotonic() >= due or jumped.is_set():
                jumped.clear()
                self._renew()
            if self._cancels_due:
                self._find_cancels()
            if not self.end_dead_leases():
                self._woken.set()

    def wake(self) -> None:
        """Have the thread look now whether something is due."""
        self._woken.set()

    def waited(self, now: float) -> float | None:
        """Return for how many seconds a renewal has waited for the database; None if none waits."""
        since = self._waiting_since
        return None if since is None else now - since

    def notice_delay(self) -> None:
        """Tell the services if this process stood still: no lease was renewed for two thirds of one. Other workers on
        this machine may have stood still too, and are not dead."""
        if self._clock.monotonic() - self._renewed_at > 2 * self._options.lease / 3:
            self._services.stood_still()

    # -- renewals ----------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        children = self._children()
        holders = {lease: child for child in children for lease in child.leases}
        self.notice_delay()
        began_at = self._clock.monotonic()
        if holders:
            self._waiting_since = self._waiting_since or began_at
            begun = {
                entry.job_id: entry.begun_after
                for child in children
                for entry in child.entries()
                if entry.begun_after is not None
            }
            try:
                renewals = self._ask_to_renew(sorted(holders), begun)
            except DatabaseError as error:
                self._services.saw_outage()
                self._backoff.failed("renewing leases", error)
                return
            self._backoff.worked()
            if self._clock.monotonic() - began_at > self._options.lease / 3:
                self._services.saw_outage()
            for renewal in renewals:
                child = holders[renewal.lease_id]
                if not renewal.held:
                    child.drop_lease(renewal.lease_id)
                if renewal.cancel_requested:
                    child.cancel(sorted(renewal.cancel_requested), began_at)
        self._renewed_at, self._waiting_since = began_at, None

    def _ask_to_renew(self, leases: list[int], begun: dict[int, float]) -> list[Renewal]:
        """Renew within half a lease: a connection that gives no answer is given up after a sixth of the lease, and a
        fresh one gets a third."""
        lease = self._options.lease
        try:
            with self._store.answering_within(max(_ANSWER_MIN, lease / 6)):
                return self._store.lease_renew(leases, lease, begun)
        except (DatabaseUnreachable, OutcomeUnknown):
            with self._store.answering_within(max(2 * _ANSWER_MIN, lease / 3)):
                return self._store.lease_renew(leases, lease, begun)

    # -- cancels -----------------------------------------------------------------------------------------------

    def request_cancels(self, now: float) -> None:
        """Have the database asked, at most once a second, whether jobs that have run for a while are to be cancelled.
        A worker without such jobs asks nothing."""
        if now < self._cancels_asked_at + _CANCELS_EVERY or self._cancels_due:
            return
        begun_by = now - _CANCELS_EVERY / 2
        if any(entry.begun_at <= begun_by for child in self._children() for entry in child.entries()):
            self._cancels_due = True
            self._woken.set()

    def _find_cancels(self) -> None:
        """Tell children which of their jobs are to be cancelled. If the database does not answer, the next question or
        renewal tells them; the renewals log the outage."""
        now = self._cancels_asked_at = self._clock.monotonic()
        self._cancels_due = False
        children = self._children()
        holders = {(entry.job_id, entry.attempt): child for child in children for entry in child.entries()}
        try:
            with self._store.answering_within(max(_ANSWER_MIN, self._options.lease / 12)):
                cancels = self._store.cancel_find(sorted(holders))
        except DatabaseError:
            return
        for child in children:
            if own := [attempt for attempt in cancels if holders[attempt] is child]:
                child.cancel(own, now)

    # -- leases of dead children -------------------------------------------------------------------------------

    def add_dead(self, leases: Sequence[DeadLease]) -> None:
        """Have the leases of a dead child ended."""
        with self._lock:
            self._dead += leases
        self._woken.set()

    def end_dead_leases(self) -> bool:
        """End the leases of dead children; return whether all of them are ended. During an outage they are kept for
        later; if this process ends too, they expire by themselves."""
        with self._lock:
            dead = list(self._dead)
        for one in dead:
            try:
                answers = end_lease(self._store, one, self._options.name)
            except DatabaseError as error:
                self._backoff.failed("cleaning up after a child", error)
                return False
            if any(isinstance(answer, Aborted) and answer.state in _FAILED for answer in answers):
                self._failures_found()
            with self._lock:
                self.tally += count_outcomes(answers)
                self._dead.remove(one)
        return True

    def finish(self, thread: threading.Thread) -> None:
        """End what is left, unless `thread` still runs `run`: two threads must not end the same attempt."""
        if thread.is_alive():
            return
        until = self._clock.monotonic() + min(_FINISH_MAX, self._options.lease)
        while not self.end_dead_leases() and self._clock.monotonic() < until:
            pass
