"""The supervisor: starts children, watches them, and answers the signals that stop a worker.

It runs none of the user's code. The main thread watches the children and never touches the database, so that time-outs
are enforced even during an outage. One thread renews leases (`lease_renewals`) and two run the services, quick ones and
long ones (`service_threads`); none of them waits for another. After SIGTERM or SIGINT, if an
operator asks it to drain, or if a migration demands newer code, the worker stops claiming, finishes its jobs within
the grace period, and hands back the rest. A second signal stops it at once.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections import Counter

from detent.alerts.sink_options import SinkOptions
from detent.model.clock import Clock
from detent.store.contract import Store
from detent.worker.critical_thread import start_critical_thread
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.outcome_counts import describe_counts
from detent.worker.services.service_set import ServiceSet
from detent.worker.supervisor.board import BoardCounters
from detent.worker.supervisor.child_process import ChildProcess
from detent.worker.supervisor.dead_child import DeadLease
from detent.worker.supervisor.lease_renewals import LeaseRenewals
from detent.worker.supervisor.process_counts import ProcessCounts
from detent.worker.supervisor.service_threads import ServiceThreads
from detent.worker.supervisor.systemd_notifier import SystemdNotifier
from detent.worker.supervisor.wakeup_pipe import WakeupPipe

__all__ = ["STOP_SIGNALS", "Supervisor"]

log = logging.getLogger("detent.worker")

_TICK = 0.2
_LOOK_EVERY = 1.0
"""Seconds between two looks at the children if nothing is due earlier. Every reason to kill a child is known at least
two seconds ahead, so none is noticed too late."""
_DYING_POLL = 0.05
"""Seconds between two looks at a child that was killed, until it is gone."""
_KILL_AFTER_GRACE = 5.0
_RESTART_FIRST = 0.5
_RESTART_LONGEST = 10.0
_HEALTHY_AFTER = 5.0
"""Seconds that a child has to live to be replaced without a longer pause."""
_JOIN_MAX = 5.0
_NAMED_MAX = 10

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""The signals that ask a worker to stop."""


