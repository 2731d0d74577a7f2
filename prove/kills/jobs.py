"""Deeds to jobs: work, failures, leases, cancels, keys, limits, schedules, services."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from detent import Context, Limit, Retry
from detent.client.job import Job
from detent.model.ids import ReservedIds
from detent.model.records import Abort
from detent.schedule.due_ticks import fire_due
from detent.testing.harness import Harness
from detent.worker.options import WorkerOptions
from detent.worker.services.service_set import ServiceSet
from prove.kills.deed import INSERT, LEASE, Deed, Finding, look_at_effects, look_at_job, rows, work

__all__ = ["AT_MOST", "JOBS", "KEYED", "SCHEDULES", "declare", "one_job", "send"]

PATIENT = Retry(100, base=1)
_NUMBERS = itertools.count(1)


def declare(harness: Harness) -> None:
    """Declare the tasks of these deeds."""
    app = harness.app

    @app.task(name="leave_row", retry=PATIENT)
    def leave_row(ctx: Context, root: int = 0) -> None:
        with ctx.commit() as tx:
            tx.execute(INSERT, {"root": root or ctx.job_id, "job_id": ctx.job_id})

    @app.task(name="leave_row_in_turn", retry=PATIENT, limit=Limit(concurrency=1))
    def leave_row_in_turn(ctx: Context) -> None:
        leave_row(ctx)

    @app.task(name="leave_two_rows", retry=PATIENT)
    def leave_two_rows(ctx: Context, fail: bool) -> str:
        """Its own, and the one of the job that it intends."""
        ctx.event("begun")
        if fail and ctx.attempt == 1:
            raise RuntimeError("the first time it fails")
        with ctx.commit() as tx:
            tx.execute(INSERT, {"root": ctx.job_id, "job_id": ctx.job_id})
            tx.intend(leave_row.call(root=ctx.job_id))
            tx.result("done")
        ctx.event("committed")
        return "done"

    @app.task(name="call_once", idempotent=False)
    def call_once(ctx: Context, calls: str) -> None:
        _note(Path(calls), "called")

    @app.task(name="tick", retry=PATIENT)
    def tick(ctx: Context, name: str) -> None:
        with ctx.commit() as tx:
            tx.execute(
                "INSERT INTO changed (root, ref, price) VALUES (0, :name, :id)", {"name": name, "id": ctx.job_id}
            )


def _note(path: Path, line: str) -> None:
    """Leave a line that no kill takes back."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def send(harness: Harness, task: str = "leave_row", *, due_in: float = 0.0, **arguments: Any) -> Job[Any]:
    due_at = harness.clock.now() + timedelta(seconds=due_in)
    return harness.app.enqueue(harness.app.find_task(task).call(**arguments), due_at=due_at)


def _crashed(harness: Harness, at: Any) -> Job[Any]:
    """Its worker has died, and its lease has run out."""
    job = send(harness)
    harness.crash(job, at)
    harness.work()
    harness.clock.advance(LEASE + 1)
    return job


def _due_now(harness: Harness) -> Job[Any]:
    job = send(harness, due_in=10)
    harness.clock.advance(11)
    return job


def _held(harness: Harness) -> Job[Any]:
    job = send(harness)
    harness.crash(job, "started")
    harness.work()
    return job


def _expiring(harness: Harness) -> Job[Any]:
    job = harness.app.enqueue(
        harness.app.find_task("leave_row").call(), expires_at=harness.clock.now() + timedelta(seconds=10)
    )
    harness.clock.advance(11)
    return job


def _cancelling(harness: Harness) -> Job[Any]:
    job = _held(harness)
    job.cancel(actor="ana")
    return job


def _lease_of(job: Job[Any]) -> int:
    (now,) = [one for one in job.executions() if one.lease_id]
    assert now.lease_id is not None
    return now.lease_id


