"""Children of workflows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from detent import Call, Context, Detent, Retry
from detent.declare.workflow_context import AsyncWorkflowContext, Child, WorkflowContext
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


@pytest.mark.parametrize("scope", ["collect", "sum"])
def test_a_child_from_outside_is_joined_in_a_scope(harness: Harness, app: Detent, scope: str) -> None:
    """The record of the join named its scope, outside of which its own path is: `render~join`. When the scope had
    ended, loading the record passed over other steps, or went round for ever, depending on which name comes first."""

    @app.task(name="render")
    def render(ctx: Context) -> int:
        return 7

    @app.workflow(name="album")
    def album(ctx: WorkflowContext) -> int:
        child = ctx.spawn(render.call())
        ctx.step("seal", note, "seal")
        found = ctx.scope(scope, lambda inner: int(inner.join(child)))
        ctx.sleep(10)
        ctx.step("use", note, "use")
        return found

    job = album.enqueue()
    work(harness)
    work(harness, 20)
    assert (job.refresh().result, calls) == (7, ["seal", "use"])
    assert steps(harness, job)["render~join"].scope == ""


def test_a_child_of_a_scope_is_joined_after_it(harness: Harness, app: Detent) -> None:
    """Its join is inside the scope by its path, so it is not loaded; it was taken for a step that the code had got
    since."""

    @app.task(name="render")
    def render(ctx: Context) -> int:
        return 7

    @app.workflow(name="album")
    def album(ctx: WorkflowContext) -> int:
        def begin(inner: WorkflowContext) -> Child[int]:
            return inner.spawn(render.call())

        child = ctx.scope("begin", begin)
        ctx.step("seal", note, "seal")
        found = ctx.join(child)
        ctx.step("use", note, "use")
        ctx.sleep(10)
        return found

    job = album.enqueue()
    work(harness)
    work(harness, 20)
    assert (job.refresh().result, calls) == (7, ["seal", "use"])


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


def test_children_under_a_limit(harness: Harness, app: Detent) -> None:
    """F19: all of them run in the end, and each is under the limit of its group."""
    keys = set()

    @app.task(name="render")
    def render(ctx: Context, n: int) -> int:
        keys.add(app.jobs.get(ctx.job_id).row.limit_key)
        return n

    @app.workflow(name="album")
    def album(ctx: WorkflowContext) -> int:
        return sum(ctx.spawn_many("render", [render.call(n) for n in range(10)], limit=3).join().results())

    job = album.enqueue()
    work(harness)
    assert job.refresh().result == 45
    assert keys == {f"detent.children:{job.id}:1:render"}


@pytest.mark.parametrize("limit", [0, -1, 100_001, True, 2.5])
def test_a_limit_that_is_no_number_of_children_is_refused(harness: Harness, app: Detent, limit: Any) -> None:
    @app.task(name="render")
    def render(ctx: Context) -> None: ...

    @app.workflow(name="album", retry=ONCE)
    def album(ctx: WorkflowContext) -> None:
        ctx.spawn_many("render", [render.call()], limit=limit)

    job = album.enqueue()
    work(harness)
    assert "allowed: 1 to 100,000 children that run at once" in str(job.refresh().error)
    assert harness.store.child_list(job.id) == []


def test_an_async_parent(harness: Harness, app: Detent) -> None:
    """It reads the results page by page, too: a hundred thousand of them are never in memory."""

    @app.task(name="render", retry=ONCE)
    async def render(ctx: Context, n: int) -> int:
        if n == 3:
            raise OSError("no ink")
        return n

    @app.workflow(name="album")
    async def album(ctx: AsyncWorkflowContext) -> list[int]:
        group = await ctx.spawn_many("render", [render.call(n) for n in range(5)])
        one = await ctx.spawn(render.call(9), name="last")
        done = await group.join(tolerate=1)
        failed = [child.id async for child in done.failures()]
        return [*[found async for found in done.results()], await ctx.join(one), len(failed)]

    job = album.enqueue()
    work(harness)
    assert job.refresh().result == [0, 1, 2, 4, 9, 1]


@pytest.mark.parametrize("is_async", [False, True])
def test_calls_that_are_made_one_by_one_are_not_held(harness: Harness, app: Detent, is_async: bool) -> None:
    """F19: of 5,000 calls, at most two portions are made before they are enqueued. tests/faults has 100,000 of them,
    and measures the memory."""
    total, ahead = 5_000, [0]

    @app.task(name="render", queue="elsewhere")
    def render(ctx: Context, n: int) -> int:
        return n

    def calls_of() -> Iterator[Call[int]]:
        for n in range(total):
            if n % 500 == 0:
                ahead.append(n - len(harness.store.child_list(job.id, limit=total)))
            yield render.call(n)

    if is_async:

        @app.workflow(name="album")
        async def album(ctx: AsyncWorkflowContext) -> int:
            group = await ctx.spawn_many("render", calls_of())
            return (await group.join()).total

    else:

        @app.workflow(name="album")
        def plain_album(ctx: WorkflowContext) -> int:
            return ctx.spawn_many("render", calls_of()).join().total

    app.queues.pause("elsewhere", actor="ann")
    job = app.enqueue(app.find_task("album").call())
    work(harness)
    assert "for 5,000 of 5,000 children" in job.why()
    assert max(ahead) <= 1_000
    (group,) = harness.store.child_groups(job.id)
    assert (group.total, group.closed) == (total, True)
    assert len(harness.store.child_list(job.id, limit=10_000)) == total


def test_a_group_that_was_begun_is_continued_under_its_ids(harness: Harness, app: Detent) -> None:
    """F19: the function dies after two of three portions, without knowing how many there will be."""
    broken = [True]

    @app.task(name="render")
    def render(ctx: Context, n: int) -> int:
        return n

    def calls_of() -> Iterator[Call[int]]:
        for n in range(2_500):
            if broken and n == 2_100:
                broken.clear()
                raise OSError("the list ends early")
            yield render.call(n)

    @app.workflow(name="album", retry=Retry(3, base=1, cap=1))
    def album(ctx: WorkflowContext) -> list[int]:
        done = ctx.spawn_many("render", calls_of()).join()
        return [done.total, sum(done.results())]

    job = album.enqueue()
    work(harness)
    assert [(one.total, one.closed) for one in harness.store.child_groups(job.id)] == [(100_000, False)]
    work(harness, 10)
    assert job.refresh().result == [2_500, sum(range(2_500))]
    assert len(harness.store.child_list(job.id, limit=10_000)) == 2_500


def test_a_call_is_not_made_by_a_step(harness: Harness, app: Detent) -> None:
    @app.task(name="render")
    def render(ctx: Context, n: int) -> int:
        return n

    @app.workflow(name="album", retry=ONCE)
    def album(ctx: WorkflowContext) -> int:
        return ctx.spawn_many("render", (render.call(ctx.step(f"photo {n}", int)) for n in range(3))).join().total

    job = album.enqueue()
    work(harness)
    assert "ctx.step" in (job.refresh().error or "")
    assert "inside step 'render'" in (job.error or "")


@pytest.mark.parametrize("given", [lambda: [None] * 100_001, lambda: (7 for _ in range(1)), lambda: [7]])
def test_other_things_than_calls_are_refused(harness: Harness, app: Detent, given: Callable[[], Any]) -> None:
    @app.workflow(name="album", retry=ONCE)
    def album(ctx: WorkflowContext) -> int:
        return ctx.spawn_many("render", given()).join().total

    job = album.enqueue()
    work(harness)
    assert "calls: found" in (job.refresh().error or "")
    assert harness.store.child_list(job.id) == []
