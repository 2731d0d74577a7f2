"""Short words for what nearly every contract test does first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast, get_args

from detent.errors import DetentError
from detent.model.jsondoor import fingerprint
from detent.model.ops_records import NewOpsRun, OpsClaimed, OpsEnd, OpsRunRow, OpsToken
from detent.model.records import Abort, Claimed, Commit, Enqueued, Finish, Finished, JobRow, Moved, NewEvent, NewJob
from detent.store.contract import Store, Verbs

__all__ = [
    "LEASE",
    "Untouched",
    "abort",
    "claim",
    "claim_one",
    "claim_run",
    "commit",
    "enqueue",
    "event",
    "finish",
    "job",
    "new_job",
    "ops_run",
    "quarantined",
    "queue_run",
    "refused",
    "run_in",
    "state",
    "succeeded",
]

LEASE = 30.0
"""Seconds: the lease under which these tests claim."""

Untouched = Callable[[], AbstractContextManager[None]]
E = TypeVar("E", bound=DetentError)


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


def refused(answer: object, kind: type[E], **fields: Any) -> E:
    """The answer is this refusal and says these things."""
    assert type(answer) is kind, f"expected {kind.__name__}, got {answer!r}"
    found = {name: getattr(answer, name) for name in fields}
    assert found == fields, f"expected {fields}, got {answer!r}"
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


def queue_run(store: Verbs, **overrides: Any) -> int:
    """Queue one ops run that must be new; its job."""
    fields: dict[str, Any] = {"nonce": 1, "project_id": "shop", "env": "staging", "git_sha": "abc", "git_ref": "main"}
    item = NewOpsRun(**({"id": store.ids_reserve(1)} | fields | overrides))
    assert store.ops_queue(item) == Enqueued(item.id, True)
    return item.id


def claim_run(store: Verbs, worker: str = "ana") -> OpsClaimed:
    """Claim the ops run that waits longest; there must be one."""
    held = store.ops_claim(store.ids_reserve(1), worker)
    assert held is not None
    return held


def run_in(store: Verbs, state: str) -> OpsClaimed:
    """An ops run that came to this state in the ordinary way, and its claim; a queued one's is of nobody."""
    job_id = queue_run(store)
    if state == "queued":
        return OpsClaimed(
            job_id=job_id,
            project_id="shop",
            env_id=0,
            env="staging",
            git_sha="abc",
            git_ref="main",
            metadata="{}",
            token=OpsToken(1, 999_999),
        )
    held = claim_run(store)
    assert held.job_id == job_id
    if state != "claimed":
        store.ops_append(job_id, "info", "building", token=held.token)
    if state in get_args(OpsEnd):
        ended = store.ops_finish(job_id, cast(OpsEnd, state), '{"exit_code":0}', "ana", token=held.token)
        assert ended == Moved(f"run-{job_id}", state, True)
    return held


def ops_run(store: Verbs, job_id: int) -> OpsRunRow:
    """The run, which must be there."""
    (row,) = store.ops_get([job_id])
    assert row is not None
    return row
