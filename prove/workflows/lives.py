"""Workflows whose workers are killed: what each does, what happens to it from outside, and what must hold at the end.

A life is done by a process that dies somewhere in it, and then again by one that lives: sending a signal twice under
one `dedupe` is sending it once, and a job that has ended is left alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from detent import Context, Fatal, Retry
from detent.client.job import Job
from detent.declare.probe import Probed
from detent.declare.workflow import Step, StepCall
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.errors import InvalidTransition, JobEnded, WaitTimeout
from detent.model.workflow_records import StepRow
from detent.testing.harness import Harness
from detent.testing.stores import plain_connection

__all__ = ["LIVES", "Calls", "Life", "declare", "steps_of"]

LEASE = 30.0
INSERT = "INSERT INTO booked (job_id, amount) VALUES (:job_id, :amount)"
PATIENT = Retry(100, base=1)


class Calls:
    """What steps did outside the database: one line for each call, which no kill takes back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def note(self, ctx: Any, word: str) -> str:
        """Leave a line, and return the word."""
        with self._path.open("a") as file:
            file.write(f"{ctx.job_id} {word} {ctx.effect_key}\n")
        return word

    def of(self, job_id: int) -> Counter[str]:
        """How often each word was noted by this job."""
        return Counter(word for who, word, _ in self._lines() if who == str(job_id))

    def keys(self, job_id: int, word: str) -> set[str]:
        """The effect keys under which it was noted."""
        return {key for who, said, key in self._lines() if (who, said) == (str(job_id), word)}

    def _lines(self) -> list[list[str]]:
        return [line.split(" ", 2) for line in self._path.read_text().splitlines()]


@dataclass(frozen=True)
class Life:
    """`body` is the name of the workflow; `live` is what happens from outside; `result` what it returns at the end;
    `once` the words that are noted exactly once, `often` those that a kill may repeat; `booked` the rows that its
    transactions leave. `turns` is by how many seconds `live` turns the clock. `undone`: its steps are undone, in this
    order. `state` is that of the job at the end. `look` checks what is true of this workflow only."""

    body: str
    result: Any
    live: Callable[[Harness, Job[Any]], None]
    turns: float = 0.0
    once: tuple[str, ...] = ()
    often: tuple[str, ...] = ()
    booked: tuple[int, ...] = ()
    paths: tuple[str, ...] = field(default=())
    undone: tuple[str, ...] = ()
    state: str = "succeeded"
    look: Callable[[Harness, Calls, Job[Any]], None] = lambda _harness, _calls, _job: None


def steps_of(harness: Harness, job: Job[Any]) -> dict[str, StepRow]:
    """The steps on record of the current generation."""
    return {row.path: row for row in harness.store.step_list(job.id).rows}


def work(harness: Harness, _job: Job[Any]) -> None:
    harness.work()


def sleeps(seconds: float) -> Callable[[Harness, Job[Any]], None]:
    def live(harness: Harness, _job: Job[Any]) -> None:
        harness.work()
        harness.clock.advance(seconds)
        harness.work()

    return live


def send(job: Job[Any], name: str, payload: Any, dedupe: str) -> None:
    with suppress(JobEnded):
        job.signal(name, payload, dedupe=dedupe)


def sends(name: str, payload: Any) -> Callable[[Harness, Job[Any]], None]:
    def live(harness: Harness, job: Job[Any]) -> None:
        send(job, name, payload, "one")
        harness.work()

    return live


def signals(harness: Harness, job: Job[Any]) -> None:
    """One before the wait, one twice, one in between."""
    send(job, "decision", 1, "first")
    harness.work()
    send(job, "decision", 2, "second")
    send(job, "decision", 2, "second")
    send(job, "decision", 3, "third")
    harness.work()


def late(harness: Harness, job: Job[Any]) -> None:
    """Nobody works for two hours, and the signal comes after the deadline."""
    harness.work()
    harness.clock.advance(7200)
    harness.work()
    send(job, "decision", "late", "late")
    harness.work()


def repair_child(harness: Harness, job: Job[Any]) -> None:
    """A person retries the dead child."""
    harness.work()
    for child_id in harness.store.child_list(job.id, state="quarantined"):
        with suppress(InvalidTransition):
            harness.app.jobs.get(child_id).retry(actor="ann")
    harness.work()


