"""The records of workflows: steps, waits, signals and groups of children. Frozen, as in `records`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, get_args

from msgspec import Struct

from detent.model.records import NewJob

__all__ = [
    "NEVER",
    "STEP_KINDS",
    "WAIT_KINDS",
    "Arrived",
    "CancelFound",
    "ChildGroupRow",
    "JobTree",
    "NewSignal",
    "NewStep",
    "NewUndo",
    "NewWait",
    "Park",
    "Parked",
    "Pending",
    "SignalRow",
    "SignalSent",
    "Spawn",
    "Spawned",
    "StepBegun",
    "StepKind",
    "StepPage",
    "StepRecorded",
    "StepRow",
    "TreeNode",
    "Undo",
    "UndoBegun",
    "UndoStarted",
    "VersionCount",
    "WaitKind",
    "WaitOn",
    "WaitPage",
    "WaitRow",
    "Workflow",
    "WorkflowHistory",
    "WorkflowPage",
    "WorkflowRow",
    "WorkflowSearch",
]

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""The due time of a job that is parked without a time limit."""

StepKind = Literal[
    "call", "transact", "sleep", "deadline", "signal", "timeout", "choice", "spawn", "join", "scope", "undo", "token"
]
"""`sleep` and `deadline` hold the time until which a workflow waits; `timeout` says that a wait was not answered by its
deadline; `choice` holds which of several waits ended first; `token` says for which wait a token counts, as its
fingerprint."""
STEP_KINDS: tuple[StepKind, ...] = get_args(StepKind)

WaitKind = Literal["time", "signal", "children"]
WAIT_KINDS: tuple[WaitKind, ...] = get_args(WaitKind)


class NewStep(Struct, frozen=True, kw_only=True):
    """A step to record. `path` identifies it within a generation of its workflow; `scope` is the path of the scope that
    it belongs to, or empty. Exactly one of `value` and `error` is set; a value of None is the text `null`."""

    job_id: int
    attempt: int
    version: int
    generation: int
    path: str
    seq: int
    kind: StepKind
    scope: str = ""
    fingerprint: str | None = None  # digest of the arguments, to notice that they have changed
    beside: bool = False  # another step of the same scope was in flight at the same time
    secret: bool = False  # its value is never shown
    undo: bool = False  # it has an undo
    ran_for: float = 0.0  # seconds
    value: str | None = None
    error: str | None = None


class StepRecorded(Struct, frozen=True):
    """The step on record. `created` is False if it was there before: then value and error are those of the record."""

    path: str
    created: bool
    kind: StepKind
    value: str | None
    error: str | None
    done_at: datetime


class StepBegun(Struct, frozen=True):
    """A step that is about to be called. `first` is the first attempt that has begun it, `tries` how many have."""

    path: str
    first: int
    tries: int


class StepRow(Struct, frozen=True, kw_only=True):
    """A step on record."""

    job_id: int
    generation: int
    path: str
    seq: int
    kind: StepKind
    scope: str
    attempt: int
    fingerprint: str | None
    beside: bool
    secret: bool
    undo: bool
    began_at: datetime
    done_at: datetime
    value: str | None
    error: str | None
    signal_name: str | None = None
    signal_seq: int | None = None


class StepPage(Struct, frozen=True):
    """Steps in the order of their paths, and the path to continue after; None at the end."""

    rows: list[StepRow]
    next: str | None


class WorkflowHistory(Struct, frozen=True):
    """What is on record about a workflow that has begun before. `now` is the time of the database. `begun` has the
    steps that were begun and not recorded, with the first attempt that began each and how many did."""

    version: int | None  # None: nothing was recorded yet
    generation: int
    now: datetime
    steps: list[StepRow]
    next: str | None
    begun: tuple[StepBegun, ...] = ()
    cancelled: bool = False
    parks: int = 0
    """How often it has parked in a row without a new record."""
    undoing: bool = False
    depth: int = 0
    payload: str | None = None
    """The arguments of this generation; None if they are those of the job."""
    cause: str | None = None
    """Why its steps are being undone."""
    forked_from: int | None = None
    seeds: str | None = None
    """From what chance follows while copied steps are replayed: lines with the number before which they were recorded,
    and the seed of their record."""
    suspect: bool = False
    """Whether an earlier attempt was in a process that died or was held, so that the job may be the cause."""
    undo_of: int | None = None
    """The job whose steps this one undoes."""
    undone: bool = False
    """Whether all steps of this generation were undone, by the workflow itself or by another job."""


class WaitOn(Struct, frozen=True):
    """One thing that a workflow waits for: a signal by name, or a group of children by the path of its step.

    A group counts as ended when every child has ended; if `settled`, children in quarantine do not count as ended."""

    kind: Literal["signal", "children"]
    name: str
    settled: bool = False


