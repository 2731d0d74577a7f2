"""A hardened job queue, told whole: moves that are declared, made once, whole and on record; what is damaged is found
and mended; what stands still is found and recovered. Through the public doors, on both databases.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detent.app.detent import Detent
from detent.client.engine import Engine
from detent.client.job import Job
from detent.declare.context import Context
from detent.declare.signals import Fatal
from detent.errors import AlreadyCommitted, InvalidInput, InvalidTransition
from detent.lifecycle.library import JOB
from detent.model.backoff import Retry
from detent.testing.harness import Harness
from detent.testing.stores import another_store, is_sqlite, plain_connection, table
from tests.deadlines import scaled

JOBS = JOB.states
ACTIONS = ("cancel", "retry", "discard", "force quarantined", "force succeeded")


class Queue:
    """An ingestion queue whose task does what its argument says."""

    def __init__(self, detent: Harness) -> None:
        self.detent, self.app = detent, detent.app

        @self.app.task(name="ingest", retry=Retry(2, base=60.0, jitter=0))
        def ingest(ctx: Context, what: str) -> str:
            if what == "fatal":
                raise Fatal("no document")
            if what == "flaky" and ctx.attempt < 3:
                raise ConnectionError("away")
            if what == "broken":
                raise RuntimeError("it cannot be read")
            return what

        @self.app.task(name="plain", retry=Retry(0), dead_letter=False)
        def plain(ctx: Context) -> None:
            raise RuntimeError("it failed, and nobody keeps it")

        self.ingest, self.plain = ingest, plain

    def brought_to(self, state: str) -> Job[Any]:
        """A job that came to this state in the ordinary way."""
        job: Job[Any]
        match state:
            case "pending":
                return self.ingest.enqueue(what="fine")
            case "running":
                job = self.ingest.enqueue(what="fine")
                self.detent.crash(job, "started")
                self.detent.work()
            case "succeeded" | "quarantined":
                job = self.ingest.enqueue(what="fine" if state == "succeeded" else "fatal")
                self.detent.work()
            case "failed":
                job = self.plain.enqueue()
                self.detent.work()
            case _:
                job = self.ingest.enqueue(what="fine")
                job.cancel(actor="ana")
        assert job.refresh().state == state
        return job

    def do(self, action: str, job_id: int) -> object:
        """What an operator does."""
        name, _, to_state = action.partition(" ")
        if name == "force":
            return self.app.jobs.get(job_id).force(to_state, actor="ana", reason="I know better")
        return getattr(self.app.jobs.get(job_id), name)(actor="ana", reason="because")

    def moves(self, job: Job[Any]) -> list[tuple[str | None, str, str]]:
        return [(one.from_state, one.to_state, one.trigger) for one in job.history()]


@pytest.fixture
def queue(detent: Harness) -> Iterator[Queue]:
    made = Queue(detent)
    yield made
    assert made.app.record.verify() == []


def declared(state: str, action: str) -> str | None:
    """Where the lifecycle leads from a state by an action; None where it does not."""
    trigger, _, to_state = action.partition(" ")
    found = [one.target for one in JOB.transitions if (one.source, one.trigger) == (state, trigger)]
    return next((one for one in found if to_state in ("", one)), None)


@pytest.mark.parametrize("state", JOBS)
def test_every_move_is_declared_or_refused(queue: Queue, state: str) -> None:
    """L2, L3, E4: all states by all actions. A declared move is made and on record; a move to the state it has changes
    nothing; everything else is refused with what would be allowed, and leaves the record as it was."""
    for action in ACTIONS:
        job = queue.brought_to(state)
        try_action(queue, job, state, action)
        if job.refresh().state in ("pending", "running"):
            # Out of the way of the next one.
            queue.detent.clock.advance(31)
            queue.detent.work()


def try_action(queue: Queue, job: Job[Any], state: str, action: str) -> None:
    before = queue.moves(job)
    target = declared(state, action)
    named = {"cancel": "cancelled", "retry": "pending", "discard": "cancelled"}.get(action, action.partition(" ")[2])
    if target is not None:
        queue.do(action, job.id)
        assert job.refresh().state == target
        assert queue.moves(job) == [*before, (state, target, action.partition(" ")[0])]
    elif state == named:
        queue.do(action, job.id)
        assert queue.moves(job) == before
    elif (state, action) == ("running", "cancel"):
        queue.do(action, job.id)  # asked for, on record, and obeyed by its holder
        assert queue.moves(job) == [*before, ("running", "running", "request_cancel")]
    else:
        with pytest.raises((InvalidTransition, AlreadyCommitted)) as refusal:
            queue.do(action, job.id)
        if isinstance(refusal.value, InvalidTransition):
            assert (refusal.value.from_state, refusal.value.to_state) == (state, named)
            assert tuple(refusal.value.allowed) == JOB.allowed(state)
        assert (job.refresh().state, queue.moves(job)) == (state, before)


def test_a_job_that_fails_is_retried_then_put_aside_and_brought_back_by_a_person(queue: Queue) -> None:
    """J9, J10: attempts only grow; the chain of errors is kept; a retry from quarantine has all attempts anew."""
    flaky, broken = queue.ingest.enqueue(what="flaky"), queue.ingest.enqueue(what="broken")
    for expected in (1, 2, 3):
        queue.detent.work()
        assert (flaky.refresh().attempt, broken.refresh().attempt) == (expected, expected)
        queue.detent.clock.advance(3600)
    assert (flaky.state, broken.state) == ("succeeded", "quarantined")
    assert "RuntimeError: it cannot be read" in (broken.error or "")
    broken.retry(actor="ana", reason="the reader is mended")
    queue.detent.work()
    assert (broken.refresh().state, broken.attempt) == ("pending", 4)
    assert [one.outcome for one in broken.executions()] == ["error"] * 4


def test_an_override_has_a_person_and_a_reason_and_is_marked(queue: Queue) -> None:
    """E4: forced along what is declared as such, and nowhere else."""
    job = queue.brought_to("quarantined")
    with pytest.raises(InvalidInput, match="reason"):
        job.force("succeeded", actor="ana", reason="")
    with pytest.raises(InvalidInput, match="actor"):
        job.force("succeeded", actor="", reason="why")
    job.force("succeeded", actor="ana", reason="it came by mail")
    last = job.history()[-1]
    assert (last.forced, last.actor, last.reason) == (True, "ana", "it came by mail")
    assert [one.forced for one in job.history()].count(True) == 1


def test_of_many_who_move_a_job_at_once_one_does(queue: Queue) -> None:
    """L4: the others are told that it was so already; there is one line, not six."""
    job = queue.brought_to("quarantined")
    together = Barrier(6)

    def retry(number: int) -> bool:
        app = Detent(queue.detent.url)
        engine = Engine(app.settings, queue.detent.clock, another_store(queue.detent.url, queue.detent.clock))
        app.rewire(engine)
        with closing(engine):
            together.wait(scaled(30))
            return job.retry(actor=f"operator-{number}").changed

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(retry, range(6))) == [False] * 5 + [True]
    assert [trigger for _, _, trigger in queue.moves(job)].count("retry") == 1


def test_a_worker_that_dies_leaves_a_job_that_is_done_all_the_same(queue: Queue) -> None:
    """J6, R2: running means that somebody has it now, by the lease in the database and not by anybody's memory."""
    job = queue.ingest.enqueue(what="fine")
    queue.detent.crash(job, "returned")
    queue.detent.work()
    assert job.refresh().state == "running"
    queue.detent.clock.advance(31)
    queue.detent.work()
    assert (job.refresh().state, job.attempt) == ("succeeded", 2)
    assert [one.outcome for one in job.executions()] == ["expired", "done"]


