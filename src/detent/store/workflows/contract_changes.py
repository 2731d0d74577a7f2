"""The verbs that change the course of a workflow: undo, fork and rewind.

Steps stay on record whatever happens: a fork copies them to another job, and a rewind copies those that stay valid
into a new generation of the same job.
"""

from __future__ import annotations

from typing import Protocol

from detent.errors import DetentError, IdConflict, InvalidTransition, LeaseLost, NotFound
from detent.model.records import Enqueued, Moved
from detent.model.workflow_records import NewFork, UndoBegun
from detent.store.verb import verb

__all__ = ["WorkflowChangeVerbs"]


class WorkflowChangeVerbs(Protocol):
    """Undo, fork and rewind."""

    @verb("worker", LeaseLost)
    def undo_begin(self, job_id: int, attempt: int, cause: str) -> UndoBegun | DetentError:
        """Record that the steps of the current generation are being undone, and why; the first cause counts. From then
        on `workflow_load` answers `undoing` and the cause, until a new generation begins. Only by the holder."""
        ...

    @verb("client", IdConflict, NotFound)
    def workflow_fork(self, item: NewFork) -> Enqueued | DetentError:
        """Enqueue a job that begins with a copy of the steps of another workflow's current generation: those with
        numbers below `before_seq` (None: all), with some values replaced. It has the version of its source, and its
        `workflow` row names the source (`forked_from`). Signals that copied steps have taken are copied with them,
        under their numbers; unread ones stay with the source. With `undo`, its undo has begun (cause: the reason): it
        undoes what it copied and does nothing else. The source is untouched. The same id again is the same job; an id
        of another job: `IdConflict`. A source that has recorded nothing: `NotFound`. Actor and reason are on record."""
        ...

    @verb("client", InvalidTransition, NotFound)
    def workflow_rewind(
        self, job_id: int, before_seq: int, actor: str, reason: str | None = None
    ) -> Moved | DetentError:
        """Begin a new generation with copies of the steps below `before_seq`, and make the job due now with all its
        attempts, on record (trigger `rewind`). Signals taken by steps that are not copied are appended to the mailbox
        again, by this actor. For a pending job, and for one that is failed, quarantined or cancelled; other states:
        `InvalidTransition`. `NotFound` if it has recorded nothing."""
        ...
