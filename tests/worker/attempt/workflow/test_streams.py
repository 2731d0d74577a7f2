"""`ctx.stream`: text for people, which is no step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from detent import AsyncWorkflowContext, Detent, Retry, WorkflowContext
from detent.errors import InvalidInput
from detent.model.records import NewEvent
from detent.testing.harness import Harness
from detent.worker.child.write_batch import WriteBatch
from tests.worker.attempt.workflow.conftest import work


@pytest.fixture(params=["plain", "async"])
def job(app: Detent, request: pytest.FixtureRequest) -> Any:
    """A workflow that writes inside a step and outside, and fails once after its step."""
    if request.param == "plain":

        @app.workflow(name="agent", retry=Retry(1, base=1, cap=1))
        def agent(ctx: WorkflowContext) -> None:
            ctx.stream("plan").write("begin\n")
            answer = ctx.stream("answer")

            def ask() -> None:
                for word in ("no, ", "no, ", "no"):
                    answer.write(word)

            ctx.step("ask", ask)
            if ctx.attempt == 1:
                raise OSError("away")
            ctx.set_status(turn=2)
            answer.write("!")

        return app.enqueue(agent.call())

    @app.workflow(name="agent", retry=Retry(1, base=1, cap=1))
    async def agent_later(ctx: AsyncWorkflowContext) -> None:
        ctx.stream("plan").write("begin\n")
        answer = ctx.stream("answer")

        async def ask() -> None:
            for word in ("no, ", "no, ", "no"):
                answer.write(word)

        await ctx.step("ask", ask)
        if ctx.attempt == 1:
            raise OSError("away")
        ctx.set_status(turn=2)
        answer.write("!")

    return app.enqueue(agent_later.call())


def test_lines_name_their_attempt(job: Any, harness: Harness) -> None:
    """The same words again are written again, and a reader can start over with an attempt."""
    work(harness)
    work(harness, 5)
    assert job.refresh().state == "succeeded"
    found = [(one.attempt, one.text) for one in job.stream("answer", follow=True)]
    assert found == [(1, "no, "), (1, "no, "), (1, "no"), (2, "!")]
    assert [(one.stream, one.attempt) for one in job.stream()][::4] == [("plan", 1), ("plan", 2)]
    assert list(job.stream("nothing")) == []
    # It is no step, and is found among the events.
    assert [one.path for one in job.steps()] == ["ask"]
    assert sum(one.level == "stream" for one in job.events()) == 6


def test_the_async_twin_follows_too(job: Any, app: Detent, harness: Harness) -> None:
    work(harness)
    work(harness, 5)

    async def read() -> list[str]:
        handle = await app.aio.jobs.get(job.id)
        return [one.text async for one in handle.stream("answer")]

    assert asyncio.run(read()) == ["no, ", "no, ", "no", "!"]


def test_the_status_is_found_behind_a_long_stream(harness: Harness, app: Detent) -> None:
    """Earlier, a status was looked for among the last 100 events only."""

    @app.workflow(name="talker")
    def talker(ctx: WorkflowContext) -> None:
        ctx.set_status(turn=1)
        stream = ctx.stream("answer")
        for n in range(300):
            stream.write(f"{n} ")

    job = talker.enqueue()
    work(harness)
    assert job.refresh().status == {"turn": 1}
    assert "".join(one.text for one in job.stream("answer")).split() == [str(n) for n in range(300)]


def test_more_than_the_rate_is_left_out_and_says_so(harness: Harness, app: Detent) -> None:
    """64 KB per second, and 256 KB at once; the clock of the test stands still."""

    @app.workflow(name="talker", retry=Retry(0))
    def talker(ctx: WorkflowContext) -> None:
        stream = ctx.stream("answer")
        stream.write("é" * 500_000)
        stream.write("more")
        with pytest.raises(InvalidInput):
            stream.write(7)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            ctx.stream("a/b")

    job = talker.enqueue()
    work(harness)
    assert job.refresh().state == "succeeded", job.error
    text = "".join(one.text for one in job.stream("answer"))
    assert text.count("[text left out: more than 64 KB per second]") == 1
    assert 250_000 < len(text.encode()) < 263_000


def test_a_worker_joins_short_pieces() -> None:
    """A model writes a few letters at a time."""

    def line(text: str, *, job: int = 1, attempt: int = 1, stream: str = "answer", n: int = 1) -> NewEvent:
        payload = f'{{"stream":"{stream}","n":{n}}}'
        return NewEvent(job_id=job, attempt=attempt, level="stream", message=text, payload=payload)

    batch = WriteBatch()
    assert not batch.join_stream(line("a"))
    batch.events.append(line("a"))
    assert batch.join_stream(line("b", n=2))
    assert [one.message for one in batch.events] == ["ab"]
    for other in (line("c", job=2), line("c", attempt=2), line("c", stream="plan"), line("c" * 5000)):
        assert not batch.join_stream(other)
    batch.events.append(NewEvent(job_id=1, attempt=1, level="info", message="x"))
    assert not batch.join_stream(line("c"))
