"""Writes what jobs said and how they ended, in batches, and does not give up while the database is away."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from detent.errors import AlreadyCommitted, DetentError, LeaseLost
from detent.errors.database import OUTAGES
from detent.model.limit_records import Charge
from detent.model.records import Abort, Aborted, Finish, Finished, NewEvent
from detent.store.contract import Store, Verbs
from detent.worker.child.write_batch import Batch, instead_of
from detent.worker.critical_thread import start_critical_thread
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.outcome_counts import count_outcomes

__all__ = ["Flusher"]

T = TypeVar("T")
Answer = Finished | Aborted | DetentError

_NAMES = {Charge: "what it has cost", NewEvent: "an event", Finish: "its ending", Abort: "its ending"}
_ANSWER_FIRST = 10.0
_ANSWER_LONGEST = 600.0
"""Seconds until a connection that gives no answer is given up; longer each time, should the database be slow."""
_EVENTS_WAIT = 0.2
_BATCH_MAX = 1000
_EVENTS_MAX = 10_000


class Flusher:
    """One thread. Endings are written as soon as the last batch is through; lines wait for company up to 200 ms.

    `written` is called with the leases that need no renewal any more; `aborted` with what became of aborted jobs.
    `tally` counts what became of all of them.
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
    ) -> None:
        self._store = store
        self._worker = worker
        self._backoff = backoff
        self._lease = lease
        self._written = written
        self._aborted = aborted
        self._changed = threading.Condition()
        self.tally: Counter[str] = Counter()
        self._batch = Batch()
        self._taken = 0
        self._done = 0
        self._closed = False
        self._urgent = False
        self._answer_max = _ANSWER_FIRST
        start_critical_thread("flusher", self._serve)

    @property
    def backlog(self) -> int:
        """How much waits to be written."""
        return self._batch.size

    def event(self, line: NewEvent) -> None:
        """Write a line soon. Whoever says more than can be written waits: memory has a bound."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._batch.events) < _EVENTS_MAX)
            self._batch.events.append(line)
            if len(self._batch.events) == 1 or len(self._batch.events) >= _BATCH_MAX:
                self._changed.notify_all()

    def charge(self, charge: Charge) -> None:
        """Write what an attempt has cost, next: others are about to begin."""
        with self._changed:
            self._batch.charges.append(charge)
            self._hurry()

    def end(self, endings: Iterable[Finish | Abort], leases_done: Iterable[int]) -> None:
        """Write how attempts ended, next."""
        with self._changed:
            for ending in endings:
                if isinstance(ending, Finish):
                    self._batch.finishes.append(ending)
                else:
                    self._batch.aborts.append(ending)
            self._batch.leases.extend(leases_done)
            self._hurry()

    def flush(self, timeout: float | None = None) -> bool:
        """Return when everything given so far is durable; False where the time ran out."""
        with self._changed:
            if not self._has_work() and not self._writing:
                return True
            mine = self._taken + self._has_work()
            self._hurry()
            return self._changed.wait_for(lambda: self._done >= mine, timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Write what is left, then end."""
        done = self.flush(timeout)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        return done

    @property
    def _writing(self) -> bool:
        return self._done < self._taken

    def _hurry(self) -> None:
        """Have it written next. Urgent only where there is work: the next one to hurry does not ring again, so an
        urgency that nothing came of would let it wait for ever."""
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
                batch, self._batch = self._batch, Batch()
                self._taken += 1
                self._urgent = False
            self._write_surely(batch)
            with self._changed:
                self._done += 1
                self._changed.notify_all()

    def _write_surely(self, batch: Batch) -> None:
        """Again and again while the database is away: endings are never thrown away while this process lives. A batch
        that is refused for another reason is written in halves, down to the item that is refused by itself."""
        parts = [batch]
        while parts:
            part = parts.pop()
            if not part.size:
                continue
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
            self._answer_max = _ANSWER_FIRST
            self.tally += count_outcomes(answers)
            for answer in answers:
                if isinstance(answer, Aborted):
                    self._aborted(answer)
        self._written(batch.leases)

    def _set_aside(self, part: Batch, error: Exception) -> Batch:
        """Say that an item was refused by itself; what to write in its place. A job of which no ending can be written
        is left to its lease."""
        (item,) = part.items
        self._backoff.refused(f"job {item.job_id}: the database refused {_NAMES[type(item)]}", error)
        return instead_of(item, error)

    def _write_all(self, batch: Batch) -> list[Answer]:
        """In one transaction. The ordinary batch is one verb, which is one by itself, without a trip to begin it and
        another to end it."""
        if batch.events or batch.aborts or batch.charges:
            return self._store.together(lambda verbs: self._write(verbs, batch))
        return self._write(self._store, batch)

    def _write(self, verbs: Verbs, batch: Batch) -> list[Answer]:
        answers, late = self._send(verbs, batch)
        if late.size and self._renewed(verbs, late):
            answers += self._send(verbs, late)[0]
        return answers

    def _send(self, verbs: Verbs, batch: Batch) -> tuple[list[Answer], Batch]:
        """What became of the attempts, and what was refused for want of a lease."""
        charged = verbs.limit_charge(batch.charges) if batch.charges else []
        appended = verbs.event_append(batch.events) if batch.events else []
        finished = verbs.job_finish(batch.finishes, self._worker) if batch.finishes else []
        aborted = verbs.job_abort(batch.aborts, self._worker) if batch.aborts else []
        # Cut short after its commit: the effect has happened, so the job succeeds.
        committed = [answer.job_id for answer in aborted if isinstance(answer, AlreadyCommitted)]
        if committed:
            verbs.job_recover(committed)
        late = Batch(
            _refused(batch.events, appended),
            _refused(batch.finishes, finished),
            _refused(batch.aborts, aborted),
            _refused(batch.charges, charged),
        )
        return [*finished, *aborted], late

    def _renewed(self, verbs: Verbs, late: Batch) -> bool:
        """J7: a lease that ran out while the database was away, and that nobody took away since, is still ours, though
        its renewal has not come through yet. What was done under it is not thrown away."""
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
