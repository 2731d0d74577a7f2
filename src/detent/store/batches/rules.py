"""Which actions a batch run allows, decided the same way for both databases from a row that is locked.

The constraints and guards of the tables refuse what must never happen all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from detent.errors import DetentError, DuplicateTarget, InvalidInput, InvalidTransition, PreviewNotReady, RunBusy
from detent.lifecycle.library import BATCH_RUN
from detent.model.batch_records import BatchRunRow, NewAction, NewBatchRun

__all__ = [
    "RECONCILIATIONS_PLANNED",
    "REFS_MAX",
    "Named",
    "is_rest",
    "is_same_run",
    "next_reconciliation",
    "nothing_left",
    "reconciliation_due_at",
    "refuse_act",
    "refuse_add",
    "refuse_cancel",
    "refuse_reconciliation",
    "refuse_refs",
]

REFS_MAX = 100_000
"""Maximum number of targets that an action may name one by one."""

_SHOWN_MAX = 5

RECONCILIATIONS_PLANNED = 32
"""5 minutes after a run is applied, an hour after, and daily for 30 days."""


class Named(NamedTuple):
    """A target that an action names."""

    n: int
    ref: str
    state: str
    is_previewed: bool


_FOR = {"apply": "preview", "retry_failed": "failed"}


def is_same_run(asked: NewBatchRun, found: BatchRunRow) -> bool:
    """Return whether an existing run is the one that the caller wants to create."""
    return all(getattr(asked, name) == getattr(found, name) for name in ("tenant", "batch", "payload", "fingerprint"))


def refuse_add(
    run: BatchRunRow, first_n: int, refs: Sequence[str], at_refs: dict[str, int], at_numbers: dict[int, str]
) -> DetentError | None:
    """Return why these targets cannot be added.

    `at_refs` has the numbers of the refs that exist, `at_numbers` the refs that have the numbers.
    """
    if run.state == "cancelled":
        return RunBusy(run.id, "another target", "it was cancelled")
    if not 1 <= first_n <= run.total + 1:
        return InvalidInput("first_n", str(first_n), f"from 1 to {run.total + 1}, the next of run {run.id}")
    here: dict[str, int] = {}
    for n, ref in enumerate(refs, start=first_n):
        found = here.setdefault(ref, at_refs.get(ref, n))
        if found != n:
            return DuplicateTarget(run.id, ref, n, found)
        if at_numbers.get(n, ref) != ref:
            return InvalidInput(
                f"target {n}", repr(ref), f"{at_numbers[n]!r}, as before: the same targets in the same order"
            )
    if run.planned_at is not None and first_n + len(refs) - 1 > run.total:
        return RunBusy(run.id, "another target", "its plan is complete")
    return None


def refuse_act(run: BatchRunRow, item: NewAction) -> DetentError | None:
    """Return why the action cannot begin, as far as the run's own row says."""
    busy = _busy(run, item)
    match item.action:
        case "apply":
            touched = run.queued + run.applying + run.applied + run.failed + run.rolled_back
            if run.state not in ("preview", "applied", "partial", "failed", "cancelled"):
                return _illegal(run, "queued")
            if run.state == "cancelled" and run.previewed_at is None:
                return _illegal(run, "queued")
            if run.rollback_requested_at is not None:
                return RunBusy(run.id, "apply", "a rollback was asked for")
            if run.state != "preview" and touched >= run.previewed:
                return nothing_left(run)
            if run.previewed_at is None:
                return PreviewNotReady(run.id, run.previewed, run.total, run.preview_failed)
            if run.preview_failed and item.refs is None and not item.leave_failed:
                return PreviewNotReady(run.id, run.previewed, run.total, run.preview_failed, complete=True)
            left = run.previewed - (0 if item.unchanged or run.state != "preview" else run.unchanged)
        case "retry_failed":
            if run.rollback_requested_at is not None and run.state == "partial":
                return RunBusy(run.id, "a retry", "a rollback was asked for")
            if run.state not in ("partial", "failed") and not (run.state == "cancelled" and run.failed):
                return busy or _illegal(run, "applying")
            left = run.failed
        case "roll_back":
            if item.refs is not None:
                return InvalidInput("refs", f"{len(item.refs)} targets", "none: a run is rolled back as a whole")
            if run.state not in ("applied", "partial") and not (run.state in ("failed", "cancelled") and run.applied):
                return busy or _illegal(run, "rolled_back")
            left = run.applied
    if busy is not None:
        return busy
    if item.refs is None and left <= 0:
        return InvalidInput("targets", f"none of run {run.id} that could", f"runs with targets left to {item.action}")
    return None


