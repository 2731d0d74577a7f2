"""Steps of workflows: crashes around them, values, limits, retries and changes of code."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from detent import Context, Fatal, Retry
from detent.declare.probe import Probed
from detent.declare.workflow import Step, StepCall
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.testing.harness import Harness
from detent.testing.stores import row_violations


@dataclass(frozen=True)
class Payment:
    """What a step returns."""

    id: int
    day: date


def test_a_crash_between_effect_and_record_repeats_the_step_under_one_key(detent: Harness) -> None:
    """F1: the effect key is the same both times, and differs from that of other steps."""
    keys: list[str] = []

    @detent.app.workflow(name="order")
    def order(ctx: WorkflowContext) -> str:
        for name in ("charge", "ship"):
            ctx.step(name, lambda: keys.append(ctx.effect_key))
        return "done"

    job = order.enqueue()
    detent.crash(job, "called charge")
    detent.work(skip=True)
    assert job.refresh().result == "done"
    assert keys[0] == keys[1] != keys[2]
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("probe", "state", "calls"),
    [(Probed.done(7), "succeeded", 1), (Probed.not_done(), "succeeded", 2), (None, "quarantined", 1)],
    ids=["done", "not done", "no probe"],
)
def test_a_step_that_must_not_be_repeated_blindly(
    detent: Harness, probe: Probed | None, state: str, calls: int
) -> None:
    """F1: after a crash it is unknown; the probe decides, or a person, who is told the name of the step."""
    called: list[int] = []

    def charge() -> int:
        called.append(1)
        return 7

    @detent.app.workflow(name="order", undo="on_request")
    def order(ctx: WorkflowContext) -> int:
        step = Step[int]("charge", once=True, probe=None if probe is None else lambda: probe)
        return ctx.step(step, charge)

    job = order.enqueue()
    detent.crash(job, "called charge")
    detent.work(skip=True)
    assert (job.refresh().state, len(called)) == (state, calls)
    if state == "quarantined":
        assert "step 'charge'" in (job.error or "")
    else:
        assert job.result == 7


def test_a_recorded_value_comes_back_with_its_type(detent: Harness) -> None:
    """F2: the worker dies after the record was written and before it was answered."""
    calls: list[int] = []

    def charge() -> Payment:
        calls.append(1)
        return Payment(7, date(2027, 2, 28))

    @detent.app.workflow(name="order")
    def order(ctx: WorkflowContext) -> list[Any]:
        found = ctx.step("charge", charge)
        return [type(found).__name__, found.id, found.day.year]

    job = order.enqueue()
    detent.crash(job, "recorded charge")
    detent.work(skip=True)
    assert (job.refresh().result, calls) == (["Payment", 7, 2027], [1])


@pytest.mark.parametrize("value", ["x" * (256 * 1024 + 1), float("nan"), b"bytes", "\ud800"], ids=["long", *"nbs"])
def test_a_value_that_cannot_be_recorded_stops_its_workflow_alone(detent: Harness, value: Any) -> None:
    """F13: quarantined by the first attempt, with the name of the step; one beside it is recorded."""

    async def read(given: Any) -> Any:
        return given

    @detent.app.workflow(name="order", retry=Retry(5), undo="on_request")
    async def order(ctx: AsyncWorkflowContext, bad: bool) -> Any:
        return await ctx.step("read", read, value if bad else "good")

    bad, good = order.enqueue(bad=True), order.enqueue(bad=False)
    detent.work(skip=True)
    assert (bad.refresh().state, bad.attempt) == ("quarantined", 1)
    assert "step 'read'" in (bad.error or "")
    assert good.refresh().result == "good"


def test_a_generation_is_bounded_and_the_next_one_begins_empty(detent: Harness, whole: bool) -> None:
    """F14: after many generations all are on record, and the mailbox is intact."""
    generations = 100 if whole else 12

    @detent.app.workflow(name="agent")
    def agent(ctx: WorkflowContext, turn: int = 1) -> list[int]:
        ctx.step("think", lambda: turn)
        if turn < generations:
            ctx.continue_as_new(turn=turn + 1)
        return [ctx.wait_for("word", int) for _ in range(2)]

    job = agent.enqueue()
    job.signal("word", 1)
    job.signal("word", 2)
    detent.work(skip=True)
    assert job.refresh().result == [1, 2]
    for n in range(1, generations + 1):
        assert str(n) in [row.value for row in detent.store.step_list(job.id, generation=n).rows if row.path == "think"]


def test_finished_scopes_are_not_loaded(detent: Harness, whole: bool) -> None:
    """F14: a scope counts as one step, and what is inside of it is not read again."""
    scopes = 1000 if whole else 20

    def part(ctx: WorkflowContext, n: int) -> int:
        return sum(ctx.step(Step("add", key=m), int, m) for m in range(10)) + n

    @detent.app.workflow(name="sums")
    def sums(ctx: WorkflowContext) -> int:
        found = sum(ctx.scope("part", part, n) for n in range(scopes))
        ctx.sleep(60)
        return found

    job = sums.enqueue()
    detent.work()
    detent.clock.advance(61)
    detent.store.workflow_wake(1)
    detent.store.job_promote(10)
    (claimed,) = detent.store.job_claim(
        lease_id=detent.store.ids_reserve(1),
        worker="w",
        queues=None,
        tasks=["sums"],
        limit=1,
        lease=30.0,
        versions={"sums": (1,)},
    )
    page = detent.store.workflow_load(job.id, claimed.attempt, limit=1001)
    assert len(page.steps) == scopes + 1  # type: ignore[union-attr]
    detent.attempt(claimed)
    assert job.refresh().result == scopes * 45 + sum(range(scopes))


def test_too_many_steps_are_refused_with_advice(detent: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: the number of steps in a generation is limited."""
    monkeypatch.setattr("detent.workflow.history._STEPS_MAX", 10)

    @detent.app.workflow(name="loop", undo="on_request")
    def loop(ctx: WorkflowContext) -> None:
        for _ in range(11):
            ctx.step("turn", int)

    job = loop.enqueue()
    detent.work()
    assert job.refresh().state == "quarantined"
    assert "continue_as_new" in (job.error or "")


