"""What triggers runs: pushes and schedules."""

from __future__ import annotations

from typing import Any

import pytest

from detent.declare.context import Context
from detent.errors import InvalidInput
from detent.ops.github_push import Push, queue_push, read_push
from detent.testing.harness import Harness

SHA = "9" * 40


def body(**overrides: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "ref": "refs/heads/main",
        "after": SHA,
        "repository": {"full_name": "acme/site"},
        "pusher": {"name": "ana"},
    }
    return whole | overrides


def test_a_push_is_read() -> None:
    """O3"""
    push = read_push("d-1", body())
    assert push is not None
    assert (push.delivery_id, push.repository, push.ref, push.sha) == ("d-1", "acme/site", "refs/heads/main", SHA)
    assert push.branch == "main"
    assert push.metadata == {"trigger": "webhook", "delivery_id": "d-1", "author": "ana"}
    tag = read_push("d-2", body(ref="refs/tags/v1", pusher=None))
    assert tag is not None
    assert tag.branch is None


@pytest.mark.parametrize("gone", [{"deleted": True}, {"after": "0" * 40}])
def test_a_ref_that_was_deleted_runs_nothing(gone: dict[str, Any]) -> None:
    assert read_push("d-1", body(**gone)) is None


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (body(ref=7), "body.ref"),
        (body(ref="x" * 1001), "body.ref"),
        (body(after=None), "body.after"),
        (body(repository=[]), "body.repository"),
        (body(repository={}), "body.repository.full_name"),
        (body(ref="a\x00b"), "body.ref"),
        ([], "body"),
        (None, "body"),
    ],
)
def test_what_is_no_push_is_refused(wrong: Any, named: str) -> None:
    """S3: the message names what is wrong with it."""
    with pytest.raises(InvalidInput) as refusal:
        read_push("d-1", wrong)
    assert refusal.value.field.startswith(named)


def test_a_delivery_queues_one_run_however_often_it_comes(detent: Harness) -> None:
    """O3, J3: the delivery is the key, for each environment."""
    push = Push("d-7", "acme/site", "refs/heads/it's $(x)", SHA, {"trigger": "webhook"})
    first = queue_push(detent.app.ops, push, env="staging")
    again = queue_push(detent.app.ops, push, env="staging")
    assert (again.id, first.created, again.created) == (first.id, True, False)
    other = queue_push(detent.app.ops, push, env="production", project_id="site")
    assert (other.project_id, other.git_ref, other.git_sha) == ("site", push.ref, SHA)
    assert [run.id for run in detent.app.ops.list()] == [other.id, first.id]


def test_a_schedule_queues_a_run_at_each_tick_once(detent: Harness) -> None:
    """O3, J11: a task that queues it under its effect's key, so that its own retry queues no second one."""
    app = detent.app

    @app.task(name="nightly")
    def nightly(ctx: Context) -> str:
        run = app.ops.queue("shop", "production", git_ref="main", metadata={"trigger": "cron"}, key=ctx.effect_key)
        return run.id

    job = nightly.enqueue()
    detent.crash(job, "returned")
    detent.work()
    assert len(app.ops.list()) == 1
    detent.clock.advance(31)
    detent.work()
    (run,) = app.ops.list()
    assert job.refresh().result == run.id
    assert run.metadata == {"trigger": "cron"}
