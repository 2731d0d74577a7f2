"""The undo of a workflow that has ended: a job of its own, previewed, durable, and settled by a person if it fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from detent import BeingUndone, Detent, Job, Retry, UndoRefused
from detent.declare.workflow import Step
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.errors import InvalidInput, NotFound
from detent.testing.harness import Harness
from tests.worker.attempt.workflow.conftest import anote, calls, note, steps, work

ONCE = Retry(0)


def undo_of(word: str) -> None:
    note(f"undo {word}")


def bought(app: Detent) -> Job[Any]:
    """A workflow with two steps that can be undone and one that cannot."""

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> str:
        ctx.step(Step("reserve", undo=undo_of), note, "reserve")
        ctx.step("think", note, "think")
        ctx.step(Step("charge", undo=undo_of, secret=True), note, "charge")
        return "bought"

    return order.enqueue()


def planned(job: Job[Any]) -> list[str]:
    """The steps that are still to be undone, in the order of the preview."""
    return [one.path for one in job.preview_undo() if one.undone_at is None]


def test_a_job_that_succeeded_last_week_is_undone_on_request(harness: Harness, app: Detent) -> None:
    """F20, previewed, in reverse order, by a job of its own."""
    job = bought(app)
    work(harness)
    harness.clock.advance(timedelta(days=7).total_seconds())
    preview = job.preview_undo()
    assert [(one.path, one.name, one.secret, one.undone_at) for one in preview] == [
        ("charge", "charge", True, None),
        ("reserve", "reserve", False, None),
    ]
    assert [one.value for one in preview] == ['"[redacted]"', '"reserve"']
    assert calls == ["reserve", "think", "charge"]  # no code was run
    undo = job.undo(actor="ann", reason="a wrong order")
    assert (undo.created, undo.task, undo.state) == (True, "order", "pending")
    assert job.undo(actor="bob").id == undo.id
    assert "its steps are being undone by job" in job.why()
    work(harness)
    assert calls[3:] == ["undo charge", "undo reserve"] == [f"undo {one.name}" for one in preview]
    assert list(steps(harness, undo)) == ["charge~undo", "reserve~undo", "~undone"]
    assert undo.refresh().state == "succeeded"
    assert job.refresh().state == "succeeded"
    assert job.result == "bought"
    (old, new) = (app.workflows.get(one.id) for one in (job, undo))
    assert (old.undone_by, new.undo_of) == (undo.id, job.id)
    assert old.undone_at is not None
    assert new.undo_cause == "requested by ann: a wrong order"
    assert all(one.undone_at for one in job.preview_undo())
    assert f"its steps were undone by job {undo.id}" in job.why()
    again = job.undo(actor="bob")
    assert (again.id, again.created) == (undo.id, False)
    work(harness)
    assert len(calls) == 5


def test_the_function_sees_the_job_that_is_undone(harness: Harness, app: Detent) -> None:
    """Ids, keys, tokens, random numbers and arguments are those of the first run."""
    seen: list[tuple[Any, ...]] = []

    @app.workflow(name="order")
    def order(ctx: WorkflowContext, n: int) -> None:
        facts = (ctx.job_id, ctx.effect_key, ctx.uuid("u"), ctx.random.random(), ctx.now(), ctx.generation, n)
        seen.append((*facts, ctx.token("decision")))
        ctx.step(Step("reserve", undo=lambda word: seen.append((ctx.effect_key,))), note, "reserve")

    job = order.enqueue(n=7)
    work(harness)
    job.undo()
    work(harness)
    assert seen[0] == seen[1]
    assert seen[2] == (f"{seen[0][1]}/1/reserve~undo",)


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_workflow_that_undoes_only_on_request(harness: Harness, app: Detent, how: str) -> None:
    broken = [True]

    @app.workflow(name="order", undo="on_request", retry=ONCE)
    def order(ctx: WorkflowContext) -> str:
        ctx.step(Step("reserve", undo=undo_of), note, f"reserve {ctx.generation}")
        if how == "cancelled" and broken:
            ctx.wait_for("never")
        if broken:
            raise OSError("no lorry")
        return "shipped"

    job = order.enqueue()
    work(harness)
    if how == "cancelled":
        with pytest.raises(UndoRefused, match="it is parked; cancel it"):
            job.undo()
        job.cancel(actor="ann")
        work(harness)
    assert calls == ["reserve 1"]
    undo = job.undo(actor="ann")
    with pytest.raises(BeingUndone, match=f"job {undo.id} undoes its steps"):
        job.retry(actor="ann")
    work(harness)
    assert calls == ["reserve 1", "undo reserve 1"]
    broken.clear()
    job.retry(actor="ann")
    work(harness)
    assert job.refresh().result == "shipped"  # in a new generation: what was undone is done again
    assert calls[2:] == ["reserve 2"]
    assert planned(job) == ["reserve"]
    second = job.undo(actor="ann")
    assert second.id != undo.id
    work(harness)
    assert calls[3:] == ["undo reserve 2"]


def test_jobs_that_cannot_be_undone(harness: Harness, app: Detent) -> None:
    @app.workflow(name="plain")
    def plain(ctx: WorkflowContext) -> None:
        ctx.step("think", note, "think")

    job = plain.enqueue()
    with pytest.raises(UndoRefused, match="it is pending; cancel it"):
        job.undo()
    work(harness)
    with pytest.raises(UndoRefused, match="none of them has an undo"):
        job.undo()
    assert job.preview_undo() == []
    job.id = 10**9
    with pytest.raises(NotFound):
        job.undo()
    with pytest.raises(NotFound):
        job.preview_undo()


def test_a_version_that_no_worker_supports(harness: Harness, app: Detent) -> None:
    job = bought(app)
    work(harness)
    task = app.find_task("order")
    assert task.workflow is not None
    task.workflow = replace(task.workflow, version=2, supports=(2,))
    undo = job.undo(actor="ann")
    work(harness)
    assert undo.refresh().state == "pending"
    (found,) = harness.store.workflow_get([undo.id])
    assert found is not None
    assert found.version == 1  # the version of which `why` speaks


def test_a_crash_between_two_undos_repeats_neither(harness: Harness, app: Detent) -> None:
    crashes = [True]

    def undo(word: str) -> None:
        note(f"undo {word}")
        if word == "reserve" and crashes:
            crashes.clear()
            harness.clock.advance(harness.lease + 1)

    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> None:
        for word in ("first", "reserve", "charge"):
            ctx.step(Step(word, undo=undo), note, word)

    job = order.enqueue()
    work(harness)
    made = job.undo()
    work(harness)
    work(harness, 60)
    assert calls[3:] == ["undo charge", "undo reserve", "undo reserve", "undo first"]
    assert made.refresh().state == "succeeded"


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("by", ["itself", "another job"])
def test_an_undo_that_fails_for_good_is_settled_by_a_person(harness: Harness, app: Detent, by: str, done: bool) -> None:
    """F20, the chain stops, a person says what became of it, and it goes on."""
    broken = [True]

    def refund(word: str) -> None:
        note("refund")
        if broken:
            raise ValueError("the bank is closed")

    @app.workflow(name="order", retry=ONCE, dead_letter=False)
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=lambda word: note("release")), note, "reserve")
        ctx.step(Step("charge", undo=refund, retry=ONCE), note, "charge")
        if by == "itself":
            raise OSError("no lorry")

    job = order.enqueue()
    work(harness)
    undoes = job if by == "itself" else job.undo(actor="ann")
    work(harness)
    undoes = undoes.refresh()
    assert undoes.state == "quarantined"
    assert "the undo of step 'charge'" in (undoes.error or "")
    (group,) = harness.store.dead_report(None, None, None, 10)
    assert group.reason == "undo failed"
    assert calls == ["reserve", "charge", "refund"]
    assert planned(job) == ["charge", "reserve"]
    with pytest.raises(InvalidInput, match="'charge'"):
        undoes.settle(done=True, step="reserve", reason="why", actor="ann")
    with pytest.raises(InvalidInput, match="is a workflow"):
        undoes.settle(done=True, reason="why", actor="ann")
    broken.clear()
    undoes.settle(done=done, step="charge", reason="paid back in cash", actor="ann")
    work(harness)
    assert calls[3:] == (["release"] if done else ["refund", "release"])
    assert planned(job) == []
    assert [one.by_hand for one in job.preview_undo()] == [done, False]
    assert undoes.refresh().state == ("failed" if by == "itself" else "succeeded")
    assert harness.app.record.verify() == []


def test_a_cancel_stops_the_job_that_undoes_and_a_retry_goes_on(harness: Harness, app: Detent) -> None:
    def undo(word: str) -> None:
        note(f"undo {word}")
        if word == "charge":
            harness.store.job_cancel([made.id], "ann")
            made_cancelled.append(True)

    made_cancelled: list[bool] = []

    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=undo), note, "reserve")
        ctx.sleep(0.001)
        ctx.step(Step("charge", undo=undo), note, "charge")

    job = order.enqueue()
    work(harness)
    work(harness, 1)
    made = job.undo()
    harness.store.job_cancel([made.id], "ann")
    assert made.refresh().state == "cancelled"
    assert job.undo().id == made.id
    with pytest.raises(UndoRefused, match="it undoes job"):
        made.undo()
    made.retry(actor="ann")
    work(harness)
    made.refresh()
    if made.state == "cancelled":
        made.retry(actor="ann")
        work(harness)
    assert made.refresh().state == "succeeded"
    assert calls[2:] == ["undo charge", "undo reserve"]


@pytest.mark.parametrize("done", [True, False])
def test_one_step_that_is_unknown_is_settled(harness: Harness, app: Detent, done: bool) -> None:
    """Without a probe, a person says whether the step was done; the others stay as they are."""
    dies = [True]

    def charge(word: str) -> str:
        note(word)
        if dies:
            dies.clear()
            harness.clock.advance(harness.lease + 1)
        return word

    @app.workflow(name="order", retry=Retry(3))
    def order(ctx: WorkflowContext) -> str:
        ctx.step("reserve", note, "reserve")
        paid = ctx.step(Step("charge", once=True, undo=undo_of), charge, "charge")
        return f"paid with {paid}"

    job = order.enqueue()
    work(harness)
    work(harness, 60)
    assert job.refresh().state == "quarantined"
    assert calls == ["reserve", "charge"]
    with pytest.raises(UndoRefused, match="it is unknown"):
        job.undo()
    with pytest.raises(InvalidInput, match="'charge'"):
        job.settle(done=True, step="reserve", reason="why", actor="ann")
    job.settle(done=done, step="charge", result="cash" if done else None, reason="seen at the bank", actor="ann")
    work(harness)
    assert job.refresh().result == ("paid with cash" if done else "paid with charge")
    assert calls == ["reserve", "charge", *([] if done else ["charge"])]
    assert planned(job) == ["charge"]
    job.undo()
    work(harness)
    assert calls[-1] == ("undo cash" if done else "undo charge")


def test_two_unknown_steps_are_settled_one_by_one(harness: Harness, app: Detent) -> None:
    dies = [True]

    async def charge(word: str) -> str:
        note(word)
        while word == "a" and dies:
            await asyncio.sleep(0)  # both are in flight when the worker dies
        if word == "b" and dies:
            dies.clear()
            harness.clock.advance(harness.lease + 1)
        return word

    @app.workflow(name="order", retry=Retry(3))
    async def order(ctx: AsyncWorkflowContext) -> list[str]:
        return await asyncio.gather(*(ctx.step(Step(word, once=True), charge, word) for word in ("a", "b")))

    job = order.enqueue()
    work(harness)
    work(harness, 60)
    assert job.refresh().state == "quarantined"
    job.settle(done=True, step="b", result="B", reason="seen", actor="ann")
    work(harness)
    assert job.refresh().state == "quarantined"  # the other one is as unknown as before
    assert sorted(calls) == ["a", "b"]
    job.settle(done=False, step="a", reason="not seen", actor="ann")
    work(harness)
    assert job.refresh().result == ["a", "B"]
    assert sorted(calls) == ["a", "a", "b"]


def test_steps_in_scopes_and_branches_are_undone(harness: Harness, app: Detent) -> None:
    """A scope on record is one row when a workflow goes on, but its steps can be undone."""

    async def undo(word: str) -> None:
        await anote(f"undo {word}")

    @app.workflow(name="order", retry=Retry(1, base=1))
    async def order(ctx: AsyncWorkflowContext) -> None:
        async def inner(inner: AsyncWorkflowContext) -> None:
            await inner.step(Step("a", undo=undo), anote, "a")
            await inner.scope("deeper", deeper)

        async def deeper(inner: AsyncWorkflowContext) -> None:
            await inner.step(Step("b", undo=undo), anote, "b")

        async def branch(word: str) -> None:
            await ctx.step(Step("branch", key=word, undo=undo), anote, f"{word}1")
            await ctx.step(Step("branch", key=f"{word}2", undo=undo), anote, f"{word}2")

        await ctx.scope("s", inner)
        await asyncio.gather(branch("x"), branch("y"))
        raise OSError("no lorry")

    job = order.enqueue()
    work(harness)
    preview = planned(job)
    assert sorted(preview) == ["branch:x", "branch:x2", "branch:y", "branch:y2", "s/a", "s/deeper/b"]
    work(harness, 10)
    undone = [path.removesuffix("~undo") for path, row in steps(harness, job).items() if row.kind == "undo"]
    assert undone == [*preview, "~undone"]
    assert calls[6:] == [f"undo {word}" for word in _words(job, preview)]
    assert job.refresh().state == "quarantined"


def _words(job: Job[Any], paths: list[str]) -> list[str]:
    values = {row.path: (row.value or "").strip('"') for row in job.steps()}
    return [values[path] for path in paths]


def test_code_that_no_longer_has_the_step(harness: Harness, app: Detent) -> None:
    """What cannot be undone is not passed over."""
    new_code: list[bool] = []

    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=undo_of), note, "reserve")
        if new_code:
            raise ValueError("mended badly")
        ctx.step(Step("charge", undo=undo_of), note, "charge")

    job = order.enqueue()
    work(harness)
    new_code.append(True)
    undo = job.undo()
    work(harness)
    assert undo.refresh().state == "quarantined"
    assert "no longer comes to it (ValueError: mended badly)" in (undo.error or "")
    undo.settle(done=True, step="charge", reason="paid back in cash", actor="ann")
    work(harness)
    assert undo.refresh().state == "succeeded"
    assert calls[2:] == ["undo reserve"]