def repair(harness: Harness, job: Job[Any]) -> None:
    """A person mends the code and retries the job."""
    harness.work()
    if job.refresh().state == "quarantined":
        job.retry(actor="ann")
    harness.work()


def undo(harness: Harness, job: Job[Any]) -> None:
    """A person asks for the undo of a workflow that has succeeded."""
    harness.work()
    if job.refresh().state == "succeeded":
        job.undo(actor="ann")
    harness.work()


def look_at_cancelled_tree(harness: Harness, calls: Calls, job: Job[Any]) -> None:
    """All of the tree is cancelled, each workflow has undone its steps in reverse, and the detached child has ended.

    Leaves of a worker that was killed may have ended before its successor came to the cancel."""
    states = {one: harness.app.jobs.get(one).state for one in everything_below(harness, job.id)}
    early = {word for one in states for word in calls.of(one) if word.startswith("ended-")}
    at_rest = {"cancelled": 2 + LEAVES - len(early), "succeeded": 1 + len(early)}
    assert Counter(states.values()) == Counter(at_rest), (states, early)
    for one in (job.id, *states):
        rows = sorted(harness.store.step_list(one).rows, key=lambda row: row.seq)
        undone = [row.path for row in rows if row.kind == "undo"]
        wanted = [f"{row.path}~undo" for row in reversed(rows) if row.undo]
        assert undone == [*wanted, "~undone"] * bool(wanted), (one, undone)


def everything_below(harness: Harness, parent_id: int) -> list[int]:
    """The children of a job, and theirs."""
    found = harness.store.child_list(parent_id)
    return [*found, *(one for child in found for one in everything_below(harness, child))]


LEAVES = 8
CUT = ("a", "b", "alone", "branches", "b~undo", "a~undo", "~undone")
UNDONE = ("reserve~undo", "charge~undo", "book~undo", "~undone")
LAZY = tuple(f"add:{n}" for n in range(5))
LIVES = {
    "a step is repeated under its key": Life("plain", ["a", "b"], work, often=("a", "b"), paths=("a", "b")),
    "a step that is done once, with a probe": Life("probed", "paid", work, once=("charge",)),
    "a value keeps its type": Life("typed", "2027-02-28", sleeps(61), 61, often=("day",)),
    "transactions": Life("booking", 3, work, booked=(1, 2, 3), paths=("one", "two", "three")),
    "signals before, during and after": Life("mailbox", [1, 2, 3], signals),
    "a signal and a time-out": Life("deadline", "late", late, 7200, often=("escalate",)),
    "the first of two": Life("choice", "yes 1", sends("yes", 1)),
    "a child that is repaired": Life("parent", "mended", repair_child),
    "many children, some fail": Life("album", [20, 2], work, paths=("render", "render~join")),
    "children under a limit": Life("gallery", 6, work, paths=("draw", "draw~join")),
    "a tree": Life("tree", 3, work),
    "steps after a repair": Life("order", "shipped", repair, often=("s0", "s1", "s2", "s3", "ship")),
    "steps at the same time": Life("gather", list(range(8)), work, often=tuple(f"g{n}" for n in range(8))),
    "async branches": Life("branches", [["a0", "a1"], ["b0", "b1"]], work, often=("a0", "a1", "b0", "b1")),
    "scopes": Life(
        "scopes", "l1l2r1r2", sleeps(61), 61, often=("l1", "l2", "r1", "r2"), paths=("left", "right", "sleep")
    ),
    "generations": Life("generations", "kept", sends("word", "kept")),
    "a time that the function computes": Life("local", "awake", sleeps(3700), 3700),
    "a step that parks between tries": Life("tries", "parcel", sleeps(200), 200, often=("try",)),
    "an undo of what succeeded": Life(
        "bought", "bought", undo, often=("a", "b", "undo-a", "undo-b"), paths=("a", "s"), undone=("s/b", "a")
    ),
    "a caught error": Life("caught", "told", sleeps(61), 61, often=("declined", "tell")),
    "steps that are undone": Life(
        "undone",
        None,
        sleeps(61),
        61,
        often=("reserve", "charge", "refund", "release"),
        booked=(-1, 1),
        paths=("reserve", "charge", "book", "sleep", *UNDONE),
        state="quarantined",
    ),
    "a step that is done once, and a person decides": Life("asked", "paid", repair, often=("charge",)),
    "lazy steps": Life("lazy", 10, sleeps(61), 61, often=("close",), paths=(*LAZY, "close", "sleep")),
    "a child or a time-out": Life("race", "child rendered", sleeps(61), 61),
    "async waits": Life("agent", ["yes", "done"], sends("decision", "yes"), often=("think",)),
    "a value that cannot be recorded": Life("large", None, work, often=("read",), state="quarantined"),
    "a park that is swallowed": Life("deaf", None, work, state="quarantined"),
    "a tree that is cancelled while it grows": Life(
        "trunk",
        None,
        work,
        often=("a", "b", "undo-a", "undo-b"),
        paths=CUT,
        state="cancelled",
        look=look_at_cancelled_tree,
    ),
}


