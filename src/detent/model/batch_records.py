"""The records of batch runs: runs, targets, actions and reconciliations. Frozen, as in `records`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from detent.model.records import NewJob

__all__ = [
    "BATCH_ACTIONS",
    "ActionPortion",
    "ActionRow",
    "BatchAction",
    "BatchFilter",
    "BatchRunRow",
    "Holder",
    "MismatchRow",
    "NewAction",
    "NewBatchRun",
    "Observed",
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
    """A run to create. Its id was reserved before, so sending it twice is harmless.

    `fingerprint` tells one declaration of the batch from another. Up to `tolerate_count` targets, or `tolerate_share`
    of the targets to apply, may fail without an alert.
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
    """A batch run.

    - `total`: targets known so far; all of them are known from `planned_at` on.
    - `previewed`, `preview_failed`: targets whose change was computed, or could not be. `unchanged` would not change.
    - `queued` to `rolled_back`: targets by state; the others are in preview.
    - `outstanding`: 1 while an action still has targets to move. `reverting`: revert jobs in progress.
      `revert_failed`: revert jobs that gave up.
    - `stuck`: jobs of the plan, the preview or an action that gave up, the last of them with `error`. The run goes on
      when they are retried.
    - `mismatches`: open mismatches. `reconcile_at`: time of the next planned reconciliation.
    - `critical`: the error that stopped the run, or who cancelled it and why.
    - `cancel_requested_at`: when a client cancelled the run; it ends when the targets in flight have ended.
    - `conflicts`: targets that were refused because others had changed them. With `overwrite` the last action does not
      check for that.
    """

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
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    cancel_reason: str | None

    @property
    def tolerated(self) -> bool:
        """Whether no more targets failed than are tolerated; true also if none failed."""
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
    """The preview of a target: its value before and after, or the error."""

    n: int
    before: str | None = None
    after: str | None = None
    changed: bool = True
    error: str | None = None


class NewAction(Struct, frozen=True, kw_only=True):
    """An action on a run. Its id was reserved before, so sending it twice is harmless.

    Without `refs`, the action is for all targets that it applies to. For `apply` these are the targets that would
    change (with `unchanged`, also the others); for `retry_failed` those that failed; for `roll_back` those that are
    applied. With `leave_failed`, an apply of all targets leaves out those that could not be previewed, instead of being
    refused. With `overwrite`, targets are changed even if others have changed them since.
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
    """An action and its progress: targets up to `cursor` are done, and `moved` of them were moved."""

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


class ActionPortion(Struct, frozen=True, kw_only=True):
    """The next targets of an action: those in (action.cursor, to_cursor] that it has to move; `last` if none follow.
    For `apply`, and for `roll_back` if `revert_job_id` is None, each target needs a new job; otherwise its job is
    retried."""

    action: ActionRow
    to_cursor: int
    last: bool
    targets: tuple[TargetRow, ...]


class TargetJob(Struct, frozen=True):
    """The job that applies or reverts a target."""

    n: int
    job: NewJob


class Stepped(Struct, frozen=True, kw_only=True):
    """The progress of an action."""

    action_id: int
    cursor: int
    moved: int
    done: bool


class BatchFilter(Struct, frozen=True, kw_only=True):
    """A filter of runs; None matches any."""

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
    """A target whose value does not match the expected one."""

    n: int
    expected: str | None
    actual: str | None


class MismatchRow(Struct, frozen=True, kw_only=True):
    """A target that no longer matches what was applied: found by the reconciliation `no`, last seen at `checked_at`. It
    is resolved when a later reconciliation finds a match, or when the target is rolled back."""

    run_id: int
    n: int
    ref: str
    no: int
    expected: str | None
    actual: str | None
    found_at: datetime
    checked_at: datetime
    resolved_at: datetime | None
