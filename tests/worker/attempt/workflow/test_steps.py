"""Steps of workflows: recorded once, retried, refused."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec

from detent import Detent, Retry
from detent.declare.probe import Probed
from detent.declare.workflow import Step, StepCall
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.testing.harness import Harness
from tests.worker.attempt.workflow.conftest import anote, calls, note, steps, work

ONCE = Retry(0)


class Payment(msgspec.Struct):
    id: int
    paid_at: datetime


def test_a_step_is_recorded_and_decoded_to_its_declared_type(harness: Harness, app: Detent) -> None:
    seen: list[object] = []

    def pay(amount: int) -> Payment:
        return Payment(amount, datetime(2026, 1, 2, tzinfo=UTC))

    @app.workflow(name="order")
    def order(ctx: WorkflowContext, amount: int) -> int:
        payment = ctx.step("pay", pay, amount)
        seen.append(payment)
        return payment.id

    job = order.enqueue(5)
    work(harness)
    assert job.refresh().result == 5
    assert seen == [Payment(5, datetime(2026, 1, 2, tzinfo=UTC))]
    (row,) = steps(harness, job).values()
    assert (row.path, row.kind, row.value) == ("pay", "call", '{"id":5,"paid_at":"2026-01-02T00:00:00Z"}')


def test_a_retry_continues_from_the_failed_step(harness: Harness, app: Detent) -> None:
    broken = [True]

    def ship() -> str:
        note("ship")
        if broken:
            raise OSError("no lorry")
        return "parcel"

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> str:
        ctx.step("reserve", note, "reserve")
        ctx.step("charge", note, "charge")
        return ctx.step("ship", ship)

    job = order.enqueue()
    work(harness)
    assert job.refresh().state == "quarantined"
    broken.clear()
    job.retry(actor="ann")
    work(harness)
    assert job.refresh().result == "parcel"
    assert calls == ["reserve", "charge", "ship", "ship"]


def test_an_async_function_continues_from_the_failed_step(harness: Harness, app: Detent) -> None:
    broken = [True]

    async def ship() -> str:
        await anote("ship")
        if broken:
            raise OSError("no lorry")
        return "parcel"

    @app.workflow(name="order", retry=Retry(1, base=1))
    async def order(ctx: AsyncWorkflowContext) -> str:
        await ctx.step("reserve", anote, "reserve")
        return await ctx.step("ship", ship)

    job = order.enqueue()
    work(harness)
    broken.clear()
    work(harness, 10)
    assert job.refresh().result == "parcel"
    assert calls == ["reserve", "ship", "ship"]


def test_an_error_that_the_function_caught_is_what_the_step_came_to(harness: Harness, app: Detent) -> None:
    def decline() -> None:
        note("charge")
        raise PermissionError("declined")

    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> str:
        try:
            ctx.step("charge", decline)
        except PermissionError as error:
            ctx.step("tell", note, str(error))
        ctx.sleep(60)
        return "told"

    job = order.enqueue()
    work(harness)
    work(harness, 61)
    assert job.refresh().result == "told"
    assert calls == ["charge", "declined"]
    assert steps(harness, job)["charge"].error is not None


def test_what_a_transaction_writes_and_its_record_are_one(harness: Harness, app: Detent) -> None:
    def book(tx: Any, amount: int) -> int:
        tx.execute("INSERT INTO booked (amount) VALUES (:amount)", {"amount": amount})
        note("book")
        if len(calls) == 1:
            raise OSError("lost")
        return amount

    @app.workflow(name="order", retry=Retry(1, base=1))
    def order(ctx: WorkflowContext) -> list[int]:
        ctx.transact("table", lambda tx: tx.execute("CREATE TABLE booked (amount integer)") and None)
        ctx.transact("one", book, 1)
        ctx.transact("two", book, 2)
        return ctx.transact("read", lambda tx: [row[0] for row in tx.execute("SELECT amount FROM booked")[0]])

    job = order.enqueue()
    work(harness)
    work(harness, 5)
    assert job.refresh().result == [1, 2]
    assert calls == ["book", "book", "book"]


def test_an_async_transaction(harness: Harness, app: Detent) -> None:
    async def table(tx: Any) -> None:
        await tx.execute("CREATE TABLE booked (amount integer)")

    async def book(tx: Any, amount: int) -> int:
        await tx.execute("INSERT INTO booked (amount) VALUES (:amount)", {"amount": amount})
        rows, _ = await tx.execute("SELECT count(*) FROM booked")
        return int(rows[0][0])

    @app.workflow(name="order")
    async def order(ctx: AsyncWorkflowContext) -> int:
        await ctx.transact("table", table)
        await ctx.transact("one", book, 1)
        return await ctx.transact("two", book, 2)

    job = order.enqueue()
    work(harness)
    assert job.refresh().result == 2


def test_a_finished_scope_is_one_record(harness: Harness, app: Detent) -> None:
    def part(ctx: WorkflowContext, word: str) -> str:
        return ctx.step("say", note, word) + ctx.step("say", note, word)

    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> str:
        found = ctx.scope("left", part, "l") + ctx.scope("right", part, "r")
        ctx.sleep(60)
        return found

    job = order.enqueue()
    work(harness)
    work(harness, 61)
    assert job.refresh().result == "llrr"
    assert calls == ["l", "l", "r", "r"]
    assert list(steps(harness, job)) == ["left/say", "left/say#2", "left", "right/say", "right/say#2", "right", "sleep"]


def test_steps_at_the_same_time_are_recorded_also_if_one_of_them_fails(harness: Harness, app: Detent) -> None:
    broken = [True]

    def say(n: int) -> int:
        note(str(n))
        if n == 3 and broken:
            raise OSError("three")
        return n

    @app.workflow(name="order", retry=Retry(1, base=1))
    def order(ctx: WorkflowContext) -> list[int]:
        return ctx.gather(*(StepCall(Step("say", key=n), say, n) for n in range(8)))

    job = order.enqueue()
    work(harness)
    assert len(steps(harness, job)) == 7
    broken.clear()
    work(harness, 5)
    assert job.refresh().result == list(range(8))
    assert sorted(calls) == sorted([*map(str, range(8)), "3"])


def test_two_sequences_side_by_side_in_asyncio(harness: Harness, app: Detent) -> None:
    async def sequence(ctx: AsyncWorkflowContext, word: str) -> list[str]:
        return [await ctx.step(Step("say", key=f"{word}{n}"), anote, f"{word}{n}") for n in range(3)]

    @app.workflow(name="order")
    async def order(ctx: AsyncWorkflowContext) -> list[list[str]]:
        found = await asyncio.gather(sequence(ctx, "a"), sequence(ctx, "b"))
        await ctx.sleep(60)
        return list(found)

    job = order.enqueue()
    work(harness)
    work(harness, 61)
    assert job.refresh().result == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]
    assert len(calls) == 6


def test_two_steps_of_one_name_at_once_are_refused_on_the_first_run(harness: Harness, app: Detent) -> None:
    @app.workflow(name="order")
    async def order(ctx: AsyncWorkflowContext) -> None:
        await asyncio.gather(ctx.step("say", anote, "a"), ctx.step("say", anote, "b"))

    job = order.enqueue()
    work(harness)
    job = job.refresh()
    assert job.state == "quarantined"
    assert "give each a key" in (job.error or "")


def test_a_step_that_must_not_be_repeated_asks_its_probe(harness: Harness, app: Detent) -> None:
    answers = [Probed.done("paid before")]

    def charge() -> str:
        harness.clock.advance(harness.lease + 1)
        return note("charge")

    @app.workflow(name="order", retry=Retry(5, base=1))
    def order(ctx: WorkflowContext) -> str:
        return ctx.step(Step("charge", once=True, probe=lambda: answers[0]), charge)

    job = order.enqueue()
    work(harness)
    work(harness, 60)
    assert job.refresh().result == "paid before"
    assert calls == ["charge"]


def test_the_probe_of_an_async_workflow_may_be_async(harness: Harness, app: Detent) -> None:
    async def was_charged(word: str) -> Probed:
        return Probed.done(await anote(f"paid the {word} before"))

    @app.workflow(name="order", retry=Retry(3, base=1))
    async def order(ctx: AsyncWorkflowContext) -> str:
        return await ctx.step(Step("charge", once=True, probe=was_charged), anote, "charge")

    job = order.enqueue()
    harness.crash(job, at="called charge")
    harness.work(skip=True)
    assert (job.refresh().result, calls) == ("paid the charge before", ["charge", "paid the charge before"])


def test_a_step_that_must_not_be_repeated_and_has_no_probe_needs_a_person(harness: Harness, app: Detent) -> None:
    def charge() -> str:
        if not calls:
            harness.clock.advance(harness.lease + 1)
        return note("charge")

    @app.workflow(name="order", retry=Retry(5, base=1))
    def order(ctx: WorkflowContext) -> str:
        return ctx.step(Step("charge", once=True), charge)

    job = order.enqueue()
    work(harness)
    work(harness, 60)
    job = job.refresh()
    assert (job.state, calls) == ("quarantined", ["charge"])
    assert "it is unknown whether step 'charge' has had its effect" in (job.error or "")
    job.retry(actor="ann", reason="the bank says no")
    work(harness)
    assert job.refresh().result == "charge"
    assert calls == ["charge", "charge"]


def test_a_step_retries_by_itself_in_place_or_parked(harness: Harness, app: Detent) -> None:
    def ship() -> str:
        if len(calls) < 3:
            note("ship")
            raise OSError("no lorry")
        return "parcel"

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> str:
        return ctx.step(Step("ship", retry=Retry(5, base=30, jitter=0)), ship)

    job = order.enqueue()
    work(harness)
    assert job.refresh().state == "pending"
    assert len(calls) == 1
    work(harness, 31)
    assert len(calls) == 2
    work(harness, 61)
    assert len(calls) == 3
    work(harness, 65)
    assert job.refresh().result == "parcel"


def test_a_value_that_is_too_large_is_refused_at_once(harness: Harness, app: Detent) -> None:
    @app.workflow(name="order", retry=Retry(5))
    def order(ctx: WorkflowContext) -> None:
        ctx.step("read", lambda: "x" * 300_000)

    job = order.enqueue()
    work(harness)
    job = job.refresh()
    assert (job.state, job.attempt) == ("quarantined", 1)
    assert "value of step 'read'" in (job.error or "")


def test_an_inserted_step_is_refused_before_it_is_called(harness: Harness, app: Detent) -> None:
    """F12: with the names of both steps."""
    old = [True]

    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> None:
        ctx.step("reserve", note, "reserve")
        if not old:
            ctx.step("audit", note, "audit")
        ctx.step("ship", note, "ship")
        ctx.sleep(60)

    job = order.enqueue()
    work(harness)
    old.clear()
    work(harness, 61)
    job = job.refresh()
    assert (job.state, calls) == ("quarantined", ["reserve", "ship"])
    assert "about to run step 'audit', but step 'ship' is on record" in (job.error or "")
