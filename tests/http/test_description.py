"""The OpenAPI description: complete, and true of what is answered."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from detent import WorkflowContext
from detent.http.api import list_verbs
from detent.http.description import answer_type, describe
from detent.model.service_records import WorkerSeen
from tests.http.conftest import World

DESCRIBED = describe(list_verbs(), version="1")


def test_every_verb_is_described_once() -> None:
    ids = [one["operationId"] for path in DESCRIBED["paths"].values() for one in path.values()]
    assert len(ids) == len(set(ids)) == len(list_verbs())
    assert all(one["summary"] for path in DESCRIBED["paths"].values() for one in path.values())


def test_every_reference_leads_somewhere() -> None:
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(DESCRIBED)))
    assert named <= set(DESCRIBED["components"]["schemas"])


def test_components_have_plain_names_and_runs_are_one_of_two() -> None:
    """A record inside a list was described a second time, under the name of its module."""
    schemas = DESCRIBED["components"]["schemas"]
    assert [name for name in schemas if not name.isidentifier()] == []
    listed = schemas["BatchRunOrPipelineRunList"]["properties"]["items"]["items"]
    answer = DESCRIBED["paths"]["/api/v1/runs/{run_id}"]["get"]["responses"]["200"]
    one = answer["content"]["application/json"]["schema"]
    references = [{"$ref": f"#/components/schemas/{name}"} for name in ("BatchRun", "PipelineRun")]
    assert listed["anyOf"] == one["anyOf"] == references


def test_paths_and_their_parameters_agree() -> None:
    for path, operations in DESCRIBED["paths"].items():
        for one in operations.values():
            taken = {parameter["name"] for parameter in one["parameters"] if parameter["in"] == "path"}
            assert taken == set(re.findall(r"{(\w+)}", path))


def _album(ctx: WorkflowContext) -> None:
    ctx.step("list", lambda: {"photos": 1})
    ctx.set_status(photos=1)
    ctx.spawn(ctx.find_task("add").call(a=1, b=1))  # type: ignore[attr-defined]
    ctx.wait_for("go")


def _filled(world: World) -> dict[str, str]:
    """Put something of every kind on record; return the ids for the paths."""
    job_id = world.post("jobs", task="add", payload={"a": 1, "b": 1})["id"]
    world.post("jobs", task="fail")
    world.app.workflow(name="album")(_album)
    album = world.post("jobs", task="album")["id"]
    run_id = world.post("runs/preview", name="reprice", payload={"many": 2})["id"]
    world.harness.work()
    world.post(f"runs/{run_id}/apply")
    world.post("schedules/nightly/set", cron="0 3 * * *", task="add", payload={"a": 1, "b": 2})
    world.post("queues/default/limit", concurrency=3)
    alert = world.app.alerts.raise_("job.dead", "a test")
    begun = world.app.jobs.where(state="quarantined").retry()
    run = world.post("ops/queue", project_id="shop", env="prod", git_sha="abc1234")
    seen = WorkerSeen(id=7, name="w", host="h", pid=1, queues=None, tasks=(), slots=1)
    world.app.store.worker_seen(seen)
    return {
        "worker_id": str(seen.id), "album": album,
        "job_id": job_id, "run_id": run_id, "run": run["id"], "operation_id": str(begun.id),
        "alert_id": alert.entity_id, "key": world.get("limits")["items"][0]["key"],
    }  # fmt: skip


NAMES = {
    "queues": "default",
    "schedules": "nightly",
    "lifecycles": "job",
    "watermarks": "stones",
    "alerts policies": "",
}
QUERIES: dict[tuple[str, str], dict[str, Any]] = {
    ("jobs", "state_at"): {"when": "2026-01-01T00:00:00Z"},
    ("lifecycles", "history"): {"entity_id": "1"},
}
OTHERS = {
    ("runs", "partitions"): "of pipeline runs",
    ("alerts policies", "get"): "",
    ("lifecycles", "history"): "no table",
}


def _read_one_of(kind: Any, value: Any) -> Any:
    """Return a value of one of several records; msgspec reads no such union itself."""
    record = kind.records["name" in value]
    assert value.keys() == set(record.__struct_fields__)
    msgspec.convert(value, record)
    return kind()


def test_answers_are_as_described(world: World) -> None:
    """Every GET, on a database with something of everything in it."""
    ids = _filled(world)
    for verb in list_verbs():
        if verb.changes or (verb.noun, verb.name) in OTHERS:
            continue
        named = (
            ids | {"name": NAMES.get(verb.noun, "")} | ({"job_id": ids["album"]} if verb.noun == "workflows" else {})
        )
        path = verb.path.replace(":path", "").format(**named)
        answer = world.http.get(f"/api/v1{path}", params=QUERIES.get((verb.noun, verb.name), {}))
        assert answer.status_code == 200, f"{path}: {answer.text}"
        try:
            msgspec.json.decode(answer.content, type=answer_type(verb), dec_hook=_read_one_of)
        except msgspec.ValidationError as error:
            raise AssertionError(f"{path}: {error}: {answer.text}") from None
