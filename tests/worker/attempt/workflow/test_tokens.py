"""`ctx.token`: the same in every attempt, counts once, and for one wait only if that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from detent import AsyncWorkflowContext, Detent, Retry, WaitTimeout, WorkflowContext
from detent.errors import InvalidPayload, JobEnded, NotFound, TokenUsed, WaitOver, WrongToken
from detent.testing.harness import Harness
from tests.worker.attempt.workflow.conftest import calls, note

DAY = timedelta(days=1)
MADE: list[tuple[str, ...]] = []


@pytest.fixture
def harness(store_url: str) -> Iterator[Harness]:
    MADE.clear()
    calls.clear()
    with closing(Harness(store_url)) as made:
        yield made


@pytest.fixture(params=["plain", "async"])
def app(harness: Harness, request: pytest.FixtureRequest) -> Detent:
    app = harness.app
    if request.param == "plain":

        @app.workflow(name="expense")
        def expense(ctx: WorkflowContext, bound: bool = False) -> list[Any]:
            tokens = (ctx.token("decision", next_wait_only=bound), ctx.token("decision"))
            MADE.append(tokens)
            ctx.step("mail", lambda: None)
            found = []
            for _ in range(2):
                try:
                    found.append(ctx.wait_for("decision", timeout=DAY))
                except WaitTimeout:
                    found.append("late")
            return found

        @app.workflow(name="either")
        def either(ctx: WorkflowContext) -> list[Any]:
            MADE.append((ctx.token("yes", next_wait_only=True),))
            ctx.sleep(60)
            arrived = ctx.first(ctx.on("no"), ctx.on("yes"))
            return [arrived.wait.name, arrived.value, ctx.wait_for("yes")]

    else:

        @app.workflow(name="expense")
        async def expense_later(ctx: AsyncWorkflowContext, bound: bool = False) -> list[Any]:
            tokens = (ctx.token("decision", next_wait_only=bound), ctx.token("decision"))
            MADE.append(tokens)

            async def mail() -> None: ...

            await ctx.step("mail", mail)
            found = []
            for _ in range(2):
                try:
                    found.append(await ctx.wait_for("decision", timeout=DAY))
                except WaitTimeout:
                    found.append("late")
            return found

        @app.workflow(name="either")
        async def either_later(ctx: AsyncWorkflowContext) -> list[Any]:
            MADE.append((ctx.token("yes", next_wait_only=True),))
            await ctx.sleep(60)
            arrived = await ctx.first(ctx.on("no"), ctx.on("yes"))
            return [arrived.wait.name, arrived.value, await ctx.wait_for("yes")]

    return app


def start(app: Detent, harness: Harness, task: str = "expense", **payload: Any) -> Any:
    job = app.enqueue(app.find_task(task).call(**payload))
    harness.work()
    return job


def test_a_token_is_one_signal_and_the_same_in_every_attempt(app: Detent, harness: Harness) -> None:
    job = start(app, harness)
    first, second = MADE[0]
    sent = app.workflows.redeem(first, {"ok": True}, actor="mail", reason="a link")
    assert (sent.job_id, sent.created) == (job.id, True)
    harness.work()
    assert app.workflows.redeem(first, {"ok": True}).created is False
    with pytest.raises(TokenUsed, match=f"'decision' of job {job.id} was used before"):
        app.workflows.redeem(first, {"ok": False})
    app.workflows.redeem(second, 2)
    harness.work()
    assert job.refresh().result == [{"ok": True}, 2]
    assert len(MADE) == 3
    assert len(set(MADE)) == 1
    assert next((one.actor, one.reason) for one in app.store.signal_list(job.id)) == ("mail", "a link")
    # It is answered again although the workflow has ended.
    assert app.workflows.redeem(second, 2).created is False


@pytest.mark.parametrize("scope", ["approval", "verdict"])
def test_a_wait_in_a_scope_for_a_token_from_outside(app: Detent, harness: Harness, scope: str) -> None:
    """What the token recorded named the scope of the wait, outside of which its own path is. When the scope had ended,
    loading the record passed over other steps, or went round for ever, depending on which name comes first."""

    @app.workflow(name="scoped")
    def scoped(ctx: WorkflowContext) -> list[str]:
        ctx.token("decision", next_wait_only=True)
        ctx.step("upload", note, "upload")
        found = ctx.scope(scope, lambda inner: str(inner.wait_for("decision")))
        ctx.sleep(10)
        ctx.step("use", note, "use")
        return [found]

    job = start(app, harness, "scoped")
    job.signal("decision", "yes")
    harness.work()
    harness.clock.advance(20)
    harness.work()
    assert (job.refresh().result, calls) == (["yes"], ["upload", "use"])
    assert {row.path: row.scope for row in job.steps()}["token decision~"] == ""


def test_for_one_wait_it_is_refused_when_that_is_over(app: Detent, harness: Harness) -> None:
    """An old link answers no later question."""
    job = start(app, harness, bound=True)
    bound, free = MADE[0]
    harness.clock.advance(86_401)
    harness.work()
    with pytest.raises(WaitOver, match="that wait is over"):
        app.workflows.redeem(bound, "old")
    assert app.store.signal_list(job.id) == []
    app.workflows.redeem(free, "new")
    harness.work()
    assert job.refresh().result == ["late", "new"]
    assert [one.path for one in job.steps() if one.kind == "token"] == ["token decision~"]
    assert app.record.verify() == []


def test_for_one_wait_it_counts_before_and_while_it_lasts(app: Detent, harness: Harness) -> None:
    job = start(app, harness, bound=True)
    bound, free = MADE[0]
    app.workflows.redeem(bound, 1)
    harness.work()
    assert app.workflows.redeem(bound, 1).created is False
    app.workflows.redeem(free, 2)
    harness.work()
    assert job.refresh().result == [1, 2]


def test_the_next_wait_may_be_one_of_several(app: Detent, harness: Harness) -> None:
    """Another signal ends the wait: the token is over, and the sleep before it did not matter."""
    job = start(app, harness, "either")
    ((token,),) = MADE
    harness.clock.advance(61)
    harness.work()
    job.signal("no", 1)
    harness.work()
    with pytest.raises(WaitOver):
        app.workflows.redeem(token, 2)
    job.signal("yes", 3)
    harness.work()
    assert job.refresh().result == ["no", 1, 3]


def test_what_is_refused_changes_nothing(app: Detent, harness: Harness) -> None:
    job = start(app, harness)
    token, other = MADE[0]
    for text in ("", token[:-1], token + "A", token.replace("_", "-", 1), other[:40] + token[40:]):
        with pytest.raises(WrongToken):
            app.workflows.redeem(text, 1)
    for payload in (float("nan"), b"x", "x" * (app.settings.payload_max + 1), "\ud800"):
        with pytest.raises(InvalidPayload):
            app.workflows.redeem(token, payload)
    assert app.store.signal_list(job.id) == []
    job.cancel()
    with pytest.raises(JobEnded):
        app.workflows.redeem(token, 1)
    harness.clock.advance(86_400 * 400)
    app.store.job_prune(harness.clock.now(), None, 1000, "test")
    with pytest.raises(NotFound):
        app.workflows.redeem(token, 1)


def test_another_database_refuses_it(app: Detent, harness: Harness, tmp_path: Path) -> None:
    start(app, harness)
    with closing(Harness(f"sqlite:///{tmp_path}/another.db")) as another, pytest.raises(WrongToken):
        another.app.workflows.redeem(MADE[0][0], 1)


def test_not_inside_a_step(harness: Harness) -> None:
    app = harness.app

    @app.workflow(name="wrong", retry=Retry(0))
    def wrong(ctx: WorkflowContext) -> None:
        ctx.step("mail", lambda: ctx.token("decision"))

    job = app.enqueue(wrong.call())
    harness.work()
    assert "ctx.token" in (job.refresh().error or "")
    assert "inside step 'mail'" in (job.refresh().error or "")
