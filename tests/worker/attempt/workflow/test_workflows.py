"""Workflows as their functions see them: steps, transactions, waits, signals and children, plain and async."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from detent import Context, Detent, Retry
from detent.client.job import Job
from detent.declare.probe import Probed
from detent.declare.workflow import Local, Step, StepCall
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.errors import ChildFailed, WaitTimeout
from detent.model.workflow_records import NewSignal, StepRow
from detent.testing.harness import Harness
from detent.testing.stores import row_violations

ONCE = Retry(0)
calls: list[str] = []


@pytest.fixture
def harness(store_url: str) -> Iterator[Harness]:
    calls.clear()
    with closing(Harness(store_url)) as made:
        yield made
        assert row_violations(made.store, store_url) == []


@pytest.fixture
def app(harness: Harness) -> Detent:
    return harness.app


class Payment(msgspec.Struct):
    id: int
    paid_at: datetime


def note(word: str) -> str:
    calls.append(word)
    return word


async def anote(word: str) -> str:
    await asyncio.sleep(0)
    return note(word)


def steps(harness: Harness, job: Job[Any]) -> dict[str, StepRow]:
    rows = harness.store.step_list(job.id).rows
    return {row.path: row for row in sorted(rows, key=lambda row: row.seq)}


def signal(harness: Harness, job: Job[Any], name: str, payload: str = "null", dedupe: str | None = None) -> object:
    sent = NewSignal(job_id=job.id, name=name, payload=payload, actor="ann", dedupe=dedupe)
    (answer,) = harness.store.signal_send([sent])
    return answer


def work(harness: Harness, seconds: float = 0.0) -> None:
    if seconds:
        harness.clock.advance(seconds)
    harness.work()


# -- steps -----------------------------------------------------------------------------------------------------


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


# -- waits -----------------------------------------------------------------------------------------------------


def test_a_sleeping_workflow_holds_no_attempt(harness: Harness, app: Detent) -> None:
    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> str:
        ctx.step("begin", note, "begin")
        ctx.sleep(timedelta(days=3))
        return ctx.step("end", note, "end")

    job = order.enqueue()
    work(harness)
    assert (job.refresh().state, calls) == ("pending", ["begin"])
    work(harness, 2 * 86_400)
    assert calls == ["begin"]
    work(harness, 86_401)
    assert (job.refresh().result, calls) == ("end", ["begin", "end"])
    assert [one.outcome for one in harness.store.job_executions(job.id)] == ["parked", "done"]


def test_sleep_until_a_local_time_in_a_gap_of_the_clocks(harness: Harness, app: Detent) -> None:
    assert Local("2027-03-28 02:30", "Europe/Berlin").moment() == datetime(2027, 3, 28, 1, tzinfo=UTC)
    assert Local("2027-10-31 02:30", "Europe/Berlin").moment() == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)

    @app.workflow(name="order")
    def order(ctx: WorkflowContext) -> str:
        ctx.sleep_until(datetime(2020, 1, 1, tzinfo=UTC))
        ctx.sleep_until(Local("2027-03-28 02:30", "Europe/Berlin"))
        return "awake"

    job = order.enqueue()
    work(harness)
    assert job.refresh().due_at == datetime(2027, 3, 28, 1, tzinfo=UTC)


@pytest.mark.parametrize("early", [True, False])
def test_a_signal_is_taken_whenever_it_was_sent(harness: Harness, app: Detent, early: bool) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> list[int]:
        return [ctx.wait_for("decision", int), ctx.wait_for("decision", int)]

    job = expense.enqueue()
    if early:
        signal(harness, job, "decision", "1")
    work(harness)
    signal(harness, job, "decision", "2")
    if not early:
        work(harness)
        signal(harness, job, "decision", "3")
    work(harness)
    assert job.refresh().result == ([1, 2] if early else [2, 3])


def test_a_wait_that_times_out_says_so_once_and_for_all(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> str:
        try:
            return ctx.wait_for("decision", str, timeout=60)
        except WaitTimeout:
            ctx.step("escalate", note, "escalate")
        return ctx.wait_for("decision", str)

    job = expense.enqueue()
    work(harness)
    work(harness, 7200)
    assert calls == ["escalate"]
    signal(harness, job, "decision", '"late"')
    work(harness)
    assert job.refresh().result == "late"


def test_the_first_of_several_waits(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> str:
        one = ctx.first(ctx.on("yes", int), ctx.on("no", str), timeout=60)
        two = ctx.first(ctx.on("yes", int), ctx.on("no", str), timeout=60)
        return f"{one.wait.name} {one.value}, {two.wait.name} {two.value}"

    job = expense.enqueue()
    work(harness)
    signal(harness, job, "no", '"never"')
    work(harness)
    signal(harness, job, "yes", "5")
    work(harness)
    assert job.refresh().result == "no never, yes 5"


def test_branches_of_an_async_function_wait_at_the_same_time(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    async def expense(ctx: AsyncWorkflowContext) -> list[str]:
        return list(await asyncio.gather(ctx.wait_for("left", str), ctx.wait_for("right", str)))

    job = expense.enqueue()
    work(harness)
    signal(harness, job, "right", '"r"')
    work(harness)
    assert job.refresh().state == "pending"
    signal(harness, job, "left", '"l"')
    work(harness)
    assert job.refresh().result == ["l", "r"]


def test_a_function_that_swallows_the_park_is_stopped(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense", retry=Retry(5))
    def expense(ctx: WorkflowContext) -> str:
        try:
            ctx.wait_for("decision")
        except BaseException:
            return "went on"
        return "decided"

    job = expense.enqueue()
    work(harness)
    job = job.refresh()
    assert job.state == "quarantined"
    assert "caught the exception that ends the attempt and went on" in (job.error or "")


def test_except_exception_does_not_catch_the_park(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> str:
        try:
            return ctx.wait_for("decision", str)
        except Exception:
            return "caught"
        finally:
            note("finally")

    job = expense.enqueue()
    work(harness)
    signal(harness, job, "decision", '"yes"')
    work(harness)
    assert (job.refresh().result, calls) == ("yes", ["finally", "finally"])


def test_a_workflow_that_only_sleeps_is_stopped(harness: Harness, app: Detent) -> None:
    @app.workflow(name="expense")
    def expense(ctx: WorkflowContext) -> None:
        while True:
            ctx.sleep(0)

    job = expense.enqueue()
    work(harness)
    job = job.refresh()
    assert job.state == "quarantined"
    assert "spinning" in (job.error or "")


def test_continue_as_new_begins_again_with_other_arguments(harness: Harness, app: Detent) -> None:
    @app.workflow(name="agent")
    def agent(ctx: WorkflowContext, turn: int = 0) -> str:
        ctx.step("think", note, f"think {turn} {ctx.generation}")
        if turn < 2:
            ctx.continue_as_new(turn=turn + 1)
        return ctx.wait_for("word", str)

    job = agent.enqueue()
    signal(harness, job, "word", '"kept"')
    work(harness)
    assert job.refresh().result == "kept"
    assert calls == ["think 0 1", "think 1 2", "think 2 3"]


# -- children --------------------------------------------------------------------------------------------------


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
