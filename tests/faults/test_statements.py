"""SIGKILL at every statement of what a worker does.

`make test`: before every fourth statement, and on SQLite, where there are many, before every eighth, beginning where
chance has it. `make faults`: before and after each, with every invariant checked after every kill.
"""

from __future__ import annotations

import itertools
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from detent import Context, Retry
from detent.client.job import Job
from detent.model.ids import ReservedIds
from detent.model.records import Abort
from detent.schedule.due_ticks import fire_due
from detent.testing.harness import Harness
from detent.testing.stores import is_sqlite, plain_connection
from detent.worker.options import WorkerOptions
from detent.worker.services.service_set import ServiceSet
from prove.trap import killed_at
from tests.faults.tasks import INSERT

LEASE = 30.0
SLICE = {"sqlite": 8, "postgres": 4}
"""In `make test`, a process is killed before every so many statements."""


@dataclass(frozen=True)
class Deed:
    """Something that a worker does. `prepare` makes what it is done to; `act` is done by a process that dies;
    `state` is where the job is when everything has settled, `effects` how many rows it has left by then."""

    prepare: Callable[[Harness], Job[Any]]
    act: Callable[[Harness, Job[Any]], object]
    state: str = "succeeded"
    effects: int = 1


def leave_row(ctx: Context) -> None:
    """An intent's job."""
    with ctx.commit() as tx:
        tx.execute(INSERT, {"job_id": ctx.job_id, "attempt": ctx.attempt})


def declare(harness: Harness) -> None:
    app = harness.app
    child = app.task(name="leave_row", retry=Retry(100, base=1))(leave_row)

    def leave_two_rows(ctx: Context, fail: bool) -> str:
        """Its own row, and the one of the job that it intends: for the ledger both are this job's."""
        ctx.event("begun")
        if fail and ctx.attempt == 1:
            raise RuntimeError("the first time it fails")
        with ctx.commit() as tx:
            tx.execute(INSERT, {"job_id": ctx.job_id, "attempt": ctx.attempt})
            tx.intend(child.call())
            tx.result("done")
        ctx.event("committed")
        return "done"

    app.task(name="leave_two_rows", retry=Retry(100, base=1))(leave_two_rows)


def send(harness: Harness, task: str = "leave_row", *, due_in: float = 0.0, **arguments: Any) -> Job[Any]:
    due_at = harness.clock.now() + timedelta(seconds=due_in)
    return harness.app.enqueue(harness.app.find_task(task).call(**arguments), due_at=due_at)


def crashed(harness: Harness, at: Any) -> Job[Any]:
    """Its worker has died, and its lease has run out."""
    job = send(harness)
    harness.crash(job, at)
    harness.work()
    harness.clock.advance(LEASE + 1)
    return job


def due_now(harness: Harness) -> Job[Any]:
    job = send(harness, due_in=10)
    harness.clock.advance(11)
    return job


def held(harness: Harness) -> Job[Any]:
    job = send(harness)
    harness.crash(job, "started")
    harness.work()
    return job


def expiring(harness: Harness) -> Job[Any]:
    job = harness.app.enqueue(
        harness.app.find_task("leave_row").call(), expires_at=harness.clock.now() + timedelta(seconds=10)
    )
    harness.clock.advance(11)
    return job


def cancelling(harness: Harness) -> Job[Any]:
    job = held(harness)
    job.cancel(actor="ana")
    return job


def lease_of(job: Job[Any], harness: Harness) -> int:
    (now,) = [one for one in job.executions() if one.lease_id]
    assert now.lease_id is not None
    return now.lease_id


def abort(harness: Harness, job: Job[Any], outcome: Any) -> object:
    return harness.store.job_abort([Abort(job_id=job.id, attempt=job.refresh().row.attempt, outcome=outcome)], "w")


def serve(harness: Harness, _job: Job[Any]) -> None:
    """One pass over all the services of a worker, and its farewell."""
    options = WorkerOptions(app="x:y", name="w", lease=LEASE)
    services = ServiceSet(harness.store, options, harness.store.ids_reserve(1), harness.clock)
    # The invariants only read, at length.
    services.services = [one for one in services.services if one.name != "invariants"]
    services.tick(harness.clock.monotonic(), asked_to_drain=False)
    services.tick_alone(harness.clock.monotonic())
    services.close()


