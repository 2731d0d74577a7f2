"""The records of batch runs: a run, its targets, what is asked of it, and what was found of the world afterwards.

Frozen, without behaviour, as in `records`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from detent.model.records import NewJob

__all__ = [
    "BATCH_ACTIONS",
    "ActionRow",
    "BatchAction",
    "BatchFilter",
    "BatchRunRow",
    "Holder",
    "MismatchRow",
    "NewAction",
    "NewBatchRun",
    "Observed",
    "Portion",
    "Previewed",
    "ReconciliationRow",
    "Stepped",
    "TargetJob",
    "TargetRow",
]

BatchAction = Literal["apply", "retry_failed", "roll_back"]
BATCH_ACTIONS: tuple[BatchAction, ...] = ("apply", "retry_failed", "roll_back")

Holder = tuple[int, int]
"""A job and the attempt by which the caller holds it."""


class NewBatchRun(Struct, frozen=True, kw_only=True):
    """A run as its client describes it; the id was reserved before, so sending it twice is harmless.

    `fingerprint` tells one declaration of the batch from another. At most `tolerate_count` targets, or `tolerate_share`
    of those that were applied for, may fail without anybody being told.
    """

    id: int
    batch: str
    payload: str
    fingerprint: str
    actor: str
    tenant: str = ""
    reason: str | None = None
    correlation_id: str | None = None
    metadata: str | None = None
    tolerate_count: int | None = None
    tolerate_share: float | None = None


class BatchRunRow(Struct, frozen=True, kw_only=True):
    """A run as it stands.

    `total` targets are known so far, all of them from `planned_at` on. Of these `previewed` are computed (`unchanged`
    of them to no effect) and `preview_failed` could not be. `queued` to `rolled_back` count targets by state; the
    others are in preview. `outstanding` is 1 while an action still has targets to move, `reverting` are revert jobs
    under way, `revert_failed` those that gave up. `stuck` jobs of the plan, the preview or an action have given up, the
    last of them with `error`: retried, they go on. `mismatches` are open. `reconcile_at` is when the world is looked at
    next. `critical` is the error that stopped the run. `conflicts` targets were refused because others had changed
    them; with `overwrite` the last action does not ask for that."""

    id: int
    tenant: str
    batch: str
    payload: str
    fingerprint: str
    state: str
    actor: str
    reason: str | None
    correlation_id: str | None
    metadata: str | None
    tolerate_count: int | None
    tolerate_share: float | None
    total: int
    previewed: int
    preview_failed: int
    unchanged: int
    queued: int
    applying: int
    applied: int
    failed: int
    rolled_back: int
    outstanding: int
    reverting: int
    revert_failed: int
    stuck: int
    mismatches: int
    error: str | None
    created_at: datetime
    planned_at: datetime | None
    previewed_at: datetime | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    rollback_requested_at: datetime | None
    rollback_requested_by: str | None
    rollback_reason: str | None
    rolled_back_at: datetime | None
    reconcile_no: int
    reconcile_at: datetime | None
    reconciled_at: datetime | None
    moved_at: datetime
    critical: str | None
    overwrite: bool
    conflicts: int

    @property
    def tolerated(self) -> bool:
        """Whether so few targets failed that nobody need be told; also where none did."""
        if self.tolerate_count is not None:
            return self.failed <= self.tolerate_count
        return self.failed <= (self.tolerate_share or 0.0) * (self.applied + self.failed)


class TargetRow(Struct, frozen=True, kw_only=True):
    """A target of a batch run.

    - `before` and `after` are JSON text, set by its preview; `preview_error` is why the preview failed.
    - `error` is why its last attempt to be applied or reverted failed; `attempts` is the number of attempts.
    - `revert_state` is None, `reverting`, `failed` or `done`.
    - `conflict` is the value that was found instead of the expected one, as JSON text; None without a conflict.
    """

    run_id: int
    n: int
    ref: str
    state: str
    before: str | None
    after: str | None
    changed: bool | None
    preview_error: str | None
    error: str | None
    attempts: int
    apply_job_id: int | None
    revert_job_id: int | None
    revert_state: str | None
    created_at: datetime
    previewed_at: datetime | None
    queued_at: datetime | None
    applied_at: datetime | None
    rolled_back_at: datetime | None
    conflict: str | None


class Previewed(Struct, frozen=True, kw_only=True):
    """What the preview of a target came to: what it is and what it would be, or why that cannot be said."""

    n: int
    before: str | None = None
    after: str | None = None
    changed: bool = True
    error: str | None = None


class NewAction(Struct, frozen=True, kw_only=True):
    """What shall be done with a run; the id was reserved before, so sending it twice is harmless.

    `refs` None is all that the action is for: of `apply`, targets whose preview says that they would change (with
    `unchanged`, the others too); of `retry_failed`, those that failed; of `roll_back`, those that are applied. With
    `leave_failed` an apply of all leaves out what could not be previewed, instead of being refused. With `overwrite`
    targets are changed even if others have changed them since.
    """

    id: int
    run_id: int
    action: BatchAction
    actor: str
    reason: str | None = None
    metadata: str | None = None
    refs: tuple[str, ...] | None = None
    unchanged: bool = False
    leave_failed: bool = False
    overwrite: bool = False


class ActionRow(Struct, frozen=True, kw_only=True):
    """An action and how far it is: targets up to `cursor` are dealt with, `moved` of them were moved."""

    id: int
    run_id: int
    action: BatchAction
    actor: str
    reason: str | None
    metadata: str | None
    chosen: int | None
    unchanged: bool
    job_id: int
    cursor: int
    moved: int
    created_at: datetime
    done_at: datetime | None


class Portion(Struct, frozen=True, kw_only=True):
    """The next targets of an action: those in (action.cursor, to_cursor] that it has to move; `last` where no others
    come after them. Of `apply`, and of `roll_back` where `revert_job_id` is None, each needs a job of its own; the
    others have the one that is retried."""

    action: ActionRow
    to_cursor: int
    last: bool
    targets: tuple[TargetRow, ...]


class TargetJob(Struct, frozen=True):
    """The job that applies or reverts a target."""

    n: int
    job: NewJob


class Stepped(Struct, frozen=True, kw_only=True):
    """How far an action is now."""

    action_id: int
    cursor: int
    moved: int
    done: bool


class BatchFilter(Struct, frozen=True, kw_only=True):
    """Which runs; None means any."""

    state: str | None = None
    batch: str | None = None
    tenant: str | None = None


class ReconciliationRow(Struct, frozen=True, kw_only=True):
    """One reconciliation of a batch run. `planned` is its number in the plan; None if it was requested by hand. Targets
    up to `cursor` were visited: `checked` of them were compared, and `mismatched` differ."""

    run_id: int
    no: int
    planned: int | None
    actor: str
    job_id: int
    cursor: int
    checked: int
    mismatched: int
    created_at: datetime
    done_at: datetime | None


class Observed(Struct, frozen=True):
    """A target that is not what it should be."""

    n: int
    expected: str | None
    actual: str | None


class MismatchRow(Struct, frozen=True, kw_only=True):
    """A target that was found not to be what it should: first by the look `no`, last seen so at `checked_at`; resolved
    when a later look found it right, or it was rolled back."""

    run_id: int
    n: int
    ref: str
    no: int
    expected: str | None
    actual: str | None
    found_at: datetime
    checked_at: datetime
    resolved_at: datetime | None
