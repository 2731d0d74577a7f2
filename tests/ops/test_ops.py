"""`app.ops`: what people and scripts do with runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from detent.app.detent import Detent
from detent.declare.context import Context
from detent.errors import InvalidInput, InvalidTransition, KeyConflict, LeaseLost, NotFound
from detent.ops.ops_run import OpsRun
from detent.testing.harness import Harness


@pytest.fixture
def detent_database_url(store_url: str) -> str:
    """Both databases in turn."""
    return store_url


@pytest.fixture
def app(detent: Harness) -> Detent:
    return detent.app


def claimed(app: Detent, **overrides: Any) -> OpsRun:
    app.ops.queue("shop", "staging", **overrides)
    run = app.ops.claim("worker-001")
    assert run is not None
    return run


def test_a_life_of_a_run(app: Detent) -> None:
    """O1, O2: metadata of the end is merged with what it was queued with; the later word counts."""
    queued = app.ops.queue("shop", "staging", git_sha="abc", git_ref="main", metadata={"author": "ana", "step": "none"})
    assert (queued.state, queued.created, queued.token, queued.rests) == ("queued", True, None, False)
    run = app.ops.claim("worker-001")
    assert run is not None
    assert (run.id, run.state, run.claimed_by, run.env_id) == (queued.id, "claimed", "worker-001", queued.env_id)
    assert app.ops.event(run, "Starting build", payload={"step": "build"}) == f"{run.id}/2"
    assert app.ops.get(run).state == "running"
    ended = app.ops.finish(run, "success", metadata={"exit_code": 0, "step": "deploy"})
    assert ended.metadata == {"author": "ana", "step": "deploy", "exit_code": 0}
    assert (ended.state, ended.rests) == ("success", True)
    assert app.ops.finish(run, "success", metadata={"exit_code": 1}) == ended
    with pytest.raises(InvalidTransition, match="cannot go from success to failed; allowed from success: nothing"):
        app.ops.finish(run, "failed")
    assert [event.message for event in app.ops.follow(run)] == ["Run claimed by worker", "Starting build"]
    assert app.ops.claim("worker-001") is None


def test_a_stopped_run_is_no_longer_its_workers(app: Detent) -> None:
    """J8, C4: the worker hears of it with its next line, and cannot finish it otherwise."""
    run = claimed(app)
    app.ops.event(run, "building")
    stopped = app.ops.cancel(run.id, actor="bob", reason="wrong branch")
    assert stopped.metadata == {"cancelled_by": "bob", "reason": "wrong branch"}
    with pytest.raises(LeaseLost, match="the job is cancelled"):
        app.ops.event(run, "still building")
    with pytest.raises(InvalidTransition):
        app.ops.finish(run, "success")


def test_a_stale_run_says_who_had_it(app: Detent, detent: Harness) -> None:
    """O4: cancelled by the system, why, which worker had it and since when."""
    run = claimed(app, metadata={"author": "ana"})
    assert run.started_at is not None
    detent.clock.advance(300)
    detent.work()
    assert app.ops.get(run).metadata == {
        "author": "ana",
        "cancelled_by": "system",
        "reason": "Stale run (claimed for >5 minutes without events)",
        "original_worker": "worker-001",
        "claimed_at": run.started_at.isoformat(),
    }


def test_a_run_that_fell_silent_has_failed(app: Detent, detent: Harness) -> None:
    """R1: a crash after the first line is found too."""
    run = claimed(app)
    app.ops.event(run, "building")
    detent.clock.advance(600)
    detent.work()
    failed = app.ops.get(run)
    assert (failed.state, failed.metadata["original_worker"]) == ("failed", "worker-001")
    assert failed.metadata["error"] == "No sign of life for 10 minutes"


def test_what_a_worker_says_of_its_cancel_is_on_record(app: Detent) -> None:
    """O2, E4"""
    run = claimed(app)
    ended = app.ops.finish(run, "cancelled", metadata={"cancelled_by": "user-456", "reason": "Manual stop"})
    assert ended.metadata == {"cancelled_by": "user-456", "reason": "Manual stop"}
    moves = app.jobs.get(int(run.id.removeprefix("run-"))).history()
    asked = [(move.actor, move.reason) for move in moves if move.trigger == "request_cancel"]
    assert asked == [("user-456", "Manual stop")]


def test_a_key_answers_its_run_and_nothing_else(app: Detent) -> None:
    """J3"""
    run = app.ops.queue("shop", "staging", git_sha="abc", key="k")
    assert app.ops.queue("shop", "staging", git_sha="abc", key="k", metadata={"again": True}).id == run.id
    with pytest.raises(KeyConflict):
        app.ops.queue("shop", "staging", git_sha="abd", key="k")


def test_no_application_may_take_the_task_of_runs(app: Detent) -> None:
    def mine(ctx: Context) -> None: ...

    with pytest.raises(InvalidInput, match="this one is reserved for ops runs"):
        app.task(name="ops.run")(mine)


def test_why_says_whom_a_run_waits_for(app: Detent) -> None:
    """J13"""
    run = app.ops.queue("shop", "staging")
    assert app.jobs.get(run.id.removeprefix("run-")).why().endswith("waits for an ops worker that claims it")


WRONG: dict[str, Callable[[Detent], object]] = {
    "project_id": lambda app: app.ops.queue("", "staging"),
    "env": lambda app: app.ops.queue("shop", "x" * 201),
    "git_ref": lambda app: app.ops.queue("shop", "staging", git_ref="x" * 1001),
    "git_sha": lambda app: app.ops.queue("shop", "staging", git_sha="a\0b"),
    "metadata.n": lambda app: app.ops.queue("shop", "staging", metadata={"n": float("nan")}),
    "metadata": lambda app: app.ops.queue("shop", "staging", metadata={"big": "x" * 20_000}),
    "key": lambda app: app.ops.queue("shop", "staging", key="x" * 513),
    "worker": lambda app: app.ops.claim(""),
    "run": lambda app: app.ops.get("17; DROP TABLE job"),
    "token": lambda app: app.ops.event("run-1", "hello", token="mine"),
    "message": lambda app: app.ops.event("run-1", "a\ud800b"),
    "payload": lambda app: app.ops.event("run-1", "hello", payload={"big": "x" * 70_000}),
    "state": lambda app: app.ops.finish("run-1", "done"),  # type: ignore[arg-type]
    "limit": lambda app: app.ops.list(limit=0),
    "actor": lambda app: app.ops.cancel("run-1", actor=""),
}


@pytest.mark.parametrize("field", WRONG)
def test_bad_input_is_named_and_nothing_is_done(app: Detent, field: str) -> None:
    """S3"""
    with pytest.raises(InvalidInput) as refusal:
        WRONG[field](app)
    assert refusal.value.field == field
    assert app.ops.list() == []


def test_what_is_not_there_is_not_found(app: Detent) -> None:
    for call in (
        lambda: app.ops.get("run-99"),
        lambda: app.ops.event("run-99", "hello"),
        lambda: app.ops.finish("run-99", "success"),
        lambda: app.ops.cancel("run-99", actor="ana"),
        lambda: app.ops.follow("run-99", wait=False),
    ):
        with pytest.raises(NotFound, match="there is no ops run run-99"):
            call()
