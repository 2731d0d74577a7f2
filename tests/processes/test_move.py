"""A database moves while its workflows are parked, and real workers continue them in the other one."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from detent import Detent
from detent.testing.stores import is_sqlite
from tests.processes.conftest import bench_on
from tests.processes.moving import make_app
from tests.processes.worker_processes import ROOT, Bench, until

APP = "tests.processes.moving:app"


@contextmanager
def other_bench(bench: Bench, directory: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    (place := directory / "target").mkdir()
    with bench_on("postgres" if is_sqlite(bench.url) else "sqlite", place, request) as target:
        yield target


def send_all(app: Detent) -> dict[str, int]:
    """One that waits for each kind of thing: a signal, a token, a time, children, and the nodes of a graph."""
    approval, node = app.find_task("approval"), app.find_task("node")
    graph = app.graph("two", key="1")
    first = graph.add(approval.call(), name="first")
    graph.add(node.call(), after=[first], name="second")
    return {
        "signal": app.enqueue(approval.call(), key="the order").id,
        "token": app.enqueue(approval.call()).id,
        "time": app.enqueue(app.find_task("nap").call(seconds=8.0)).id,
        "children": app.enqueue(app.find_task("family").call()).id,
        "graph": graph.start().id,
        "first": first.id,
        "later": app.enqueue(node.call(), due_at=app.store.now() + timedelta(days=1)).id,
    }


@pytest.mark.timeout(240)
def test_parked_workflows_move_and_wake_up_there(bench: Bench, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """F24, J15: they wake up for signals, tokens, times, children and other nodes, under the keys that they had."""
    with closing(make_app(bench.url)) as app, other_bench(bench, tmp_path, request) as target:
        ids = send_all(app)
        worker = bench.worker(app=APP)
        until(lambda: len(app.store.child_list(ids["children"])) == 2, "the children to be spawned")
        children = app.store.child_list(ids["children"])
        waiting = [*(ids[name] for name in ("signal", "token", "time", "children", "first")), *children]
        until(lambda: all(app.workflows.get(job_id).state == "parked" for job_id in waiting), "all to park")
        alive = bench.cli("move", "--from", bench.url, "--to", target.url, "--yes")
        assert alive.returncode == 4
        assert "detent workers drain" in alive.stderr
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0, worker.log
        app.schedules.set("nightly", "0 3 * * *", app.find_task("node").call())
        token = app.jobs.get(ids["token"]).status["token"]
        charged = app.jobs.get(ids["signal"]).status["charged"]
        done = bench.cli("move", "--from", bench.url, "--to", target.url, "--yes", "--json", "--reason", "it grew")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["tables"]["workflow"] == 7
        bench._environment["PYTHONPATH"] = str(ROOT)
        refused = bench.cli("worker", "--app", APP)
        assert refused.returncode == 5
        assert "it was moved to" in refused.stderr

        with closing(make_app(target.url)) as there:
            signals = [ids["signal"], ids["first"], *children]
            for job_id in signals:
                there.jobs.get(job_id).signal("decision", "yes")
            there.workflows.redeem(token, "no")
            assert there.enqueue(there.find_task("approval").call(), key="the order").id == ids["signal"]
            heir = target.worker(app=APP)
            for name in ("signal", "token", "time", "children", "graph"):
                target.rests(there.jobs.get(ids[name]), "succeeded")
            first, decision, booked = there.jobs.get(ids["signal"]).result
            assert (first, decision) == (charged, "yes")
            assert booked.startswith(there.identities.current())
            assert there.jobs.get(ids["token"]).result[1] == "no"
            assert there.jobs.get(ids["time"]).result == "awake"
            assert [result[1] for result in there.jobs.get(ids["children"]).result] == ["yes", "yes"]
            assert there.jobs.get(ids["later"]).state == "pending"
            assert [one.name for one in there.schedules.list()] == ["nightly"]
            heir.signal(signal.SIGTERM)
            assert heir.ends() == 0, heir.log
            assert there.record.verify() == []
