"""Metrics that are read from the database: a bounded number of small queries, at most every few seconds.

Nothing here scans jobs: counts and times come from the figures and rates that services keep. Counters begin with the
hour before the process started. Hours that are over are read once and kept in memory, so a query covers two hours at
most, and a counter never decreases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from detent.errors import DetentError
from detent.model.clock import Clock
from detent.model.figure_records import RateCount, TransitionCount
from detent.store.contract import Verbs
from detent.telemetry.samples import LabelCap, Samples

__all__ = ["SharedMetrics"]

_READ_EVERY = 5.0
_RATIO_EVERY = 60.0
_HOUR = timedelta(hours=1)
_ALIVE_WITHIN = 10.0
_NAMES_MAX = 100
"""Maximum number of queues, of tasks and of workers that have labels of their own."""
_POLICIES_MAX = 50
_ALERTS_MAX = 1000
_GIVEN_BACK = frozenset({"released", "snoozed", "throttled", "parked"})


class SharedMetrics:
    """Reads the metrics of a database; `verbs` gives access to it. The caller makes sure that one thread at a time
    reads."""

    def __init__(self, verbs: Callable[[], Verbs], clock: Clock) -> None:
        self._verbs = verbs
        self._clock = clock
        self._queue = LabelCap(_NAMES_MAX)
        self._task = LabelCap(_NAMES_MAX)
        self._worker = LabelCap(_NAMES_MAX)
        self._policy = LabelCap(_POLICIES_MAX)
        self._read_at: float | None = None
        self._found = Samples()
        self._counted_from: datetime | None = None
        self._counted = Samples()
        self._ratio: tuple[float, float | None] | None = None

    def read(self) -> Samples:
        """Return the metrics, at most five seconds old. If the database does not answer, say so in the metrics."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _READ_EVERY:
            try:
                self._found = self._read(self._verbs())
                self._found.add("detent_database_up", 1)
            except DetentError:
                self._found = Samples()
                self._found.add("detent_database_up", 0)
            self._read_at = self._clock.monotonic()
            self._found.add("detent_read_seconds", self._read_at - now)
        return self._found

    def _read(self, verbs: Verbs) -> Samples:
        found = Samples()
        now = verbs.now()
        self._add_queues(found, verbs, now)
        self._add_workers(found, verbs)
        self._add_alerts(found, verbs)
        self._add_counters(found, verbs, now)
        ratio = self._success_ratio(verbs, now)
        if ratio is not None:
            found.add("detent_success_ratio", ratio)
        return found

    # -- now ---------------------------------------------------------------------------------------------------

    def _add_queues(self, found: Samples, verbs: Verbs, now: datetime) -> None:
        for one in verbs.queue_depths():
            found.add("detent_jobs", one.jobs, self._queue(one.queue), one.state)
            dead = one.jobs if one.state == "quarantined" else 0
            found.add("detent_dead_letters", dead, self._queue(one.queue))
        oldest: dict[str, float] = {}
        for ready in verbs.ready_oldest():
            queue = self._queue(ready.queue)
            oldest[queue] = max(oldest.get(queue, 0.0), (now - ready.ready_at).total_seconds())
        for queue, seconds in oldest.items():
            found.add("detent_oldest_ready_seconds", seconds, queue)
        for row in verbs.queue_list():
            found.add("detent_queue_paused", row.paused_at is not None, self._queue(row.name))

    def _add_workers(self, found: Samples, verbs: Verbs) -> None:
        workers = verbs.worker_list(_ALIVE_WITHIN)
        found.add("detent_workers", len(workers))
        for one in workers:
            found.add("detent_worker_jobs", one.running, self._worker(one.name))
            found.add("detent_worker_slots", one.slots, self._worker(one.name))

    def _add_alerts(self, found: Samples, verbs: Verbs) -> None:
        violated = 0
        for one in verbs.alert_list("firing", _ALERTS_MAX):
            found.add("detent_alerts_firing", 1, self._policy(one.policy), one.severity)
            violated += one.policy == "invariant_violated"
        found.add("detent_invariant_violations", violated)
        found.add("detent_breakers_open", len(verbs.alert_figures("breaker_open", "limit", 0.0)))

    def _success_ratio(self, verbs: Verbs, now: datetime) -> float | None:
        """Return the share of the last 24 hours. It changes slowly, so it is read once a minute."""
        at = self._clock.monotonic()
        if self._ratio is None or at - self._ratio[0] >= _RATIO_EVERY:
            ended = [
                one
                for one in verbs.rates(now - 24 * _HOUR, 3600)
                if one.outcome and one.to_state in ("succeeded", "failed", "quarantined")
            ]
            number = sum(one.moves for one in ended)
            succeeded = sum(one.moves for one in ended if one.to_state == "succeeded")
            self._ratio = (at, succeeded / number if number else None)
        return self._ratio[1]

    # -- since the process started -----------------------------------------------------------------------------

    def _add_counters(self, found: Samples, verbs: Verbs, now: datetime) -> None:
        # Moves of the last hour may still be added to it, so it is read again until the next one is over.
        begin = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) - _HOUR
        if self._counted_from is None:
            self._counted_from = begin
        elif begin > self._counted_from:
            self._add_moves(self._counted, verbs.figures(self._counted_from, until=begin))
            past = [one for one in verbs.rates(self._counted_from, 3600) if one.at < begin]
            self._add_waits(self._counted, past)
            self._counted_from = begin
        found.add_all(self._counted)
        self._add_moves(found, verbs.figures(begin))
        self._add_waits(found, verbs.rates(begin, 3600))

    def _add_moves(self, found: Samples, counts: Iterable[TransitionCount]) -> None:
        for one in counts:
            task = self._task(one.task)
            found.add("detent_transitions_total", one.moves, task, one.from_state, one.to_state)
            if one.to_state == "pending" and one.outcome not in _GIVEN_BACK:
                found.add("detent_retries_total", one.moves, task)
            if not one.outcome:
                continue
            found.add("detent_transitions_total", one.moves, task, "pending", "running")
            found.add("detent_attempts_total", one.moves, task, one.outcome)
            if one.outcome == "throttled":
                found.add("detent_throttled_total", one.moves, task)
            if one.outcome == "expired":
                found.add("detent_leases_expired_total", one.moves, task)
            if one.bucket >= 0:
                found.histogram("detent_run_seconds", task, one.outcome).add(
                    one.bucket / 1e6, one.moves, one.ran_us / 1e6
                )

    def _add_waits(self, found: Samples, counts: Iterable[RateCount]) -> None:
        waits = found.histogram("detent_wait_seconds")
        for one in counts:
            if one.to_state == "running":
                waits.add(one.bucket / 1e6, one.moves, one.us / 1e6)