def declare(harness: Harness, calls: Calls) -> None:
    """Declare all of them."""
    app, note = harness.app, calls.note

    @app.workflow(name="plain", retry=PATIENT)
    def plain(ctx: WorkflowContext) -> list[str]:
        return [ctx.step("a", note, ctx, "a"), ctx.step("b", note, ctx, "b")]

    def was_charged(ctx: Any, _word: str) -> Probed:
        return Probed.done("paid") if calls.of(ctx.job_id)["charge"] else Probed.not_done()

    def charge(ctx: Any, word: str) -> str:
        note(ctx, word)
        return "paid"

    @app.workflow(name="probed", retry=PATIENT)
    def probed(ctx: WorkflowContext) -> str:
        return ctx.step(Step("charge", once=True, probe=was_charged), charge, ctx, "charge")

    def day(ctx: Any) -> date:
        note(ctx, "day")
        return date(2027, 2, 28)

    @app.workflow(name="typed", retry=PATIENT)
    def typed(ctx: WorkflowContext) -> str:
        found = ctx.step("day", day, ctx)
        ctx.sleep(60)
        return found.isoformat()

    def book(tx: Any, job_id: int, amount: int) -> int:
        tx.execute(INSERT, {"job_id": job_id, "amount": amount})
        return amount

    @app.workflow(name="booking", retry=PATIENT)
    def booking(ctx: WorkflowContext) -> int:
        for n, name in enumerate(("one", "two", "three"), 1):
            ctx.transact(name, book, ctx.job_id, n)
        return n

    @app.workflow(name="mailbox", retry=PATIENT)
    def mailbox(ctx: WorkflowContext) -> list[int]:
        return [ctx.wait_for("decision", int) for _ in range(3)]

    @app.workflow(name="deadline", retry=PATIENT)
    def deadline(ctx: WorkflowContext) -> str:
        try:
            return ctx.wait_for("decision", str, timeout=3600)
        except WaitTimeout:
            ctx.step("escalate", note, ctx, "escalate")
        return ctx.wait_for("decision", str)

    @app.workflow(name="choice", retry=PATIENT)
    def choice(ctx: WorkflowContext) -> str:
        found = ctx.first(ctx.on("no", int), ctx.on("yes", int), timeout=10**6)
        return f"{found.wait.name} {found.value}"

    @app.task(name="fragile", retry=PATIENT)
    def fragile(ctx: Context) -> str:
        if not any(line.trigger == "retry" for line in harness.store.transitions("job", str(ctx.job_id))):
            raise Fatal("broken")
        return "mended"

    @app.workflow(name="parent", retry=PATIENT)
    def parent(ctx: WorkflowContext) -> str:
        return ctx.join(ctx.spawn(fragile.call()), wait=True)

    @app.task(name="render", retry=PATIENT)
    def render(ctx: Context, n: int) -> int:
        if n % 11 == 10:
            raise Fatal("no such photo")
        return n

    @app.workflow(name="album", retry=PATIENT)
    def album(ctx: WorkflowContext) -> list[int]:
        done = ctx.spawn_many("render", [render.call(n) for n in range(22)]).join(tolerate="10%")
        assert done.succeeded == len(list(done.results()))
        return [done.succeeded, len(list(done.failures()))]

    @app.task(name="draw", retry=PATIENT)
    def draw(ctx: Context, n: int) -> int:
        parent_id = harness.app.jobs.get(ctx.job_id).row.parent_id
        assert parent_id is not None
        assert len(harness.store.child_list(parent_id, state="running")) <= 2
        return n

    @app.workflow(name="gallery", retry=PATIENT)
    def gallery(ctx: WorkflowContext) -> int:
        return ctx.spawn_many("draw", [draw.call(n) for n in range(6)], limit=2).join().succeeded

    @app.workflow(name="tree", retry=PATIENT)
    def tree(ctx: WorkflowContext, depth: int = 0) -> int:
        return 1 if depth == 2 else 1 + ctx.join(ctx.spawn(tree.call(depth=depth + 1)))

    def ship(ctx: Any) -> str:
        note(ctx, "ship")
        if not any(line.trigger == "retry" for line in harness.store.transitions("job", str(ctx.job_id))):
            raise Fatal("no lorry")
        return "shipped"

    @app.workflow(name="order", retry=PATIENT, undo="on_request")
    def order(ctx: WorkflowContext) -> str:
        for n in range(4):
            ctx.step(Step("s", key=n), note, ctx, f"s{n}")
        return ctx.step("ship", ship, ctx)

    def say(ctx: Any, n: int) -> int:
        note(ctx, f"g{n}")
        if n == 3 and ctx.attempt == 1:
            raise OSError("three")
        return n

    @app.workflow(name="gather", retry=PATIENT)
    def gather(ctx: WorkflowContext) -> list[int]:
        return ctx.gather(*(StepCall(Step("say", key=n), say, ctx, n) for n in range(8)))

    async def anote(ctx: Any, word: str) -> str:
        return note(ctx, word)

    async def sequence(ctx: AsyncWorkflowContext, word: str) -> list[str]:
        return [await ctx.step(f"{word}{n}", anote, ctx, f"{word}{n}") for n in range(2)]

    @app.workflow(name="branches", retry=PATIENT)
    async def branches(ctx: AsyncWorkflowContext) -> list[list[str]]:
        return list(await asyncio.gather(sequence(ctx, "a"), sequence(ctx, "b")))

    def part(ctx: WorkflowContext, word: str) -> str:
        return ctx.step("say", note, ctx, f"{word}1") + ctx.step("say", note, ctx, f"{word}2")

    @app.workflow(name="scopes", retry=PATIENT)
    def scopes(ctx: WorkflowContext) -> str:
        found = ctx.scope("left", part, "l") + ctx.scope("right", part, "r")
        ctx.sleep(60)
        return found

    @app.workflow(name="generations", retry=PATIENT)
    def generations(ctx: WorkflowContext, turn: int = 1) -> str:
        assert ctx.generation == turn
        ctx.step("think", note, ctx, f"think{turn}")
        if turn < 3:
            ctx.continue_as_new(turn=turn + 1)
        return ctx.wait_for("word", str)

    @app.workflow(name="local", retry=PATIENT)
    def local(ctx: WorkflowContext) -> str:
        ctx.sleep_until(datetime(2020, 1, 1, tzinfo=UTC))
        ctx.sleep_until(ctx.now() + timedelta(hours=1))
        return "awake"

    def lorry(ctx: Any) -> str:
        note(ctx, "try")
        if calls.of(ctx.job_id)["try"] < 3:
            raise OSError("no lorry")
        return "parcel"

    @app.workflow(name="tries", retry=PATIENT)
    def tries(ctx: WorkflowContext) -> str:
        return ctx.step(Step("ship", retry=Retry(5, base=30, jitter=0)), lorry, ctx)

    def inner(ctx: WorkflowContext, outer: WorkflowContext) -> None:
        ctx.step(Step("b", undo=lambda _: note(outer, "undo-b")), note, ctx, "b")

    @app.workflow(name="bought", retry=PATIENT)
    def bought(ctx: WorkflowContext) -> str:
        ctx.step(Step("a", undo=lambda _: note(ctx, "undo-a")), note, ctx, "a")
        ctx.scope("s", inner, ctx)
        return "bought"

    def decline(ctx: Any) -> None:
        note(ctx, "declined")
        raise PermissionError("declined")

    @app.workflow(name="caught", retry=PATIENT)
    def caught(ctx: WorkflowContext) -> str:
        try:
            ctx.step("charge", decline, ctx)
        except PermissionError:
            ctx.step("tell", note, ctx, "tell")
        ctx.sleep(60)
        return "told"

    @app.workflow(name="undone", retry=PATIENT)
    def undone(ctx: WorkflowContext) -> None:
        ctx.step(Step("reserve", undo=lambda _: note(ctx, "release")), note, ctx, "reserve")
        ctx.step(Step("charge", undo=lambda _: note(ctx, "refund"), retry=PATIENT), note, ctx, "charge")
        ctx.transact(Step("book", undo=lambda _: unbook(ctx)), book, ctx.job_id, 1)
        ctx.sleep(60)
        raise Fatal("no lorry")

    def unbook(ctx: WorkflowContext) -> None:
        """Take back what was booked, once: its key is that of the step."""
        with closing(plain_connection(harness.url)) as connection:
            known = f"SELECT 1 FROM booked WHERE job_id = {ctx.job_id} AND amount = -1"
            if connection.execute(known).fetchone() is None:
                connection.execute(f"INSERT INTO booked (job_id, amount) VALUES ({ctx.job_id}, -1)")
            connection.commit()

    @app.workflow(name="asked", retry=PATIENT, undo="on_request")
    def asked(ctx: WorkflowContext) -> str:
        return ctx.step(Step("charge", once=True), charge, ctx, "charge")

    @app.workflow(name="lazy", retry=PATIENT)
    def lazy(ctx: WorkflowContext) -> int:
        total = sum(ctx.step(Step("add", key=n, lazy=True), int, n) for n in range(5))
        ctx.step("close", note, ctx, "close")
        ctx.sleep(60)
        return total

    @app.task(name="slow", retry=PATIENT)
    def slow(ctx: Context) -> str:
        return "rendered"

    @app.workflow(name="race", retry=PATIENT)
    def race(ctx: WorkflowContext) -> str:
        child = ctx.spawn(slow.call())
        found = ctx.first(ctx.on("no", str), ctx.ended(child), timeout=10**6)
        ctx.sleep(60)
        return f"child {found.value}"

    @app.workflow(name="agent", retry=PATIENT)
    async def agent(ctx: AsyncWorkflowContext) -> list[str]:
        async def decide() -> str:
            return await ctx.wait_for("decision", str)

        async def think() -> str:
            await ctx.step("think", anote, ctx, "think")
            child = await ctx.spawn(slow.call())
            await ctx.join(child)
            return "done"

        return list(await asyncio.gather(decide(), think()))

    @app.workflow(name="large", retry=PATIENT)
    def large(ctx: WorkflowContext) -> None:
        ctx.step("read", lambda: note(ctx, "read") * 100_000)

    @app.workflow(name="deaf", retry=PATIENT)
    def deaf(ctx: WorkflowContext) -> str:
        with suppress(BaseException):
            ctx.wait_for("never")
        return "swallowed"

    def reversible(ctx: WorkflowContext) -> None:
        for word in ("a", "b"):
            ctx.step(Step(word, undo=lambda word: note(ctx, f"undo-{word}")), note, ctx, word)

    @app.workflow(name="trunk", retry=PATIENT)
    def trunk(ctx: WorkflowContext) -> None:
        reversible(ctx)
        ctx.spawn(slow.call(), name="alone", detached=True)
        ctx.spawn_many("branches", [bough.call(root_id=ctx.job_id, n=n) for n in range(2)]).join()

    @app.workflow(name="bough", retry=PATIENT)
    def bough(ctx: WorkflowContext, root_id: int, n: int) -> None:
        reversible(ctx)
        if n == 1:
            ctx.spawn_many("leaves", [slow.call() for _ in range(LEAVES)])
            ctx.step("cut", cut, ctx, root_id)
            ctx.spawn(slow.call(), name="late")
        ctx.wait_for("never")

    def cut(ctx: WorkflowContext, root_id: int) -> None:
        """A person cancels the whole tree, and workers pass the cancel on, a few jobs at a time."""
        root = harness.app.jobs.get(root_id)
        if root.row.cancel_requested_at is None:
            for leaf in harness.store.child_list(ctx.job_id):
                if harness.app.jobs.get(leaf).state == "succeeded":
                    calls.note(ctx, f"ended-{leaf}")
        root.cancel(actor="ann")
        while harness.store.tree_cancel_step(2):
            pass
