"""Everything that can happen next to two jobs, their attempts and their leases.

Any attempt that was ever claimed may still be continued by a worker that stood still, so what a worker may try does not
depend on what it remembers: each attempt tries everything. Workers have no other memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from detent.errors import DetentError
from detent.model.records import Abort, Commit, Finish, NewJob
from detent.testing.stores import START
from prove.exhaustive.record import Record
from prove.reference.model import Model
from prove.reference.rows import Job
from prove.reference.rules import SECOND

__all__ = ["LEASE", "Bounds", "Move", "moves", "zombie_moves"]

TASK = "charge"
LEASE = 5_000_000.0
"""Seconds. No lease expires by itself: that is a move."""
DELAY = 1_000
EXPIRES = 1_000_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is explored: the two jobs, how many attempts each may have, and how often it may be given back."""

    attempts: tuple[int, int]
    releases: int
    """How many attempts of a job may be spared."""
    has_people: bool
    """Whether people retry, discard, force and settle, too."""

    def __str__(self) -> str:
        words = [f"jobs of {self.attempts[0]} and {self.attempts[1]} attempts"]
        words += [f"{self.releases} given back"] if self.releases else []
        words += ["people who retry, discard, force and settle"] if self.has_people else []
        return ", ".join(words)

    @property
    def jobs(self) -> tuple[NewJob, NewJob]:
        """One that may be repeated, and one that must not be, has no dead letter and expires."""
        first = NewJob(id=1, task=TASK, payload="{}", nonce=1, fingerprint="a", attempts_max=self.attempts[0])
        other = NewJob(
            id=2,
            task=TASK,
            payload="{}",
            nonce=2,
            fingerprint="b",
            attempts_max=self.attempts[1],
            idempotent=False,
            dead_letter=False,
            expires_at=START + timedelta(seconds=EXPIRES),
        )
        return first, other


class Move(NamedTuple):
    """A call of the store, and how many seconds after the last one it is made."""

    name: str
    call: Callable[[Any], Any]
    seconds: int = 1
    holder: tuple[int, int] = (0, 0)
    """The job and the attempt that call, if it is an attempt that does."""
    verb: str = ""
    """The verb of the holder, as `prove/reference/faults.py` calls it."""
    through_block: bool = False
    """Whether it commits through the boundary, and writes an effect if it is taken."""


def _verb(name: str, *args: Any, **named: Any) -> Callable[[Any], Any]:
    """Return a call of a verb."""
    return lambda on: getattr(on, name)(*args, **named)


def moves(record: Record, bounds: Bounds) -> Iterator[Move]:
    """Return everything that may happen next."""
    for item in bounds.jobs:
        job = record.job(item.id)
        yield Move(f"enqueue {item.id}", _verb("job_enqueue", [item]))
        if job is not None:
            yield from _moves_of_job(record, job, bounds)
    yield from _claims(record, bounds)
    running = [job for job in record.jobs if job.state == "running"]
    if len(running) == 2:
        yield from _moves_of_both(running)
    yield from _moves_of_time(record)


def _moves_of_job(record: Record, job: Job, bounds: Bounds) -> Iterator[Move]:
    ids = [job.id]
    if job.state == "running":
        yield from _moves_of_attempt(record, job.id, job.attempt, bounds)
    yield Move(f"recover {job.id}", _verb("job_recover", ids))
    yield Move(f"cancel {job.id}", _verb("job_cancel", ids, "ana"))
    if bounds.has_people:
        yield Move(f"retry {job.id}", _verb("job_retry", ids, "ana"))
        yield Move(f"discard {job.id}", _verb("job_discard", ids, "ana"))
        for state in ("quarantined", "succeeded"):
            yield Move(f"force {job.id} to {state}", _verb("job_force", job.id, state, "ana", "so"))
        for done in (True, False):
            yield Move(f"settle {job.id} as {done}", _verb("effect_settle", job.id, done, "ana", "so"))


def _moves_of_attempt(record: Record, job_id: int, attempt: int, bounds: Bounds) -> Iterator[Move]:
    yield from zombie_moves(job_id, attempt)
    me = (job_id, attempt)
    yield Move(f"finish {me} with a result", _verb("job_finish", [Finish(*me, '"r"')], "w"), 1, me, "finish")
    job = record.job(job_id)
    assert job is not None
    ends: list[tuple[str, dict[str, Any]]] = [
        ("error", {"error": "e", "delay": DELAY}),
        ("error", {"error": "e", "fatal": True}),
        ("crashed", {"error": "e"}),
        ("unknown", {"error": "e"}),
        ("cancelled", {}),
    ]
    if job.spared < bounds.releases:
        ends.append(("released", {}))
    for outcome, more in ends:
        if outcome == "cancelled" and job.cancel_requested_at is None and job.spared >= bounds.releases:
            continue  # it is given back then
        yield Move(f"{outcome} {me}{' fatal' if more.get('fatal') else ''}", _abort(me, outcome, more), 1, me, "fail")


