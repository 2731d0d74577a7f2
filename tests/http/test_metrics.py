"""`GET /metrics`."""

from __future__ import annotations

from tests.http.conftest import World
from tests.telemetry.readings import parse


def test_a_server_shows_the_metrics_of_the_database(world: World) -> None:
    """M1: in the format that the reader asks for."""
    world.post("jobs", task="add", payload={"a": 1, "b": 1})
    world.harness.work()
    answer = world.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    found = parse(answer.text)
    assert found["detent_jobs", (("queue", "default"), ("state", "succeeded"))] == 1
    assert found["detent_run_seconds_count", (("outcome", "done"), ("task", "add"))] == 1
    wanted = {"Accept": "application/openmetrics-text;version=1.0.0"}
    assert world.http.get("/metrics", headers=wanted).text.endswith("# EOF\n")


def test_a_name_with_special_characters_stays_one_label(world: World) -> None:
    """TH12: a queue's name cannot end its label, its line or its sample."""
    name = 'a"} 1\ndetent_workers 99\\'
    world.post("jobs", task="add", payload={"a": 1, "b": 1}, queue=name)
    found = parse(world.http.get("/metrics").text)
    assert found["detent_jobs", (("queue", name), ("state", "pending"))] == 1
    assert found["detent_workers", ()] == 0
