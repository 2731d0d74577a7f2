"""The supervisor: starts children, renews for them, cleans up after them, and is the one that signals talk to.

It runs none of the user's code. The main thread looks after the children and never touches the database, so that a
time-out is kept while the database is away. One thread renews, two serve the database (`services`: what is done in
haste, and what may take long); none waits for another. SIGTERM or SIGINT: stop claiming, finish within the grace
period, hand back the rest; a second one stops at once.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections import Counter

from detent.alerts.options import SinkOptions
from detent.errors import DatabaseError, DatabaseUnreachable, OutcomeUnknown
from detent.model.clock import Clock
from detent.model.records import Aborted, Renewal
from detent.store.contract import Store
from detent.worker.critical_thread import start_critical_thread
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.outcome_counts import count_outcomes, describe_counts
from detent.worker.services.service_set import ServiceSet
from detent.worker.supervisor.child_health import holds_database
from detent.worker.supervisor.child_process import ChildProcess
from detent.worker.supervisor.dead_child import Remains, end_lease
from detent.worker.supervisor.systemd_notifier import SystemdNotifier
from detent.worker.supervisor.wakeup_pipe import WakeupPipe

__all__ = ["STOP_SIGNALS", "Supervisor"]

log = logging.getLogger("detent.worker")

_TICK = 0.2
_LOOK_EVERY = 1.0
"""Seconds between two looks at the children, where nothing is due before. Whatever a child is ended for is known at
least two seconds ahead, so none of it is seen too late."""
_DYING = 0.05
"""Seconds between two looks at a child that was killed, until it is gone."""
_CANCELS_EVERY = 1.0
"""Seconds between two questions whether running jobs are to be cancelled."""
_KILL_AFTER_GRACE = 5.0
_PAUSE_FIRST = 0.5
_PAUSE_LONGEST = 10.0
_PAUSE_LEAST = 0.02
_LIVED = 5.0
_LAST_WORDS = 5.0
_ANSWER_MIN = 0.5
"""Seconds that a renewal waits for its answer, however short the lease is."""
_NAMED_MAX = 10
_GIVEN_UP = ("quarantined", "failed")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""What asks a worker to stop."""