def test_workflows_are_repaired_in_bulk_from_their_failed_step(detent: Harness) -> None:
    """F16: seven of eight steps are not repeated, for all that a filter selects."""
    called: Counter[int] = Counter()
    broken = [True]

    def act(n: int) -> int:
        called[n] += 1
        if n == 7 and broken:
            raise Fatal("a bug")
        return n

    @detent.app.workflow(name="order", undo="on_request")
    def order(ctx: WorkflowContext, k: int) -> int:
        return sum(ctx.step(Step("act", key=n), act, n) for n in range(8))

    jobs = [order.enqueue(k=k) for k in range(5)]
    detent.work()
    assert {job.refresh().state for job in jobs} == {"quarantined"}
    broken.clear()
    detent.app.jobs.where(task="order", state="quarantined").retry(actor="ann").wait()
    detent.work(skip=True)
    assert [job.refresh().result for job in jobs] == [28] * 5
    assert called == Counter({n: 5 if n < 7 else 10 for n in range(8)})


def test_of_eight_parallel_steps_one_fails(detent: Harness) -> None:
    """F18: seven are on record, and the retry runs one."""
    called: Counter[int] = Counter()

    def say(n: int) -> int:
        called[n] += 1
        if n == 3 and called[n] == 1:
            raise OSError("three")
        return n

    @detent.app.workflow(name="order", retry=Retry(1, base=1))
    def order(ctx: WorkflowContext) -> list[int]:
        return ctx.gather(*(StepCall(Step("say", key=n), say, n) for n in range(8)))

    job = order.enqueue()
    detent.work()
    assert len(detent.store.step_list(job.id).rows) == 7
    detent.work(skip=True)
    assert job.refresh().result == list(range(8))
    assert called == Counter({n: 2 if n == 3 else 1 for n in range(8)})


def test_two_sequences_with_random_pauses_are_never_ambiguous(detent: Harness, whole: bool) -> None:
    """F18: however the branches interleave, before and after a crash, each step is called at most twice."""
    called: Counter[str] = Counter()
    chance = random.Random(18)

    async def say(word: str) -> str:
        called[word] += 1
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        return word

    async def sequence(ctx: AsyncWorkflowContext, word: str) -> list[str]:
        return [await ctx.step(f"{word}{n}", say, f"{word}{n}") for n in range(3)]

    @detent.app.workflow(name="order")
    async def order(ctx: AsyncWorkflowContext) -> list[list[str]]:
        return list(await asyncio.gather(sequence(ctx, "a"), sequence(ctx, "b")))

    for _ in range(1000 if whole else 12):
        called.clear()
        job = order.enqueue()
        crashed = f"{chance.choice(['called', 'recorded'])} {chance.choice('ab')}{chance.randrange(3)}"
        detent.crash(job, crashed)
        detent.work(skip=True)
        assert job.refresh().result == [["a0", "a1", "a2"], ["b0", "b1", "b2"]], crashed
        assert set(called.values()) <= {1, 2}, crashed
    assert row_violations(detent.store, detent.url) == []


def test_a_secret_value_is_shown_to_nobody(detent: Harness) -> None:
    """F28: it is on record, and neither lists of steps nor events nor errors have it."""

    @detent.app.workflow(name="login", undo="on_request")
    def login(ctx: WorkflowContext) -> None:
        token = ctx.step(Step("token", secret=True), lambda: "s3cret-token")
        ctx.step("use", lambda: len(token))
        raise Fatal("refused")

    job = login.enqueue()
    detent.work()
    shown = repr([job.steps(), job.tree(), job.refresh(), job.error, list(job.events()), job.executions(), job.why()])
    assert "token" in shown
    assert "s3cret" not in shown


def test_a_plain_task_has_no_steps(detent: Harness) -> None:
    """F21: a step in a task that is no workflow is an error of that task."""

    @detent.app.task(name="plain", retry=Retry(0))
    def plain(ctx: Context) -> None:
        ctx.step("a", int)  # type: ignore[attr-defined]

    job = plain.enqueue()
    detent.work()
    assert job.refresh().state == "quarantined"
