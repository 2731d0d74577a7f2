"""The command line: the past, who changed what, schedules out of turn, and dead jobs with other arguments."""

from __future__ import annotations

import msgspec

from tests.cli.shell import Shell, World


def test_a_job_and_the_counts_at_a_past_time(shell: Shell, world: World) -> None:
    job_id = world.succeeded()
    moves = shell.run("jobs", "get", job_id, "--json").json["transitions"]
    claimed = next(move["at"] for move in moves if move["trigger"] == "claim")
    then = shell.run("jobs", "get", job_id, "--at", claimed, "--json").json
    assert (then["state"], [one["outcome"] for one in then["executions"]]) == ("running", [None])
    assert [one["trigger"] for one in then["transitions"]][-1] == "claim"
    assert "succeeded" not in shell.run("jobs", "get", job_id, "--at", claimed).out
    assert shell.run("jobs", "get", job_id, "--at", "1h").code == 3
    assert [(one["state"], one["jobs"]) for one in shell.run("jobs", "counts", "--json").json] == [("succeeded", 1)]
    counted = shell.run("jobs", "counts", "--at", claimed, "--json").json
    assert [(one["state"], one["jobs"]) for one in counted] == [("running", 1)]
    assert "no jobs at" in shell.run("jobs", "counts", "--at", "1h").err


def test_who_changed_what(shell: Shell, world: World) -> None:
    job_id = world.pending()
    shell.run("jobs", "cancel", job_id, "--actor", "ana", "--reason", "a mistake")
    shell.run("queues", "pause", "mail", "--actor", "ben")
    found = shell.run("record", "search", "--actor", "ana", "--since", "1h", "--json").json
    assert [(one["entity"], one["entity_id"], one["reason"]) for one in found] == [("job", str(job_id), "a mistake")]
    said = shell.run("record", "search").out
    assert said.index("pause") < said.index("a mistake")
    assert len(shell.run("record", "search", "--entity", "queue", "--id", "mail", "--json").json) == 1
    first = shell.run("record", "search", "--limit", 1)
    rest = shell.run("record", "search", "--after", first.err.split("--after ")[1].strip(), "--json").json
    assert [one["actor"] for one in rest] == ["ana"]
    assert shell.run("record", "search", "--id", "mail").code == 2


def test_a_schedule_is_run_now(shell: Shell, world: World) -> None:
    world.app.schedules.set("nightly", "0 3 * * *", world.app.find_task("do").call(n=1))
    ran = shell.run("schedules", "run-now", "nightly", "--actor", "ana", "--reason", "a customer waits", "--json")
    (job,) = shell.run("jobs", "list", "--metadata", "schedule=nightly", "--json").json
    assert (ran.json["job_id"], job["metadata"]) == (job["id"], {"schedule": "nightly", "run_by": "ana"})
    (line,) = shell.run("record", "search", "--actor", "ana", "--json").json
    assert (line["entity"], line["trigger"], line["reason"]) == ("schedule", "run_now", "a customer waits")
    assert shell.run("schedules", "run-now", "hourly").code == 3


def test_a_dead_job_is_replaced(shell: Shell, world: World) -> None:
    dead = world.dead()
    assert shell.run("jobs", "replace", dead, "[1]", "--reason", "a typo").code == 2
    replaced = shell.run("jobs", "replace", dead, '{"n": 8}', "--actor", "ana", "--reason", "a typo", "--json")
    assert (replaced.code, replaced.json["payload"], replaced.json["state"]) == (0, {"n": 8}, "pending")
    (line,) = shell.run("record", "search", "--actor", "ana", "--json").json
    assert line["reason"] == f"replaced by job {replaced.json['id']}: a typo"


def test_progress_is_shown(shell: Shell, world: World) -> None:
    job_id = world.running()
    world.app.store.job_start([(job_id, 1)])
    from detent.model.records import NewEvent

    told = msgspec.json.encode({"done": 30, "total": 90}).decode()
    world.app.store.event_append([NewEvent(job_id=job_id, attempt=1, level="info", message="progress", payload=told)])
    assert "30 of 90" in shell.run("jobs", "list").out
    assert "30 of 90" in shell.run("jobs", "get", job_id).out
    assert shell.run("jobs", "list", "--json").json[0]["progress"] == {"done": 30, "total": 90}
    assert world.app.jobs.get(job_id).progress() == {"done": 30, "total": 90}
