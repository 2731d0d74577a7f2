"""Rewinds and forks of workflows that workers run."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from detent.client.job import Job
from detent.declare.workflow import Step
from detent.declare.workflow_context import WorkflowContext
from detent.errors import CopyRefused, InvalidArguments, InvalidInput, InvalidPayload, WaitTimeout
from detent.testing.harness import Harness
from tests.contract.workflows.test_workflow_fork import everything


class Shop:
    """An order of five steps, and how often each was called, by job."""

    def __init__(self, detent: Harness) -> None:
        self.calls: Counter[tuple[int, str]] = Counter()
        self.broken = ""
        self.undone: list[tuple[int, str]] = []

        def call(name: str, value: Any = None) -> Any:
            job_id = self.now_in
            self.calls[job_id, name] += 1
            if name == self.broken:
                raise ValueError(f"{name} is broken")
            return value

        def undo(name: str) -> Any:
            return lambda _: self.undone.append((self.now_in, name))

        def order(ctx: WorkflowContext, amount: int = 10) -> str:
            self.now_in = ctx.job_id
            price: int = ctx.step(Step("price", undo=undo("price")), call, "price", amount)
            login: str = ctx.step(Step("login", secret=True), call, "login", "s3cret")
            ctx.transact("book", lambda tx: call("book"))
            decision: str = ctx.wait_for("decision", str)
            ctx.step(Step("pack", undo=undo("pack")), call, "pack", price)
            ctx.step("ship", call, "ship")
            return f"{price} {decision} {len(login)} {ctx.uuid('parcel')} {ctx.random.random()}"

        self.order = detent.app.workflow(name="order", undo="on_request")(order)
        self.undoing = detent.app.workflow(name="undoing")(order)

    def of(self, job: Job[Any]) -> dict[str, int]:
        return {name: count for (job_id, name), count in self.calls.items() if job_id == job.id}


@pytest.fixture
def shop(detent: Harness) -> Shop:
    return Shop(detent)


def finished(shop: Shop, detent: Harness) -> Job[str]:
    job = shop.order.enqueue()
    job.signal("decision", "yes")
    detent.work()
    assert job.refresh().state == "succeeded"
    return job


def dead(shop: Shop, detent: Harness, at: str) -> Job[str]:
    shop.broken = at
    job = shop.order.enqueue()
    job.signal("decision", "yes")
    for _ in range(10):
        detent.work()
        detent.clock.advance(600)
    shop.broken = ""
    assert job.refresh().state == "quarantined"
    return job


def test_a_fork_with_another_value(shop: Shop, detent: Harness) -> None:
    """F17: only the steps from there on are called; the original is byte-equal; a fork of the fork too."""
    job = finished(shop, detent)
    before, calls = everything(detent.store, job.id), shop.of(job)
    fork = job.fork(at="pack", replace={"price": 30}, actor="ana", reason="what if")
    assert (fork.state, fork.metadata) == ("pending", {"forked_from": str(job.id)})
    detent.work()
    assert fork.refresh().state == "succeeded"
    assert fork.result.startswith("30 yes 6 ")
    assert shop.of(fork) == {"pack": 1, "ship": 1}
    assert (everything(detent.store, job.id), shop.of(job)) == (before, calls)
    again = fork.fork(at="ship", replace={"signal decision": "no"}, payload={"amount": 7})
    detent.work()
    assert again.refresh().result.startswith("30 no 6 ")
    assert (shop.of(again), again.payload) == ({"ship": 1}, {"amount": 7})
    assert everything(detent.store, job.id) == before
    (line,) = [one for one in fork.history() if one.trigger == "fork"]
    assert (line.actor, line.reason) == ("ana", "what if")
    assert json.loads(line.metadata or "") == {"forked_from": str(job.id), "at": "pack", "replaced": ["price"]}
    assert detent.store.verify() == []


def test_a_fork_of_everything_computes_the_result_again(shop: Shop, detent: Harness) -> None:
    """Without a place, no step is called, and other values count. Chance after the last copy is its own."""
    job = finished(shop, detent)
    fork = job.fork(replace={"price": 30})
    detent.work()
    mine, its = fork.refresh().result.split(), job.refresh().result.split()
    assert (mine[:3], its[:3], shop.of(fork)) == (["30", "yes", "6"], ["10", "yes", "6"], {})
    assert (mine[3] != its[3], mine[4] != its[4]) == (True, True)


def test_a_fork_is_refused(shop: Shop, detent: Harness) -> None:
    """F17, F28: nothing is left of it, and no value is in a refusal."""
    job = finished(shop, detent)
    jobs = len(detent.app.jobs.list())
    refusals: list[tuple[type[Exception], dict[str, Any]]] = [
        (CopyRefused, {"at": "price"}),
        (CopyRefused, {"at": "nowhere"}),
        (CopyRefused, {"at": "pack", "replace": {"ship": "s3cret"}}),
        (InvalidPayload, {"at": "pack", "replace": {"login": ["s3cret", {1, 2}]}}),
        (InvalidPayload, {"at": "pack", "replace": {"login": "s3cret" * 100_000}}),
        (InvalidInput, {"at": "pack", "replace": ["s3cret"]}),
        (InvalidInput, {"at": "price", "force": True}),
        (InvalidInput, {"at": ""}),
        (InvalidArguments, {"at": "pack", "payload": {"amount": "s3cret"}}),
    ]
    for kind, arguments in refusals:
        with pytest.raises(kind) as caught:
            job.fork(**arguments)
        if "payload" not in arguments:
            assert "s3cret" not in str(caught.value)
    assert len(detent.app.jobs.list()) == jobs
    job.fork(at="price", force=True, reason="a test shop")
    detent.work()


def test_a_secret_is_copied_and_replaced_and_never_shown(shop: Shop, detent: Harness) -> None:
    """F28: in the steps of a fork, in the list of what would be repeated, and on record."""
    job = finished(shop, detent)
    fork = job.fork(at="pack", replace={"login": "s3cret too"})
    detent.work()
    assert fork.refresh().result.startswith("10 yes 10 ")
    shown = [*fork.steps(), *fork.steps(since="book"), *job.steps(since="login"), *fork.history(), *fork.events()]
    assert "s3cret" not in repr(shown)
    assert [row.path for row in fork.steps() if row.secret] == ["login"]


@pytest.mark.parametrize("unique", ["pending", "active"])
def test_a_fork_has_no_key(detent: Harness, unique: Any) -> None:
    """With `unique=`, the key of the call named the original, and the fork failed with an error of the database."""

    @detent.app.workflow(name="order", unique=unique)
    def order(ctx: WorkflowContext) -> str:
        ctx.step("price", str)
        return ctx.wait_for("decision", str)

    job = order.enqueue()
    detent.work()
    first, second = (job.fork(reason="what if") for _ in range(2))
    assert len({job.id, first.id, second.id}) == 3
    second.signal("decision", "yes")
    detent.work()
    assert [one.refresh().state for one in (job, first, second)] == ["pending", "pending", "succeeded"]
    assert order.enqueue().id == job.id if unique == "active" else order.enqueue().id not in (job.id, first.id)
    assert detent.store.verify() == []


def test_unread_signals_stay_and_are_reported(shop: Shop, detent: Harness) -> None:
    job = shop.order.enqueue()
    detent.work()
    for n in range(2):
        job.signal("later", n)
    fork = job.fork()
    (line,) = [one for one in fork.history() if one.trigger == "fork"]
    assert json.loads(line.metadata or "")["unread"] == {"later": 2}
    assert detent.store.signal_list(fork.id) == []
    fork.signal("decision", "yes")
    detent.work()
    assert fork.refresh().state == "succeeded"
    assert detent.app.workflows.get(job.id).state == "parked"


def test_a_rewind_repeats_the_steps_that_were_listed(shop: Shop, detent: Harness) -> None:
    """F17: of a dead workflow, past a wait: its signal is taken again, and no step before is called."""
    job = dead(shop, detent, "ship")
    assert [row.path for row in job.steps(since="signal decision")] == ["signal decision", "pack"]
    calls = shop.of(job)
    with pytest.raises(CopyRefused, match="'book'"):
        job.rewind(to="login")
    with pytest.raises(InvalidInput, match="reason"):
        job.rewind(to="login", force=True)
    assert job.rewind(to="signal decision", actor="ana", reason="again").state == "pending"
    detent.work()
    assert job.refresh().result.startswith("10 yes 6 ")
    assert {name: count - calls[name] for name, count in shop.of(job).items()} == {
        "price": 0, "login": 0, "book": 0, "pack": 1, "ship": 1,
    }  # fmt: skip
    taken = detent.store.signal_list(job.id)[-1]
    assert (taken.payload, taken.actor, taken.reason, taken.path) == ('"yes"', "ana", "again", "signal decision")
    (line,) = [one for one in job.history() if one.trigger == "rewind"]
    assert (line.from_state, line.actor, line.reason, line.metadata) == (
        "quarantined", "ana", "again", '{"to":"signal decision"}',
    )  # fmt: skip
    with pytest.raises(CopyRefused, match="fork it"):
        job.rewind(to="pack")
    assert detent.store.verify() == []


def test_a_rewind_past_a_transaction(shop: Shop, detent: Harness) -> None:
    """F17: with force and a reason, which is on record."""
    job = dead(shop, detent, "ship")
    job.rewind(to="price", force=True, actor="ana", reason="the shop was reset")
    detent.work()
    assert job.refresh().state == "succeeded"
    assert (shop.of(job)["price"], shop.of(job)["book"]) == (2, 2)
    assert {row.generation for row in job.steps()} == {2}
    assert [row.path for row in job.steps(generation=1)][:2] == ["price", "login"]


def test_what_a_fork_has_copied_is_not_undone_by_it(shop: Shop, detent: Harness) -> None:
    """It belongs to the original. What was undone is not copied."""
    job = shop.undoing.enqueue()
    job.signal("decision", "yes")
    detent.work()
    shop.broken = "ship"
    fork = job.fork(at="pack")
    for _ in range(10):
        detent.work()
        detent.clock.advance(600)
    assert fork.refresh().state == "quarantined"
    assert shop.undone == [(fork.id, "pack")]
    with pytest.raises(CopyRefused, match="'pack' would be kept"):
        fork.fork()


def test_chance_follows_the_record(detent: Harness) -> None:
    """Up to the last copy it is as it was, so that the same steps are asked for; then it is new."""
    seen: list[tuple[float, UUID, float, UUID]] = []

    @detent.app.workflow(name="dice")
    def dice(ctx: WorkflowContext) -> None:
        first, one = ctx.random.random(), ctx.uuid("a")
        ctx.step(f"side {first:.5f}", int)
        ctx.step("between", int)
        second, two = ctx.random.random(), ctx.uuid("b")
        ctx.step(f"then {second:.5f}", int)
        ctx.step("last", int)
        seen.append((first, one, second, two))
        ctx.wait_for("end")

    job = dice.enqueue()
    detent.work()
    fork = job.fork(at="between")
    detent.work()
    job.rewind(to="last")
    detent.work()
    fork.rewind(to="last")
    detent.work()
    original, forked, rewound, forked_and_rewound = seen
    assert rewound == original
    assert forked[:2] == original[:2]
    assert (forked[2] != original[2], forked[3] != original[3]) == (True, True)
    assert forked_and_rewound == forked
    assert (job.refresh().state, fork.refresh().state) == ("pending", "pending")


def test_a_wait_that_timed_out_waits_again_after_a_rewind(detent: Harness) -> None:
    """With its whole time: a time-out stays a time-out otherwise."""

    @detent.app.workflow(name="ask")
    def ask(ctx: WorkflowContext) -> str:
        ctx.step("mail", str)
        try:
            return ctx.wait_for("answer", str, timeout=100)
        except WaitTimeout:
            ctx.wait_for("never")
            return "never"

    job = ask.enqueue()
    detent.work()
    detent.clock.advance(101)
    detent.work()
    assert [row.kind for row in job.steps()][-1] == "timeout"
    job.rewind(to="signal answer")
    detent.work()
    assert "until" in job.why()
    job.signal("answer", "yes")
    detent.work()
    assert job.refresh().result == "yes"


def test_join_and_spawn(detent: Harness) -> None:
    """A fork after the join reads the results of the children of the original; a fork at the spawn has its own."""
    rendered: list[int] = []

    @detent.app.task(name="render")
    def render(ctx: Any, photo: int) -> int:
        rendered.append(photo)
        return photo * 2

    @detent.app.workflow(name="album")
    def album(ctx: WorkflowContext) -> int:
        child = ctx.spawn(render.call(photo=7))
        found = ctx.join(child)
        ctx.step("end", int)
        return found

    job = album.enqueue()
    detent.work()
    assert job.refresh().result == 14
    after, again = job.fork(at="end"), job.fork(at="render")
    detent.work()
    assert (after.refresh().result, again.refresh().result, rendered) == (14, 14, [7, 7])
    assert detent.store.verify() == []
