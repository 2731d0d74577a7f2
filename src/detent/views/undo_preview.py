"""What an undo of a workflow would call, from the record alone."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.workflow_records import StepRow, Undo
from detent.store.contract import Verbs
from detent.views.workflows import steps_of

__all__ = ["preview_undo"]

_SUFFIX = "~undo"


def preview_undo(verbs: Verbs, job_id: int) -> list[Undo]:
    """Return the steps of the current generation that can be undone, in the order in which their undo functions are
    called: the step that was recorded last comes first. `NotFound`."""
    (job,) = verbs.job_get([job_id])
    if job is None:
        raise NotFound("job", str(job_id))
    (found,) = verbs.workflow_get([job_id])
    if found is None:
        return []
    others = (found.undo_of, found.undone_by)
    own = steps_of(verbs, job_id, generation=found.generation)
    more = [row for other in others if other for row in steps_of(verbs, other, generation=found.generation)]
    undone = {row.path.removesuffix(_SUFFIX): row for row in (*own, *more) if row.kind == "undo"}
    steps = [row for row in (*own, *more) if row.undo and row.kind != "scope" and row.error is None]
    steps.sort(key=lambda row: row.seq, reverse=True)
    return [_undo(row, undone.get(row.path)) for row in steps]


def _undo(row: StepRow, done: StepRow | None) -> Undo:
    name = row.path.rpartition("/")[2].partition(":")[0].partition("#")[0]
    return Undo(
        path=row.path,
        name=name,
        value=row.value,
        done_at=row.done_at,
        secret=row.secret,
        undone_at=None if done is None else done.done_at,
        by_hand=done is not None and done.attempt == 0,
    )
