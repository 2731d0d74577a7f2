"""Group commit: what many callers want to write at once goes into few transactions.

Callers put items in and get answers. Whatever arrived while the last transaction ran goes into the next one, and the
answers come after it is durable. An idle writer costs nothing: the caller writes on its own thread. While one caller
writes, the others wait, and the first of them writes next, for all that have come together; for callers that cannot
wait on a thread (async), a thread of the writer's own takes their place.

Items answer one by one (a refusal touches nobody else). A transaction that failed as a whole, for a reason that one
caller's items may have caused, is repeated caller by caller. A connection lost during COMMIT is no failure yet: every
verb given to the writer finds its own traces, so the same items are sent again.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, TypeVar

from detent.errors import DatabaseBusy, DatabaseError, GuardViolation, OutcomeUnknown
from detent.model.clock import Clock, SystemClock
from detent.store.answer import Answer
from detent.store.contract import Store, Verbs

__all__ = ["Writer", "mutex", "single_call"]

Verb = Callable[[Verbs, Sequence[Any]], Sequence[Any]]
V = TypeVar("V", bound=Verb)
Sent = Callable[[], Sequence[Any]]
"""Waits for the answers to what was sent."""
Send = Callable[[Sequence[Any]], Sent | None]

_LOOKS_MAX = 8
_LOOK_SECONDS_MAX = 30.0
"""Seconds in which a write whose answer was lost is looked up. Each look may wait for locks and connections."""
_PAUSE_FIRST = 0.1
_PAUSE_LONGEST = 2.0


_SINGLE_CALLS: set[Verb] = set()


def single_call(verb: V) -> V:
    """Marks what calls exactly one verb, once: it needs no transaction around it."""
    _SINGLE_CALLS.add(verb)
    return verb


def mutex() -> AbstractContextManager[Any]:
    """A lock for parts that may not make their own."""
    return threading.Lock()


class _Request:
    """What one caller asked for. Its items are the caller's own, who leaves them as they are."""

    __slots__ = ("items", "sent", "verb")

    def __init__(self, verb: Verb, items: Sequence[Any]) -> None:
        self.verb = verb
        self.items = items
        self.sent: Sent | None = None  # on its way already, by itself


class _Entry(_Request):
    """The same of a caller who stands in line."""

    __slots__ = ("answer", "called", "left")

    def __init__(self, verb: Verb, items: Sequence[Any], *, waits: bool) -> None:
        super().__init__(verb, items)
        self.answer: Answer[list[Any]] = Answer()
        self.left = False
        self.called: threading.Lock | None = None  # of a caller that waits: released when it leads or is answered
        if waits:
            self.called = threading.Lock()
            self.called.acquire()


