"""Writes events, costs and endings of attempts in batches, and retries for as long as the database is unavailable."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from detent.errors import AlreadyCommitted, DetentError, LeaseLost
from detent.errors.database import OUTAGES
from detent.model.clock import Clock, SystemClock
from detent.model.limit_records import Charge
from detent.model.records import Abort, Aborted, Finish, Finished, NewEvent
from detent.model.stream_records import STREAM
from detent.store.contract import Store, Verbs
from detent.worker.attempt.workflow.step_writer import StepWriter
from detent.worker.child.write_batch import WriteBatch, replace_refused
from detent.worker.critical_thread import start_critical_thread
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.outcome_counts import count_outcomes

__all__ = ["Flusher"]

T = TypeVar("T")
Answer = Finished | Aborted | DetentError

_NAMES = {Charge: "its cost", NewEvent: "an event", Finish: "its ending", Abort: "its ending"}
_ANSWER_FIRST = 10.0
_ANSWER_LONGEST = 600.0
"""Seconds until a connection that gives no answer is given up. Doubled each time, in case the database is slow."""
_EVENTS_WAIT = 0.2
_BATCH_MAX = 1000
_EVENTS_MAX = 10_000


class Flusher:
    """One writing thread. Endings are written as soon as the batch before is done; events wait up to 200 ms for others.

    `written` is called with the leases that need no more renewals, `aborted` with each attempt that was aborted, and
    `count` with the number of items of each batch and how long writing it took.
    `tally` counts the outcomes of all attempts.
    """

    def __init__(
        self,
        store: Store,
        worker: str,
        backoff: OutageBackoff,
        *,
        lease: float,
        written: Callable[[list[int]], None],
        aborted: Callable[[Aborted], None],
        count: Callable[[int, float], None] = lambda *_: None,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._worker = worker
        self.steps = StepWriter(store, worker)
        self._backoff = backoff
        self._lease = lease
        self._written = written
        self._aborted = aborted
        self._count = count
        self._clock = clock or SystemClock()
        self._changed = threading.Condition()
        self.tally: Counter[str] = Counter()
        self._batch = WriteBatch()
        self._taken = 0
        self._done = 0
        self._closed = False
        self._urgent = False
        self._answer_max = _ANSWER_FIRST
        start_critical_thread("flusher", self._serve)

    @property
    def backlog(self) -> int:
        """The number of items that wait to be written."""
        return self._batch.size

    def event(self, line: NewEvent) -> None:
        """Have an event written soon. A function that writes more than the database can take has to wait here."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._batch.events) < _EVENTS_MAX)
            if line.level == STREAM and self._batch.join_stream(line):
                return
            self._batch.events.append(line)
            if len(self._batch.events) == 1 or len(self._batch.events) >= _BATCH_MAX:
                self._changed.notify_all()

    def charge(self, charge: Charge) -> None:
        """Have the cost of an attempt written next, because it decides what other attempts may begin."""
        with self._changed:
            self._batch.charges.append(charge)
            self._hurry()

    def end(self, endings: Iterable[Finish | Abort], leases_done: Iterable[int]) -> None:
        """Have the endings of attempts written next."""
        with self._changed:
            for ending in endings:
                if isinstance(ending, Finish):
                    self._batch.finishes.append(ending)
                else:
                    self._batch.aborts.append(ending)
            self._batch.leases.extend(leases_done)
            self._hurry()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything given so far is durable; return False if that takes longer than `timeout`."""
        with self._changed:
            if not self._has_work() and not self._writing:
                return True
            mine = self._taken + self._has_work()
            self._hurry()
            return self._changed.wait_for(lambda: self._done >= mine, timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Write what is left, then end the thread; return whether all was written in time."""
        done = self.flush(timeout)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        return done

    @property
    def _writing(self) -> bool:
        return self._done < self._taken

    def _hurry(self) -> None:
        """Have the batch written next. Only if there is work: the flag is cleared with the next batch, so without a
        batch it would stay set and keep the next caller from waking the thread."""
        if self._has_work() and not self._urgent:
            self._urgent = True
            self._changed.notify_all()

    def _has_work(self) -> bool:
        return bool(self._batch.size or self._batch.leases)

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._has_work() or self._closed)
                if self._closed and not self._has_work():
                    return
                if not self._urgent:
                    self._changed.wait_for(
                        lambda: self._urgent or len(self._batch.events) >= _BATCH_MAX or self._closed, _EVENTS_WAIT
                    )
                batch, self._batch = self._batch, WriteBatch()
                self._taken += 1
                self._urgent = False
            self._write_surely(batch)
            with self._changed:
                self._done += 1
                self._changed.notify_all()

    def _write_surely(self, batch: WriteBatch) -> None:
        """Write a batch, and retry during an outage: endings are never dropped while this process lives. A batch that
        is refused for another reason is split, down to the single item that is refused."""
        parts = [batch]
        while parts:
            part = parts.pop()
            if not part.size:
                continue
            begun_at = self._clock.monotonic()
            try:
                with self._store.answering_within(self._answer_max):
                    answers = self._write_all(part)
            except Exception as error:
                if isinstance(error, OUTAGES):
                    self._backoff.failed("writing results", error)
                    self._answer_max = min(2 * self._answer_max, _ANSWER_LONGEST)
                    parts.append(part)
                else:
                    parts += reversed(part.halves() or [self._set_aside(part, error)])
                continue
            self._backoff.worked()
            self._count(part.size, self._clock.monotonic() - begun_at)
            self._answer_max = _ANSWER_FIRST
            self.tally += count_outcomes(answers)
            for answer in answers:
                if isinstance(answer, Aborted):
                    self._aborted(answer)
        self._written(batch.leases)

    def _set_aside(self, part: WriteBatch, error: Exception) -> WriteBatch:
        """Log that a single item was refused; return what to write in its place. If no ending of a job can be written,
        its lease expires."""
        (item,) = part.items
        self._backoff.refused(f"job {item.job_id}: the database refused {_NAMES[type(item)]}", error)
        return replace_refused(item, error)

    def _write_all(self, batch: WriteBatch) -> list[Answer]:
        """Write a batch in one transaction. A batch of endings alone is one verb, which is a transaction by itself and
        saves two round trips."""
        if batch.events or batch.aborts or batch.charges:
            return self._store.together(lambda verbs: self._write(verbs, batch))
        return self._write(self._store, batch)

    def _write(self, verbs: Verbs, batch: WriteBatch) -> list[Answer]:
        answers, late = self._send(verbs, batch)
        if late.size and self._renewed(verbs, late):
            answers += self._send(verbs, late)[0]
        return answers

    def _send(self, verbs: Verbs, batch: WriteBatch) -> tuple[list[Answer], WriteBatch]:
        """Return what became of the attempts, and the items that were refused because their lease has expired."""
        charged = verbs.limit_charge(batch.charges) if batch.charges else []
        appended = verbs.event_append(batch.events) if batch.events else []
        finished = verbs.job_finish(batch.finishes, self._worker) if batch.finishes else []
        aborted = verbs.job_abort(batch.aborts, self._worker) if batch.aborts else []
        # It was cut short after its commit: its effect has happened, so the job succeeds.
        committed = [answer.job_id for answer in aborted if isinstance(answer, AlreadyCommitted)]
        if committed:
            verbs.job_recover(committed)
        late = WriteBatch(
            _refused(batch.events, appended),
            _refused(batch.finishes, finished),
            _refused(batch.aborts, aborted),
            _refused(batch.charges, charged),
        )
        return [*finished, *aborted], late

    def _renewed(self, verbs: Verbs, late: WriteBatch) -> bool:
        """Renew the leases of these items; return whether any of them is held.

        J7: a lease that expired during an outage, and that was not taken away since, is still ours although its renewal
        is not written yet. What was done under it is not lost.
        """
        every = (late.events, late.finishes, late.aborts, late.charges)
        asked = {(one.job_id, one.attempt) for some in every for one in some}
        rows = verbs.job_get(sorted({job_id for job_id, _ in asked}))
        leases = {
            row.lease_id
            for row in rows
            if row is not None and row.lease_id and row.state == "running" and (row.id, row.attempt) in asked
        }
        return any(one.held for one in verbs.lease_renew(sorted(leases), self._lease)) if leases else False


def _refused(items: list[T], answers: Sequence[object]) -> list[T]:
    return [item for item, answer in zip(items, answers, strict=True) if isinstance(answer, LeaseLost)]