def _abort(harness: Harness, job: Job[Any], outcome: Any) -> object:
    return harness.store.job_abort([Abort(job_id=job.id, attempt=job.refresh().row.attempt, outcome=outcome)], "w")


def _serve(harness: Harness, _job: Job[Any]) -> None:
    """One pass over all the services of a worker, and its farewell."""
    options = WorkerOptions(app="x:y", name="w", lease=LEASE)
    services = ServiceSet(harness.store, options, harness.store.ids_reserve(1), harness.clock)
    # The invariants only read, at length.
    services.services = [one for one in services.services if one.name != "invariants"]
    services.tick(harness.clock.monotonic(), asked_to_drain=False)
    services.tick_alone(harness.clock.monotonic())
    services.close()


def one_job(
    prepare: Callable[[Harness], Job[Any]],
    act: Callable[[Harness, Job[Any]], object] = work,
    *,
    effects: int = 1,
    state: str = "succeeded",
) -> Deed:
    return Deed(prepare, act, partial(look_at_job, effects=effects, state=state))


# -- jobs that must not be repeated, and jobs under a limit --------------------------------------------------------


@dataclass(frozen=True)
class _Called:
    """A job that must not be repeated, and where each call leaves a line."""

    job: Job[Any]
    calls: Path


def _send_once(harness: Harness) -> _Called:
    handle, name = tempfile.mkstemp(prefix="detent-calls-")
    os.close(handle)
    return _Called(send(harness, "call_once", calls=name), Path(name))


def _look_at_calls(_harness: Harness, called: _Called) -> Iterator[Finding]:
    job, calls = called.job.refresh(), len(called.calls.read_text().splitlines())
    called.calls.unlink()
    if calls > 1:
        yield "doubled", f"job {job.id} must not be repeated and was called {calls} times"
    if job.state not in ("succeeded", "quarantined"):
        yield "stuck", f"job {job.id} is {job.state}"
    if job.state == "succeeded" and not calls:
        yield "lost", f"job {job.id} has succeeded and was never called"


def _two_in_turn(harness: Harness) -> list[Job[Any]]:
    return [send(harness, "leave_row_in_turn") for _ in range(2)]


def _look_at_jobs(harness: Harness, jobs: list[Job[Any]]) -> Iterator[Finding]:
    for job in jobs:
        yield from look_at_job(harness, job, effects=1)


JOBS = {
    "work": one_job(lambda harness: send(harness, "leave_two_rows", fail=False), effects=2),
    "fail and retry": one_job(lambda harness: send(harness, "leave_two_rows", fail=True), effects=2),
    "reap": one_job(lambda harness: _crashed(harness, "started"), lambda harness, _: harness.store.lease_reap(100)),
    "recover while reaping": one_job(
        lambda harness: _crashed(harness, "committed"), lambda harness, _: harness.store.lease_reap(100)
    ),
    "recover": one_job(
        lambda harness: _crashed(harness, "committed"), lambda harness, job: harness.store.job_recover([job.id])
    ),
    "adopt": one_job(_held, lambda harness, job: harness.store.claim_find(_lease_of(job))),
    "renew": one_job(_held, lambda harness, job: harness.store.lease_renew([_lease_of(job)], LEASE, {job.id: 0.5})),
    "release": one_job(_held, lambda harness, job: _abort(harness, job, "released")),
    "cancel": one_job(
        _cancelling, lambda harness, job: _abort(harness, job, "cancelled"), effects=0, state="cancelled"
    ),
    "promote": one_job(_due_now, lambda harness, _: harness.store.job_promote(100)),
    "expire": one_job(_expiring, lambda harness, _: harness.store.job_expire(100), effects=0, state="cancelled"),
    "serve": one_job(_due_now, _serve),
}

AT_MOST = {
    "call once": Deed(_send_once, work, _look_at_calls),
    "work under a limit": Deed(_two_in_turn, work, _look_at_jobs),
}


