"""`app.workflows`, and what the handle of a job tells about its workflow."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from detent import Detent, Job, Local, Retry, Step, WorkflowContext
from detent.errors import InvalidInput, InvalidPayload, JobEnded, KeyConflict, NotFound, WrongPlace
from detent.testing.harness import Harness


@pytest.fixture
def harness(store_url: str) -> Iterator[Harness]:
    with closing(Harness(store_url)) as made:
        yield made


@pytest.fixture
def app(harness: Harness) -> Detent:
    app = harness.app

    @app.workflow(name="expense", version=2, supports=(1, 2))
    def expense(ctx: WorkflowContext, report: int) -> str:
        ctx.step("ask", lambda: report)
        ctx.step(Step("key", secret=True), lambda: "hunter2")
        ctx.set_status(waits_for="the boss")
        return str(ctx.wait_for("decision", str, timeout=timedelta(days=3)))

    @app.task(name="render", retry=Retry(0))
    def render(ctx: Any, photo: int) -> int:
        if photo == 13:
            raise ValueError("a bad photo")
        return photo

    @app.workflow(name="album")
    def album(ctx: WorkflowContext, photos: list[int]) -> int:
        return ctx.spawn_many("render", [render.call(photo=one) for one in photos]).join(wait=True).succeeded

    @app.workflow(name="cover")
    def cover(ctx: WorkflowContext, photo: int) -> int:
        return ctx.join(ctx.spawn(render.call(photo=photo)), wait=True)

    @app.workflow(name="nap")
    def nap(ctx: WorkflowContext) -> None:
        ctx.sleep_until(Local("2027-01-01 12:00", "UTC"))

    return app


def enqueue(app: Detent, task: str, /, key: str | None = None, **payload: Any) -> Job[Any]:
    call = app.find_task(task).call(**payload)
    return app.enqueue(call) if key is None else app.enqueue(call, key=key)


def test_a_parked_workflow_is_listed_with_what_it_waits_for(app: Detent, harness: Harness) -> None:
    job, nap = enqueue(app, "expense", report=7), enqueue(app, "nap")
    plain = enqueue(app, "render", photo=1)
    harness.work()
    found = app.workflows.get(job.id)
    assert (found.state, found.version, found.steps, found.parked_for) == ("parked", 2, 3, "signal decision")
    assert (found.unread, found.due_at) == (0, harness.clock.now() + timedelta(days=3))
    assert [one.id for one in app.workflows.list()] == [nap.id, job.id]
    assert [one.id for one in app.workflows.list(task="expense", state="parked", version=2)] == [job.id]
    assert app.workflows.list(version=3) == app.workflows.list(tenant="acme") == []
    assert app.workflows.list(state="failed") == []
    assert [(one.job_id, one.name) for one in app.workflows.waits(signal="decision")] == [(job.id, "decision")]
    assert [one.kind for one in app.workflows.waits()] == ["signal", "time"]
    assert [(one.task, one.version, one.workflows) for one in app.workflows.versions()] == [
        ("expense", 2, 1),
        ("nap", 1, 1),
    ]
    with pytest.raises(NotFound):
        app.workflows.get(plain.id)
    with pytest.raises(InvalidInput):
        app.workflows.list(state="asleep")


def test_lists_come_in_pages(app: Detent, harness: Harness) -> None:
    made = [enqueue(app, "expense", report=n).id for n in range(5)]
    harness.work()
    first = app.workflows.list(limit=3)
    assert [one.id for one in first] == made[:1:-1]
    rest = app.workflows.list(limit=3, after=first.next)
    assert ([one.id for one in rest], rest.next) == (made[1::-1], None)
    waits = app.workflows.waits(signal="decision", limit=4)
    assert [one.job_id for one in app.workflows.waits(limit=4, after=waits.next)] == made[4:]
    steps = app.jobs.get(made[0]).steps(limit=1)
    assert [one.path for one in app.jobs.get(made[0]).steps(limit=1, after=steps.next)] == ["key"]
    for wrong in ("seven", "7"):
        with pytest.raises(InvalidInput):
            app.workflows.waits(after=wrong)


def test_a_signal_wakes_the_workflow_and_is_on_record(app: Detent, harness: Harness) -> None:
    job = enqueue(app, "expense", report=7)
    harness.work()
    sent = job.signal("decision", "yes", dedupe="mail-1", actor="ana", reason="she said so")
    assert (sent.job_id, sent.created) == (job.id, True)
    assert job.signal("decision", "yes", dedupe="mail-1").created is False
    with pytest.raises(KeyConflict):
        job.signal("decision", "no", dedupe="mail-1")
    harness.work()
    assert job.refresh().result == "yes"
    (kept,) = app.store.signal_list(job.id)
    assert (kept.actor, kept.reason, kept.path) == ("ana", "she said so", "signal decision")
    with pytest.raises(JobEnded, match="with another key"):
        job.signal("decision", "again")


@pytest.mark.parametrize("by", ["id", "handle", "key"])
def test_a_signal_by_id_by_handle_and_by_key(app: Detent, harness: Harness, by: str) -> None:
    job = enqueue(app, "expense", report=7, key="report-7")
    target: dict[str, Any] = {"id": job.id, "handle": job, "key": "report-7"}
    app.workflows.signal(target[by], "decision", "yes")
    harness.work()
    assert job.refresh().result == "yes"


def test_a_signal_that_starts_its_workflow(app: Detent, harness: Harness) -> None:
    """Both signals go to one workflow, also if the second sender would have started it with other arguments."""
    expense = app.find_task("expense")
    one = app.workflows.signal("report-8", "decision", "yes", start=expense.call(report=8))
    two = app.workflows.signal("report-8", "decision", "no", start=expense.call(report=9))
    assert one.job_id == two.job_id
    harness.work()
    job = app.jobs.get(one.job_id)
    assert (job.result, job.payload) == ("yes", {"report": 8})
    with pytest.raises(JobEnded):
        app.workflows.signal("report-8", "decision", "yes", start=expense.call(report=8))
    enqueue(app, "render", photo=1, key="photo-1")
    with pytest.raises(KeyConflict):
        app.workflows.signal("photo-1", "decision", start=expense.call(report=1))


def test_a_refused_signal_starts_nothing(app: Detent) -> None:
    expense = app.find_task("expense")
    with pytest.raises(InvalidPayload):
        app.workflows.signal("report-8", "decision", float("nan"), start=expense.call(report=8))
    with pytest.raises(InvalidInput):
        app.workflows.signal("report-8", "a/b", start=expense.call(report=8))
    assert app.jobs.list() == []


def test_signals_that_are_refused(app: Detent, harness: Harness) -> None:
    job, plain = enqueue(app, "expense", report=7), enqueue(app, "render", photo=1)
    wrong: list[tuple[Any, str, Any, Any]] = [
        (10**9, "decision", None, NotFound),
        ("no such key", "decision", None, NotFound),
        (plain.id, "decision", None, InvalidInput),
        (job.id, "", None, InvalidInput),
        (job.id, "x" * 201, None, InvalidInput),
        (job.id, "decision", "x" * 2_000_000, InvalidPayload),
        (job.id, "decision", b"bytes", InvalidPayload),
        (job.id, "decision", "\ud800", InvalidPayload),
    ]
    for target, name, payload, refusal in wrong:
        with pytest.raises(refusal):
            app.workflows.signal(target, name, payload)
    with pytest.raises(InvalidInput):
        app.workflows.signal(job.id, "decision", start=app.find_task("expense").call(report=1))
    with pytest.raises(InvalidInput):
        app.workflows.signal("key", "decision", start=app.find_task("render").call(photo=1))
    assert app.workflows.list() == []
    assert app.store.signal_list(job.id) == []


def test_steps_in_their_order_without_secrets(app: Detent, harness: Harness) -> None:
    """F28: in lists of steps a secret value is redacted."""
    job = enqueue(app, "expense", report=7)
    before = harness.clock.now() - timedelta(seconds=1)
    harness.work()
    harness.clock.advance(60)
    job.signal("decision", "yes")
    at = harness.clock.now() - timedelta(seconds=1)
    harness.work()
    assert [(one.path, one.kind, one.attempt) for one in job.steps()] == [
        ("ask", "call", 1),
        ("key", "call", 1),
        ("signal decision~deadline", "deadline", 1),
        ("signal decision", "signal", 2),
    ]
    assert [one.value for one in job.steps()][:2] == ["7", '"[redacted]"']
    assert len(job.steps(at=at)) == 3
    assert job.steps(at=before) == job.steps(generation=2) == []


def test_status_is_part_of_the_snapshot(app: Detent, harness: Harness) -> None:
    job = enqueue(app, "expense", report=7)
    with pytest.raises(WrongPlace):
        _ = job.status
    harness.work()
    assert job.refresh().status == app.jobs.get(job.id).status == {"waits_for": "the boss"}
    (listed,) = app.jobs.list()
    with pytest.raises(WrongPlace, match="from a list"):
        _ = listed.status
    assert app.workflows.get(job.id).status == '{"waits_for":"the boss"}'
    plain = enqueue(app, "render", photo=1)
    assert plain.refresh().status == {}


def test_the_tree_of_a_workflow(app: Detent, harness: Harness) -> None:
    job = enqueue(app, "album", photos=[1, 13, 2])
    harness.work()
    tree = job.tree()
    assert [(one.depth, one.task, one.path, one.state) for one in tree.nodes] == [
        (0, "album", None, "parked"),
        (1, "render", "render", "succeeded"),
        (1, "render", "render", "quarantined"),
        (1, "render", "render", "succeeded"),
    ]
    assert tree.complete
    assert tree.root_id == job.id
    assert [(one.succeeded, one.dead, one.total) for one in tree.groups] == [(2, 1, 3)]


def test_why_names_the_signal_the_time_and_the_child(app: Detent, harness: Harness) -> None:
    expense, nap = enqueue(app, "expense", report=7), enqueue(app, "nap")
    album, cover = enqueue(app, "album", photos=[1, 13, 2]), enqueue(app, "cover", photo=13)
    harness.work()
    since, until = (f"{when:%A %Y-%m-%d %H:%M} UTC" for when in (harness.clock.now(), expense.refresh().due_at))
    why = f"it has been parked since {since} for signal 'decision', until {until}"
    assert expense.why() == f"{why}; 0 signals in the mailbox"
    expense.signal("comment", "hm")
    assert expense.why() == f"{why}; 1 signal in the mailbox ('comment')"
    assert nap.why() == f"it sleeps until Friday 2027-01-01 12:00 UTC, parked since {since}"
    (dead,) = app.dead.list(task="render")[-1:]
    assert f"for 1 of 3 children of step 'render', of which {dead.id} is quarantined, without a" in album.why()
    (child,) = (one.id for one in cover.tree().nodes[1:])
    assert f"for child {child} (render), which is quarantined: ValueError: a bad photo" in cover.why()


def test_why_says_what_the_child_of_a_workflow_waits_for_itself(app: Detent, harness: Harness) -> None:
    """Not only that it is pending."""

    @app.workflow(name="trip")
    def trip(ctx: WorkflowContext) -> object:
        return ctx.join(ctx.spawn(app.find_task("expense").call(report=7)))

    job = trip.enqueue()
    harness.work()
    (child,) = (one.id for one in job.tree().nodes[1:])
    assert f"for child {child} (expense), which is parked for signal decision, without a time limit" in job.why()


def test_why_after_an_undo(app: Detent, harness: Harness) -> None:
    """The steps of the undo were counted as progress, and a dead job seemed to have attempts left."""

    @app.workflow(name="order", retry=Retry(1, base=1))
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("charge", undo=lambda _: None), lambda: 1)
        raise OSError("no lorry")

    job = order.enqueue()
    harness.work(skip=True)
    at = f"{harness.clock.now():%A %Y-%m-%d %H:%M} UTC"
    assert job.why() == (f"it is dead (quarantined) after attempt 2: OSError: no lorry; its steps were undone on {at}")


def test_a_graph_takes_no_signals(app: Detent, harness: Harness) -> None:
    """Nothing would ever read them."""
    graph = app.graph("nightly")
    graph.add(app.find_task("render").call(photo=1))
    job = graph.start()
    for handle in (job, app.jobs.get(job.id)):
        with pytest.raises(InvalidInput, match="which is not a workflow"):
            handle.refresh().signal("go")
    with pytest.raises(InvalidInput, match="which is not a workflow"):
        app.workflows.signal(job.id, "go")


def test_the_tree_of_a_graph_names_its_nodes(app: Detent, harness: Harness) -> None:
    """Several of them may have the same task."""
    render = app.find_task("render")
    graph = app.graph("nightly")
    first = graph.add(render.call(photo=1), name="left")
    graph.add(render.call(photo=2), after=[first], name="right")
    job = graph.start()
    assert [(one.depth, one.task, one.path, one.state) for one in job.tree().nodes] == [
        (0, "detent.graph", None, "pending"),
        (1, "render", "left", "pending"),
        (1, "render", "right", "pending"),
    ]


def test_the_async_twin(app: Detent, harness: Harness) -> None:
    job = enqueue(app, "expense", report=7)
    harness.work()

    async def story() -> None:
        found = await app.aio.jobs.get(job.id)
        assert found.status == {"waits_for": "the boss"}
        assert [one.id for one in await app.aio.workflows.list()] == [job.id]
        await app.aio.workflows.signal(found, "comment", 1)
        await found.signal("decision", "yes")
        assert len(await found.steps()) == 3
        assert len((await found.tree()).nodes) == 1

    asyncio.run(story())
    harness.work()
    assert job.refresh().result == "yes"
