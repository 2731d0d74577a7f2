"""Group commit: what many callers write at the same time goes into few transactions.

A caller that finds the writer idle writes on its own thread. While it does, other callers queue up. The first of them
leads next: it writes one batch for all that have queued, and every caller is answered after the batch is durable. For
callers that cannot wait on a thread (async), a thread of the writer leads.

A refused item affects its own caller only. If a whole batch fails for a reason that one caller may have caused, it is
repeated caller by caller. If the answer to a COMMIT is lost, the same items are sent again: the verbs behind a writer
recognize what exists already.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, Generic, TypeVar

from detent.errors import DatabaseBusy, DatabaseError, GuardViolation, OutcomeUnknown
from detent.model.clock import Clock, SystemClock
from detent.store.contract import Store
from detent.store.light_future import LightFuture

__all__ = ["GroupWriter", "new_lock"]

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")

_RETRIES_MAX = 8
_RETRY_SECONDS_MAX = 30.0
"""Seconds within which a write whose answer was lost is sent again. Each try may wait for locks and connections."""
_PAUSE_FIRST = 0.1
_PAUSE_MAX = 2.0


def new_lock() -> AbstractContextManager[Any]:
    """Return a lock, for modules that may not import `threading`."""
    return threading.Lock()


class _Request(Generic[ItemT, AnswerT]):
    """The items of one caller, who does not change them."""

    __slots__ = ("items", "sent")

    def __init__(self, items: Sequence[ItemT]) -> None:
        self.items = items
        self.sent: Callable[[], Sequence[AnswerT]] | None = None  # waits for the answers, if they were already sent


class _Queued(_Request[ItemT, AnswerT]):
    """A request in the queue. `woken` is None if its caller does not wait on a thread."""

    __slots__ = ("future", "has_left", "woken")

    def __init__(self, items: Sequence[ItemT], *, waits: bool) -> None:
        super().__init__(items)
        self.future: LightFuture[list[AnswerT]] = LightFuture()
        self.has_left = False
        self.woken: threading.Lock | None = None
        if waits:
            self.woken = threading.Lock()
            self.woken.acquire()

    def wake(self) -> None:
        """Let the caller continue, because it leads or is answered. Waking it twice has no effect."""
        if self.woken is not None and self.woken.locked():
            self.woken.release()


class GroupWriter(Generic[ItemT, AnswerT]):
    """A writer of one process over one store. Safe from any thread; a forked child starts with an empty queue.

    `write_all` is the verb: it takes the items of several callers and returns their answers in order. `send`, if there
    is one, sends items without waiting, and returns a function that waits for their answers, or None if it could not.

    At most one request leads at a time: its caller, or the writer's thread, writes. Every leader calls `_leave`, which
    requeues what an interrupt left unfinished and wakes the next one. A caller that finds no other is `alone` and
    writes without being queued.
    """

    def __init__(
        self,
        store: Store,
        write_all: Callable[[Sequence[ItemT]], Sequence[AnswerT]],
        *,
        send: Callable[[Sequence[ItemT]], Callable[[], Sequence[AnswerT]] | None] | None = None,
        batch_max: int = 1000,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._write_all = write_all
        self._send = send
        self._batch_max = batch_max
        self._clock = clock or SystemClock()
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._queue: deque[_Queued[ItemT, AnswerT]] = deque()
        self._leader: _Queued[ItemT, AnswerT] | None = None
        self._alone: _Request[ItemT, AnswerT] | None = None
        self._closing = 0
        self._was_shared = False
        self._batch: list[_Queued[ItemT, AnswerT]] = []
        self._thread: threading.Thread | None = None

    def write(self, items: Sequence[ItemT]) -> list[AnswerT]:
        """Write and wait until it is durable. Return an answer per item.

        An interrupt while waiting gives up this caller only. Raises `WrongPlace` if this thread holds the transaction
        that it would wait for.
        """
        self._store.check_thread()
        # An interrupt can come between any two steps, also in `finally`. So every exit is taken twice; the second time
        # does nothing unless the first one was interrupted.
        request: _Request[ItemT, AnswerT] = _Request(items)
        try:
            try:
                if self._starts_alone(request):
                    return self._write_surely([request])[0]
            finally:
                self._finish_alone(request)
        finally:
            self._finish_alone(request)
        queued: _Queued[ItemT, AnswerT] = _Queued(items, waits=True)
        assert queued.woken is not None
        try:
            try:
                self._enter_queue(queued)
                queued.woken.acquire()
                if not queued.future.done():
                    self._write_batch()
            finally:
                self._leave(queued)
                queued.has_left = True
        finally:
            if not queued.has_left:
                self._leave(queued, again=True)
        return queued.future.result()

    def submit(self, items: Sequence[ItemT]) -> LightFuture[list[AnswerT]]:
        """Write without waiting. The future has the answers when they are durable. If it is cancelled before its
        turn, nothing is written. A request that finds the writer idle is sent at once if the store can do that."""
        queued: _Queued[ItemT, AnswerT] = _Queued(items, waits=False)
        self._enter_queue(queued)
        return queued.future

    def close(self) -> None:
        """Write what was submitted and end the writer's thread. The writer can be used again."""
        self._follow_fork()
        with self._lock:
            self._closing += 1
            try:
                self._changed.wait_for(lambda: self._leader is None and self._alone is None)
            finally:
                self._closing -= 1
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None:
            thread.join()

    def _starts_alone(self, request: _Request[ItemT, AnswerT]) -> bool:
        self._follow_fork()
        with self._lock:
            if self._alone is not None or self._leader is not None or self._queue:
                return False
            self._alone = request
            return True

    def _finish_alone(self, request: _Request[ItemT, AnswerT]) -> None:
        """Wake the next leader, if this request was alone."""
        if self._alone is not request:
            return
        with self._lock:
            if self._queue or self._closing:
                self._wake_leader()
            self._alone = None

    def _follow_fork(self) -> None:
        if os.getpid() != self._pid:
            self._start()

    def _enter_queue(self, queued: _Queued[ItemT, AnswerT]) -> None:
        self._follow_fork()
        with self._lock:
            is_idle = self._leader is None and self._alone is None
            if queued.woken is None:
                # With the lock held: another caller could lead in between, and need the connection that this one has.
                # Requests that come together, or just did, are written together.
                if is_idle and not self._was_shared and self._send is not None:
                    queued.sent = self._send(queued.items)
                    if queued.sent is not None:
                        queued.future.begin()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._serve, name="detent-writer", daemon=True)
                    self._thread.start()
            self._queue.append(queued)
            if is_idle:
                self._wake_leader()

    def _serve(self) -> None:
        """Lead for callers that do not wait on a thread."""
        me = threading.current_thread()
        while True:
            with self._lock:
                self._changed.wait_for(lambda: self._is_served() or self._thread is not me)
                leader = self._leader
                if leader is None or self._thread is not me:
                    return
            try:
                self._write_batch()
            finally:
                self._leave(leader)

    def _is_served(self) -> bool:
        return self._leader is not None and self._leader.woken is None

    def _wake_leader(self) -> None:
        """Let the first of the queue lead. The caller holds the lock. After an interrupt, calling this again only
        makes sure that the leader is awake."""
        if self._leader is None and self._queue:
            self._leader = self._queue[0]
        if self._leader is not None and self._leader.woken is not None:
            self._leader.wake()
        else:
            self._changed.notify_all()

    def _leave(self, queued: _Queued[ItemT, AnswerT], *, again: bool = False) -> None:
        """Remove the request, answered or not. If it led, wake the answered callers of its batch and requeue the
        others: if their jobs were written after all, the next try finds them. `again`: the first call may have been
        interrupted at any step."""
        with self._lock:
            if queued in self._queue:
                self._queue.remove(queued)
            if queued is self._leader:
                self._requeue([one for one in self._batch if one is not queued])
                self._batch = []
                self._leader = self._queue[0] if self._queue else None
            elif not again:
                return
            if self._alone is None:
                self._wake_leader()

    def _requeue(self, others: list[_Queued[ItemT, AnswerT]]) -> None:
        unfinished = [one for one in others if not one.future.done()]
        if unfinished:
            present = {id(one) for one in self._queue}
            self._queue.extendleft(one for one in reversed(unfinished) if id(one) not in present)
        for one in others:
            if one.future.done():
                one.wake()

    def _write_batch(self) -> None:
        """Write what is queued, and answer it."""
        with self._lock:
            self._batch = self._next_batch()
            for _ in self._batch:
                self._queue.popleft()
            self._was_shared = len(self._batch) > 1
            batch = [one for one in self._batch if one.future.begin()]
        for queued in batch:
            if queued.sent is not None:
                self._answer([queued])
        self._answer([queued for queued in batch if not queued.future.done()])

    def _next_batch(self) -> list[_Queued[ItemT, AnswerT]]:
        """Return what goes into the next transaction. It stays in the queue, so that an interrupt does not lose it."""
        count = size = 0
        for queued in self._queue:
            size += len(queued.items)
            if count and size > self._batch_max:
                break
            count += 1
        return list(islice(self._queue, count))

    def _answer(self, batch: list[_Queued[ItemT, AnswerT]]) -> None:
        try:
            answers = self._write_surely(batch) if batch else []
        except Exception as error:
            if len(batch) > 1 and self._may_concern_one_caller(error):
                for queued in batch:
                    self._answer([queued])
                return
            for queued in batch:
                queued.future.set_exception(error)
            return
        for queued, given in zip(batch, answers, strict=True):
            queued.future.set_result(given)

    def _may_concern_one_caller(self, error: Exception) -> bool:
        """Return whether the others may succeed without the caller that caused the error."""
        if isinstance(error, DatabaseBusy):
            # If the database has many writers, a key of one caller was locked.
            return not self._store.ids_by_transaction
        return not isinstance(error, DatabaseError) or isinstance(error, GuardViolation)

    def _write_surely(self, batch: Sequence[_Request[ItemT, AnswerT]]) -> list[list[AnswerT]]:
        """Write. If the answer to COMMIT is lost, send the items again, also while the database is away for some
        seconds. Raises `OutcomeUnknown` if that does not succeed in time."""
        unknown: OutcomeUnknown | None = None
        pause, until = _PAUSE_FIRST, math.inf
        for retry in range(1 + _RETRIES_MAX):
            try:
                return self._write(batch)
            except OutcomeUnknown as error:
                unknown = error
                until = min(until, self._clock.monotonic() + _RETRY_SECONDS_MAX)
                if self._clock.monotonic() >= until:
                    raise
            except DatabaseError as error:
                if unknown is None or isinstance(error, GuardViolation):
                    raise
                if retry == _RETRIES_MAX or self._clock.monotonic() + pause >= until:
                    raise unknown from error
                # A server that has crashed needs some time to recover.
                self._clock.sleep(pause)
                pause = min(2 * pause, _PAUSE_MAX)
        assert unknown is not None
        raise unknown

    def _write(self, batch: Sequence[_Request[ItemT, AnswerT]]) -> list[list[AnswerT]]:
        if (sent := batch[0].sent) is not None:
            batch[0].sent = None
            return [list(sent())]
        if len(batch) == 1:
            return [list(self._write_all(batch[0].items))]
        answers = iter(self._write_all([item for request in batch for item in request.items]))
        return [list(islice(answers, len(request.items))) for request in batch]
