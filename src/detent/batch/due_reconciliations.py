"""Planned reconciliations: begin those that are due."""

from __future__ import annotations

from collections.abc import Callable

from detent.errors import DetentError
from detent.model.batch_records import BatchRunRow
from detent.model.ids import Ids
from detent.model.records import NewJob
from detent.store.contract import Store
from detent.store.row_errors import is_of_one_row

__all__ = ["begin_due"]

_AT_ONCE = 100
_ATTEMPTS_MAX = 21
_ACTOR = "reconciler"


def begin_due(store: Store, ids: Ids, on_damage: Callable[[BatchRunRow, Exception], None] | None = None) -> int:
    """Begin every reconciliation that is due, and return how many. A second caller changes nothing.

    The caller need not know the batch: the job goes to the queue of the run's other jobs, for a worker that does. A run
    whose rows are damaged is passed to `on_damage`, and the others go on.
    """
    begun = 0
    for row in store.reconcile_due(_AT_ONCE):
        try:
            begun += _begin(store, ids, row)
        except Exception as error:
            if on_damage is None or not is_of_one_row(error):
                raise
            on_damage(row, error)
    return begun


def _begin(store: Store, ids: Ids, row: BatchRunRow) -> bool:
    job = NewJob(
        id=ids.take(1)[0],
        task=f"{row.batch}.reconcile",
        payload=f'{{"run":{row.id}}}',
        nonce=ids.nonce(),
        fingerprint="",
        tenant=row.tenant,
        queue=_queue(store, row),
        correlation_id=row.correlation_id or str(row.id),
        run_id=row.id,
        attempts_max=_ATTEMPTS_MAX,
    )
    return not isinstance(store.reconcile_begin(row.id, row.reconcile_no, job, _ACTOR), DetentError)


def _queue(store: Store, row: BatchRunRow) -> str:
    """Return the queue of the job of any of its targets."""
    for target in store.target_list(row.id, state="applied", limit=1):
        (job,) = store.job_get([target.apply_job_id] if target.apply_job_id else [])
        if job is not None:
            return job.queue
    return "default"