def test_a_job_that_kills_its_worker_again_and_again_is_put_aside(queue: Queue) -> None:
    """J7: a lost lease is no proof against a job, so two of its three attempts are given back; then they count."""
    job = queue.ingest.enqueue(what="fine")
    for _ in range(5):
        queue.detent.crash(job, "started")
        queue.detent.work()
        queue.detent.clock.advance(31)
    queue.detent.work()
    assert (job.refresh().state, job.attempt) == ("quarantined", 5)


def test_what_stands_still_is_found_and_recovered(queue: Queue) -> None:
    """R1: ten minutes without a sign; whoever decides that it is lost stops it, and sends it through again."""
    job = queue.ingest.enqueue(what="fine")
    queue.detent.lease = 3600.0
    queue.detent.crash(job, "started")
    queue.detent.work()
    queue.detent.clock.advance(599)
    assert queue.app.jobs.silent() == []
    queue.detent.clock.advance(1)
    (found,) = queue.app.jobs.silent()
    assert (found.job_id, found.kind) == (job.id, "stalled")
    job.cancel(actor="ana", reason="stalled")
    queue.detent.clock.advance(3600)
    queue.detent.work()
    assert job.refresh().state == "cancelled"
    job.retry(actor="ana")
    queue.detent.work()
    assert (job.refresh().state, queue.app.jobs.silent()) == ("succeeded", [])


