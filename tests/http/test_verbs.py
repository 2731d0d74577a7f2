"""The verbs of the API: what is asked for happens, is answered, and is on record."""

from __future__ import annotations

import pytest

from detent.http import special_verbs
from tests.http.conftest import World


def test_a_job_from_enqueue_to_its_result(world: World) -> None:
    """U3: a job is enqueued, read, and its events and history tell what happened."""
    made = world.http.post("/api/v1/jobs", json={"task": "add", "payload": {"a": 2, "b": 3}})
    assert (made.status_code, made.json()["created"]) == (201, True)
    job_id = made.json()["id"]
    assert world.get(f"jobs/{job_id}")["state"] == "pending"
    world.harness.work()
    job = world.get(f"jobs/{job_id}")
    assert (job["state"], job["result"], job["payload"]) == ("succeeded", 5, {"a": 2, "b": 3})
    assert [line["message"] for line in world.get(f"jobs/{job_id}/events")["items"]] == ["adding"]
    assert [move["to_state"] for move in world.get(f"jobs/{job_id}/history")["items"]][-1] == "succeeded"
    assert "succeeded" in world.get(f"jobs/{job_id}/why")["why"]


def test_a_repeated_request_makes_one_job(world: World) -> None:
    """U3: `Idempotency-Key` is the key of the job."""
    answers = [
        world.http.post(
            "/api/v1/jobs", json={"task": "add", "payload": {"a": 1, "b": 1}}, headers={"Idempotency-Key": "order-7"}
        )
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert [job["id"] for job in world.get("jobs", key="order-7")["items"]] == [answers[0].json()["id"]]


def test_every_change_is_on_record_with_actor_and_reason(world: World) -> None:
    """S1: the actor is the one of the API, the reason the one in the body."""
    job_id = world.post("jobs", task="add", payload={"a": 1, "b": 1})["id"]
    assert world.post(f"jobs/{job_id}/cancel", reason="a mistake") == {"job_id": job_id, "state": "cancelled"}
    last = world.get(f"jobs/{job_id}/history")["items"][-1]
    assert (last["to_state"], last["actor"], last["reason"]) == ("cancelled", "ana", "a mistake")


def test_lists_page_by_page(world: World) -> None:
    """U3: `next` of a page is the `after` of the next, until there is none."""
    made = [world.post("jobs", task="add", payload={"a": n, "b": n})["id"] for n in range(5)]
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = world.get("jobs", limit=2, state="pending", **after)
        seen += [job["id"] for job in page["items"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert seen == made[::-1]


def test_an_idempotency_key_is_no_filter(world: World) -> None:
    """Clients that send the header with every POST must not act on other jobs than their filters say."""
    world.post("jobs", task="add", payload={"a": 1, "b": 2})
    bulk = "/api/v1/jobs/bulk/cancel"
    counted = world.http.post(bulk, params={"dry_run": "true"}, headers={"Idempotency-Key": "one"}).json()
    assert counted["jobs"] == 1


def test_a_bulk_action_counts_first(world: World) -> None:
    """U3, O1: with `dry_run` nothing changes; without it an operation does the work."""
    for _ in range(3):
        world.post("jobs", task="fail")
    world.harness.work()
    bulk = "/api/v1/jobs/bulk/retry"
    counted = world.http.post(bulk, params={"state": "quarantined", "dry_run": "true"}).json()
    assert counted == {"jobs": 3, "operation": None, "complete": True}
    begun = world.http.post(bulk, params={"state": "quarantined"}, json={"reason": "the bug is mended"}).json()
    world.app.operations.get(begun["operation"]["id"]).wait(timeout=60)
    assert world.get(f"operations/{begun['operation']['id']}")["changed"] == 3
    assert len(world.get("jobs", state="pending")["items"]) == 3


def test_a_queue_whose_name_has_a_slash(world: World) -> None:
    world.post("jobs", task="add", payload={"a": 1, "b": 1}, queue="eu/mail")
    assert world.post("queues/eu/mail/pause", reason="the provider is down")["state"] == "paused"
    queue = world.get("queues/eu/mail")
    assert (queue["paused"], queue["paused_by"], queue["paused_reason"]) == (True, "ana", "the provider is down")
    assert [one["name"] for one in world.get("queues")["items"]] == ["eu/mail"]


def test_a_batch_from_preview_to_roll_back(world: World) -> None:
    """R1: preview, read the changes page by page, apply some, roll back."""
    run_id = world.post("runs/preview", name="reprice", payload={"many": 5})["id"]
    world.harness.work()
    first = world.get(f"runs/{run_id}/changes", limit=3)
    rest = world.get(f"runs/{run_id}/changes", limit=3, after=first["next"])
    assert [one["ref"] for one in (*first["items"], *rest["items"])] == [f"item-{n:03}" for n in range(5)]
    assert (first["items"][0]["before"], first["items"][0]["after"], rest["next"]) == (1, 2, None)
    world.post(f"runs/{run_id}/apply", only=["item-001", "item-003"])
    world.harness.work()
    assert {one["ref"] for one in world.get(f"runs/{run_id}/changes", state="applied")["items"]} == {
        "item-001",
        "item-003",
    }
    world.post(f"runs/{run_id}/roll-back", reason="wrong prices")
    world.harness.work()
    assert len(world.get(f"runs/{run_id}/changes", state="rolled_back")["items"]) == 2
    refused = world.http.get(f"/api/v1/runs/{run_id}/partitions")
    assert (refused.status_code, refused.json()["code"]) == (422, "DT020")


def test_an_ops_run(world: World) -> None:
    run = world.post("ops/queue", project_id="shop", env="prod", git_sha="abc1234")
    claimed = world.post("ops/claim", worker="runner-1")
    assert claimed["id"] == run["id"]
    world.post(f"ops/{run['id']}/event", message="building", token=claimed["token"])
    assert [line["message"] for line in world.get(f"ops/{run['id']}/events")["items"]] == [
        "Run claimed by worker",
        "building",
    ]
    ended = world.post(f"ops/{run['id']}/finish", state="success", token=claimed["token"])
    assert (ended["state"], world.get(f"ops/{run['id']}")["state"]) == ("success", "success")


def test_schedules_limits_and_record(world: World) -> None:
    world.post("schedules/nightly/set", cron="0 3 * * *", task="add", payload={"a": 1, "b": 2}, zone="Europe/Berlin")
    assert len(world.get("schedules/nightly/next", count=3)["items"]) == 3
    assert world.post("schedules/nightly/pause")["state"] == "paused"
    world.post("queues/mail/limit", concurrency=3)
    assert world.get("limits")["items"][0]["concurrency_max"] == 3
    assert world.get("record/search", entity="schedule")["items"][0]["actor"] == "ana"
    assert world.get("record/verify")["items"] == []


def test_a_count_that_has_to_read_jobs_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """U4: a filter without an index is counted up to a number of jobs, and the answer says so."""
    for _ in range(3):
        world.post("jobs", task="fail")
    world.harness.work()
    assert world.get("jobs/bulk/count", error="as it must") == {"jobs": 3, "complete": True}
    monkeypatch.setattr(special_verbs, "_COUNT_PAGES_MAX", 0)
    assert world.get("jobs/bulk/count", error="as it must") == {"jobs": 0, "complete": False}
    assert world.get("jobs/bulk/count", state="quarantined") == {"jobs": 3, "complete": True}
    answer = world.http.post("/api/v1/jobs/bulk/retry", params={"error": "must", "dry_run": "true"}, json={}).json()
    assert answer == {"jobs": 0, "operation": None, "complete": False}


def test_figures_and_rates(world: World) -> None:
    """M1: numbers of the application itself have paths of their own."""
    world.post("jobs", task="add", payload={"a": 1, "b": 1})
    world.harness.work()
    (task,) = world.get("figures", task="add")["tasks"]
    assert (task["task"], task["succeeded"], task["success_rate"]) == ("add", 1, 1.0)
    found = world.get("rates", step="hour")
    assert [point["moves"] for point in found["points"] if point["moves"]] == [{"succeeded": 1}]
    assert (len(world.get("rates")["points"]), found["waited"]["count"]) == (61, 1)
    assert world.http.get("/api/v1/rates?step=day").status_code == 422
    (queue,) = world.get("queues")["items"]
    assert (queue["jobs"]["succeeded"], queue["oldest_at"]) == (1, None)


def test_an_answer_that_has_not_changed_is_not_sent_again(world: World) -> None:
    """U3: ETag."""
    job_id = world.post("jobs", task="add", payload={"a": 1, "b": 1})["id"]
    first = world.http.get(f"/api/v1/jobs/{job_id}")
    again = world.http.get(f"/api/v1/jobs/{job_id}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    world.post(f"jobs/{job_id}/cancel")
    changed = world.http.get(f"/api/v1/jobs/{job_id}", headers={"If-None-Match": first.headers["etag"]})
    assert (changed.status_code, changed.json()["state"]) == (200, "cancelled")


def test_a_lifecycle_says_which_moves_are_legal(world: World) -> None:
    """L7: the console enables only these."""
    job = world.get("lifecycles/job")
    retries = {one["source"]: one["target"] for one in job["transitions"] if one["trigger"] == "retry"}
    assert retries == dict.fromkeys(("failed", "quarantined", "cancelled"), "pending")
    assert {"name": "running", "means": "An execution holds it under a lease."} in job["states"]
    assert world.get("lifecycles", own=True)["items"][0] == job
    assert world.get("lifecycles")["items"] == [], "the application attaches none"
    assert world.http.get("/api/v1/lifecycles/none").status_code == 404


def test_an_enqueue_keeps_the_trace_of_its_request(world: World) -> None:
    """M3: the header `traceparent`, unless the body has one. One that is invalid is ignored, as W3C says."""
    valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    def kept(header: str, **body: str) -> object:
        sent = {"task": "add", "payload": {"a": 1, "b": 1}, **body}
        made = world.http.post("/api/v1/jobs", json=sent, headers={"traceparent": header})
        return world.get(f"jobs/{made.json()['id']}")["traceparent"]

    assert kept(valid) == valid
    assert kept(valid, traceparent="given") == "given"
    assert kept("ff" + valid[2:]) is None
    assert kept("<script>") is None