class NewWait(Struct, frozen=True, kw_only=True):
    """A wait that the holder looks at: it ends with what has arrived, or stays pending.

    `outcome` is the step of which the store fills in kind and value: `signal` with the payload, `timeout` with null,
    `choice` (if `chooses`) with `{"n": 0, "value": …}` or `{"n": null, "value": null}`, `join` with the counts of the
    group, `{"succeeded": 2, "failed": 0, "dead": 0}`. A sleep waits for nothing (`on` is empty) and has no outcome: the
    step that holds its time says everything.

    A wait ends at `until`, or `lasts` seconds from now, or never. `holds` is the step that holds that time, if it is
    not on record yet: the store puts in the time (ISO 8601 in UTC with microseconds, as JSON) as its value. It is
    recorded if the wait stays pending, and for a sleep always. `steps` are recorded first, whatever comes of the wait.
    """

    job_id: int
    attempt: int
    outcome: NewStep | None
    on: tuple[WaitOn, ...] = ()
    chooses: bool = False
    until: datetime | None = None
    lasts: float | None = None
    holds: NewStep | None = None
    steps: tuple[NewStep, ...] = ()


class Park(Struct, frozen=True, kw_only=True):
    """The end of an attempt whose function waits. The job is woken by the first thing of `on` that arrives, and at
    `until`. `generation` and `version` are those of the workflow, in case nothing was recorded yet."""

    job_id: int
    attempt: int
    version: int
    generation: int
    on: tuple[WaitOn, ...] = ()
    until: datetime | None = None
    parked_for: str = ""  # for people: what the workflow waits for
    begun_after: float | None = None  # as in `Finish`
    undoes: bool = False  # it has steps to undo: if a cancel was requested, it does not park
    news: str | None = ""
    """The path of a step other than a time that this attempt has recorded; None if it has recorded none. Empty: the
    caller does not know, and the store looks through the steps."""


class Parked(Struct, frozen=True):
    """The attempt has ended, and the job waits without a worker."""

    job_id: int
    attempt: int


class CancelFound(Struct, frozen=True):
    """A cancel was requested: nothing is done, and the attempt goes on. It undoes its steps, or ends as cancelled."""

    job_id: int
    attempt: int


class Pending(Struct, frozen=True):
    """Nothing has arrived yet, and the attempt goes on. `until` is the end of the wait; None if it has none."""

    job_id: int
    attempt: int
    until: datetime | None


class Arrived(Struct, frozen=True):
    """The wait has ended with what `kind` and `value` say, and the attempt goes on. `n` is the place in `on`; None if
    the time is over."""

    job_id: int
    attempt: int
    n: int | None
    kind: StepKind
    value: str | None
    done_at: datetime


class NewSignal(Struct, frozen=True, kw_only=True):
    """A signal to a workflow."""

    job_id: int
    name: str
    payload: str
    actor: str
    dedupe: str | None = None
    reason: str | None = None


class SignalSent(Struct, frozen=True):
    """A signal in the mailbox; `created` is False if one with the same `dedupe` was there before."""

    job_id: int
    seq: int
    created: bool


class SignalRow(Struct, frozen=True, kw_only=True):
    """A signal of a workflow. `path` is the step that took it; None while it is unread."""

    job_id: int
    name: str
    seq: int
    payload: str
    dedupe: str | None
    actor: str
    reason: str | None
    sent_at: datetime
    path: str | None
    taken_at: datetime | None


class Spawn(Struct, frozen=True, kw_only=True):
    """Children of a workflow, enqueued together with the step that says so. The ids of a group follow one another and
    start at `first_id`; all of them are reserved. A group may be sent in portions, `closed` with the last one, which
    records the step. `total` is the size of the whole group; until the last portion it may be an upper bound. Detached
    children belong to no group and outlive a cancel. At most `limit` of the group run at once (None: any number)."""

    step: NewStep
    first_id: int
    total: int
    jobs: tuple[NewJob, ...]
    closed: bool = True
    detached: bool = False
    limit: int | None = None

    @property
    def place(self) -> int:
        """Where this portion begins in the group."""
        return self.jobs[0].id - self.first_id if self.jobs else 0


class Spawned(Struct, frozen=True):
    """A group of children. `created` is False if the step was on record before: then `first_id` and `total` are those
    of the record."""

    path: str
    first_id: int
    total: int
    created: bool


class UndoBegun(Struct, frozen=True):
    """The steps of a workflow are being undone. `cause` is the first that was given. `waived`: nothing was recorded,
    because whoever cancelled the workflow wants nothing to be undone."""

    job_id: int
    cause: str
    waived: bool = False


