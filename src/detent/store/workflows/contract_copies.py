"""The verbs that copy the record of a workflow: rewind and fork.

Both keep the steps that were recorded before one step, and repeat that step and everything recorded after it. A copy
has attempt 0. What was recorded stays as it was: a rewind begins a new generation of the same job, a fork is another
job."""

from __future__ import annotations

from typing import Protocol

from detent.errors import CopyRefused, DetentError, NotFound
from detent.model.copy_records import Fork, Forked, Rewind, Rewound
from detent.store.verb import verb

__all__ = ["WorkflowCopyVerbs"]


class WorkflowCopyVerbs(Protocol):
    """Rewind and fork."""

    @verb("client", CopyRefused, NotFound)
    def workflow_rewind(self, item: Rewind) -> Rewound | DetentError:
        """Let a workflow continue from an earlier step of its current generation: a new generation begins with copies
        of the steps before it, and the job is pending and due now. One that has ended gets all its attempts again.

        A copy of a wait keeps what it waited for; signals that were taken by repeated waits are put into the mailbox
        again, in their order, with this actor and reason. Waits that have not ended get their time limits anew. No such
        job: `NotFound`.

        `CopyRefused`: it is running, or has succeeded; a cancel was requested, and its steps are undone first; no such
        step on record; a transaction or a step that happens once would be repeated, and `force` is not set; a kept step
        was undone; children were spawned before the step and joined after it, or have not ended and would be spawned
        again.
        """
        ...

    @verb("client", CopyRefused, NotFound)
    def workflow_fork(self, item: Fork) -> Forked | DetentError:
        """Give a job that was enqueued in the same transaction the record of another one: copies of the steps before
        `at`, with the signals that they took. The other job, in whatever state, is left as it is, with its unread
        signals and its children. Steps that were copied are not undone by the fork.

        `CopyRefused` as for `workflow_rewind`; and if a replaced step is not among the copies, or has no value of its
        own: a time, a spawn, a join, a choice, or a step of a scope that has ended. No such job: `NotFound`.
        """
        ...
