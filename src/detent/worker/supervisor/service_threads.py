"""The two threads of a supervisor that run the services: one for quick services, one for long ones."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from detent.errors import TABLE, DatabaseError, SchemaTooNew
from detent.model.clock import Clock
from detent.worker.critical_thread import start_critical_thread
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.services.service_set import ServiceSet
from detent.worker.supervisor.child_process import ChildProcess
from detent.worker.supervisor.lease_renewals import LeaseRenewals

__all__ = ["ServiceThreads"]

log = logging.getLogger("detent.worker")

_TICK = 0.2
_PAUSE_LEAST = 0.02


class ServiceThreads:
    """Runs the services that are due. `stopping` is set when the worker was told to stop; `wake` wakes the supervisor's
    main thread; `stop` stops the worker when `drain` was asked for and no job is left; `drain` stops it when an
    operator has asked for it, or if its release must not go on. It takes a sentence and the exit code."""

    def __init__(
        self,
        options: WorkerOptions,
        clock: Clock,
        backoff: OutageBackoff,
        services: ServiceSet,
        renewals: LeaseRenewals,
        *,
        stopping: threading.Event,
        children: Callable[[], list[ChildProcess]],
        wake: Callable[[], None],
        stop: Callable[[], None],
        drain: Callable[[str, int], None],
    ) -> None:
        self._options = options
        self._clock = clock
        self._backoff = backoff
        self._services = services
        self._renewals = renewals
        self._stopping = stopping
        self._children = children
        self._wake_supervisor = wake
        self._stop = stop
        self._drain = drain
        self._long_due = threading.Event()
        self.is_drained = False
        """Whether the worker stopped because no job was left."""

    def start(self, over: threading.Event) -> list[threading.Thread]:
        """Start both threads. They end when `over` is set."""
        return [
            start_critical_thread("services", lambda: self._run_quick(over)),
            start_critical_thread("long-services", lambda: self._run_long(over)),
        ]

    def wake(self) -> None:
        """Have the threads look whether they are over."""
        self._long_due.set()

    def _run_quick(self, over: threading.Event) -> None:
        pause = 0.0
        while not over.wait(pause):
            self._serve()
            now = self._clock.monotonic()
            if (long_at := self._services.next_alone(now)) <= now:
                self._long_due.set()
                long_at = now + _TICK
            pause = max(_PAUSE_LEAST, min(self._services.next_quick(now), long_at) - now)
            if self._options.drain:
                pause = min(_TICK, pause)

    def _run_long(self, over: threading.Event) -> None:
        while not over.is_set():
            self._long_due.wait()
            self._long_due.clear()
            if over.is_set():
                return
            try:
                self._services.tick_alone(self._clock.monotonic())
            except DatabaseError as error:
                # A service that was broken off because the worker ends has not failed.
                if not over.is_set():
                    self._backoff.failed("serving the queue", error)

    def _serve(self) -> None:
        """Run the quick services that are due, and act on what they found."""
        self._renewals.notice_delay()
        children = self._children()
        is_idle = bool(children) and all(child.is_idle for child in children)
        ready = next((child for child in children if child.tasks), None)
        self._services.heartbeat.set_state(
            tasks=() if ready is None else ready.tasks,
            versions={} if ready is None else ready.versions,
            running=sum(len(child.entries()) for child in children),
            stopping=self._stopping.is_set(),
        )
        self._services.recovery.leases = [lease for child in children for lease in child.leases]
        try:
            jobs_left = self._services.tick(self._clock.monotonic(), asked_to_drain=self._options.drain and is_idle)
        except DatabaseError as error:
            self._backoff.failed("serving the queue", error)
            return
        if self._services.heartbeat.jumped.is_set():
            self._renewals.wake()
        if silent := self._services.recovery.take():
            for row in silent:
                log.warning("Job %d is %s, no event since %s; stopping it.", row.job_id, row.kind, row.since)
            for child in children:
                child.stop_silent(silent, self._clock.monotonic())
        if self._services.failures_found.is_set():
            self._wake_supervisor()
        heartbeat = self._services.heartbeat
        if heartbeat.too_new is not None and not self._stopping.is_set():
            self._drain(str(heartbeat.too_new), TABLE[SchemaTooNew].exit)
        if heartbeat.drain_requested_by is not None and not self._stopping.is_set():
            why = "" if heartbeat.drain_reason is None else f": {heartbeat.drain_reason}"
            self._drain(f"{heartbeat.drain_requested_by} asked it to drain{why}", 0)
        if jobs_left is False and self._options.drain and is_idle and not self._stopping.is_set():
            self.is_drained = True
            self._stop()
