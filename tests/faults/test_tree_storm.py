"""The cancel of a tree that real workers grow, while the workers are killed. `make test`: some hundred jobs, and one
kill; `make faults`: 10,000 jobs, and ten."""

from __future__ import annotations

import random
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

from detent.client.job import Job
from tests.faults.ledger import Ring
from tests.faults.trees import trunk
from tests.processes.worker_processes import Worker, until

APP = "tests.faults.trees:app"
QUEUES: tuple[tuple[str, ...], ...] = (("trunk", "branches"), ("leaves",))
BRANCHES = 12
GROUPS_MAX = 1_000
BELOW = """
WITH RECURSIVE below AS (
  SELECT id, task, state, cancel_requested_at AS marked_at FROM {{job}} WHERE id = {root}
  UNION ALL
  SELECT j.id, j.task, j.state, j.cancel_requested_at FROM {{job}} j JOIN below b ON j.parent_id = b.id
)
"""


class Forest:
    """A tree, what has become of it, and its workers: one for its leaves, one for the rest."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._workers = {queues: self._start(queues) for queues in QUEUES}
        self.root: Job[None] = ring.app.enqueue(trunk.call(branches=BRANCHES, groups=GROUPS_MAX))

    def _start(self, queues: tuple[str, ...]) -> Worker:
        return self._ring.worker(app=APP, queues=queues, slots=8)

    def kill(self, queues: tuple[str, ...]) -> None:
        """Kill the worker of these queues, and start another one."""
        self._workers[queues].process.kill()
        self._workers[queues].process.wait()
        self._workers[queues] = self._start(queues)

    def states(self) -> Counter[tuple[str, str]]:
        """How many jobs of each task are in each state, in the whole tree."""
        rows = self._below("SELECT task, state, count(*) FROM below GROUP BY task, state")
        return Counter({(task, state): count for task, state, count in rows})

    def open(self) -> int:
        """How many jobs of the tree have not ended, apart from the detached child."""
        ended = ("cancelled", "succeeded")
        return sum(count for (task, state), count in self.states().items() if task != "beside" and state not in ended)

    def is_marked(self) -> bool:
        """Whether every branch has ended or is told to: from then on there is no new leaf."""
        sql = "SELECT 1 FROM below WHERE task = 'branch' AND state IN ('pending', 'running') AND marked_at IS NULL"
        return not self._below(sql)

    def undone(self) -> Iterator[tuple[set[str], list[str]]]:
        """For each job: its steps that have an undo, and what was undone, in this order."""
        sql = "SELECT job_id, path, kind, undo FROM {workflow_step} ORDER BY job_id, seq"
        for _, rows in groupby(self._ring.ask(sql), key=lambda row: row[0]):
            steps = list(rows)
            yield {path for _, path, _, undo in steps if undo}, [path for _, path, kind, _ in steps if kind == "undo"]

    def reversible(self) -> int:
        """How many jobs have both of their steps with an undo on record."""
        return sum(len(steps) == 2 for steps, _ in self.undone())

    def _below(self, sql: str) -> list[tuple[Any, ...]]:
        return self._ring.ask(BELOW.format(root=self.root.id) + sql)


@pytest.mark.timeout(1200)
def test_a_tree_is_cancelled_while_it_grows_and_workers_die(
    ring: Ring, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """F11, F20: no child appears after the cancel, none is missed, each undoes its steps in reverse; a detached child
    lives on."""
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    nodes, kills = (10_000, 10) if whole else (300, 1)
    forest = Forest(ring)
    until(lambda: forest.states().total() >= nodes, f"{nodes} jobs", 300.0)
    until(lambda: forest.reversible() > BRANCHES, "enough jobs with steps to undo", 300.0)
    began = time.monotonic()
    forest.root.cancel(actor="ann", reason="sold out")
    growing = forest.states()["branch", "running"]
    killed = 0
    while killed < kills and forest.open():
        forest.kill(chance.choice(QUEUES))
        killed += 1
        left = forest.open()
        until(lambda left=left: forest.open() < left, "progress of the cancel")  # type: ignore[misc]
    until(forest.is_marked, "the mark of every branch")
    marked = forest.states().total()
    until(lambda: not forest.open(), "the end of every job", 300.0)
    took = time.monotonic() - began

    states = forest.states()
    with capsys.disabled():
        print(f"\nseed {seed}: {marked:,} jobs, {killed} kills, cancelled within {took:.1f} s; {dict(states)}")  # noqa: T201
    assert growing
    assert states.total() == marked
    assert (states["trunk", "cancelled"], states["branch", "cancelled"]) == (1, BRANCHES)
    assert (states["beside", "pending"], states["leaf", "cancelled"] > nodes // 2) == (1, True)
    undone = Counter((len(steps), *paths) for steps, paths in forest.undone())
    assert set(undone) <= {(0,), (1, "a~undo", "~undone"), (2, "b~undo", "a~undo", "~undone")}, undone
    assert undone[2, "b~undo", "a~undo", "~undone"] > BRANCHES
    (beside,) = ring.app.jobs.list(task="beside")
    beside.signal("go", "on")
    until(lambda: beside.refresh().state == "succeeded", "the end of the detached child")
    assert beside.refresh().result == "on"
    assert ring.app.record.verify() == []
