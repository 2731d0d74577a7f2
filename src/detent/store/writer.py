"""Group commit: what many callers want to write at once goes into few transactions.

Callers put items in and get futures. Whatever arrived while the last transaction ran goes into the next one, and the
futures resolve after it is durable. An idle writer costs nothing: the caller writes on its own thread. While one caller
writes, the others wait, and the first of them writes next, for all that have come together; for callers that cannot
wait on a thread (async), a thread of the writer's own takes their place.

Items answer one by one (a refusal touches nobody else). A transaction that failed as a whole, for a reason that one
caller's items may have caused, is repeated caller by caller. A connection lost during COMMIT is no failure yet: every
verb given to the writer finds its own traces, so the same items are sent again.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from detent.errors import DatabaseError, GuardViolation, OutcomeUnknown
from detent.store.contract import Store, Verbs

__all__ = ["Writer", "mutex"]

T = TypeVar("T")
Verb = Callable[[Verbs, list[Any]], Sequence[Any]]

_UNKNOWN_OUTCOMES_MAX = 3


def mutex() -> AbstractContextManager[Any]:
    """A lock for parts that may not make their own."""
    return threading.Lock()


class _Entry:
    """What one caller asked for."""

    __slots__ = ("future", "items", "lead", "verb")

    def __init__(self, verb: Verb, items: list[Any], lead: threading.Lock | None) -> None:
        self.verb = verb
        self.items = items
        self.lead = lead  # held; released when this caller shall write next, or when its answer is there
        self.future: Future[list[Any]] = Future()


class Writer:
    """The writer of one process over one store. Safe from any thread; after a fork the child begins with none of it."""

    def __init__(self, store: Store, *, batch_max: int = 1000) -> None:
        self._store = store
        self._batch_max = batch_max
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._queue: deque[_Entry] = deque()
        self._writing = False
        self._thread: threading.Thread | None = None
        self._called = threading.Condition(self._lock)
        self._closed = False

    def write(self, verb: Verb, items: Sequence[Any]) -> list[Any]:
        """Write and wait. The answers, item by item, durable."""
        if os.getpid() != self._pid:
            self._begin()
        lead = threading.Lock()
        lead.acquire()
        entry = _Entry(verb, list(items), lead)
        with self._lock:
            self._queue.append(entry)
            leads = not self._writing
            self._writing = True
        if not leads:
            try:
                lead.acquire()
            except BaseException:
                self._abandon(entry)
                raise
        if not entry.future.done():
            self._write_next()
        return entry.future.result()

    def submit(self, verb: Verb, items: Sequence[Any]) -> Future[list[Any]]:
        """Write without waiting: the future resolves when it is durable."""
        if os.getpid() != self._pid:
            self._begin()
        entry = _Entry(verb, list(items), None)
        with self._lock:
            self._queue.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="detent-writer", daemon=True)
                self._thread.start()
            if not self._writing:
                self._writing = True
                self._called.notify()
        return entry.future

    def close(self) -> None:
        """Let the writer's own thread end; what was submitted is written first."""
        with self._lock:
            self._closed = True
            self._called.notify()
            thread = self._thread
        if thread is not None and os.getpid() == self._pid:
            thread.join()

    def _abandon(self, entry: _Entry) -> None:
        """The caller was interrupted while it waited in line: nobody may count on it to lead."""
        assert entry.lead is not None
        with self._lock:
            if entry in self._queue:
                self._queue.remove(entry)
                if entry.lead.acquire(blocking=False):
                    self._hand_over()

    def _serve(self) -> None:
        """The thread for callers that cannot lead: it leads whenever the first in line is one of them."""
        while True:
            with self._lock:
                while not (self._writing and self._queue and self._queue[0].lead is None):
                    if self._closed and not self._queue:
                        return
                    self._called.wait()
            self._write_next()

    def _write_next(self) -> None:
        """Write what stands in line, answer, and hand over to the first who came meanwhile."""
        with self._lock:
            batch = self._take()
        self._write(batch)
        with self._lock:
            for entry in batch:
                if entry.lead is not None and entry.future.done():
                    entry.lead.release()
            self._hand_over()

    def _hand_over(self) -> None:
        """Let the first in line write next. Called with the lock held."""
        if not self._queue:
            self._writing = False
            if self._closed:
                self._called.notify()
        elif (lead := self._queue[0].lead) is not None:
            lead.release()
        else:
            self._called.notify()

    def _take(self) -> list[_Entry]:
        batch = [self._queue.popleft()]
        size = len(batch[0].items)
        while self._queue and size + len(self._queue[0].items) <= self._batch_max:
            entry = self._queue.popleft()
            batch.append(entry)
            size += len(entry.items)
        return batch

    def _write(self, batch: list[_Entry]) -> None:
        try:
            answers = self._surely(lambda verbs: _run(verbs, batch))
        except Exception as error:
            blameless = isinstance(error, DatabaseError) and not isinstance(error, GuardViolation)
            if len(batch) == 1 or blameless:
                for entry in batch:
                    entry.future.set_exception(error)
                return
            for entry in batch:
                self._write([entry])
            return
        except BaseException as interrupt:
            # The leader was interrupted, and only the leader: the others go back to the head of the line. If the
            # transaction went through all the same, they find their traces.
            batch[0].future.set_exception(interrupt)
            with self._lock:
                self._queue.extendleft(reversed(batch[1:]))
            return
        for entry, answer in zip(batch, answers, strict=True):
            entry.future.set_result(answer)

    def _surely(self, work: Callable[[Verbs], T]) -> T:
        for _ in range(_UNKNOWN_OUTCOMES_MAX):
            try:
                return self._store.together(work)
            except OutcomeUnknown:
                continue
        return self._store.together(work)


def _run(verbs: Verbs, batch: list[_Entry]) -> list[list[Any]]:
    """Neighbours with the same verb share one call of it."""
    answers: list[list[Any]] = []
    begin = 0
    while begin < len(batch):
        end = begin
        items: list[Any] = []
        while end < len(batch) and batch[end].verb is batch[begin].verb:
            items += batch[end].items
            end += 1
        given = list(batch[begin].verb(verbs, items))
        for entry in batch[begin:end]:
            answers.append(given[: len(entry.items)])
            del given[: len(entry.items)]
        begin = end
    return answers
