"""New versions of a workflow are deployed while one is parked."""

from __future__ import annotations

from typing import Any

from detent import Job
from tests.deadlines import until
from tests.processes.deploys import trip
from tests.processes.worker_processes import Bench

DEPLOYS = "tests.processes.deploys"


def test_a_workflow_waits_for_a_worker_that_supports_its_version(bench: Bench) -> None:
    """It began under version 1. A worker of version 2 begins new ones and leaves it alone, and `why` says what it waits
    for. A worker that supports both continues it where it was, in the branch of its version."""

    def parks(job: Job[Any]) -> None:
        until(lambda: bench.outcomes(job) == ["parked"], "the park")

    bench.app.workflow(name="trip")(trip)
    old = bench.send("trip")
    bench.drain(app=f"{DEPLOYS}:first")  # which does not wait for a workflow that is parked
    assert bench.outcomes(old) == ["parked"]
    bench.worker(app=f"{DEPLOYS}:second")
    new = bench.send("trip")
    parks(new)
    for job in (old, new):
        job.signal("go")
    assert bench.rests(new, "succeeded").result == "left under version 2"
    said = "it began under version 1, and no live worker supports that version (one live worker supports version 2)"
    until(lambda: old.why() == said, "the worker of another version")
    assert bench.outcomes(old.refresh()) == ["parked"]
    bench.worker(app=f"{DEPLOYS}:both")
    assert bench.rests(old, "succeeded").result == "left under version 1"
    assert bench.outcomes(old) == ["parked", "done"]
    assert bench.is_healthy()
