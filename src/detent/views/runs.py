"""Looking at batch runs: how far they are, and what went wrong."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from msgspec import Struct

from detent.errors import NotFound, essence
from detent.model.batch_records import BatchRunRow
from detent.store.contract import Verbs

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
    most of the failures come down to. `causes_of` at most so many failed targets were counted."""

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
        doing = "rolled back" if row.state == "rolled_back" else "rolling back"
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
    """What the failures of a run come down to, the commonest first; and how many targets were looked at for that."""
    counted: Counter[str] = Counter()
    examples: dict[str, str] = {}
    after_n = looked_at = 0
    while row.failed and looked_at < _LOOKED_AT_MAX:
        page = verbs.target_list(row.id, state="failed", after_n=after_n, limit=_PAGE)
        for target in page:
            cause = essence(target.error) or "no error recorded"
            counted[cause] += 1
            examples.setdefault(cause, target.ref)
        looked_at += len(page)
        if len(page) < _PAGE:
            break
        after_n = page[-1].n
    causes = [
        Cause(error=error, targets=many, example=examples[error]) for error, many in counted.most_common(_CAUSES_MAX)
    ]
    return causes, looked_at