def zombie_moves(job_id: int, attempt: int) -> Iterator[Move]:
    """Return what an attempt may try, whether it holds its job or not."""
    me = (job_id, attempt)
    yield Move(f"start {me}", _verb("job_start", [me]), 1, me, "start")
    yield Move(f"commit {me}", _commit(me), 1, me, "commit", through_block=True)
    yield Move(f"mark {me}", _verb("job_commit", Commit(job_id=me[0], attempt=me[1])), 1, me, "commit")
    yield Move(f"finish {me}", _verb("job_finish", [Finish(*me)], "w"), 1, me, "finish")
    yield Move(f"error {me}", _abort(me, "error", {"error": "e"}), 1, me, "fail")
    yield Move(f"crash {me}", _abort(me, "timed_out", {"fatal": True}), 1, me, "fail")


def _moves_of_both(running: list[Job]) -> Iterator[Move]:
    """Ends that one worker reports together. Each item is judged by itself."""
    ends = [Finish(job.id, job.attempt) for job in running]
    yield Move("finish both", _verb("job_finish", ends, "w"))
    errors = [Abort(job_id=job.id, attempt=job.attempt, outcome="error", error="e") for job in running]
    yield Move("error both", _verb("job_abort", errors, "w"))
    yield Move("cancel both", _verb("job_cancel", [job.id for job in running], "ana"))


def _claims(record: Record, bounds: Bounds) -> Iterator[Move]:
    """One job or both, and a claim while the queue is paused. A job that had all its attempts is claimed no more."""
    lease_id = 100 + sum(job.attempt for job in record.jobs)
    terms = {"lease_id": lease_id, "worker": f"w{lease_id % 3}", "queues": None, "tasks": [TASK], "lease": LEASE}
    for limit in (1, 2):
        claim = _verb("job_claim", limit=limit, **terms)
        taken = claim(record.thaw())
        if all(one.attempt <= bounds.attempts[one.job_id - 1] for one in taken) and len(taken) in (0, limit):
            yield Move(f"claim {limit}", claim)
            if limit == 1:
                yield Move("claim while the queue is paused", _paused(claim))


def _paused(claim: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(on: Any) -> Any:
        on.queue_pause("default", "ana", "so")
        taken = claim(on)
        on.queue_resume("default", "ana")
        return taken

    return call


def _moves_of_time(record: Record) -> Iterator[Move]:
    for lease in record.leases:
        if lease.expires_at > record.clock and record.holds(lease.id):
            yield Move(f"lease {lease.id} expires", _expiry(lease.id))
            yield Move(f"renew {lease.id}", _verb("lease_renew", [lease.id], LEASE))
    late = [lease.id for lease in record.leases if lease.expires_at <= record.clock]
    if late:
        yield Move("renew what has expired", _verb("lease_renew", late, LEASE))
        yield Move("reap", _verb("lease_reap", 10))
    if record.waiting:
        yield Move("a waiting job is due", _verb("job_promote", 1), DELAY)
    ends = record.clock_of_expiry
    if ends is not None and ends > record.clock:
        yield Move("a job expires", lambda on: None, (ends - record.clock) // SECOND + 1)
    elif ends is not None:
        yield Move("expire", _verb("job_expire", 10))


def _expiry(lease_id: int) -> Callable[[Any], Any]:
    """Time passes for one lease alone: the others were renewed meanwhile."""

    def call(on: Any) -> None:
        if isinstance(on, Model):
            on.lease[lease_id] = on.lease[lease_id]._replace(expires_at=on.clock)
        else:
            on.expire_lease(lease_id)

    return call


def _abort(me: tuple[int, int], outcome: Any, more: dict[str, Any]) -> Callable[[Any], Any]:
    return _verb("job_abort", [Abort(job_id=me[0], attempt=me[1], outcome=outcome, **more)], "w")


def _commit(me: tuple[int, int]) -> Callable[[Any], Any]:
    """Through the boundary, with the user's effect in it. What is refused is raised."""

    def call(on: Any) -> Any:
        if isinstance(on, Model):
            answer = on.job_commit(Commit(job_id=me[0], attempt=me[1]))
            if isinstance(answer, DetentError):
                raise answer
            return None
        return on.effect_through_block(*me)

    return call
