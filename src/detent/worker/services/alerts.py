"""Alerts: whether something is wrong, and whoever wants to know hears of it (M2).

Looking is done here, by one worker. Telling takes as long as the other side likes, so every sink has a thread of its
own, and one that is away keeps neither the others nor any other service waiting.
"""

from __future__ import annotations

import logging
import threading

from detent.alerts.courier import deliver, sinks_of
from detent.alerts.judge import look
from detent.alerts.options import SinkOptions
from detent.alerts.sinks import Sink
from detent.errors import DatabaseError
from detent.model.clock import Clock, SystemClock
from detent.store.contract import Store
from detent.worker.services.service import Service

__all__ = ["Alerts"]

log = logging.getLogger("detent.worker")

_EVERY = 5.0
_EVERY_MIN = 0.5
_JUDGED_EVERY = 3
_SWEPT_EVERY = 12
_JOBS_MAX = 2_000
"""Jobs that one count looks at: where more have ended, they stand for all."""
_KEEP = 30 * 86_400.0
_NEVER = 10**12
_LAST_WORDS = 2.0


class Alerts:
    """Counts, judges, and lets the couriers know that there is something to tell."""

    def __init__(self, store: Store, sinks: SinkOptions, lease: float, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._every = max(_EVERY_MIN, min(_EVERY, lease / 3))
        self._remind_after = sinks.remind_hours * 3600 or _NEVER
        self._couriers = [_Courier(store, sink, sinks.timeout) for sink in sinks_of(sinks)]
        self._judge_at: float | None = None
        self._sweep_at: float | None = None

    def service(self) -> Service:
        """More often than leases run out, by which the jobs that ended are found; by one worker."""
        return Service("alerts", self._every, self.run, alone=True)

    def run(self, now: float) -> None:
        """Count; in their time judge and sweep; and hand on what is to be told."""
        self._store.alert_tally(_JOBS_MAX)
        if self._judge_at is None or now >= self._judge_at:
            self._judge_at = now + _JUDGED_EVERY * self._every
            look(self._store)
        if self._sweep_at is None or now >= self._sweep_at:
            self._sweep_at = now + _SWEPT_EVERY * self._every
            self._store.alert_sweep(self._remind_after, _KEEP)
        if self._store.alert_figures("untold", "whole", 0.0):
            self._store.alert_spread([courier.sink.route for courier in self._couriers])
            for courier in self._couriers:
                courier.wake()

    def close(self) -> None:
        """No more is begun; what is being sent has a moment to end. What it did not come to say is said again by the
        worker that comes after."""
        for courier in self._couriers:
            courier.end()
        until = self._clock.monotonic() + _LAST_WORDS
        for courier in self._couriers:
            courier.join(max(0.0, until - self._clock.monotonic()))


class _Courier:
    """One sink, and the thread that waits for it; it begins with the first thing there is to tell."""

    def __init__(self, store: Store, sink: Sink, timeout: float) -> None:
        self.sink = sink
        self._store = store
        self._timeout = timeout
        self._something = threading.Event()
        self._over = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """There may be something to tell."""
        self._something.set()
        if self._thread is None:
            name = f"alerts-{self.sink.route.sink}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """At once, where nothing is being sent."""
        self._over = True
        self._something.set()

    def join(self, seconds: float) -> None:
        """Wait for its end, so long at most."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            self._something.wait()
            self._something.clear()
            if self._over:
                return
            try:
                deliver(self._store, self.sink, self._timeout)
            except DatabaseError as error:
                log.warning("telling alerts failed: %s", str(error).partition("\n")[0])
            except Exception:
                log.exception("telling alerts failed")
