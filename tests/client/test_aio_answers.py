"""Answers from another thread: all arrive, whoever gives up is heard, and the loop is woken once for many."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from concurrent.futures import CancelledError, ThreadPoolExecutor
from unittest.mock import patch

import pytest

from detent.client.aio_threads import answer_of
from detent.store.light_future import LightFuture
from tests.app.shop import until


def test_many_answers_wake_the_loop_once() -> None:
    async def main() -> list[int]:
        answers: list[LightFuture[int]] = [LightFuture() for _ in range(100)]
        waiting = asyncio.gather(*(answer_of(one) for one in answers))
        await asyncio.sleep(0)

        def answer() -> None:
            for number, one in enumerate(answers):
                one.set_result(number)

        # The loop does not run meanwhile, so all of them come before it looks.
        writer = threading.Thread(target=answer)
        writer.start()
        writer.join()
        return await waiting

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        with patch.object(loop, "call_soon_threadsafe", wraps=loop.call_soon_threadsafe) as woken:
            assert runner.run(main()) == list(range(100))
        assert woken.call_count == 1


def test_an_error_arrives_and_an_answer_that_was_there_before() -> None:
    async def main() -> None:
        failed: LightFuture[None] = LightFuture()
        failed.set_exception(KeyError("lost"))
        with pytest.raises(KeyError, match="lost"):
            await answer_of(failed)
        there: LightFuture[str] = LightFuture()
        there.set_result("there")
        assert await answer_of(there) == "there"

    asyncio.run(main())


def test_who_gives_up_cancels_it_and_the_others_get_theirs() -> None:
    async def main() -> None:
        given_up: LightFuture[None] = LightFuture()
        other: LightFuture[str] = LightFuture()
        task = asyncio.create_task(answer_of(given_up))
        waiting = asyncio.create_task(answer_of(other))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not given_up.begin()
        other.set_result("mine")
        assert await waiting == "mine"

    asyncio.run(main())


def test_an_answer_after_the_end_of_the_loop_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    late: LightFuture[None] = LightFuture()
    late.begin()

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(answer_of(late), 0.01)

    asyncio.run(main())
    late.set_result(None)
    assert caplog.records == []


class ClosesWhileLookedAt(asyncio.SelectorEventLoop):
    """Says that it is open, and is closed before anybody can make use of that."""

    closes = False

    def is_closed(self) -> bool:
        was_closed = super().is_closed()
        if self.closes:
            self.closes = False
            self.close()
        return was_closed


def test_a_loop_that_is_closed_meanwhile_costs_nobody_else_his_answer() -> None:
    """The thread that answers would die of it, and with it everybody's writer."""
    loop, answer = ClosesWhileLookedAt(), LightFuture[str]()
    answer.begin()

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(answer_of(answer), 0.01)

    loop.run_until_complete(main())
    loop.closes = True
    with ThreadPoolExecutor(1) as writer:
        writer.submit(answer.set_result, "there").result()
    assert loop.is_closed()
    assert answer.result() == "there"


def test_one_that_is_cancelled_keeps_nobody_waiting() -> None:
    answer = LightFuture[str]()
    with ThreadPoolExecutor(1) as crowd:
        waiting = crowd.submit(answer.result, 60)
        until(lambda: waiting.running())
        assert answer.cancel()
        with pytest.raises(CancelledError):
            waiting.result(60)


def test_each_loop_has_its_own() -> None:
    async def main(number: int) -> int:
        answer: LightFuture[int] = LightFuture()
        threading.Timer(0.01, answer.set_result, [number]).start()
        return await answer_of(answer)

    assert [asyncio.run(main(number)) for number in range(3)] == [0, 1, 2]


def test_who_waits_in_a_loop_that_is_closed_is_let_go() -> None:
    """Whatever a coroutine holds that will never go on, a block for instance, is let go with it: it was kept until the
    thread had another loop."""

    class Held:
        pass

    answer: LightFuture[None] = LightFuture()
    answer.begin()
    held = Held()
    there = weakref.ref(held)

    async def waits(held: Held, answer: LightFuture[None]) -> None:
        await answer_of(answer)

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, told: None)
    task = loop.create_task(waits(held, answer))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    answer.set_result(None)
    del task, held, answer
    gc.collect()
    assert there() is None