@pytest.mark.parametrize("state", JOBS)
def test_by_hand_no_state_can_be_set(queue: Queue, state: str) -> None:
    """L2, G4: typed at the prompt of the database, by somebody who has every right."""
    job = queue.brought_to(state)
    with closing(plain_connection(queue.detent.url)) as prompt:
        for target in (*(one for one in JOBS if one != state), "melted"):
            with pytest.raises(Exception, match=r"DT0|constraint|check|violates"):
                prompt.execute(f"UPDATE {table(queue.detent.url, 'job')} SET state = '{target}' WHERE id = {job.id}")
            prompt.rollback()
    assert job.refresh().state == state
    if state == "running":
        queue.detent.clock.advance(31)
        queue.detent.work()


def test_damage_is_found_when_somebody_looks_and_mended_from_the_record(queue: Queue) -> None:
    """R3: by an owner who took the guards away. The plan comes first; a repair is on record."""
    job = queue.brought_to("succeeded")
    url = queue.detent.url
    with closing(plain_connection(url)) as owner:
        spoil = f"UPDATE {table(url, 'job')} SET state = 'quarantined', committed_at = NULL WHERE id = {job.id}"
        if is_sqlite(url):
            guards = owner.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for statement in (*(f"DROP TRIGGER {name}" for name, _ in guards), spoil, *(text for _, text in guards)):
                owner.execute(statement)
        else:
            for statement in ("SET session_replication_role = replica", spoil, "RESET session_replication_role"):
                owner.execute(statement)
        owner.commit()
    assert {(one.entity, one.entity_id) for one in queue.app.record.verify()} == {
        ("job", str(job.id)),
        ("finished_count", "/default/ingest/quarantined"),
    }
    plan = queue.app.record.repair(actor="ana", reason="somebody was at it")
    assert plan
    assert job.refresh().state == "quarantined", "a plan changes nothing"
    queue.app.record.repair(actor="ana", reason="somebody was at it", apply=True)
    assert (job.refresh().state, job.result) == ("succeeded", "fine")
    assert job.history()[-1].trigger == "repair"


@pytest.fixture
def sqlite_queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    harness = Harness(f"sqlite:///{tmp_path_factory.mktemp('any')}/t.db")
    yield Queue(harness)
    harness.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    what=st.sampled_from(["fine", "flaky", "broken", "fatal"]),
    deeds=st.lists(st.sampled_from([*ACTIONS, "work", "wait", "crash"]), max_size=8),
)
def test_whatever_is_done_the_record_gives_the_state(sqlite_queue: Queue, what: str, deeds: list[str]) -> None:
    """J1, J7, R2: deeds in any order. The last line of the record is the state, attempts only grow, success stays."""
    queue = sqlite_queue
    job = queue.ingest.enqueue(what=what)
    attempt, succeeded = 0, False
    for deed in deeds:
        if deed == "work":
            queue.detent.work()
        elif deed == "wait":
            queue.detent.clock.advance(3600)
        elif deed == "crash":
            queue.detent.crash(job, "started")
        else:
            with suppress(InvalidTransition, AlreadyCommitted):
                queue.do(deed, job.id)
        lines = job.history()
        assert lines[-1].to_state == job.refresh().state
        moved = {(one.from_state, one.to_state) for one in lines[1:] if one.from_state != one.to_state}
        assert moved <= set(JOB.pairs)
        assert job.attempt >= attempt
        assert not succeeded or job.state == "succeeded"
        attempt, succeeded = job.attempt, job.state == "succeeded"
    assert job.state_at(queue.detent.clock.now()) == job.refresh().state
    queue.detent.clock.advance(31)
    queue.detent.work()
    assert queue.app.record.verify() == []
