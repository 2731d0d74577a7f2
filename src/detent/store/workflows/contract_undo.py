"""The verbs that undo the steps of workflows, and that settle what only a person can find out about a step.

A workflow undoes its steps itself when it fails or is cancelled: `undo_begin`. Of a job that has come to rest, another
job undoes them: `undo_start`. In both cases a worker calls the undo functions in the reverse order of the steps, and
records each call as a step `<path>~undo`, and at the end `~undone`. If an attempt ends for good before that, the job is
quarantined with the reason `undo failed`, whatever its dead letters, and although a cancel was requested.
"""

from __future__ import annotations

from typing import Protocol

from detent.errors import (
    DetentError,
    InvalidInput,
    InvalidTransition,
    LeaseLost,
    NotFound,
    NotUnknown,
    UndoRefused,
)
from detent.model.records import Moved
from detent.model.workflow_records import NewUndo, UndoBegun, UndoStarted
from detent.store.verb import verb

__all__ = ["UndoVerbs"]


class UndoVerbs(Protocol):
    """Undoing steps, and settling them."""

    @verb("worker", LeaseLost)
    def undo_begin(self, job_id: int, attempt: int, cause: str) -> UndoBegun | DetentError:
        """Record that the steps of the current generation are being undone, and why; the first cause counts. From then
        on `workflow_load` answers `undoing` and the cause, until a new generation begins. If a cancel was requested
        that undoes nothing, nothing is recorded: `waived`. Only by the holder."""
        ...

    @verb("client", NotFound, UndoRefused)
    def undo_start(self, item: NewUndo) -> UndoStarted | DetentError:
        """Enqueue a job that undoes the steps of the current generation of another one, which has come to rest. It has
        the same task, queue, tenant, priority, arguments and limit, and is claimed by workers that support the version
        of the other one. `workflow_load` gives it the steps of both jobs.

        There is one for each generation: if there is one, it is the answer. Refused as `UndoRefused`: a job that has
        not come to rest, one that undoes another, one whose steps are undone or that is undoing them, one that is
        quarantined as unknown, and one that has nothing to undo. No such job: `NotFound`.
        """
        ...

    @verb("admin", InvalidInput, InvalidTransition, NotFound, NotUnknown)
    def step_settle(
        self, job_id: int, path: str, done: bool, actor: str, reason: str, value: str | None = None
    ) -> Moved | DetentError:
        """Record what a person found out about a step of a quarantined workflow: one that was begun and is not on
        record, or one whose undo has failed; actor and reason are required. The job is pending and due now, with all
        attempts.

        Done: the step is on record with that value, or its undo is on record. Not done: it is called again; other steps
        that are unknown stay so. Another step: `InvalidInput`, which names the steps that can be settled. Other states:
        `InvalidTransition`; no such step at all: `NotUnknown`; no such job: `NotFound`.
        """
        ...
