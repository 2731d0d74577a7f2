"""Ops runs, from the trigger to the end, told whole: in Python on both databases, and in plain SQL on PostgreSQL.

Every test runs at each of these doors, in the words that are common to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from threading import Barrier
from typing import Any, NamedTuple, Protocol

import psycopg
import pytest
from psycopg.types.json import Jsonb

from detent.app.detent import Detent
from detent.client.engine import Engine
from detent.errors import TABLE, DetentError, InvalidTransition, KeyConflict, LeaseLost
from detent.lifecycle.library import OPS_RUN
from detent.testing.stores import StoreClock, another_store, turnable_store
from tests.deadlines import scaled


class Run(NamedTuple):
    """A run as any door shows it."""

    status: str
    claimed_by: str | None
    started_at: datetime | None
    finished_at: datetime | None
    metadata: dict[str, Any]


class Claim(NamedTuple):
    run: str
    token: str
    told: tuple[str, str | None, str | None, dict[str, Any]]


class Refusal(Exception):
    """What a door refused, by its code."""

    def __init__(self, code: str | None, message: str) -> None:
        super().__init__(message)
        self.code = code


class Door(Protocol):
    """What everybody can do with runs. A door is one worker's: another has another connection."""

    def queue(self, *what: str | None, metadata: dict[str, Any] | None = None, key: str | None = None) -> str: ...
    def claim(self, worker: str) -> Claim | None: ...
    def event(self, run: str, message: str, token: str | None = None, **payload: Any) -> str: ...
    def finish(self, run: str, status: str, token: str | None = None, **metadata: Any) -> str: ...
    def look(self, run: str) -> Run: ...
    def events(self, run: str) -> list[tuple[str, str, dict[str, Any]]]: ...


class PythonDoor:
    """`app.ops`."""

    def __init__(self, app: Detent) -> None:
        self.app = app

    def queue(self, *what: str | None, metadata: dict[str, Any] | None = None, key: str | None = None) -> str:
        project, env, sha, ref = what
        return _refusing(
            lambda: self.app.ops.queue(str(project), str(env), git_sha=sha, git_ref=ref, metadata=metadata, key=key).id
        )

    def claim(self, worker: str) -> Claim | None:
        run = self.app.ops.claim(worker)
        if run is None:
            return None
        assert run.token is not None
        return Claim(run.id, run.token, (run.project_id, run.git_sha, run.git_ref, run.metadata))

    def event(self, run: str, message: str, token: str | None = None, **payload: Any) -> str:
        return _refusing(lambda: self.app.ops.event(run, message, payload=payload, token=token))

    def finish(self, run: str, status: Any, token: str | None = None, **metadata: Any) -> str:
        return _refusing(lambda: self.app.ops.finish(run, status, metadata=metadata, token=token).state)

    def look(self, run: str) -> Run:
        found = self.app.ops.get(run)
        return Run(found.state, found.claimed_by, found.started_at, found.finished_at, found.metadata)

    def events(self, run: str) -> list[tuple[str, str, dict[str, Any]]]:
        lines = self.app.ops.follow(run, wait=False)
        return [(one.level, one.message, json.loads(one.payload or "{}")) for one in lines]


class SqlDoor:
    """The functions and views of the schema `ops`."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a statement gives."""
        try:
            return self._connection.execute(statement.encode(), values).fetchall()
        except psycopg.Error as error:
            raise Refusal(error.sqlstate, str(error)) from error

    def queue(self, *what: str | None, metadata: dict[str, Any] | None = None, key: str | None = None) -> str:
        statement = "SELECT run_id FROM ops.queue_run(%s, %s, %s, %s, %s, %s)"
        ((run,),) = self.rows(statement, *what, Jsonb(metadata or {}), key)
        return str(run)

    def claim(self, worker: str) -> Claim | None:
        for run, project, _, sha, ref, metadata, token in self.rows("SELECT * FROM ops.claim_next_run(%s)", worker):
            return Claim(run, token, (project, sha, ref, metadata))
        return None

    def event(self, run: str, message: str, token: str | None = None, **payload: Any) -> str:
        ((line,),) = self.rows("SELECT ops.append_event(%s, 'info', %s, %s, %s)", run, message, Jsonb(payload), token)
        return str(line)

    def finish(self, run: str, status: str, token: str | None = None, **metadata: Any) -> str:
        ((state,),) = self.rows("SELECT ops.finish_run(%s, %s, %s, %s)", run, status, Jsonb(metadata), token)
        return str(state)

    def look(self, run: str) -> Run:
        columns = "status, claimed_by, started_at, finished_at, metadata"
        ((*found,),) = self.rows(f"SELECT {columns} FROM ops.runs WHERE run_id = %s", run)
        return Run(*found)

    def events(self, run: str) -> list[tuple[str, str, dict[str, Any]]]:
        statement = "SELECT level, message, payload FROM ops.run_events WHERE run_id = %s ORDER BY created_at, seq"
        return [(level, message, payload) for level, message, payload in self.rows(statement, run)]

    def close(self) -> None:
        self._connection.close()


