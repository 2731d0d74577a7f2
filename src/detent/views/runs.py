"""Looking at batch runs: how far they are, and what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from detent.errors import NotFound, essence
from detent.model.batch_records import BatchRunRow, TargetRow
from detent.store.contract import Verbs
from detent.views.jobs import explain

__all__ = ["Cause", "RunView", "causes_of", "run_view"]

_PAGE = 1000
_LOOKED_AT_MAX = 10_000
_CAUSES_MAX = 20


class Cause(Struct, frozen=True, kw_only=True):
    """Why targets failed, how many of them, and one to look at."""

    error: str
    targets: int
    example: str


class RunView(Struct, frozen=True, kw_only=True):
    """A run for people: `doing` in a word or two, `done` of `of` targets of that, since when and for how long, and what
    most of the failures come down to, of the `causes_of` targets that were counted."""

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
    """One run, as it stands. `NotFound`."""
    row = verbs.batch_get(run_id)
    if row is None:
        raise NotFound("run", str(run_id))
    doing, done, of, since = _progress(row)
    causes, looked_at = causes_of(verbs, row)
    return RunView(
        id=row.id,
        batch=row.batch,
        state=row.state,
        doing=doing,
        done=done,
        of=of,
        seconds=((_until(row) or verbs.now()) - since).total_seconds(),
        causes=causes,
        causes_of=looked_at,
    )


def _progress(row: BatchRunRow) -> tuple[str, int, int, datetime]:
    """What is being done with it, how much of that is done, and since when."""
    if row.state == "preview":
        looked = row.previewed + row.preview_failed
        doing = "planning" if row.planned_at is None else "previewing" if row.previewed_at is None else "previewed"
        return doing, looked, row.total, row.created_at
    begun = row.queued_at or row.created_at
    chosen = row.queued + row.applying + row.applied + row.failed + row.rolled_back
    if row.rollback_requested_at is not None:
        ends = row.revert_failed and not row.reverting + row.outstanding
        doing = "rolled back" if row.state == "rolled_back" else "rollback given up" if ends else "rolling back"
        return doing, row.rolled_back, row.rolled_back + row.applied, row.rollback_requested_at
    return row.state, row.applied + row.failed, chosen, begun


def _until(row: BatchRunRow) -> datetime | None:
    """When that came to its end; None where it goes on."""
    if row.state == "preview":
        return row.previewed_at
    if row.rollback_requested_at is not None:
        return row.rolled_back_at
    return row.finished_at if not row.queued + row.applying + row.outstanding else None


def causes_of(verbs: Verbs, row: BatchRunRow) -> tuple[list[Cause], int]:
    """What the failures of a run come down to, the commonest first; and how many targets were counted for that: those
    that could not be previewed, those that failed, and those that could not be reverted."""
    counted: Counter[str] = Counter()
    examples: dict[str, TargetRow] = {}
    for state, many in (("preview", row.preview_failed), ("failed", row.failed), ("applied", row.revert_failed)):
        if state != "preview" or row.state == "preview":
            for target in _failures(verbs, row.id, state, many):
                cause = essence(target.preview_error if state == "preview" else target.error)
                counted[cause] += 1
                examples.setdefault(cause, target)
    causes = [
        Cause(error=error or _unsaid(verbs, examples[error]), targets=many, example=examples[error].ref)
        for error, many in counted.most_common(_CAUSES_MAX)
    ]
    return causes, counted.total()


def _unsaid(verbs: Verbs, target: TargetRow) -> str:
    """What happened to a target whose function never said why: somebody stopped its job."""
    job_id = target.revert_job_id or target.apply_job_id
    try:
        return "no error recorded" if job_id is None else explain(verbs, job_id)
    except NotFound:
        return "no error recorded"


def _failures(verbs: Verbs, run_id: int, state: str, many: int) -> Iterator[TargetRow]:
    """The targets in that state which failed, of whom there are so many."""
    after_n = looked_at = found = 0
    while found < many and looked_at < _LOOKED_AT_MAX:
        page = verbs.target_list(run_id, state=state, after_n=after_n, limit=_PAGE)
        for target in page:
            if state == "failed" or target.preview_error is not None or target.revert_state == "failed":
                found += 1
                yield target
        looked_at += len(page)
        if len(page) < _PAGE:
            return
        after_n = page[-1].n
