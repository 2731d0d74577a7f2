"""Requests that are refused: a problem with a stable code and a sentence that helps, and nothing has changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.conftest import World

REFUSED: list[tuple[str, str, Any, int, str, str]] = [
    (
        "POST",
        "jobs",
        {"task": "add", "payload": {"a": "x", "b": 1}},
        422,
        "DT022",
        "add.a: found `str`; allowed: `int`",
    ),
    ("POST", "jobs", {"task": "nothing"}, 404, "DT009", "nothing"),
    ("POST", "jobs", {}, 422, "DT020", "task: found nothing; allowed: a value"),
    ("POST", "jobs", {"tak": "add"}, 422, "DT020", "tak: found an unknown argument; allowed: task, payload"),
    ("POST", "jobs", [1], 422, "DT020", "body: found a JSON list; allowed: a JSON object"),
    ("GET", "jobs?limit=ten", None, 422, "DT020", "limit: found `str`; allowed: `int`"),
    ("GET", "jobs?limit=0", None, 422, "DT020", "a whole number from 1 to 10000"),
    ("GET", "jobs?after=zzz", None, 422, "DT020", "after"),
    ("GET", "jobs?colour=red", None, 422, "DT020", "colour: found an unknown argument"),
    (
        "GET",
        "jobs?since=yesterday",
        None,
        422,
        "DT020",
        "since: found text that is not a time; allowed: a time such as",
    ),
    ("GET", "jobs?state=new", None, 422, "DT020", "state"),
    ("GET", "jobs?state=pending&state=running", None, 422, "DT020", "state: found 2 values; allowed: one value"),
    ("GET", "jobs?metadata=x", None, 422, "DT020", "metadata: found x; allowed: a JSON object"),
    ("GET", "jobs/17", None, 404, "DT008", "no job 17"),
    ("GET", "jobs/one", None, 422, "DT020", "one"),
    ("GET", "jobs/1/events?after=-1", None, 404, "DT008", "no job 1"),
    ("GET", f"jobs/{2**63}", None, 422, "DT020", "job id: found '9223372036854775808'; allowed: a whole number below"),
    ("GET", f"jobs?after={2**63}", None, 422, "DT020", "after"),
    ("GET", f"runs?after={2**63}", None, 422, "DT020", "after: found '9223372036854775808'; allowed"),
    ("GET", "workers/w1", None, 422, "DT020", "worker id: found 'w1'; allowed: the id of a worker, a number."),
    ("POST", "jobs/17/cancel", {}, 404, "DT008", "no job 17"),
    ("GET", "queues/nothing", None, 404, "DT008", "nothing"),
    ("GET", "runs/1/changes", None, 404, "DT008", "1"),
    ("POST", "schedules/nightly/set", {"cron": "x", "task": "add"}, 422, "", ""),
    ("GET", "nothing", None, 404, "HTTP404", "GET /api/v1/nothing"),
    ("DELETE", "jobs/1", None, 405, "HTTP405", "DELETE"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code", "says"), REFUSED, ids=lambda one: str(one)[:40])
def test_a_request_is_refused(
    world: World, method: str, path: str, body: Any, status: int, code: str, says: str
) -> None:
    answer = world.http.request(method, f"/api/v1/{path}", json=body)
    found = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, found["status"]) == (status, status)
    assert found["code"] == code or not code
    assert says in found["detail"]
    assert world.app.jobs.counts() == []


def test_a_body_that_is_no_json(world: World) -> None:
    for content, kind, says in (
        (b"{", "application/json", "body: found truncated JSON: its end is missing; allowed: a JSON object"),
        (b"{a}", "application/json", "body: found malformed JSON: object keys must be strings (byte 1); allowed"),
        (b"a=1", "application/x-www-form-urlencoded", "Content-Type: found application/x-www-form-urlencoded"),
        (b"\xff\xfe", "application/json", "body"),
    ):
        answer = world.http.post("/api/v1/jobs", content=content, headers={"Content-Type": kind})
        assert (answer.status_code, says in answer.json()["detail"]) == (422, True)


def test_a_body_of_20_megabytes(world: World) -> None:
    answer = world.http.post("/api/v1/jobs", content=b'{"task":"' + b"x" * 20_000_000 + b'"}')
    assert (answer.status_code, answer.json()["detail"].startswith("body: found more than")) == (422, True)


def test_two_keys_that_differ(world: World) -> None:
    body = {"task": "add", "payload": {"a": 1, "b": 1}, "key": "a"}
    answer = world.http.post("/api/v1/jobs", json=body, headers={"Idempotency-Key": "b"})
    assert (answer.status_code, answer.json()["fields"]["field"]) == (422, "Idempotency-Key")


def test_parts_of_a_problem_are_json_values(world: World) -> None:
    """Ids are strings, since JavaScript rounds large numbers; lists are lists."""
    first = world.post("jobs", task="add", payload={"a": 1, "b": 1}, key="a")
    conflict = world.http.post("/api/v1/jobs", json={"task": "add", "payload": {"a": 2, "b": 1}, "key": "a"}).json()
    assert conflict["fields"] == {"key": "a", "of": "job", "tenant": "", "job_id": first["id"]}
    unknown = world.http.post("/api/v1/jobs", json={"task": "nothing"}).json()
    assert isinstance(unknown["fields"]["known"], list)
    assert "add" in unknown["fields"]["known"]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8321", ""])
def test_an_unknown_host_gets_no_answer(world: World, host: str) -> None:
    """S4: against DNS rebinding; also for paths that do not exist."""
    for path in ("/api/v1/jobs", "/healthz", "/nothing"):
        answer = world.http.get(path, headers={"Host": host})
        assert answer.status_code == 421


@pytest.mark.parametrize("host", ["localhost:8321", "127.0.0.1", "[::1]:8321", "LOCALHOST"])
def test_this_machine_is_answered(world: World, host: str) -> None:
    assert world.http.get("/healthz", headers={"Host": host}).status_code == 200


def test_a_change_from_another_origin_is_refused(world: World) -> None:
    """S4: a page of another site cannot change anything; the API's own origin can."""
    for origin, status in (
        ("http://[", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://localhost:1", 403),
        ("http://localhost", 201),
    ):
        answer = world.http.post(
            "/api/v1/jobs", json={"task": "add", "payload": {"a": 1, "b": 1}}, headers={"Origin": origin}
        )
        assert answer.status_code == status, origin
    assert len(world.get("jobs")["items"]) == 1


def test_text_that_a_job_brings_stays_data(world: World) -> None:
    """S4: script, bidi and ANSI text comes back as it was, as JSON that no browser takes for a page."""
    nasty = "<script>alert(1)</script> \x1b[31m \u202e \u2028"
    job = world.app.enqueue_named("add", '{"a": 1, "b": 1}', metadata={"note": nasty})
    answer = world.http.get(f"/api/v1/jobs/{job.id}")
    assert answer.json()["metadata"] == {"note": nasty}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
