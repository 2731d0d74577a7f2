"""The progress of batch runs, and the causes of their failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from detent.errors import NotFound, essence
from detent.model.batch_records import BatchRunRow, TargetRow
from detent.store.contract import Verbs
from detent.views.job_explanation import explain

__all__ = ["Cause", "RunView", "causes_of", "run_view"]

_PAGE = 1000
_VISITED_MAX = 10_000
_CAUSES_MAX = 20


class Cause(Struct, frozen=True, kw_only=True):
    """An error, how many targets failed with it, and one of them as an example."""

    error: str
    targets: int
    example: str


class RunView(Struct, frozen=True, kw_only=True):
    """The progress of a run: `doing` is its current phase, with `done` of `of` targets after `seconds`. It is `stuck`
    if a job that the run depends on is dead or cancelled: retry that job, or cancel the run. `causes` are the most
    frequent errors of the `causes_of` failed targets that were counted."""

    id: int
    batch: str
    state: str
    doing: str
    done: int
    of: int
    seconds: float
    causes: list[Cause]
    causes_of: int


def run_view(verbs: Verbs, run_id: int) -> RunView:
    """Return the progress of a run. `NotFound`."""
    row = verbs.batch_get(run_id)
    if row is None:
        raise NotFound("run", str(run_id))
    doing, done, of, since = _progress(row)
    if row.stuck and (row.outstanding or row.state in ("queued", "applying") or doing in ("planning", "previewing")):
        doing = "stuck"
    causes, visited = causes_of(verbs, row)
    return RunView(
        id=row.id,
        batch=row.batch,
        state=row.state,
        doing=doing,
        done=done,
        of=of,
        seconds=((_until(row) or verbs.now()) - since).total_seconds(),
        causes=causes,
        causes_of=visited,
    )


def _progress(row: BatchRunRow) -> tuple[str, int, int, datetime]:
    """Return the phase of a run, how many targets are done of how many, and since when."""
    if row.state == "cancelled":
        chosen = row.applied + row.failed + row.rolled_back
        return "cancelled", row.applied + row.failed, chosen, row.queued_at or row.created_at
    if row.state == "preview":
        looked = row.previewed + row.preview_failed
        doing = "planning" if row.planned_at is None else "previewing" if row.previewed_at is None else "previewed"
        return doing, looked, row.total, row.created_at
    begun = row.queued_at or row.created_at
    chosen = row.queued + row.applying + row.applied + row.failed + row.rolled_back
    if row.rollback_requested_at is not None:
        ends = row.revert_failed and not row.reverting + row.outstanding
        doing = "rolled back" if row.state == "rolled_back" else "rollback failed" if ends else "rolling back"
        return doing, row.rolled_back, row.rolled_back + row.applied, row.rollback_requested_at
    doing = "cancelling" if row.cancel_requested_at is not None else row.state
    return doing, row.applied + row.failed, chosen, begun


def _until(row: BatchRunRow) -> datetime | None:
    """Return when the phase ended; None if it goes on."""
    if row.state == "preview":
        return row.previewed_at
    if row.state == "cancelled":
        return row.finished_at
    if row.rollback_requested_at is not None:
        return row.rolled_back_at
    return row.finished_at if not row.queued + row.applying + row.outstanding else None


def causes_of(verbs: Verbs, row: BatchRunRow) -> tuple[list[Cause], int]:
    """Return the causes of the failures of a run, the most frequent first, and how many failed targets were counted:
    those that could not be previewed, applied or reverted."""
    counted: Counter[str] = Counter()
    examples: dict[str, TargetRow] = {}
    for state, many in (("preview", row.preview_failed), ("failed", row.failed), ("applied", row.revert_failed)):
        if state != "preview" or row.state == "preview":
            for target in _failures(verbs, row.id, state, many):
                cause = essence(target.preview_error if state == "preview" else target.error)
                counted[cause] += 1
                examples.setdefault(cause, target)
    causes = [
        Cause(error=error or _unrecorded(verbs, examples[error]), targets=many, example=examples[error].ref)
        for error, many in counted.most_common(_CAUSES_MAX)
    ]
    return causes, counted.total()


def _unrecorded(verbs: Verbs, target: TargetRow) -> str:
    """Return why a target without an error failed: its job was cancelled."""
    job_id = target.revert_job_id or target.apply_job_id
    try:
        return "no error recorded" if job_id is None else explain(verbs, job_id)
    except NotFound:
        return "no error recorded"


def _failures(verbs: Verbs, run_id: int, state: str, many: int) -> Iterator[TargetRow]:
    """Yield the targets in that state that failed; `many` is their number."""
    after_n = visited = found = 0
    while found < many and visited < _VISITED_MAX:
        page = verbs.target_list(run_id, state=state, after_n=after_n, limit=_PAGE)
        for target in page:
            if state == "failed" or target.preview_error is not None or target.revert_state == "failed":
                found += 1
                yield target
        visited += len(page)
        if len(page) < _PAGE:
            return
        after_n = page[-1].n