class NewUndo(Struct, frozen=True, kw_only=True):
    """A job that is to undo the steps of another one. `cause` is for people."""

    job_id: int  # whose steps
    id: int  # of the new job
    nonce: int
    cause: str
    metadata: str | None = None


class UndoStarted(Struct, frozen=True):
    """The job `undo_id` undoes the steps of the job; `created` is False if it was there before."""

    job_id: int
    undo_id: int
    created: bool


class Undo(Struct, frozen=True, kw_only=True):
    """A step that can be undone. `done_at` is when it was recorded, `undone_at` when its undo was, if it has been.
    The value of a secret step is redacted. `by_hand`: a person has settled the undo as done."""

    path: str
    name: str
    value: str | None
    done_at: datetime
    secret: bool = False
    undone_at: datetime | None = None
    by_hand: bool = False


class ChildGroupRow(Struct, frozen=True, kw_only=True):
    """A group of children of a workflow. `failed` counts failed and cancelled ones, `dead` those in quarantine."""

    parent_id: int
    generation: int
    path: str
    first_id: int
    total: int
    succeeded: int
    failed: int
    dead: int
    closed: bool


class WaitRow(Struct, frozen=True, kw_only=True):
    """One thing that a parked workflow waits for. `name` is None for a sleep."""

    job_id: int
    n: int
    task: str
    tenant: str
    kind: WaitKind
    name: str | None
    since: datetime
    due_at: datetime | None
    version: int


class WaitPage(Struct, frozen=True):
    """What parked workflows wait for, by job and number, and the place (job, number) after which to continue; None at
    the end."""

    rows: list[WaitRow]
    next: tuple[int, int] | None


class WorkflowRow(Struct, frozen=True, kw_only=True):
    """A workflow that has recorded something. `parked_at` and `parked_for` are None unless it is parked now.

    Its steps are being undone since `undoing_since`, because of `undo_cause`, and were all undone at `undone_at`: by
    itself, or by the job `undone_by`, of which it is the `undo_of`."""

    job_id: int
    version: int
    generation: int
    root_id: int
    parent_id: int | None
    depth: int
    forked_from: int | None
    steps: int
    parks: int
    parked_at: datetime | None
    parked_for: str | None
    due_at: datetime | None
    undoing_since: datetime | None
    undo_cause: str | None = None
    undo_of: int | None = None
    undone_by: int | None = None
    undone_at: datetime | None = None


class WorkflowSearch(Struct, frozen=True, kw_only=True):
    """Which workflows; None means any. `parked` ones wait without a worker. `since` is about the time of creation."""

    task: str | None = None
    version: int | None = None
    state: str | None = None
    parked: bool = False
    tenant: str | None = None
    since: datetime | None = None


class WorkflowPage(Struct, frozen=True):
    """The ids of workflows that fit, the largest first, and the id below which to continue; None at the end."""

    ids: list[int]
    next: int | None


class Workflow(Struct, frozen=True, kw_only=True):
    """A workflow as lists show it: the job, what is on record about its steps, and what it waits for.

    `state` is that of the job, or `parked` while it waits without a worker. `version` is 0 and `steps` is 0 until it
    has recorded something. `unread` counts the signals in its mailbox that no step has taken, up to 1,000."""

    id: int
    task: str
    queue: str
    tenant: str
    state: str
    version: int
    generation: int
    steps: int
    attempt: int
    created_at: datetime
    finished_at: datetime | None
    error: str | None
    parked_at: datetime | None = None
    parked_for: str | None = None
    due_at: datetime | None = None
    parent_id: int | None = None
    root_id: int | None = None
    depth: int = 0
    forked_from: int | None = None
    undoing_since: datetime | None = None
    undo_cause: str | None = None
    undo_of: int | None = None
    undone_by: int | None = None
    undone_at: datetime | None = None
    status: str | None = None
    unread: int | None = None


class TreeNode(Struct, frozen=True, kw_only=True):
    """A job in a tree. `path` is the step of its parent that has spawned it, or the name of a node of a graph; None for
    the top, and for a child that is detached. `state` is that of the job, or `parked`."""

    id: int
    parent_id: int | None
    depth: int
    path: str | None
    task: str
    state: str
    parked_for: str | None = None
    error: str | None = None


class JobTree(Struct, frozen=True, kw_only=True):
    """A workflow and what it has spawned, from the top down: a job, then its children. `groups` counts the children of
    each step that spawned some. If `complete` is False, there are more jobs than these."""

    root_id: int
    nodes: list[TreeNode]
    groups: list[ChildGroupRow]
    complete: bool


class VersionCount(Struct, frozen=True):
    """How many workflows of a task began under a version and have not ended. Version 0: children that have not
    begun."""

    task: str
    version: int
    workflows: int
