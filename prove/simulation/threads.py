"""What `threading` and `concurrent.futures` offer, for actors. Modules of the worker get it in their place."""

from __future__ import annotations

import threading as real
from collections.abc import Callable, Iterable
from typing import Any

from prove.simulation.world import ProcessDied, world

__all__ = ["Condition", "Event", "Lock", "Pool", "RLock", "Thread", "current_thread", "get_ident", "local", "wait"]

local = real.local


class Lock:
    """A lock. Outside actors, where no one else runs, it is always free."""

    def __init__(self) -> None:
        self._is_held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._is_held:
            if not blocking:
                return False
            if not world().block(lambda: not self._is_held, None if timeout < 0 else timeout):
                return False
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False

    def locked(self) -> bool:
        return self._is_held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """A lock that its holder may take again."""

    def __init__(self) -> None:
        super().__init__()
        self._holder: object = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._is_held and self._holder is world().current:
            self._depth += 1
            return True
        taken = super().acquire(blocking, timeout)
        if taken:
            self._holder, self._depth = world().current, 1
        return taken

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._holder = None
            super().release()


class Event:
    """A flag."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if self._is_set:
            return True
        return world().block(self.is_set, timeout)


class Condition:
    """A condition over a lock. A waiter is woken by `notify`, or when its time is over."""

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = lock if lock is not None else RLock()
        self._notified = 0

    def __enter__(self) -> Any:
        return self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def acquire(self, *args: Any) -> bool:
        return self._lock.acquire(*args)

    def release(self) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        seen = self._notified
        self._lock.release()
        try:
            return world().block(lambda: self._notified != seen, timeout)
        finally:
            self._lock.acquire()

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        until = None if timeout is None else world().clock.monotonic() + timeout
        while not (found := predicate()):
            left = None if until is None else until - world().clock.monotonic()
            if left is not None and left <= 0:
                return found
            self.wait(left)
        return found

    def notify(self, n: int = 1) -> None:
        self._notified += 1

    def notify_all(self) -> None:
        self._notified += 1


class Thread:
    """An actor of the process that starts it."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., Any] | None = None,
        name: str = "thread",
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name.removeprefix("detent-")
        self._target = target
        self._args = tuple(args)
        self._kwargs = kwargs or {}
        self._is_over = False

    def start(self) -> None:
        me = world().current
        assert me is not None
        actor = world().spawn(me.process, self.name, self._run)
        actor.thread = self

    def _run(self) -> None:
        try:
            if self._target is not None:
                self._target(*self._args, **self._kwargs)
        finally:
            self._is_over = True

    def is_alive(self) -> bool:
        return not self._is_over

    def join(self, timeout: float | None = None) -> None:
        if not self._is_over:
            world().block(lambda: self._is_over, timeout)


def current_thread() -> Any:
    """Return the thread of the actor that has the turn."""
    me = world().current
    if me is None:
        return real.current_thread()
    if me.thread is None:
        me.thread = me
    return me.thread


def get_ident() -> int:
    """Return a number that no other living actor has."""
    return id(world().current)


def start_critical_thread(name: str, target: Callable[[], None]) -> Thread:
    """Start a thread. If it fails, the defect is found by the scheduler."""
    thread = Thread(target=target, name=name)
    thread.start()
    return thread


class _Future:
    def __init__(self) -> None:
        self._is_done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return self._is_done

    def result(self, timeout: float | None = None) -> Any:
        if not self._is_done:
            world().block(self.done, timeout)
        if self._error is not None:
            raise self._error
        return self._value


class Pool:
    """A pool of threads with one actor for each call."""

    def __init__(self, max_workers: int | None = None, thread_name_prefix: str = "thread", **_: Any) -> None:
        self._name = thread_name_prefix.removeprefix("detent-")

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> _Future:
        future = _Future()

        def run() -> None:
            try:
                future._value = function(*args, **kwargs)
            except ProcessDied:
                raise
            except BaseException as error:
                future._error = error
            finally:
                future._is_done = True

        Thread(target=run, name=self._name).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: actors end by themselves."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class _Waited:
    def __init__(self, futures: Iterable[_Future]) -> None:
        self.not_done = {one for one in futures if not one.done()}
        self.done = {one for one in futures if one.done()}


def wait(futures: Iterable[_Future], timeout: float | None = None) -> _Waited:
    """Wait until all of them are done, or the time is over."""
    several = list(futures)
    if not all(one.done() for one in several):
        world().block(lambda: all(one.done() for one in several), timeout)
    return _Waited(several)


def __getattr__(name: str) -> Any:
    return getattr(real, name)