class Writer:
    """The writer of one process over one store. Safe from any thread; after a fork the child begins with none of it.

    At any moment at most one entry leads: its caller, or the writer's thread for it, is the one that writes. Whoever
    leads ends it with `_leave`, which answers, puts back what an interrupt left undone, and calls the next. A caller
    who finds nobody else is `alone`, and leads without an entry.
    """

    def __init__(self, store: Store, *, batch_max: int = 1000, clock: Clock | None = None) -> None:
        self._store = store
        self._batch_max = batch_max
        self._clock = clock or SystemClock()
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._line: deque[_Entry] = deque()
        self._leader: _Entry | None = None
        self._alone: _Request | None = None
        self._closing = 0
        self._in_company = False
        self._batch: list[_Entry] = []
        self._thread: threading.Thread | None = None

    def write(self, verb: Verb, items: Sequence[Any]) -> list[Any]:
        """Write and wait. The answers, item by item, durable. An interrupt while waiting gives up only this caller.
        `WrongPlace` at once where this thread holds up the very transaction it would wait for."""
        self._store.check_thread()
        # An interrupt may come between any two steps, also while one leaves: so each way out is taken twice, and the
        # second time is a no-op unless the first was cut short.
        request = _Request(verb, items)
        try:
            try:
                if self._leads_alone(request):
                    return self._surely([request])[0]
            finally:
                self._leave_alone(request)
        finally:
            self._leave_alone(request)
        entry = _Entry(verb, items, waits=True)
        assert entry.called is not None
        try:
            try:
                self._line_up(entry)
                entry.called.acquire()
                if not entry.answer.done():
                    self._write_batch()
            finally:
                self._leave(entry)
                entry.left = True
        finally:
            if not entry.left:
                self._leave(entry, again=True)
        return entry.answer.result()

    def _leads_alone(self, request: _Request) -> bool:
        """Whether there is nobody else: then this caller writes, and nobody need be told of what."""
        self._follow_fork()
        with self._lock:
            if self._alone is not None or self._leader is not None or self._line:
                return False
            self._alone = request
            return True

    def _leave_alone(self, request: _Request) -> None:
        """Let the next one lead, if it was this request that led alone."""
        if self._alone is not request:
            return
        with self._lock:
            if self._line or self._closing:
                self._call_next()
            self._alone = None

    def submit(self, verb: Verb, items: Sequence[Any], send: Send | None = None) -> Answer[list[Any]]:
        """Write without waiting: the answer is there when it is durable. Cancelled before its turn, it is not sent. One
        that comes alone is sent at once, where `send` can do so without waiting: it has its turn."""
        entry = _Entry(verb, items, waits=False)
        self._line_up(entry, send)
        return entry.answer

    def close(self) -> None:
        """Write what was submitted, and let the writer's thread end. Used again, it begins again."""
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

    def _follow_fork(self) -> None:
        if os.getpid() != self._pid:
            self._begin()

    def _line_up(self, entry: _Entry, send: Send | None = None) -> None:
        self._follow_fork()
        with self._lock:
            # With the lock held: one who came in between would lead, and might need the connection that this one has.
            # Those who come together, or just did, go together.
            if send is not None and self._leader is None and self._alone is None and not self._in_company:
                entry.sent = send(entry.items)
                if entry.sent is not None:
                    entry.answer.begin()
            if entry.called is None and self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="detent-writer", daemon=True)
                self._thread.start()
            self._line.append(entry)
            if self._leader is None and self._alone is None:
                self._call_next()

    def _serve(self) -> None:
        """The thread for callers that do not wait: it leads in their place."""
        me = threading.current_thread()
        while True:
            with self._lock:
                self._changed.wait_for(lambda: self._is_served() or self._thread is not me)
                entry = self._leader
                if entry is None or self._thread is not me:
                    return
            try:
                self._write_batch()
            finally:
                self._leave(entry)

    def _is_served(self) -> bool:
        return self._leader is not None and self._leader.called is None

    def _call_next(self) -> None:
        """The first in line leads. Called with the lock held and nobody leading; called again after an interrupt, it
        only makes sure that the leader was told."""
        if self._leader is None and self._line:
            self._leader = self._line[0]
        if self._leader is not None and self._leader.called is not None:
            _tell(self._leader)
        else:
            self._changed.notify_all()

    def _leave(self, entry: _Entry, *, again: bool = False) -> None:
        """The caller goes, with its answer or without. If it led, the others of its batch go with theirs, or back to
        the head of the line: should the transaction have gone through all the same, they will find their traces.
        `again`: the first time may have been cut short at any step."""
        with self._lock:
            if entry in self._line:
                self._line.remove(entry)
            if entry is self._leader:
                self._put_back([one for one in self._batch if one is not entry])
                self._batch = []
                self._leader = self._line[0] if self._line else None
            elif not again:
                return
            if self._alone is None:
                self._call_next()

    def _put_back(self, others: list[_Entry]) -> None:
        unfinished = [one for one in others if not one.answer.done()]
        if unfinished:
            standing = {id(one) for one in self._line}
            self._line.extendleft(one for one in reversed(unfinished) if id(one) not in standing)
        for one in others:
            if one.called is not None and one.answer.done():
                _tell(one)

    def _write_batch(self) -> None:
        """Write what stands in line, and answer it."""
        with self._lock:
            self._batch = self._take()
            for _ in self._batch:
                self._line.popleft()
            self._in_company = len(self._batch) > 1
            batch = [one for one in self._batch if one.answer.begin()]
        for entry in batch:
            if entry.sent is not None:
                self._settle([entry])
        self._settle([entry for entry in batch if not entry.answer.done()])

    def _take(self) -> list[_Entry]:
        """What goes into the next transaction; it still stands in line, so that an interrupt loses none of it."""
        count = size = 0
        for entry in self._line:
            size += len(entry.items)
            if count and size > self._batch_max:
                break
            count += 1
        return list(islice(self._line, count))

    def _settle(self, batch: list[_Entry]) -> None:
        try:
            answers = self._surely(batch) if batch else []
        except Exception as error:
            if len(batch) > 1 and self._may_be_one_callers(error):
                for entry in batch:
                    self._settle([entry])
                return
            for entry in batch:
                entry.answer.set_exception(error)
            return
        for entry, given in zip(batch, answers, strict=True):
            entry.answer.set_result(given)

    def _may_be_one_callers(self, error: Exception) -> bool:
        """Whether the others would fare better without the one who caused it."""
        if isinstance(error, DatabaseBusy):
            # Where many may write at once, it was a lock that one caller's key ran into.
            return not self._store.ids_by_transaction
        return not isinstance(error, DatabaseError) or isinstance(error, GuardViolation)

    def _write(self, batch: Sequence[_Request]) -> list[list[Any]]:
        """A single call is a transaction by itself, without a trip to begin it and another to end it."""
        if (sent := batch[0].sent) is not None:
            batch[0].sent = None
            return [list(sent())]
        verb = batch[0].verb
        if verb in _SINGLE_CALLS and (len(batch) == 1 or all(entry.verb is verb for entry in batch)):
            return _run(self._store, batch)
        return self._store.together(lambda verbs: _run(verbs, batch))

    def _surely(self, batch: Sequence[_Request]) -> list[list[Any]]:
        """Write it; where the answer to COMMIT was lost, look again, also while the database is away for some seconds.
        `OutcomeUnknown` only where nobody could tell by then."""
        unknown: OutcomeUnknown | None = None
        pause, until = _PAUSE_FIRST, math.inf
        for look in range(1 + _LOOKS_MAX):
            try:
                return self._write(batch)
            except OutcomeUnknown as error:
                unknown = error
                until = min(until, self._clock.monotonic() + _LOOK_SECONDS_MAX)
                if self._clock.monotonic() >= until:
                    raise
            except DatabaseError as error:
                if unknown is None or isinstance(error, GuardViolation):
                    raise
                if look == _LOOKS_MAX or self._clock.monotonic() + pause >= until:
                    raise unknown from error
                # After a crash the server needs its time.
                self._clock.sleep(pause)
                pause = min(2 * pause, _PAUSE_LONGEST)
        assert unknown is not None
        raise unknown


def _tell(entry: _Entry) -> None:
    """Let the caller go on. Telling it twice is telling it once: nobody waits a second time."""
    if entry.called is not None and entry.called.locked():
        entry.called.release()


def _run(verbs: Verbs, batch: Sequence[_Request]) -> list[list[Any]]:
    """Neighbours with the same verb share one call of it."""
    if len(batch) == 1:
        return [list(batch[0].verb(verbs, batch[0].items))]
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
