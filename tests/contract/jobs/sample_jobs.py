"""Jobs for tests, and short calls that take a job through its life: enqueue, claim, finish, abort."""

from __future__ import annotations

from typing import Any

from detent.errors import DetentError
from detent.model.json_codec import fingerprint
from detent.model.records import Abort, Claimed, Commit, Enqueued, Finish, Finished, JobRow, NewEvent, NewJob
from detent.store.contract import Store, Verbs

__all__ = [
    "LEASE",
    "abort",
    "brought_to",
    "claim",
    "claim_one",
    "commit",
    "enqueue",
    "event",
    "finish",
    "job",
    "new_job",
    "quarantined",
    "state",
    "succeeded",
]

LEASE = 30.0
"""Seconds: the lease under which these tests claim."""


def new_job(store: Verbs, **overrides: Any) -> NewJob:
    """A job as a client would describe it: a reserved id and a true fingerprint, and whatever is asked for."""
    fields: dict[str, Any] = {"task": "mail.send", "payload": '{"to":7}', "nonce": 1} | overrides
    if "fingerprint" not in fields:
        fields["fingerprint"] = fingerprint(fields["task"], fields["payload"])
    if "id" not in fields:
        fields["id"] = store.ids_reserve(1)
    return NewJob(**fields)


def enqueue(store: Verbs, **overrides: Any) -> int:
    """Enqueue one job that must be new; its id."""
    item = new_job(store, **overrides)
    assert store.job_enqueue([item]) == [Enqueued(item.id, True)]
    return item.id


def claim(store: Verbs, *, limit: int = 100, lease_id: int | None = None, **overrides: Any) -> list[Claimed]:
    """Claim as a worker that knows the task `mail.send` of all queues, under a lease of its own."""
    options: dict[str, Any] = {"worker": "ana", "queues": None, "tasks": ["mail.send"], "lease": LEASE} | overrides
    return store.job_claim(lease_id=store.ids_reserve(1) if lease_id is None else lease_id, limit=limit, **options)


def claim_one(store: Verbs, **overrides: Any) -> Claimed:
    """Claim the one job there is to claim."""
    (claimed,) = claim(store, **overrides)
    return claimed


def job(store: Verbs, job_id: int) -> JobRow:
    """The job, which must be there."""
    (row,) = store.job_get([job_id])
    assert row is not None
    return row


def state(store: Verbs, job_id: int) -> str:
    """The state of a job that must be there."""
    return job(store, job_id).state


def event(held: Claimed, message: str = "hello", **overrides: Any) -> NewEvent:
    """A line by the holder."""
    fields: dict[str, Any] = {"attempt": held.attempt, "level": "info"} | overrides
    return NewEvent(job_id=held.job_id, message=message, **fields)


def commit(held: Claimed, **overrides: Any) -> Commit:
    """The mark of this attempt."""
    return Commit(job_id=held.job_id, attempt=held.attempt, **overrides)


def finish(store: Verbs, held: Claimed, result: str | None = None) -> Finished | DetentError:
    """The attempt did its work."""
    (answer,) = store.job_finish([Finish(held.job_id, held.attempt, result)], "ana")
    return answer


def abort(store: Verbs, held: Claimed, outcome: Any = "error", **overrides: Any) -> Any:
    """The attempt did not do its work; the answer."""
    (answer,) = store.job_abort([Abort(job_id=held.job_id, attempt=held.attempt, outcome=outcome, **overrides)], "ana")
    return answer


def succeeded(store: Store, **overrides: Any) -> int:
    """A job that has succeeded."""
    job_id = enqueue(store, **overrides)
    held = claim_one(store)
    assert finish(store, held) == Finished(job_id, held.attempt)
    return job_id


def quarantined(store: Store, **overrides: Any) -> int:
    """A job among the dead letters."""
    job_id = enqueue(store, **overrides)
    abort(store, claim_one(store), error="boom", fatal=True)
    assert state(store, job_id) == "quarantined"
    return job_id


def brought_to(store: Store, found: str) -> int:
    """A job in this state."""
    job_id = enqueue(store, dead_letter=found != "failed")
    match found:
        case "running":
            claim_one(store)
        case "succeeded":
            finish(store, claim_one(store))
        case "failed" | "quarantined":
            abort(store, claim_one(store), error="boom", fatal=True)
        case "cancelled":
            store.job_cancel([job_id], "ana")
    assert state(store, job_id) == found
    return job_id
