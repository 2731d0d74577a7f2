"""The runner: slots and entries of the board stay together, whatever ends a job."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from detent import Context, Detent, Step, WorkflowContext
from detent.model.clock import SystemClock
from detent.model.records import Claimed
from detent.worker.attempt.attempt import Attempt
from detent.worker.child.process import Child
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.board import Board
from detent.worker.supervisor.channel import Channel
from tests.deadlines import scaled


class OneSlot:
    """A child with one slot, driven by hand on a loop of the test."""

    def __init__(self, app: Detent) -> None:
        self.app = app
        self.board = Board.create(1)
        self.channel, self.theirs = Channel.pair()
        options = WorkerOptions(app="tests:app", name="w", slots=1)
        self.child = Child(app, app.store, options, self.channel, self.board, SystemClock())

    def claim(self, first_lease: int = 1_000_001) -> list[Claimed]:
        """Two jobs, each under a lease of its own, as in two claims."""
        claims = []
        for lease_id in (first_lease, first_lease + 1):
            (claimed,) = self.app.store.job_claim(
                lease_id=lease_id, worker="w", queues=None, tasks=sorted(self.app.tasks), limit=1, lease=30.0
            )
            self.child._runner.core.add_claimed(lease_id, [claimed])
            claims.append(claimed)
        return claims

    def open(self) -> None:
        self.child._is_busy = asyncio.Event()
        self.child._runner.open(asyncio.get_running_loop())

    async def begin_all(self) -> None:
        self.open()
        await self.child._runner.dispatch()

    def close(self) -> None:
        assert self.child._flusher.close(30.0)
        self.board.close()
        self.theirs.close()
        self.channel.close()


def test_a_lease_lost_in_the_first_step_of_a_coroutine_frees_slot_and_line(ready_url: str) -> None:
    """J7: the slot was free and the line was not, so the next job was ended by "pop from empty list", or never."""
    with Detent(ready_url) as app:

        @app.task
        async def first(ctx: Context) -> None:
            runner = slot.child._runner
            slot.child._lose([1_000_001])
            (held,) = runner.core.begin(0.0, 1)
            attempt = Attempt(held.claimed, app, app.store, slot.child._flusher)
            callbacks: dict[str, Any] = {
                "begin": runner._begin_on_thread,
                "end": runner._end_on_thread,
                "next_like": runner._next_like,
            }
            runner._threads.run_chain(held, attempt, **callbacks)

        @app.task
        def second(ctx: Context) -> int:
            return len(slot.board.entries())

        slot = OneSlot(app)
        first.enqueue()
        job = second.enqueue()
        slot.claim()
        asyncio.run(slot.begin_all())
        assert slot.board.entries() == []
        assert slot.child._runner.core.is_empty
        slot.close()
        assert (app.jobs.get(job.id).state, app.jobs.get(job.id).result) == ("succeeded", 1)


def test_a_cancel_reaches_a_coroutine_before_it_waits(ready_url: str) -> None:
    """J8: an async function that computes for long before it first waits was told of a cancel only then."""
    with Detent(ready_url) as app:

        @app.task
        async def compute(ctx: Context) -> bool:
            slot.child._cancel([[ctx.job_id, ctx.attempt]])
            return ctx.cancelled

        slot = OneSlot(app)
        jobs = [compute.enqueue() for _ in range(2)]
        slot.claim()
        asyncio.run(slot.begin_all())
        slot.close()
        assert [app.jobs.get(job.id).result for job in jobs] == [True, True]


@pytest.mark.parametrize("where", ["prepare", "call", "run_on_thread"])
def test_whatever_goes_wrong_around_a_job_ends_it(ready_url: str, where: str, monkeypatch: Any) -> None:
    """J7: an error in a step outside the function used to vanish, and the job was held and renewed for ever."""

    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    with Detent(ready_url) as app:

        @app.task(idempotent=False)
        def careful(ctx: Context) -> None: ...

        @app.task(idempotent=False)
        async def careful_async(ctx: Context) -> None: ...

        slot = OneSlot(app)
        monkeypatch.setattr(slot.child._runner, f"_{where}", fail)
        jobs = [(careful_async if where == "call" else careful).enqueue() for _ in range(2)]
        slot.claim()

        async def both() -> None:
            await slot.begin_all()
            while not slot.child._runner.core.is_empty:
                await asyncio.sleep(0.01)

        asyncio.run(asyncio.wait_for(both(), 60))
        slot.close()
        executions = [job.executions()[0] for job in jobs]
        assert [("out of memory" in str(one.error), one.outcome) for one in executions] == [(True, "error")] * 2


def test_a_plain_function_that_is_tried_again_does_not_wait_for_the_loop(ready_url: str) -> None:
    """E: an async function of another job held the loop, and had no time-out: the plain function never started."""
    with Detent(ready_url) as app:
        came = threading.Event()

        @app.task(idempotent=False)
        def careful(ctx: Context) -> None:
            came.set()

        slot = OneSlot(app)
        jobs = [careful.enqueue() for _ in range(2)]
        slot.claim()

        async def hold_the_loop() -> bool:
            await slot.begin_all()
            has_come = came.wait(scaled(10))
            while not slot.child._runner.core.is_empty:
                await asyncio.sleep(0.01)
            return has_come

        assert asyncio.run(hold_the_loop())
        slot.close()
        assert {app.jobs.get(job.id).state for job in jobs} == {"succeeded"}


def test_a_workflow_that_is_cancelled_before_its_turn_undoes_its_steps(ready_url: str) -> None:
    """F11, F20: it was woken to undo its steps, and claimed. While it waited for a slot its worker heard of the cancel,
    and ended the attempt as cancelled: nothing was undone."""
    with Detent(ready_url) as app:

        @app.workflow
        def order(ctx: WorkflowContext) -> None:
            ctx.step(Step("reserve", undo=str), str, "reserved")
            ctx.wait_for("never")

        async def work(slot: OneSlot, cancels: list[list[int]]) -> None:
            slot.open()
            slot.child._cancel(cancels)
            await slot.child._runner.dispatch()
            while not slot.child._runner.core.is_empty:
                await asyncio.sleep(0.01)

        jobs = [order.enqueue() for _ in range(2)]
        for turn in (1, 2):
            slot = OneSlot(app)
            claimed = slot.claim(1000 * turn)
            cancels = [[one.job_id, one.attempt] for one in claimed if turn == 2]
            asyncio.run(asyncio.wait_for(work(slot, cancels), scaled(60)))
            slot.close()
            if turn == 1:
                for job in jobs:
                    job.cancel(actor="ana")
        for job in jobs:
            assert job.refresh().state == "cancelled"
            assert [row.path for row in job.steps()] == ["reserve", "reserve~undo", "~undone"]