DEEDS = {
    "work": Deed(
        lambda harness: send(harness, "leave_two_rows", fail=False), lambda harness, _: harness.work(), effects=2
    ),
    "fail and retry": Deed(
        lambda harness: send(harness, "leave_two_rows", fail=True), lambda harness, _: harness.work(), effects=2
    ),
    "reap": Deed(lambda harness: crashed(harness, "started"), lambda harness, _: harness.store.lease_reap(100)),
    "recover while reaping": Deed(
        lambda harness: crashed(harness, "committed"), lambda harness, _: harness.store.lease_reap(100)
    ),
    "recover": Deed(
        lambda harness: crashed(harness, "committed"), lambda harness, job: harness.store.job_recover([job.id])
    ),
    "adopt": Deed(held, lambda harness, job: harness.store.claim_find(lease_of(job, harness))),
    "renew": Deed(held, lambda harness, job: harness.store.lease_renew([lease_of(job, harness)], LEASE, {job.id: 0.5})),
    "release": Deed(held, lambda harness, job: abort(harness, job, "released")),
    "cancel": Deed(cancelling, lambda harness, job: abort(harness, job, "cancelled"), state="cancelled", effects=0),
    "promote": Deed(due_now, lambda harness, _: harness.store.job_promote(100)),
    "expire": Deed(expiring, lambda harness, _: harness.store.job_expire(100), state="cancelled", effects=0),
    "serve": Deed(due_now, serve),
}


@pytest.fixture
def harness(store_url: str) -> Iterator[Harness]:
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE ledger (job_id bigint NOT NULL, attempt bigint NOT NULL)")
        connection.commit()
    one = Harness(store_url, lease=LEASE)
    declare(one)
    yield one
    one.close()


def apart(harness: Harness) -> int:
    return SLICE["sqlite" if is_sqlite(harness.url) else "postgres"]


def ledger(harness: Harness) -> Counter[int]:
    with closing(plain_connection(harness.url)) as connection:
        return Counter(job_id for (job_id,) in connection.execute("SELECT job_id FROM ledger").fetchall())


def settle(harness: Harness) -> None:
    """Other workers go on: leases run out, backoffs pass, everything is done that can be done."""
    for _ in range(3):
        harness.clock.advance(LEASE + 1)
        harness.work()


def die_everywhere(whole: bool, die: Callable[[int, bool], bool], apart: int) -> None:
    """Let it die at one statement after the other, until it is done before it comes to die. Without `whole`, these
    statements are `apart` from each other."""
    begin = 1 if whole else 1 + secrets.randbelow(apart)
    for after in (False, True) if whole else (False,):
        deaths = 0
        for k in itertools.count(begin, 1 if whole else apart):
            if not die(k, after):
                break
            deaths += 1
        assert deaths or begin > 1


def settled(harness: Harness, deed: Deed, k: int, after: bool, whole: bool) -> bool:
    """Do it, dying at that statement; let others go on; look. Whether it died."""
    job = deed.prepare(harness)
    before = ledger(harness)
    died = killed_at(k, lambda: deed.act(harness, job), after=after)
    if whole:
        assert harness.store.verify() == []
    settle(harness)
    left = ledger(harness) - before
    where = f"{'after' if after else 'before'} statement {k}"
    assert job.refresh().state == deed.state, where
    assert max(left.values(), default=0) <= 1, where
    assert left.total() == deed.effects - before[job.id], where
    return died


@pytest.mark.timeout(600)
@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS.keys())
def test_killed_at_every_statement(harness: Harness, deed: Deed, whole: bool) -> None:
    """G1, G2, J5: wherever the process died, others bring the job to its end; nothing is lost, nothing doubled."""
    die_everywhere(whole, lambda k, after: settled(harness, deed, k, after, whole), apart(harness))
    assert harness.store.verify() == []


@pytest.mark.timeout(600)
def test_an_effect_outside_the_boundary_is_found_to_be_doubled(harness: Harness) -> None:
    """What the test above would say of a job that writes past its commit boundary."""

    def leave_row_outside(ctx: Context) -> None:
        with closing(plain_connection(harness.url)) as connection:
            connection.execute(f"INSERT INTO ledger (job_id, attempt) VALUES ({ctx.job_id}, {ctx.attempt})")
            connection.commit()

    harness.app.task(name="leave_row_outside", retry=Retry(100, base=1))(leave_row_outside)
    deed = Deed(lambda harness: send(harness, "leave_row_outside"), lambda harness, _: harness.work())
    # A file is written to in many statements after that one, and every fourth is enough; on a server it is the last.
    every = not is_sqlite(harness.url)
    with pytest.raises(AssertionError, match="before statement"):
        die_everywhere(every, lambda k, after: settled(harness, deed, k, after, False), 4)


@pytest.mark.timeout(600)
def test_a_tick_fires_once_wherever_its_scheduler_died(harness: Harness, whole: bool) -> None:
    """J11: killed at every statement, and done again by another: each tick has made one job."""
    app = harness.app
    app.schedules.set("each-minute", "* * * * *", app.find_task("leave_row").call(), catch_up="all")
    ticks = itertools.count(1)

    def die(k: int, after: bool) -> bool:
        harness.clock.advance(60)
        died = killed_at(k, lambda: fire(harness), after=after)
        fire(harness)
        harness.work()
        rows = ledger(harness)
        assert (rows.total(), len(rows)) == (expected := next(ticks), expected), (k, after)
        return died

    die_everywhere(whole, die, apart(harness))
    assert harness.store.verify() == []


def fire(harness: Harness) -> None:
    fire_due(harness.store, ReservedIds(harness.store.ids_reserve, 1))
