"""Workflows over HTTP: looking at them, and sending signals."""

from __future__ import annotations

from typing import Any

import pytest

from detent import Step, WorkflowContext
from tests.http.conftest import World

API = "/api/v1/workflows"


@pytest.fixture
def parked(world: World) -> str:
    """A workflow that waits for a decision; its id."""

    def expense(ctx: WorkflowContext, report: int) -> Any:
        ctx.step("ask", lambda: {"report": report})
        ctx.step(Step("password", secret=True), lambda: "hunter2")
        ctx.set_status(waits_for="the boss")
        return ctx.wait_for("decision", timeout=3600)

    world.app.workflow(name="expense")(expense)
    made: str = world.post("jobs", task="expense", payload={"report": 7}, key="report-7")["id"]
    world.harness.work()
    return made


def test_a_parked_workflow(world: World, parked: str) -> None:
    """What a person asks about it; the value of a secret step is in no answer."""
    found = world.get(f"workflows/{parked}")
    assert (found["id"], found["state"], found["parked_for"]) == (parked, "parked", "signal decision")
    assert (found["status"], found["unread"], found["version"]) == ({"waits_for": "the boss"}, 0, 1)
    assert [one["id"] for one in world.get("workflows", task="expense", state="parked")["items"]] == [parked]
    assert world.get("workflows", version=2)["items"] == []
    (wait,) = world.get("workflows/waits", signal="decision")["items"]
    assert (wait["job_id"], wait["kind"], wait["name"]) == (parked, "signal", "decision")
    assert world.get("workflows/waits", job_id=parked)["items"] == [wait]
    assert world.get("workflows/waits", job_id=str(int(parked) + 1))["items"] == []
    assert world.get("workflows/versions")["items"] == [{"task": "expense", "version": 1, "workflows": 1}]
    steps = world.get(f"workflows/{parked}/steps")["items"]
    assert [(one["path"], one["value"]) for one in steps[:2]] == [("ask", {"report": 7}), ("password", "[redacted]")]
    tree = world.get(f"workflows/{parked}/tree")
    assert [(one["id"], one["depth"], one["state"]) for one in tree["nodes"]] == [(parked, 0, "parked")]
    assert "for signal 'decision', until" in world.get(f"jobs/{parked}/why")["why"]
    for path in (f"{API}/{parked}", f"{API}/{parked}/steps", f"{API}/{parked}/tree", f"/api/v1/jobs/{parked}/details"):
        assert "hunter2" not in world.http.get(path).text


def test_a_signal_by_id(world: World, parked: str) -> None:
    body = {"name": "decision", "payload": {"approved": True}, "dedupe": "mail-1", "reason": "she said so"}
    for created in (True, False):
        answer = world.post(f"workflows/{parked}/signal", **body)
        assert (answer["job_id"], answer["created"]) == (parked, created)
    (kept,) = world.app.store.signal_list(int(parked))
    assert (kept.actor, kept.reason) == ("ana", "she said so")
    world.harness.work()
    assert world.get(f"jobs/{parked}")["result"] == {"approved": True}
    late = world.http.post(f"{API}/{parked}/signal", json={"name": "decision"})
    assert (late.status_code, late.json()["title"]) == (409, "JobEnded")


def test_a_signal_by_key_starts_what_is_not_there(world: World, parked: str) -> None:
    assert world.post("workflows/signal", key="report-7", name="decision", payload="yes")["job_id"] == parked
    assert world.http.post(f"{API}/signal", json={"key": "report-8", "name": "decision"}).status_code == 404
    start = {"task": "expense", "payload": {"report": 8}}
    made = world.post("workflows/signal", key="report-8", name="decision", payload=1, start=start)["job_id"]
    assert world.post("workflows/signal", key="report-8", name="decision", start=start)["job_id"] == made
    world.harness.work()
    assert world.get(f"jobs/{made}")["result"] == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("{id}/signal", {}, 422),
        ("{id}/signal", {"name": "a/b"}, 422),
        ("{id}/signal", {"name": "decision", "payload": "x" * 2_000_000}, 422),
        ("999/signal", {"name": "decision"}, 404),
        ("signal", {"key": "k", "name": "n", "start": {"task": "add", "payload": {"a": 1, "b": 1}}}, 422),
        ("signal", {"key": "k", "name": "n", "start": {"task": "none"}}, 404),
    ],
)
def test_what_is_refused(world: World, parked: str, path: str, body: dict[str, Any], status: int) -> None:
    answer = world.http.post(f"{API}/{path.format(id=parked)}", json=body)
    assert answer.status_code == status, answer.text
    assert world.app.store.signal_list(int(parked)) == []


def test_a_stream_is_read_page_by_page(world: World) -> None:
    @world.app.workflow(name="agent")
    def agent(ctx: WorkflowContext) -> None:
        for n in range(5):
            ctx.event("between")
            ctx.stream("answer").write(f"{n}")
            ctx.stream("plan").write("x")

    job = world.app.enqueue(agent.call())
    world.harness.work()
    first = world.get(f"workflows/{job.id}/stream", name="answer", limit=2)
    assert [(one["text"], one["attempt"], one["stream"]) for one in first["items"]] == [
        ("0", 1, "answer"),
        ("1", 1, "answer"),
    ]
    rest = world.get(f"workflows/{job.id}/stream", name="answer", after=first["next"])
    assert ([one["text"] for one in rest["items"]], rest["next"]) == (["2", "3", "4"], None)
    assert len(world.get(f"workflows/{job.id}/stream")["items"]) == 10
    assert world.http.get("/api/v1/workflows/17/stream").status_code == 404


def test_rewind_and_fork(world: World, parked: str) -> None:
    """F17, F28: first the list of what would be repeated; then each. A secret is replaced and not shown."""
    listed = world.get(f"workflows/{parked}/steps", since="password")["items"]
    assert [(one["path"], one["value"]) for one in listed][:1] == [("password", "[redacted]")]
    body = {"at": "signal decision", "replace": {"password": "hunter2 too"}, "reason": "what if"}
    refused = world.http.post(f"{API}/{parked}/fork", json=body)
    assert (refused.status_code, refused.json()["title"]) == (409, "CopyRefused")
    answer = world.http.post(f"{API}/{parked}/fork", json=body | {"at": None})
    assert answer.status_code == 200, answer.text
    fork = answer.json()
    assert (fork["state"], fork["metadata"]) == ("pending", {"forked_from": parked})
    for path in (f"{API}/{fork['id']}/steps", f"/api/v1/jobs/{fork['id']}/history"):
        assert "hunter2" not in world.http.get(path).text
    assert "hunter2" not in answer.text + refused.text
    world.harness.work()
    world.post(f"workflows/{fork['id']}/signal", name="decision", payload=1)
    world.post(f"workflows/{parked}/rewind", to="password", reason="again")
    world.harness.work()
    assert world.get(f"jobs/{fork['id']}")["result"] == 1
    found = world.get(f"workflows/{parked}")
    assert (found["state"], found["generation"], found["steps"]) == ("parked", 2, 3)
    lines = world.get(f"jobs/{parked}/history")["items"]
    assert [one["actor"] for one in lines if one["trigger"] == "rewind"] == ["ana"]
    assert world.http.post(f"{API}/{parked}/rewind", json={}).status_code == 422
    assert world.http.post(f"{API}/999/fork", json={}).status_code == 404
