"""Threads that are kept for blocks: one at a time has each, in order, and none is lost or shared."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from detent.client import aio_threads
from detent.client.aio_threads import KeptThread
from detent.errors import WrongPlace
from tests.deadlines import scaled

SECONDS_MAX = scaled(30.0)
said: ContextVar[str] = ContextVar("said", default="nothing")


@pytest.fixture(autouse=True)
def _none_idle() -> Iterator[None]:
    others = aio_threads._idle[:]
    aio_threads._idle.clear()
    yield
    for thread in aio_threads._idle:
        thread._queue.put(None)
    aio_threads._idle[:] = others


def test_what_it_is_given_is_done_in_order_and_the_next_has_the_same_thread() -> None:
    first, done = KeptThread.take(), list[int]()
    futures = [first.begin(done.append, n) for n in range(50)]
    on = first.end_with(threading.get_ident).result(SECONDS_MAX)
    assert done == list(range(50))
    assert all(future.done() for future in futures)
    while not aio_threads._idle:
        pass
    again = KeptThread.take()
    assert again is first
    assert again.end_with(threading.get_ident).result(SECONDS_MAX) == on


def test_nobody_has_one_before_it_is_done() -> None:
    """What is begun last may take its time: the next one gets another thread."""
    busy, may_end = KeptThread.take(), threading.Event()
    ending = busy.end_with(may_end.wait, SECONDS_MAX)
    other = KeptThread.take()
    assert other is not busy
    may_end.set()
    assert ending.result(SECONDS_MAX)
    other.end_with(int).result(SECONDS_MAX)


def test_no_more_are_kept_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio_threads, "IDLE_MAX", 1)
    threads = [KeptThread.take() for _ in range(3)]
    numbers = [thread.begin(threading.current_thread).result(SECONDS_MAX) for thread in threads]
    for thread in threads:
        thread.end_with(int).result(SECONDS_MAX)
    while sum(number.is_alive() for number in numbers) > 1:
        pass
    assert len(aio_threads._idle) == 1


def test_what_has_not_begun_when_its_wait_is_cancelled_is_not_done() -> None:
    thread, entered, may_end, done = KeptThread.take(), threading.Event(), threading.Event(), list[str]()

    def hold() -> None:
        entered.set()
        assert may_end.wait(SECONDS_MAX)

    async def given_up() -> None:
        thread.begin(hold)
        task = asyncio.create_task(thread.do(done.append, "too late"))
        await asyncio.to_thread(entered.wait, SECONDS_MAX)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()

    asyncio.run(given_up())
    thread.end_with(int).result(SECONDS_MAX)
    assert done == []


@pytest.mark.parametrize("idle_max", [0, 1])
def test_what_comes_after_the_last_is_refused(monkeypatch: pytest.MonkeyPatch, idle_max: int) -> None:
    """Where the thread was not kept, whoever came late waited for ever."""
    monkeypatch.setattr(aio_threads, "IDLE_MAX", idle_max)
    thread = KeptThread.take()
    thread.end_with(int).result(SECONDS_MAX)
    with pytest.raises(WrongPlace, match="after its block has ended"):
        asyncio.run(asyncio.wait_for(thread.do(int), SECONDS_MAX))


def test_the_last_is_done_whoever_gives_up_its_wait() -> None:
    """A loop that ends cancels all that waits in it, the end of a block too: the block stayed open."""
    thread, may_end, done = KeptThread.take(), threading.Event(), list[str]()
    thread.begin(may_end.wait, SECONDS_MAX)
    last = thread.end_with(done.append, "the end")
    assert not last.cancel()
    may_end.set()
    last.result(SECONDS_MAX)
    assert done == ["the end"]


def test_an_error_is_the_askers_and_the_thread_goes_on() -> None:
    thread = KeptThread.take()
    with pytest.raises(ValueError, match="x"):
        asyncio.run(thread.do(int, "x"))
    assert asyncio.run(thread.do(int, "7")) == 7
    thread.end_with(int).result(SECONDS_MAX)


def test_the_context_is_that_of_whoever_asks() -> None:
    thread = KeptThread.take()
    assert thread.begin(said.get).result(SECONDS_MAX) == "nothing"
    said.set("something")
    assert thread.end_with(said.get).result(SECONDS_MAX) == "something"


def test_a_copy_of_the_process_has_threads_of_its_own() -> None:
    """None of those that are kept here runs there."""
    aio_threads._idle.append(KeptThread())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os._exit(len(aio_threads._idle))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