# -- keys ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sending:
    """A client sends a job under a key, and notes that it was accepted in a file of its own."""

    key: str
    root: int
    accepted: Path


def _key(_harness: Harness) -> _Sending:
    handle, name = tempfile.mkstemp(prefix="detent-accepted-")
    os.close(handle)
    root = -next(_NUMBERS)
    return _Sending(f"key{root}", root, Path(name))


def _send_key(harness: Harness, sending: _Sending) -> None:
    call = harness.app.find_task("leave_row").call(root=sending.root)
    _note(sending.accepted, str(harness.app.enqueue(call, key=sending.key).id))


def _send_key_and_work(harness: Harness, sending: _Sending) -> None:
    """As a client that has a worker beside it."""
    _send_key(harness, sending)
    harness.work()
    _send_key(harness, sending)


def _send_many(harness: Harness, sending: _Sending) -> None:
    """Without a key, so it is sent once, and all or nothing."""
    call = harness.app.find_task("leave_row").call(root=sending.root)
    for job in harness.app.enqueue_many([call] * 3):
        _note(sending.accepted, str(job.id))


def _accepted(sending: _Sending) -> set[int]:
    found = {int(line) for line in sending.accepted.read_text().splitlines()}
    sending.accepted.unlink()
    return found


def _look_at_key(harness: Harness, sending: _Sending) -> Iterator[Finding]:
    accepted = _accepted(sending)
    if len(accepted) > 1:
        yield "doubled", f"key {sending.key} was accepted as jobs {sorted(accepted)}"
    known = [job.id for job in harness.app.jobs.list(key=sending.key)]
    if set(known) != accepted:
        yield "lost", f"key {sending.key} was accepted as {sorted(accepted)}, and there is {known}"
    yield from look_at_effects(harness, sending.root, 1)


def _look_at_many(harness: Harness, sending: _Sending) -> Iterator[Finding]:
    accepted = _accepted(sending)
    found = {job_id for (job_id,) in rows(harness, f"SELECT job_id FROM ledger WHERE root = {sending.root}")}
    if not accepted <= found:
        yield "lost", f"jobs {sorted(accepted - found)} were accepted and have no effect"
    yield from look_at_effects(harness, sending.root, 3 if found else 0)


KEYED = {
    "send under a key": Deed(_key, _send_key, _look_at_key, _send_key_and_work),
    "send under a key and work": Deed(_key, _send_key_and_work, _look_at_key, _send_key_and_work),
    "send many": Deed(_key, _send_many, _look_at_many),
}


# -- schedules -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ticking:
    name: str
    minute: int


def _set_schedule(harness: Harness) -> _Ticking:
    name = f"each-minute-{next(_NUMBERS)}"
    harness.app.schedules.set(name, "* * * * *", harness.app.find_task("tick").call(name=name), catch_up="all")
    ticking = _Ticking(name, _minute(harness))
    harness.clock.advance(60)
    return ticking


def _minute(harness: Harness) -> int:
    return int(harness.clock.now().timestamp() // 60)


def _fire(harness: Harness, _ticking: _Ticking) -> None:
    fire_due(harness.store, ReservedIds(harness.store.ids_reserve, 1))


def _look_at_ticks(harness: Harness, ticking: _Ticking) -> Iterator[Finding]:
    expected = _minute(harness) - ticking.minute
    harness.app.schedules.remove(ticking.name, actor="ana", reason="its deed is over")
    found = [job_id for (job_id,) in rows(harness, f"SELECT price FROM changed WHERE ref = '{ticking.name}'")]
    if len(found) > len(set(found)):
        yield "doubled", f"a job of schedule {ticking.name} has left two rows"
    if len(found) != expected:
        kind: Any = "lost" if len(found) < expected else "doubled"
        yield kind, f"schedule {ticking.name} has fired {len(found)} times instead of {expected}"


SCHEDULES = {"fire": Deed(_set_schedule, _fire, _look_at_ticks)}