class Supervisor:
    """One worker: a supervisor and its children. `after_outage`: the database had to be waited for, so that others who
    did may not have renewed yet."""

    def __init__(
        self,
        store: Store,
        options: WorkerOptions,
        clock: Clock,
        worker_id: int,
        notify: SystemdNotifier | None = None,
        *,
        after_outage: bool = False,
        sinks: SinkOptions | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._notify = notify or SystemdNotifier(None)
        self._lock = threading.Lock()
        self._children: list[ChildProcess] = []
        self._remains: list[Remains] = []
        self._stop_asked = 0
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._hurry = WakeupPipe()
        self._renewals_woken = threading.Event()
        self._cancels_due = False
        self._cancels_asked_at = -math.inf
        self._alone_due = threading.Event()
        # Whoever holds a lease must renew within one lease after an outage: then others begin to take it away.
        self._backoff = OutageBackoff(clock, self._stopping, longest=options.lease / 3)
        self._services = ServiceSet(store, options, worker_id, sinks=sinks)
        if after_outage:
            self._services.saw_outage()
        self._renewed_at = clock.monotonic()
        self._waiting_since: float | None = None
        self._start_at = 0.0
        self._pause = _PAUSE_FIRST
        self._said_ready = False
        self._starts_failed = 0
        self._drained = False
        self._tally: Counter[str] = Counter()

    def run(self) -> int:
        """Until told to stop, or until nothing is left with `drain`; the exit code."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._signalled)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        processes, slots = _many(self._options.processes, "process", "es"), _many(self._options.slots, "slot", "s")
        log.info("worker %s: %s of %s", self._options.name, processes, slots)
        threads = [
            start_critical_thread("renewals", self._renew_forever),
            start_critical_thread("services", self._serve_forever),
            start_critical_thread("lone-services", self._serve_alone_forever),
        ]
        deadline: float | None = None
        while not (self._stop_asked and not self._children):
            now = self._clock.monotonic()
            if self._stop_asked and deadline is None:
                deadline = now + self._options.grace + _KILL_AFTER_GRACE
                self._stop_children()
                running = sum(len(child.lines()) for child in self._children)
                run = "1 job runs" if running == 1 else f"{running} jobs run"
                log.info("stopping: %s, and may finish within %g s", run, self._options.grace)
                self._notify.stopping()
            if deadline is not None and (self._stop_asked > 1 or now > deadline):
                self._kill_all("told to stop at once" if self._stop_asked > 1 else "not done within the grace period")
            self._look_after_children(now)
            self._hurry.wait(self._next_look())
        self._over.set()
        for thing in (self._renewals_woken, self._alone_due):
            thing.set()
        self._store.break_off()
        until = self._clock.monotonic() + _LAST_WORDS
        for thread in threads:
            thread.join(max(0.0, until - self._clock.monotonic()))
        self._clean_up(threads[0])
        self._services.close()
        why = "nothing is left to do" if self._drained else "told to stop"
        log.info("worker %s ends, %s: %s", self._options.name, why, describe_counts(self._tally))
        return 0

    # -- children ----------------------------------------------------------------------------------------------

    def _look_after_children(self, now: float) -> None:
        for child in list(self._children):
            child.flush()
            if child.is_dead:
                self._bury(child, now)
            elif child.killed is not None:
                continue  # it is dying: to say so once is enough
            elif (line := child.deaf_to(now)) is not None:
                log.warning("Job %d exceeded its time and did not stop; killing its process.", line.job_id)
                child.kill(f"job {line.job_id} was not ended in time", "deaf")
            elif self._holds_everybody_up(child, now):
                log.warning("A child holds the database while its interpreter is held; killing it.")
                child.kill("it held the database while its interpreter was held", "database")
        self._ask_for_cancels(now)
        # One that is leaving still finishes what it has; its place is taken already.
        staying = [child for child in self._children if not child.is_leaving]
        for _ in range(self._options.processes - len(staying)):
            if not self._stop_asked and now >= self._start_at:
                with self._lock:
                    self._children.append(ChildProcess(self._options, now, self._hurry.ring))
        self._tell(staying)

    def _next_look(self) -> float:
        """Seconds until something may have to be done about a child; all else that concerns them rings."""
        now = self._clock.monotonic()
        if self._stop_asked or self._waiting_since is not None or not all(child.is_told for child in self._children):
            return _TICK
        times = [now + _LOOK_EVERY]
        # A killed child rings when it is gone; the rest of it is gone soon after.
        times += [now + _DYING if child.killed is not None else child.deaf_at() for child in self._children]
        if sum(not child.is_leaving for child in self._children) < self._options.processes:
            times.append(self._start_at)
        return max(0.0, min(times) - now)

    def _holds_everybody_up(self, child: ChildProcess, now: float) -> bool:
        """Where one writer keeps all others out, a function that takes the interpreter while another thread of its
        process writes stops every worker on the database, for as long as it likes."""
        since = self._waiting_since
        waiting_for = None if since is None else now - since
        held_up = holds_database(waiting_for, child.silent_for(now), self._options.held_up_max)
        return held_up and self._store.ids_by_transaction

    def _ask_for_cancels(self, now: float) -> None:
        """Have the database asked once a second whether jobs that run for longer than a moment are to be cancelled. A
        worker without such jobs asks nothing."""
        if now < self._cancels_asked_at + _CANCELS_EVERY or self._cancels_due:
            return
        if any(line.begun_at <= now - _CANCELS_EVERY / 2 for child in self._children for line in child.lines()):
            self._cancels_due = True
            self._renewals_woken.set()

    def _tell(self, staying: list[ChildProcess]) -> None:
        if not self._said_ready and len(staying) == self._options.processes and all(one.is_ready for one in staying):
            self._said_ready = True
            self._notify.ready()
        self._notify.alive(self._clock.monotonic())
        listening = next((child for child in staying if child.is_ready), None)
        if listening is not None and self._services.failures_found.is_set():
            self._services.failures_found.clear()
            listening.look_for_failures()

    def _bury(self, child: ChildProcess, now: float) -> None:
        """Remember what a dead child held, and make room for another."""
        ended_with, remains = child.bury(now)
        with self._lock:
            self._tally += Counter(child.tally)
            self._children.remove(child)
            self._remains += remains
        self._renewals_woken.set()
        if child.is_leaving and child.killed is None:
            return
        # A child that cannot even start is tried again less and less often, and said as often.
        is_ill = not child.is_ready or now - child.started_at <= _LIVED
        self._pause = min(2 * self._pause, _PAUSE_LONGEST) if is_ill else _PAUSE_FIRST
        self._start_at = now + self._pause
        if child.is_ready:
            log.warning("a child ended with %s; %s", ended_with, _what_ran(remains))
        else:
            self._starts_failed += 1
            why = child.unable or f"it ended with {ended_with} before it was ready"
            tries = "" if self._starts_failed == 1 else f", {self._starts_failed} times by now"
            log.error("a child cannot start%s: %s; it is tried again in %g s", tries, why, self._pause)

    def _stop_children(self) -> None:
        for child in self._children:
            child.stop(self._options.grace)

    def _kill_all(self, why: str) -> None:
        for child in self._children:
            if child.killed is None:
                log.warning("ending a child: %s", why)
                child.kill(why, "stop")

    # -- what the dead held ------------------------------------------------------------------------------------

    def _end_remains(self) -> bool:
        """End what dead children held; whether all of it is ended. While the database is away it is kept for later; if
        we go too, the leases run out by themselves."""
        with self._lock:
            remains = list(self._remains)
        for one in remains:
            try:
                answers = end_lease(self._store, one, self._options.name)
            except DatabaseError as error:
                self._backoff.failed("cleaning up after a child", error)
                return False
            if any(isinstance(answer, Aborted) and answer.state in _GIVEN_UP for answer in answers):
                self._services.failures_found.set()
                self._hurry.ring()
            with self._lock:
                self._tally += count_outcomes(answers)
                self._remains.remove(one)
        return True

    def _clean_up(self, renewals: threading.Thread) -> None:
        """The last thing we do, unless the thread that renews is still at it: what two end at once is ended twice."""
        if renewals.is_alive():
            return
        until = self._clock.monotonic() + min(_LAST_WORDS, self._options.lease)
        while not self._end_remains() and self._clock.monotonic() < until:
            pass

    # -- leases ------------------------------------------------------------------------------------------------

    def _renew_forever(self) -> None:
        while not self._over.is_set():
            due = self._renewed_at + self._options.lease / 3
            self._renewals_woken.wait(max(0.0, due - self._clock.monotonic()))
            self._renewals_woken.clear()
            jumped = self._services.heartbeat.jumped
            if self._clock.monotonic() >= due or jumped.is_set():
                jumped.clear()
                self._renew()
            if self._cancels_due:
                self._find_cancels()
            if not self._end_remains():
                self._renewals_woken.set()

    def _renew(self) -> None:
        with self._lock:
            children = list(self._children)
        holders = {lease: child for child in children for lease in child.leases}
        self._notice_delay()
        began_at = self._clock.monotonic()
        if holders:
            self._waiting_since = self._waiting_since or began_at
            begun = {
                line.job_id: line.begun_after
                for child in children
                for line in child.lines()
                if line.begun_after is not None
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
                    child.lost(renewal.lease_id)
                if renewal.cancel_requested:
                    child.cancel(sorted(renewal.cancel_requested), began_at)
        self._renewed_at, self._waiting_since = began_at, None

    def _find_cancels(self) -> None:
        """Tell children which of their jobs are to be cancelled. If the database does not answer, the next question or
        renewal tells; what is wrong with it is said by the renewals."""
        now = self._cancels_asked_at = self._clock.monotonic()
        self._cancels_due = False
        with self._lock:
            children = list(self._children)
        holders = {(line.job_id, line.attempt): child for child in children for line in child.lines()}
        try:
            with self._store.answering_within(max(_ANSWER_MIN, self._options.lease / 12)):
                cancels = self._store.cancel_find(sorted(holders))
        except DatabaseError:
            return
        for child in children:
            if own := [attempt for attempt in cancels if holders[attempt] is child]:
                child.cancel(own, now)

    def _ask_to_renew(self, leases: list[int], begun: dict[int, float]) -> list[Renewal]:
        """Renew, within half a lease: a connection that stays silent is given up after a sixth of the lease, and a
        fresh one gets a third."""
        lease = self._options.lease
        try:
            with self._store.answering_within(max(_ANSWER_MIN, lease / 6)):
                return self._store.lease_renew(leases, lease, begun)
        except (DatabaseUnreachable, OutcomeUnknown):
            with self._store.answering_within(max(2 * _ANSWER_MIN, lease / 3)):
                return self._store.lease_renew(leases, lease, begun)

    def _notice_delay(self) -> None:
        """Where we have not renewed for so long, this process stood still: whoever stood still with it has not renewed
        either, and is not dead."""
        if self._clock.monotonic() - self._renewed_at > 2 * self._options.lease / 3:
            self._services.stood_still()

    # -- the rest ----------------------------------------------------------------------------------------------

    def _serve_forever(self) -> None:
        pause = 0.0
        while not self._over.wait(pause):
            self._serve()
            now = self._clock.monotonic()
            if (alone_at := self._services.next_alone(now)) <= now:
                self._alone_due.set()
                alone_at = now + _TICK
            pause = max(_PAUSE_LEAST, min(self._services.next_in_haste(now), alone_at) - now)
            if self._options.drain:
                pause = min(_TICK, pause)

    def _serve(self) -> None:
        self._notice_delay()
        with self._lock:
            children = list(self._children)
        idle = bool(children) and all(child.is_idle for child in children)
        self._services.heartbeat.say(
            tasks=next((child.tasks for child in children if child.tasks), ()),
            running=sum(len(child.lines()) for child in children),
            stopping=bool(self._stop_asked),
        )
        self._services.recovery.leases = [lease for child in children for lease in child.leases]
        try:
            left = self._services.tick(self._clock.monotonic(), asked_to_drain=self._options.drain and idle)
        except DatabaseError as error:
            self._backoff.failed("serving the queue", error)
            return
        if self._services.heartbeat.jumped.is_set():
            self._renewals_woken.set()
        if silent := self._services.recovery.take():
            for row in silent:
                log.warning("Job %d is %s, no event since %s; stopping it.", row.job_id, row.kind, row.since)
            for child in children:
                child.stop_silent(silent, self._clock.monotonic())
        if self._services.failures_found.is_set():
            self._hurry.ring()
        if left == 0 and self._options.drain and idle and not self._stop_asked:
            self._drained = True
            self._ask_to_stop()

    def _serve_alone_forever(self) -> None:
        while not self._over.is_set():
            self._alone_due.wait()
            self._alone_due.clear()
            if self._over.is_set():
                return
            try:
                self._services.tick_alone(self._clock.monotonic())
            except DatabaseError as error:
                # What was broken off because we end has not failed.
                if not self._over.is_set():
                    self._backoff.failed("serving the queue", error)

    def _signalled(self, number: int, _frame: object) -> None:
        self._ask_to_stop()

    def _ask_to_stop(self) -> None:
        self._stop_asked += 1
        self._stopping.set()
        self._hurry.ring()


def _many(count: int, word: str, ending: str) -> str:
    return f"{count} {word}{'' if count == 1 else ending}"


def _what_ran(remains: list[Remains]) -> str:
    """The jobs in a child that died, for people: one of them may be to blame."""
    jobs = sorted({job_id for one in remains for job_id in one.death.lines})
    if not jobs:
        return "no job ran in it"
    named = ", ".join(map(str, jobs[:_NAMED_MAX]))
    more = f" and {len(jobs) - _NAMED_MAX} more" if len(jobs) > _NAMED_MAX else ""
    return f"job{'s' if len(jobs) > 1 else ''} {named}{more} ran in it"