class Supervisor:
    """A worker: a supervisor and its children.

    `after_outage` says that the database was unavailable when the worker started: other workers may not have renewed
    their leases yet.
    """

    def __init__(
        self,
        store: Store,
        options: WorkerOptions,
        clock: Clock,
        worker_id: int,
        notifier: SystemdNotifier | None = None,
        *,
        after_outage: bool = False,
        sinks: SinkOptions | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._notifier = notifier or SystemdNotifier(None)
        self._lock = threading.Lock()
        self._children: list[ChildProcess] = []
        self._stop_requests = 0
        self._drain_cause: str | None = None
        self._exit_code = 0
        self._was_signalled = False
        self._stopping = threading.Event()
        self._over = threading.Event()
        self._wakeup = WakeupPipe()
        # After an outage the holder of a lease must renew it within one lease, before others may take it away.
        backoff = OutageBackoff(clock, self._stopping, longest=options.lease / 3)
        self._services = ServiceSet(store, options, worker_id, sinks=sinks)
        if after_outage:
            self._services.saw_outage()
        self._renewals = LeaseRenewals(
            store,
            options,
            clock,
            backoff,
            self._services,
            children=self._list_children,
            failures_found=self._note_failures,
        )
        self._service_threads = ServiceThreads(
            options,
            clock,
            backoff,
            self._services,
            self._renewals,
            stopping=self._stopping,
            children=self._list_children,
            wake=self._wakeup.wake,
            stop=self._request_stop,
            drain=self._request_drain,
        )
        self._start_at = 0.0
        self._restart_pause = _RESTART_FIRST
        self._was_ready = False
        self._starts_failed = 0
        self._tally: Counter[str] = Counter()
        self._gone = BoardCounters()
        """What children that are gone have counted."""

    def run(self) -> int:
        """Supervise until told to stop, or with `drain` until no job is left. Return the exit code."""
        self._wakeup.wake_on_signals()
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: self._stop_by_signal())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        processes, slots = _plural(self._options.processes, "process", "es"), _plural(self._options.slots, "slot", "s")
        log.info("Worker %s: %s of %s.", self._options.name, processes, slots)
        renewals = start_critical_thread("renewals", lambda: self._renewals.run(self._over))
        threads = [renewals, *self._service_threads.start(self._over)]
        self._serve_metrics()
        self._watch_until_stopped()
        self._over.set()
        self._renewals.wake()
        self._service_threads.wake()
        self._store.cancel_reads()
        until = self._clock.monotonic() + _JOIN_MAX
        for thread in threads:
            thread.join(max(0.0, until - self._clock.monotonic()))
        self._renewals.finish(renewals)
        self._services.close()
        why = self._drain_cause or ("nothing is left to do" if self._service_threads.is_drained else "told to stop")
        counts = describe_counts(self._tally + self._renewals.tally)
        log.info("Worker %s ends, %s: %s.", self._options.name, why, counts)
        return self._exit_code

    def _watch_until_stopped(self) -> None:
        """Watch the children until the worker was told to stop and all of them are gone."""
        deadline: float | None = None
        while not (self._stop_requests and not self._children):
            now = self._clock.monotonic()
            if self._stop_requests and deadline is None:
                deadline = now + self._options.grace + _KILL_AFTER_GRACE
                self._stop_children()
            if deadline is not None and (self._stop_requests > 1 or now > deadline):
                self._kill_all(
                    "told to stop at once" if self._stop_requests > 1 else "not done within the grace period"
                )
            self._watch_children(now)
            self._wakeup.wait(self._next_look())

    def _serve_metrics(self) -> None:
        if self._options.metrics_port is not None:
            # Imported late: a worker without metrics does without HTTP and without the client of Prometheus.
            from detent.worker.supervisor.metrics_server import serve_metrics

            serve_metrics(self._options, self._store, self._clock, self._count_processes)

    def _count_processes(self) -> ProcessCounts:
        """Return what this worker has done since it started. From any thread."""
        with self._lock:
            children, counters, tally = list(self._children), self._gone, self._tally + self._renewals.tally
        for child in children:
            counters += child.counters()
            tally += Counter(child.tally)
        active = sum(len(child.entries()) for child in children)
        return ProcessCounts(children=len(children), active=active, counters=counters, tally=tally)

    def _list_children(self) -> list[ChildProcess]:
        with self._lock:
            return list(self._children)

    # -- children ----------------------------------------------------------------------------------------------

    def _watch_children(self, now: float) -> None:
        # Only a database with a single writer is held up by one child.
        waited = self._renewals.waited(now) if self._store.ids_by_transaction else None
        for child in list(self._children):
            child.flush()
            if child.is_dead:
                self._remove(child, now)
            elif child.killed is None and (verdict := child.judge(now, waited)) is not None:
                if verdict.job_id is not None:
                    log.warning(
                        "Job %d exceeded its time and did not stop; killing process %d.",
                        *(verdict.job_id, child.pid),
                        extra={"ids": {"job": str(verdict.job_id)}},
                    )
                else:
                    log.warning("Process %d holds the database while its interpreter is held; killing it.", child.pid)
                child.kill(verdict.cause, verdict.why)
        self._renewals.request_cancels(now)
        # A child that is leaving still finishes its jobs; its replacement is started already.
        staying = [child for child in self._children if not child.is_leaving]
        for _ in range(self._options.processes - len(staying)):
            if not self._stop_requests and now >= self._start_at:
                with self._lock:
                    self._children.append(ChildProcess(self._options, now, self._wakeup.wake))
        self._notify(staying)

    def _next_look(self) -> float:
        """Return the seconds until something may have to be done about a child. Everything else wakes this thread."""
        now = self._clock.monotonic()
        waits = self._renewals.waited(now) is not None
        if self._stop_requests or waits or not all(child.is_flushed for child in self._children):
            return _TICK
        times = [now + _LOOK_EVERY]
        # A killed child wakes this thread when it is gone; what it started is gone soon after.
        times += [now + _DYING_POLL if child.killed is not None else child.find_deaf_at() for child in self._children]
        if sum(not child.is_leaving for child in self._children) < self._options.processes:
            times.append(self._start_at)
        return max(0.0, min(times) - now)

    def _notify(self, staying: list[ChildProcess]) -> None:
        """Tell systemd how the worker is, and a child that there are failures to report."""
        if not self._was_ready and len(staying) == self._options.processes and all(one.is_ready for one in staying):
            self._was_ready = True
            self._notifier.ready()
        self._notifier.alive(self._clock.monotonic())
        listening = next((child for child in staying if child.is_ready), None)
        if listening is not None and self._services.failures_found.is_set():
            self._services.failures_found.clear()
            listening.report_failures()

    def _remove(self, child: ChildProcess, now: float) -> None:
        """Remove a dead child, and have its leases ended."""
        counted = child.counters()
        ended_with, leases = child.close(now)
        with self._lock:
            self._children.remove(child)
            self._gone += counted
            self._tally += Counter(child.tally)
        self._renewals.add_dead(leases)
        if child.is_leaving and child.killed is None:
            return
        # A child that cannot even start is tried again less and less often, and logged as often.
        is_ill = not child.is_ready or now - child.started_at <= _HEALTHY_AFTER
        self._restart_pause = min(2 * self._restart_pause, _RESTART_LONGEST) if is_ill else _RESTART_FIRST
        self._start_at = now + self._restart_pause
        if child.is_ready:
            log.warning("Process %d ended with %s; %s.", child.pid, ended_with, _describe_jobs(leases))
        else:
            self._starts_failed += 1
            why = child.unable or f"it ended with {ended_with} before it was ready"
            tries = "" if self._starts_failed == 1 else f", {self._starts_failed} times by now"
            log.error("A child process cannot start%s: %s; trying again in %g s.", tries, why, self._restart_pause)

    # -- stopping ----------------------------------------------------------------------------------------------

    def _request_stop(self) -> None:
        """Stop the worker; a second request stops it at once. Safe from any thread and from signal handlers."""
        self._stop_requests += 1
        self._stopping.set()
        self._wakeup.wake()

    def _stop_by_signal(self) -> None:
        """Stop the worker. The first signal to a worker that drains already changes nothing; a second one stops it at
        once."""
        if self._drain_cause is not None and self._stop_requests == 1 and not self._was_signalled:
            self._was_signalled = True
            return
        self._request_stop()

    def _request_drain(self, cause: str, exit_code: int) -> None:
        """Stop the worker because an operator asked for it, or because its release must not go on. Called by the thread
        of the services, once."""
        log.log(logging.ERROR if exit_code else logging.INFO, "Worker %s: %s.", self._options.name, cause)
        self._drain_cause = cause
        self._exit_code = exit_code
        self._request_stop()

    def _stop_children(self) -> None:
        for child in self._children:
            child.stop(self._options.grace)
        running = sum(len(child.entries()) for child in self._children)
        run = "1 job runs" if running == 1 else f"{running} jobs run"
        log.info("Stopping: %s, and may finish within %g s.", run, self._options.grace)
        self._notifier.stopping()

    def _kill_all(self, why: str) -> None:
        for child in self._children:
            if child.killed is None:
                log.warning("Killing process %d: %s.", child.pid, why)
                child.kill("stop", why)

    def _note_failures(self) -> None:
        self._services.failures_found.set()
        self._wakeup.wake()


def _plural(count: int, word: str, ending: str) -> str:
    return f"{count} {word}{'' if count == 1 else ending}"


def _describe_jobs(leases: list[DeadLease]) -> str:
    """Name the jobs that ran in a child that died: one of them may be the cause."""
    jobs = sorted({job_id for one in leases for job_id in one.death.entries})
    if not jobs:
        return "no job ran in it"
    named = ", ".join(map(str, jobs[:_NAMED_MAX]))
    more = f" and {len(jobs) - _NAMED_MAX} more" if len(jobs) > _NAMED_MAX else ""
    return f"job{'s' if len(jobs) > 1 else ''} {named}{more} ran in it"
