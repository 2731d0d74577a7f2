"""`detent runs` for pipelines: start, get, retry and force."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.deadlines import scaled
from tests.processes.worker_processes import until

APP = """
from dataclasses import dataclass

from detent import Detent, Page, Partition, Retry

app = Detent()


@app.pipeline(name="letters", watermark="letters", retry=Retry(0), hold=3600)
@dataclass
class Letters:
    broken: str = ""

    def plan(self, since):
        return [Partition(letter) for letter in "abc"]

    def page(self, partition, offset):
        if partition.key == self.broken:
            raise ConnectionError("no answer")
        return Page(records=[(f"{partition.key}{offset}", {})], next=1 if offset == 0 else None)

    def consolidate(self, tx, records):
        tx.execute("CREATE TABLE IF NOT EXISTS letters (id TEXT)")
"""


@pytest.fixture
def pipes(tmp_path: Path, ready_url: str) -> Shell:
    """`detent` with an application that has a pipeline, on each database in turn."""
    (tmp_path / "pipes.py").write_text(APP)
    shell = Shell(tmp_path, ready_url)
    shell.environment["DETENT_APP"] = "pipes:app"
    return shell


def drained(shell: Shell) -> None:
    done = shell.run("worker", "pipes:app", "--drain")
    assert done.code == 0, done.err


def test_a_run_from_its_start_to_its_watermark(pipes: Shell) -> None:
    """P7, U2: started by name, listed, shown with partitions and transitions; it sets the watermark."""
    assert "no watermarks" in pipes.run("watermarks", "list").err
    started = pipes.run("runs", "start", "letters", "--app", "pipes:app", "--actor", "ana", "--json")
    assert (started.code, started.json["state"], started.json["started_by"]) == (0, "created", "ana")
    run_id = started.json["id"]
    again = pipes.run("runs", "start", "letters", "--app", "pipes:app")
    assert (again.code, f"run {run_id} of the watermark" in again.err) == (4, True)
    drained(pipes)
    (listed,) = pipes.run("runs", "list", "--kind", "pipeline", "--json").json
    assert (listed["state"], listed["partitions"], listed["consolidated"]) == ("completed", 3, 6)
    shown = pipes.run("runs", "get", run_id)
    assert "100 %" in shown.out
    assert "3: 3 completed" in shown.out
    assert "consolidation_triggered" in shown.out
    told = pipes.run("runs", "get", run_id, "--json").json
    assert (told["run"]["id"], told["done"], told["failures"]) == (run_id, 1.0, [])
    assert [line["to_state"] for line in told["transitions"]][-1] == "completed"
    assert pipes.run("runs", "get", run_id).out == shown.out
    (mark,) = pipes.run("watermarks", "list", "--json").json
    assert (mark["name"], mark["run_id"]) == ("letters", run_id)
    assert mark["value"] == listed["captured_at"]


def test_failures_are_shown_and_force_needs_a_reason(pipes: Shell) -> None:
    """P3, P7: a skipped run shows its failures; unknown names and fields are refused."""
    pipes.run("runs", "start", "letters", '{"broken": "b"}', "--app", "pipes:app")
    worker = pipes.start("worker", "pipes:app")
    try:
        _what_failed_and_force(pipes)
    finally:
        worker.terminate()
        worker.communicate(timeout=scaled(60))
    assert pipes.run("runs", "get", "999999").code == 3
    assert pipes.run("runs", "start", "nothing", "--app", "pipes:app").code == 3
    assert pipes.run("runs", "start", "letters", '{"broken": 7}', "--app", "pipes:app").code == 2
    misspelt = pipes.run("runs", "start", "letters", '{"borken": "b"}', "--app", "pipes:app")
    assert (misspelt.code, "'borken'; allowed: broken" in misspelt.err) == (2, True)


def _what_failed_and_force(pipes: Shell) -> None:
    def in_state(state: str) -> list[dict[str, str]]:
        found: list[dict[str, str]] = pipes.run("runs", "list", "--kind", "pipeline", "--state", state, "--json").json
        return found

    (run,) = until(lambda: in_state("consolidation_skipped"), "a skipped run")
    shown = pipes.run("runs", "get", run["id"])
    assert "no answer" in shown.out
    failed = pipes.run("runs", "get", run["id"], "--json").json["failures"][0]["job_id"]
    refused = pipes.run("jobs", "retry", failed)
    assert (refused.code, f"detent runs retry {run['id']}" in refused.err) == (4, True)
    retried = pipes.run("runs", "retry", run["id"], "--actor", "ben", "--reason", "once more", "--json")
    assert (retried.code, retried.json["id"]) == (0, run["id"])
    until(lambda: in_state("consolidation_skipped"), "a run that was skipped again")
    assert pipes.run("runs", "force", run["id"]).code == 2
    assert pipes.run("runs", "force", run["id"], "--reason", "good enough", "--actor", "ana").code == 0
    assert pipes.run("runs", "force", run["id"], "--reason", "again").code == 4
    until(lambda: in_state("completed"), "the end of the run")
    moves = pipes.run("runs", "get", run["id"], "--json").json["transitions"]
    assert [move["actor"] for move in moves if move["reason"] == "good enough"] == ["ana"]
    assert [(move["actor"], move["trigger"]) for move in moves if move["reason"] == "once more"] == [("ben", "retry")]
