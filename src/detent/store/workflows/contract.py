"""The verbs of workflows: steps that are recorded once, waits without a worker, signals and children.

`store/contract.py` defines the words used here. A workflow is a job. Its steps are recorded by the holder of an
attempt, each once: the primary key (job, generation, path) decides, and whoever comes second is answered with what is
on record. A wait ends the attempt with the outcome `parked`: the job is pending, due at the end of the wait (`NEVER`
without one), and its wait rows say what it waits for. A wake-up makes it due now; the next claim is a new attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.errors import DetentError, InvalidInput, JobEnded, KeyConflict, LeaseLost, MailboxFull, NotFound, WaitOver
from detent.model.workflow_records import (
    Arrived,
    CancelFound,
    ChildGroupRow,
    NewSignal,
    NewStep,
    NewWait,
    Park,
    Parked,
    Pending,
    SignalRow,
    SignalSent,
    Spawn,
    Spawned,
    StepBegun,
    StepPage,
    StepRecorded,
    VersionCount,
    WaitPage,
    WorkflowHistory,
    WorkflowPage,
    WorkflowRow,
    WorkflowSearch,
)
from detent.store.verb import verb

__all__ = ["WorkflowVerbs"]


class WorkflowVerbs(Protocol):
    """Workflows."""

    # -- for the holder of an attempt --------------------------------------------------------------------------

    @verb("worker", LeaseLost)
    def workflow_load(
        self, job_id: int, attempt: int, *, after: str | None = None, limit: int = 1000
    ) -> WorkflowHistory | DetentError:
        """Return what is on record of the current generation: up to `limit` steps with paths after `after`, in the
        order of their paths. Steps inside a scope that is recorded itself are left out. It also deletes the wait rows
        of the job, since it waits no more. Only by the holder."""
        ...

    @verb("worker", LeaseLost)
    def workflow_load_many(
        self, items: Sequence[tuple[int, int]], limit: int = 1000
    ) -> list[WorkflowHistory | DetentError]:
        """Do the same for many (job, attempt) in one trip, each from its first step."""
        ...

    @verb("worker", LeaseLost)
    def step_begin(self, items: Sequence[NewStep]) -> list[StepBegun | DetentError]:
        """Record durably that steps are about to be called that must not be repeated blindly, or that a try of them has
        failed; of the step only its identity counts. Once for each attempt. Only by the holder."""
        ...

    @verb("worker", LeaseLost)
    def step_record(self, items: Sequence[NewStep]) -> list[StepRecorded | DetentError]:
        """Record steps. A step that is on record stays as it is, and the answer is the recorded one. The first step of
        a workflow also records its version. A path seen earlier in the same call counts as recorded. Only by the
        holder; a refusal harms no other item."""
        ...

    @verb("worker", LeaseLost)
    def wait_look(self, items: Sequence[NewWait]) -> list[Arrived | Pending | DetentError]:
        """Look whether waits have ended: record `steps`; then, if the outcome is on record, answer it again. Otherwise
        the first thing of `on` that has arrived ends the wait: the oldest signal of that name that no step has taken,
        or a group of children that has ended. If nothing has arrived and the end of the wait has passed, the time is
        over. What ended the wait is recorded in the same transaction and answered as `Arrived`; otherwise `Pending`
        with the time at which it ends. Only by the holder."""
        ...

    @verb("worker", LeaseLost)
    def workflow_park(self, items: Sequence[Park], worker: str) -> list[Parked | CancelFound | DetentError]:
        """End attempts whose functions wait: wait rows replace earlier ones, and the job is pending and due at `until`,
        or at once if anything of `on` has arrived. Its expiry is dropped, and the attempt is spared; if it has recorded
        anything but times (`sleep`, `deadline`, `timeout`), so are all attempts before it, and `parks` starts from
        zero.

        A requested cancel takes effect instead, by rule 3 of `detent.store.contract`: the attempt ends as cancelled; or
        if the workflow `undoes`, nothing is changed, and the answer is `CancelFound`.
        Only by the holder. A signal that is sent at the same moment is either seen here or wakes the job."""
        ...

    @verb("worker", LeaseLost)
    def workflow_continue(self, job_id: int, attempt: int, payload: str, worker: str) -> Parked | DetentError:
        """Begin the next generation with these arguments: the attempt ends as parked, and the job is due at once. The
        mailbox stays. Only by the holder."""
        ...

    @verb("worker", InvalidInput, KeyConflict, LeaseLost)
    def workflow_spawn(self, item: Spawn) -> Spawned | CancelFound | DetentError:
        """Enqueue children, and record the group and its step, in one transaction. Only by the holder. If a cancel of
        the parent was requested, nothing is enqueued: `CancelFound`. A step that is on record is answered, and nothing
        is enqueued. A portion that was sent before is not enqueued again. A group with a `limit` gets one of its own,
        and its children have the key of that. A task is under one limit: if it has another one, `InvalidInput`."""
        ...

    # -- for everybody -----------------------------------------------------------------------------------------

    @verb("client", JobEnded, KeyConflict, MailboxFull, NotFound)
    def signal_send(self, items: Sequence[NewSignal], *, apart: bool = False) -> list[SignalSent | DetentError]:
        """Put signals into the mailboxes of workflows, in the order of `items`, and wake those that wait for them.

        It never waits for the holder of an attempt: if the job cannot be locked at once (or with `apart`, for callers
        whose transaction may stay open), a wake request is left, which `workflow_wake` carries out. The same `dedupe`
        of the same name is the same signal; with another payload: `KeyConflict`. A job that has come to rest for good
        (succeeded, failed, cancelled): `JobEnded`; one in quarantine may be retried, so it gets its signals. At most
        1,000 unread signals: `MailboxFull`. No such job: `NotFound`."""
        ...

    @verb("client", JobEnded, KeyConflict, MailboxFull, NotFound, WaitOver)
    def signal_redeem(self, item: NewSignal, generation: int, token: str) -> SignalSent | DetentError:
        """Send the signal of a token that counts for one wait, as `signal_send` does, unless that wait is over:
        `WaitOver`. `generation` and `token` are those of the workflow in which the token was made, and its path; the
        step under that path names the wait. It is over when it has an outcome on record, or when the generation has
        ended. The job is locked, so a wait that ends at the same moment comes before this or after it."""
        ...

    @verb("client", reads=True)
    def signal_key(self) -> str | None:
        """Return the secret with which tokens of signals are signed. It was made together with the schema; None if it
        is missing."""
        ...

    # -- for services ------------------------------------------------------------------------------------------

    @verb("worker")
    def workflow_wake(self, limit: int) -> int:
        """Carry out up to `limit` wake requests; return how many. Jobs that others have locked are left for the next
        call."""
        ...

    @verb("worker")
    def tree_cancel_step(self, limit: int) -> int:
        """Look at up to `limit` children of jobs that were cancelled, and cancel those that have not ended, for the
        reason `with job 17: …` of the job with which the cancel began. Then the children of these are next. Those of a
        child that has ended, in whatever way, are cancelled too. Detached children live on.

        A job is marked before its children are looked at, and a job that is marked spawns none, so none is missed. The
        progress is part of the same transaction. Return how many were looked at, at least one for each job: none if
        nothing is left, or others have it locked. On PostgreSQL, the children of those that this call has cancelled are
        left to the next one."""
        ...

    @verb("worker")
    def tree_cancel_skip(self) -> int | None:
        """Skip the next child that `tree_cancel_step` would look at, and return it: for one that makes every step fail.
        None if there is none."""
        ...

    # -- looking -----------------------------------------------------------------------------------------------

    @verb("viewer")
    def tree_cancel_count(self, root_id: int, limit: int = 1000) -> int:
        """Return how many jobs there are, up to `limit`, whose children have yet to be cancelled because of a cancel
        that began with this job."""
        ...

    @verb("viewer")
    def workflow_get(self, ids: Sequence[int]) -> list[WorkflowRow | None]:
        """Return workflows; None for a job that has recorded nothing."""
        ...

    @verb("viewer")
    def workflow_arguments(self, job_id: int) -> list[str]:
        """Return the arguments, besides those of the job itself, that the steps on record of a workflow may have seen:
        those of its current generation, and those of the workflows from which it was forked, 16 at most. What is
        redacted of a job is found by them."""
        ...

    @verb("viewer")
    def workflow_list(self, chosen: WorkflowSearch, *, before: int = 2**63 - 1, limit: int = 1000) -> WorkflowPage:
        """Look at up to `limit` workflows that have recorded something and have ids below `before`, the largest id
        first; return those that fit, and the id below which to continue."""
        ...

    @verb("viewer")
    def step_list(
        self,
        job_id: int,
        *,
        generation: int | None = None,
        at: datetime | None = None,
        after: str | None = None,
        limit: int = 1000,
    ) -> StepPage:
        """Return the steps of a generation (None: the current one) that were on record at that time (None: now), in the
        order of their paths."""
        ...

    @verb("viewer")
    def signal_list(self, job_id: int, *, after: int = 0, limit: int = 1000, unread: bool = False) -> list[SignalRow]:
        """Return the signals of a job with numbers after `after`, oldest first; with `unread`, only those that no step
        has taken."""
        ...

    @verb("viewer")
    def wait_list(
        self,
        *,
        job_id: int | None = None,
        signal: str | None = None,
        tenant: str | None = None,
        after: tuple[int, int] = (0, 0),
        limit: int = 100,
    ) -> WaitPage:
        """Look at up to `limit` things that workflows wait for, by job and number, after (job, number): of one job, for
        one signal, of one tenant, or all. Return those of workflows that are parked, and the place after which to
        continue: a workflow that was woken is passed over."""
        ...

    @verb("viewer")
    def child_groups(self, parent_id: int) -> list[ChildGroupRow]:
        """Return the groups of children of the current generation, by path, 1,000 at most."""
        ...

    @verb("viewer")
    def child_list(
        self, parent_id: int, *, path: str | None = None, state: str | None = None, after_id: int = 0, limit: int = 1000
    ) -> list[int]:
        """Return the ids of children after `after_id`, of one group or of all, in one state or in any."""
        ...

    @verb("viewer")
    def workflow_versions(self, task: str | None = None) -> list[VersionCount]:
        """Return how many workflows that have not ended began under each version, by task and version."""
        ...