def refuse_cancel(run: BatchRunRow) -> DetentError | None:
    """Return why a run cannot be cancelled: it has ended."""
    return None if run.state in ("preview", "queued", "applying") else _illegal(run, "cancelled")


def is_rest(item: NewAction) -> bool:
    """Return whether the action takes all targets in preview that would change."""
    return item.action == "apply" and item.refs is None and not item.unchanged


def nothing_left(run: BatchRunRow) -> InvalidTransition:
    """Return the refusal to apply a run that has no target in preview that would change."""
    allowed = tuple(state for state in BATCH_RUN.allowed(run.state) if state != "queued")
    return InvalidTransition("batch_run", str(run.id), run.state, "queued", allowed)


def _busy(run: BatchRunRow, item: NewAction) -> RunBusy | None:
    if run.outstanding:
        found = "another action is still moving its targets"
    elif run.queued + run.applying:
        found = f"{run.queued + run.applying} targets are still to be applied"
    elif run.reverting:
        found = f"{run.reverting} targets are being reverted"
    else:
        return None
    return RunBusy(run.id, item.action.replace("_", " "), found)


def _illegal(run: BatchRunRow, to_state: str) -> InvalidTransition:
    return InvalidTransition("batch_run", str(run.id), run.state, to_state, BATCH_RUN.allowed(run.state))


def refuse_refs(item: NewAction, found: Sequence[Named]) -> DetentError | None:
    """Return why the action cannot take the targets that it names; `found` are those that exist."""
    refs = item.refs or ()
    if not refs:
        return InvalidInput("refs", "none", "targets of the run, or None for all")
    if len(refs) > REFS_MAX:
        return InvalidInput("refs", f"{len(refs)} targets", f"at most {REFS_MAX} by name")
    known = {named.ref for named in found}
    if unknown := [ref for ref in refs if ref not in known]:
        return InvalidInput("refs", _some(unknown), f"targets of run {item.run_id}")
    wanted = _FOR[item.action]
    if others := [f"{named.ref} ({named.state})" for named in found if named.state != wanted]:
        return InvalidInput("refs", _some(others), f"targets in state {wanted}")
    if unknown := [named.ref for named in found if not named.is_previewed]:
        return InvalidInput("refs", _some(unknown), "targets that could be previewed")
    return None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + more


def refuse_reconciliation(run: BatchRunRow) -> DetentError | None:
    """Return why a run cannot be reconciled."""
    if run.rollback_requested_at is not None:
        return RunBusy(run.id, "reconciliation", "a rollback was asked for")
    if run.state not in ("applied", "partial"):
        return InvalidTransition("batch_run", str(run.id), run.state, "reconciled", BATCH_RUN.allowed(run.state))
    return None


def reconciliation_due_at(finished_at: datetime, planned: int) -> datetime:
    """Return when the planned reconciliation of that number is due."""
    if planned < 2:
        return finished_at + (timedelta(minutes=5), timedelta(hours=1))[planned]
    return finished_at + timedelta(days=planned - 1)


def next_reconciliation(finished_at: datetime, planned: int, now: datetime) -> tuple[int, datetime | None]:
    """Return the reconciliation after `planned` and when it is due. Missed ones are made up for once."""
    following = planned + 1
    while following < RECONCILIATIONS_PLANNED and reconciliation_due_at(finished_at, following) <= now:
        following += 1
    return following, reconciliation_due_at(finished_at, following) if following < RECONCILIATIONS_PLANNED else None
