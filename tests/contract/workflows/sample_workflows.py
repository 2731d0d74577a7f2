"""Workflows for tests, and short calls that take one through steps, waits and children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detent.model.records import Claimed, NewJob
from detent.model.workflow_records import (
    NewSignal,
    NewStep,
    NewWait,
    Park,
    Parked,
    SignalSent,
    Spawn,
    Spawned,
    StepRecorded,
    WaitOn,
    WorkflowHistory,
)
from detent.store.contract import Store, Verbs
from tests.contract.jobs.sample_jobs import claim_one, enqueue, new_job

__all__ = [
    "begin",
    "children",
    "load",
    "look",
    "park",
    "parked_for_signal",
    "paths",
    "record",
    "send",
    "signal",
    "spawn",
    "step",
    "wait",
]


def begin(store: Verbs, **overrides: Any) -> Claimed:
    """A workflow that a worker has just claimed."""
    enqueue(store, **overrides)
    return claim_one(store)


def step(held: Claimed, path: str = "a", **overrides: Any) -> NewStep:
    """A step of that attempt."""
    fields: dict[str, Any] = {"version": 1, "generation": 1, "seq": 1, "kind": "call"} | overrides
    if "value" not in fields and "error" not in fields:
        fields["value"] = "1"
    where: dict[str, Any] = {"job_id": held.job_id, "attempt": held.attempt, "path": path}
    return NewStep(**(where | fields))


def record(store: Verbs, held: Claimed, path: str = "a", **overrides: Any) -> Any:
    """Record one step; the answer."""
    (answer,) = store.step_record([step(held, path, **overrides)])
    return answer


def load(store: Verbs, held: Claimed, **options: Any) -> WorkflowHistory:
    """What is on record, for the holder."""
    history = store.workflow_load(held.job_id, held.attempt, **options)
    assert isinstance(history, WorkflowHistory), history
    return history


def paths(history: WorkflowHistory) -> list[str]:
    """The steps on record."""
    return [one.path for one in history.steps]


def wait(held: Claimed, *on: WaitOn, path: str = "w", **overrides: Any) -> NewWait:
    """A wait for these."""
    fields: dict[str, Any] = {"outcome": step(held, path, kind="signal", value=None)} | overrides
    return NewWait(job_id=held.job_id, attempt=held.attempt, on=on, **fields)


def look(store: Verbs, held: Claimed, *on: WaitOn, path: str = "w", **overrides: Any) -> Any:
    """Look at a wait; the answer."""
    (answer,) = store.wait_look([wait(held, *on, path=path, **overrides)])
    return answer


def signal(name: str = "go") -> WaitOn:
    """A signal to wait for."""
    return WaitOn("signal", name)


def children(path: str = "kids", *, settled: bool = False) -> WaitOn:
    """A group of children to wait for."""
    return WaitOn("children", path, settled)


def park(store: Verbs, held: Claimed, *on: WaitOn, worker: str = "ana", **overrides: Any) -> Any:
    """End the attempt because it waits; the answer."""
    fields: dict[str, Any] = {"version": 1, "generation": 1, "parked_for": "a test"} | overrides
    (answer,) = store.workflow_park([Park(job_id=held.job_id, attempt=held.attempt, on=on, **fields)], worker)
    return answer


def parked_for_signal(store: Verbs, name: str = "go", **overrides: Any) -> int:
    """A workflow that is parked for a signal; its id."""
    held = begin(store, **overrides)
    assert park(store, held, signal(name)) == Parked(held.job_id, held.attempt)
    return held.job_id


def send(store: Verbs, job_id: int, name: str = "go", payload: str = "1", **overrides: Any) -> Any:
    """Send a signal; the answer."""
    fields: dict[str, Any] = {"actor": "bob"} | overrides
    (answer,) = store.signal_send([NewSignal(job_id=job_id, name=name, payload=payload, **fields)])
    return answer


def spawn(
    store: Store,
    held: Claimed,
    count: int = 2,
    *,
    path: str = "kids",
    jobs: Sequence[NewJob] | None = None,
    first_id: int | None = None,
    **overrides: Any,
) -> Any:
    """Spawn children of the task `mail.child`; the answer."""
    first = store.ids_reserve(count) if first_id is None else first_id
    made = [new_job(store, id=first + n, task="mail.child") for n in range(count)] if jobs is None else jobs
    fields: dict[str, Any] = {"total": count} | overrides
    made_step = fields.pop("step", None) or step(held, path, kind="spawn")
    return store.workflow_spawn(Spawn(step=made_step, first_id=first, jobs=tuple(made), **fields))


def is_sent(answer: object) -> SignalSent:
    """The signal is in the mailbox."""
    assert isinstance(answer, SignalSent), answer
    return answer


def is_recorded(answer: object) -> StepRecorded:
    """The step is on record."""
    assert isinstance(answer, StepRecorded), answer
    return answer


def is_spawned(answer: object) -> Spawned:
    """The children are there."""
    assert isinstance(answer, Spawned), answer
    return answer