def _refusing(call: Callable[[], str]) -> str:
    try:
        return call()
    except DetentError as error:
        raise Refusal(TABLE[type(error)].sqlstate, str(error)) from error


class World:
    """A database, its time, and as many doors to it as are wanted."""

    def __init__(self, kind: str, url: str, stack: ExitStack) -> None:
        self.store, self.clock = stack.enter_context(turnable_store(url))
        self._kind, self._url, self._stack = kind, url, stack
        self.app = self._app()

    def door(self) -> Door:
        """One more: a process of its own, as it were."""
        if self._kind == "sql":
            door = SqlDoor(self._url)
            self._stack.callback(door.close)
            return door
        return PythonDoor(self._app())

    def _app(self) -> Detent:
        app = Detent(self._url)
        engine = Engine(app.settings, self.clock, another_store(self._url, self.clock))
        self._stack.callback(engine.close)
        app.rewire(engine)
        return app

    def reap(self) -> None:
        """What every worker's service does when a lease has run out."""
        self.store.lease_reap(100)


@pytest.fixture(params=["sqlite", "postgres", "sql"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    name = "sqlite_store_url" if request.param == "sqlite" else "postgres_store_url"
    with ExitStack() as stack:
        made = World(request.param, request.getfixturevalue(name), stack)
        yield made
        assert made.store.verify() == []


@pytest.fixture
def door(world: World) -> Door:
    return world.door()


@pytest.fixture
def clock(world: World) -> StoreClock:
    return world.clock


def refused(kind: type[DetentError], match: str | None, call: Callable[..., object], *arguments: Any) -> None:
    with pytest.raises(Refusal, match=match) as refusal:
        call(*arguments)
    assert refusal.value.code == TABLE[kind].sqlstate


def claimed(door: Door, worker: str = "worker-001") -> Claim:
    door.queue("proj-123", "staging", "abc123", "main")
    held = door.claim(worker)
    assert held is not None
    return held


def test_a_run_from_its_trigger_to_success(door: Door, clock: StoreClock) -> None:
    """O1, O2, E2: queued, claimed, running, success, with the characteristics of each."""
    told = {"trigger": "webhook", "author": "john@example.com"}
    run = door.queue("proj-123", "staging", "abc123def456", "main", metadata=told)
    assert door.look(run) == Run("queued", None, None, None, told)
    clock.advance(15)
    held = door.claim("worker-001")
    assert held is not None
    assert (held.run, held.told) == (run, ("proj-123", "abc123def456", "main", told))
    claimed_at = clock.now()
    assert door.look(run) == Run("claimed", "worker-001", claimed_at, None, told)
    clock.advance(5)
    door.event(run, "Starting build process", held.token, step="build", docker_image="odoo-ce:19.0")
    assert door.look(run) == Run("running", "worker-001", claimed_at, None, told)
    clock.advance(600 - 1)
    artifacts = [{"type": "image", "url": "ghcr.io/org/odoo-ce:abc123"}, {"type": "sbom", "url": "s3://bucket/sbom"}]
    ended = {"exit_code": 0, "artifacts": artifacts, "deploy_url": "https://staging.example.com"}
    assert door.finish(run, "success", held.token, **ended) == "success"
    assert door.look(run) == Run("success", "worker-001", claimed_at, clock.now(), told | ended)
    assert door.events(run) == [
        ("info", "Run claimed by worker", {"worker_id": "worker-001"}),
        ("info", "Starting build process", {"step": "build", "docker_image": "odoo-ce:19.0"}),
    ]
    assert door.claim("worker-001") is None


def test_a_failure_says_why(door: Door) -> None:
    """O2: exit code, error, step, stderr and retry count."""
    held = claimed(door)
    door.event(held.run, "building", held.token)
    details = {"exit_code": 1, "error": "Docker build failed", "step": "build", "stderr": "ERROR: no", "retry_count": 0}
    assert door.finish(held.run, "failed", held.token, **details) == "failed"
    assert (door.look(held.run).status, door.look(held.run).metadata) == ("failed", details)


def test_somebody_stops_a_run(door: Door, world: World) -> None:
    """J8: in every state it has before its end; the worker is powerless from then on."""
    for state in ("queued", "claimed", "running"):
        run = door.queue("proj-123", "staging", "abc123", "main")
        held = door.claim("worker-001") if state != "queued" else None
        if state == "running" and held:
            door.event(run, "building", held.token)
        said = {"cancelled_by": "user-456", "reason": "Manual stop via console", "timestamp": "2026-02-14T10:35:00Z"}
        assert world.door().finish(run, "cancelled", **said) == "cancelled"
        assert (door.look(run).status, door.look(run).metadata) == ("cancelled", said)
        if held:
            refused(LeaseLost, None, door.event, run, "still building", held.token)
            refused(InvalidTransition, None, door.finish, run, "success", held.token)


def test_three_workers_and_five_runs(door: Door, world: World, clock: StoreClock) -> None:
    """J4: each worker gets another run, the oldest first, though all ask at once."""
    runs = []
    for _ in range(5):
        runs.append(door.queue("proj-123", "staging", "abc123", "main"))
        clock.advance(60)
    workers, together = [world.door() for _ in range(3)], Barrier(3)

    def ask(number: int) -> str:
        together.wait(scaled(30))
        held = workers[number].claim(f"worker-00{number}")
        assert held is not None
        return held.run

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(ask, range(3))) == sorted(runs[:3])
    assert [door.look(run).status for run in runs] == ["claimed"] * 3 + ["queued"] * 2


def test_many_workers_drain_the_queue_and_no_run_is_had_twice(door: Door, world: World) -> None:
    """J4, G1: whole lives, side by side."""
    runs = {door.queue("proj-123", "staging", "abc123", f"branch-{n}") for n in range(24)}

    def work(door: Door) -> list[str]:
        done = []
        while held := door.claim("worker"):
            door.event(held.run, "building", held.token)
            assert door.finish(held.run, "success", held.token) == "success"
            done.append(held.run)
        return done

    with ThreadPoolExecutor(4) as pool:
        done = [run for drained in pool.map(work, [world.door() for _ in range(4)]) for run in drained]
    assert sorted(done) == sorted(runs)
    assert {door.look(run).status for run in runs} == {"success"}


def test_a_key_queues_one_run_though_many_ask_at_once(door: Door, world: World) -> None:
    """J3: nobody sees an error; and for something else it is refused."""
    doors, together = [world.door() for _ in range(6)], Barrier(6)

    def ask(door: Door) -> str:
        together.wait(scaled(30))
        return door.queue("proj-123", "staging", "abc123", "main", key="deploy-abc123")

    with ThreadPoolExecutor(6) as pool:
        (run,) = set(pool.map(ask, doors))
    assert door.queue("proj-123", "staging", "abc123", "main", key="deploy-abc123", metadata={"again": 1}) == run
    elsewhere = partial(door.queue, "proj-123", "production", "abc123", "main", key="deploy-abc123")
    refused(KeyConflict, run[4:], elsewhere)
    assert door.claim("worker-001") is not None
    assert door.claim("worker-001") is None


def test_what_is_said_twice_happens_once(door: Door, clock: StoreClock) -> None:
    """E3, O2: an event that is sent again, and an end that is told again; another end is refused."""
    held = claimed(door)
    first = door.event(held.run, "Building", held.token)
    clock.advance(9)
    assert door.event(held.run, "Building", held.token) == first
    assert door.event(held.run, "Building", held.token, line=2) != first
    clock.advance(11)
    assert door.event(held.run, "Building", held.token) != first
    assert door.finish(held.run, "success", held.token, exit_code=0) == "success"
    ended = door.look(held.run)
    clock.advance(60)
    assert door.finish(held.run, "success", held.token, exit_code=99) == "success"
    assert door.look(held.run) == ended
    for other in ("failed", "cancelled"):
        refused(InvalidTransition, "it is final", door.finish, held.run, other, held.token)


def test_a_stale_claim_is_cancelled_and_says_whose_it_was(door: Door, world: World, clock: StoreClock) -> None:
    """O4: claimed and silent for five minutes; not a moment sooner."""
    held = claimed(door)
    claimed_at = clock.now()
    clock.advance(299)
    world.reap()
    assert door.look(held.run).status == "claimed"
    clock.advance(1)
    world.reap()
    assert door.look(held.run).status == "cancelled"
    told = door.look(held.run).metadata
    assert datetime.fromisoformat(told.pop("claimed_at")) == claimed_at
    assert told == {
        "cancelled_by": "system",
        "reason": "Stale run (claimed for >5 minutes without events)",
        "original_worker": "worker-001",
    }


def test_a_claim_that_began_in_time_is_not_stale(door: Door, world: World, clock: StoreClock) -> None:
    """R1: whoever looks for stale runs acts on what is so when it acts."""
    held = claimed(door)
    clock.advance(299)
    door.event(held.run, "at last", held.token)
    clock.advance(599)
    world.reap()
    assert door.look(held.run).status == "running"
    assert door.finish(held.run, "success", held.token) == "success"


def test_a_run_that_falls_silent_has_failed_and_its_worker_is_powerless(
    door: Door, world: World, clock: StoreClock
) -> None:
    """R1, C4: a worker that died after its first event is found too; one that only slept changes nothing any more."""
    held = claimed(door)
    door.event(held.run, "building", held.token)
    clock.advance(600)
    refused(LeaseLost, "its lease has expired", door.event, held.run, "still here", held.token)
    refused(LeaseLost, "its lease has expired", door.finish, held.run, "success", held.token)
    world.reap()
    assert door.look(held.run).status == "failed"
    assert door.look(held.run).metadata["original_worker"] == "worker-001"
    refused(LeaseLost, None, door.event, held.run, "still here", held.token)
    refused(InvalidTransition, None, door.finish, held.run, "success", held.token)


def test_nobody_finishes_another_workers_run(door: Door, world: World) -> None:
    """J5: a token is of one claim."""
    mine, other = claimed(door, "worker-001"), claimed(door, "worker-002")
    for held in (mine, other):
        door.event(held.run, "building", held.token)
    refused(LeaseLost, "another claim has it", door.finish, mine.run, "success", other.token)
    refused(LeaseLost, "another claim has it", door.event, mine.run, "building", other.token)
    assert door.look(mine.run).status == "running"


def test_no_run_goes_where_the_lifecycle_does_not_lead(door: Door) -> None:
    """L2, L5: a run must be claimed and begun before it can end; every refusal says what would be allowed."""
    run = door.queue("proj-123", "staging", "abc123", "main")
    for end in ("success", "failed"):
        refused(InvalidTransition, "allowed from queued: claimed, cancelled", door.finish, run, end)
    refused(LeaseLost, None, door.event, run, "hello")
    held = door.claim("worker-001")
    assert held is not None
    for end in ("success", "failed"):
        allowed = ", ".join(OPS_RUN.allowed("claimed"))
        refused(InvalidTransition, f"allowed from claimed: {allowed}", door.finish, run, end, held.token)


def test_every_step_is_on_record(door: Door, world: World, clock: StoreClock) -> None:
    """E4, J1: whatever a run went through can be read in the record of its job and its execution."""
    held = claimed(door)
    clock.advance(1)
    door.event(held.run, "building", held.token)
    clock.advance(1)
    door.finish(held.run, "cancelled", cancelled_by="user-456", reason="enough")
    job_id = int(held.run.removeprefix("run-"))
    of_job = [(move.from_state, move.to_state, move.trigger) for move in world.app.jobs.get(job_id).history()]
    assert of_job == [
        (None, "pending", "enqueue"),
        ("pending", "running", "claim"),
        ("running", "running", "request_cancel"),
        ("running", "cancelled", "abort"),
    ]
    asked = next(move for move in world.app.jobs.get(job_id).history() if move.trigger == "request_cancel")
    assert (asked.actor, asked.reason) == ("user-456", "enough")
    (attempt,) = world.app.jobs.get(job_id).executions()
    assert (attempt.worker, attempt.outcome) == ("worker-001", "cancelled")


def test_the_figures_of_operations(world: World, clock: StoreClock) -> None:
    """M1: queue depth, who has what, success rate and durations, by the queries that operators have."""
    door = world.door()
    for end in ("success", "success", "failed"):
        held = claimed(door)
        door.event(held.run, "building", held.token)
        clock.advance(90)
        door.finish(held.run, end, held.token)
    claimed(door, "worker-002")
    door.queue("proj-123", "staging", "abc123", "main")
    runs = world.app.ops.list()
    assert sorted(run.state for run in runs) == ["claimed", "failed", "queued", "success", "success"]
    assert [run.claimed_by for run in runs if run.state == "claimed"] == ["worker-002"]
    if isinstance(door, SqlDoor):
        depth = "SELECT COUNT(*) AS queued_count FROM ops.runs WHERE status = 'queued'"
        assert door.rows(depth) == [(1,)]
        busy = """SELECT claimed_by, COUNT(*) AS active_runs FROM ops.runs
                   WHERE status IN ('claimed', 'running') GROUP BY claimed_by"""
        assert door.rows(busy) == [("worker-002", 1)]
        rate = """SELECT COUNT(*) FILTER (WHERE status = 'success') AS success_count,
                         ROUND(100.0 * COUNT(*) FILTER (WHERE status = 'success') / NULLIF(COUNT(*), 0), 2)
                    FROM ops.runs WHERE created_at > '2025-01-01' AND status IN ('success', 'failed')"""
        assert [(count, float(share)) for count, share in door.rows(rate)] == [(2, 66.67)]
        took = """SELECT status, AVG(EXTRACT(EPOCH FROM (finished_at - started_at))) FROM ops.runs
                   WHERE finished_at IS NOT NULL GROUP BY status ORDER BY status"""
        assert [(status, float(seconds)) for status, seconds in door.rows(took)] == [
            ("failed", 90.0),
            ("success", 90.0),
        ]
