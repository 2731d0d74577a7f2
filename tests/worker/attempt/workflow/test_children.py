"""Children of workflows."""

from __future__ import annotations

from detent import Context, Detent, Retry
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.errors import ChildFailed
from detent.testing.harness import Harness
from tests.worker.attempt.workflow.conftest import calls, note, steps, work

ONCE = Retry(0)


def test_a_child_is_spawned_once_and_joined(harness: Harness, app: Detent) -> None:
    @app.task(name="render")
    def render(ctx: Context, n: int) -> int:
        note(f"render {n}")
        return n * n

    @app.workflow(name="album")
    def album(ctx: WorkflowContext) -> int:
        child = ctx.spawn(render.call(7))
        ctx.step("between", note, "between")
        return ctx.join(child)

    job = album.enqueue()
    work(harness)
    assert job.refresh().result == 49
    assert calls == ["between", "render 7"]


def test_a_child_that_fails_is_an_error_of_the_join(harness: Harness, app: Detent) -> None:
    @app.task(name="render", retry=ONCE)
    def render(ctx: Context) -> int:
        raise OSError("no ink")

    @app.workflow(name="album")
    def album(ctx: WorkflowContext) -> str:
        child = ctx.spawn(render.call())
        try:
            ctx.join(child)
        except ChildFailed as error:
            return str(error)
        return "rendered"

    job = album.enqueue()
    work(harness)
    found = job.refresh().result
    assert found is not None
    assert "is quarantined" in found
    assert "no ink" in found


def test_a_parent_may_wait_until_a_person_has_repaired_its_child(harness: Harness, app: Detent) -> None:
    broken = [True]

    @app.task(name="render", retry=ONCE)
    def render(ctx: Context) -> int:
        if broken:
            raise OSError("no ink")
        return 5

    children: list[int] = []

    @app.workflow(name="album")
    def album(ctx: WorkflowContext) -> int:
        child = ctx.spawn(render.call())
        children[:] = [child.id]
        return ctx.join(child, wait=True)

    job = album.enqueue()
    work(harness)
    assert job.refresh().state == "pending"
    broken.clear()
    app.jobs.get(children[0]).retry(actor="ann")
    work(harness)
    assert job.refresh().result == 5


def test_many_children_are_one_step_and_one_wake_up(harness: Harness, app: Detent) -> None:
    @app.task(name="render", retry=ONCE)
    def render(ctx: Context, n: int) -> int:
        if n % 10 == 0:
            raise OSError("no ink")
        return n

    @app.workflow(name="album")
    def album(ctx: WorkflowContext) -> tuple[int, int, int, int]:
        done = ctx.spawn_many("render", (render.call(n) for n in range(100))).join(tolerate="10%")
        return done.succeeded, done.failed, sum(done.results()), len(list(done.failures()))

    job = album.enqueue()
    work(harness)
    assert job.refresh().result == (90, 10, sum(n for n in range(100) if n % 10), 10)
    assert list(steps(harness, job)) == ["render", "render~join"]
    assert job.attempt == 2


def test_an_async_parent(harness: Harness, app: Detent) -> None:
    @app.task(name="render")
    async def render(ctx: Context, n: int) -> int:
        return n

    @app.workflow(name="album")
    async def album(ctx: AsyncWorkflowContext) -> list[int]:
        group = await ctx.spawn_many("render", [render.call(n) for n in range(5)])
        one = await ctx.spawn(render.call(9), name="last")
        return [*(await (await group.join()).results()), await ctx.join(one)]

    job = album.enqueue()
    work(harness)
    assert job.refresh().result == [0, 1, 2, 3, 4, 9]
