"""Stopping a batch run after a critical error, or because a client has cancelled it.

What has not begun is cancelled; targets that are being applied end by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from detent.batch.run_jobs import RunCache
from detent.client.engine import EngineRef
from detent.declare.context import Context
from detent.declare.signals import Snooze
from detent.model.batch_records import BatchRunRow
from detent.model.ids import Ids
from detent.model.records import NewJob
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch

__all__ = ["STOP_PRIORITY", "Stopper", "cancel_waiting", "new_stop_job"]

STOP_PRIORITY = 32_767
"""The highest priority: the job that stops a run must not wait behind the jobs that it stops."""

_ATTEMPTS_MAX = 21
_PORTION = 500
_STOP_AGAIN = 1.0
"""Seconds after which a stopped run is checked again, while targets that had begun are still in flight."""


class Stopper:
    """The function of `<batch>.stop`."""

    def __init__(self, engine: EngineRef, runs: RunCache) -> None:
        self._engine = engine
        self._runs = runs

    def stop(self, ctx: Context, run: int) -> None:
        """Cancel the jobs of a stopped run that have not begun, and those that come back to the queue while others are
        in flight. A run that was retried in the meantime is left alone."""
        for _ in cancel_waiting(self._engine.store(), self._runs.row(run)):
            pass
        row = self._runs.row(run)
        if row.critical is not None and row.queued + row.applying + row.reverting:
            raise Snooze(_STOP_AGAIN)


def cancel_waiting(store: Store, row: BatchRunRow) -> Iterator[int]:
    """Cancel the waiting jobs of a stopped run, a portion at a time, and yield the number of jobs of each portion. Of a
    run that was cancelled in its preview, running jobs are cancelled too: they have no effect."""
    if row.critical is None:
        return
    actor, reason = row.cancel_requested_by or "system", f"run {row.id} was stopped: {row.critical}"
    if row.cancel_requested_at is not None:
        reason = row.cancel_reason or f"run {row.id} was cancelled"
    portions = _jobs_of_preview(store, row) if row.queued_at is None else _jobs_of_targets(store, row)
    for ids in portions:
        if ids:
            store.job_cancel(ids, actor, reason)
        yield len(ids)


def _jobs_of_targets(store: Store, row: BatchRunRow) -> Iterator[list[int]]:
    rolling_back = row.rollback_requested_at is not None
    state, after_n = "applied" if rolling_back else "queued", 0
    while page := store.target_list(row.id, state=state, after_n=after_n, limit=_PORTION):
        after_n = page[-1].n
        ids = [target.revert_job_id if rolling_back else target.apply_job_id for target in page]
        jobs = store.job_get([job_id for job_id in ids if job_id is not None])
        yield [job.id for job in jobs if job is not None and job.state == "pending"]


def _jobs_of_preview(store: Store, row: BatchRunRow) -> Iterator[list[int]]:
    chosen, after, own = JobSearch(run_id=row.id), None, _stop_task(row)
    while True:
        page = store.job_list(chosen, after, _PORTION)
        yield [job.id for job in page.rows if job.state in ("pending", "running") and job.task != own]
        if page.next is None:
            return
        after = page.next


def new_stop_job(store: Store, ids: Ids, row: BatchRunRow) -> NewJob:
    """Return the job that stops a run. The caller need not know the batch: the job goes to the queue of the run's other
    jobs, for a worker that does."""
    found = store.job_list(JobSearch(run_id=row.id), None, 1).rows
    return NewJob(
        id=ids.take(1)[0],
        task=_stop_task(row),
        payload=f'{{"run":{row.id}}}',
        nonce=ids.nonce(),
        fingerprint="",
        tenant=row.tenant,
        queue=found[0].queue if found else "default",
        priority=STOP_PRIORITY,
        correlation_id=row.correlation_id or str(row.id),
        run_id=row.id,
        attempts_max=_ATTEMPTS_MAX,
    )


def _stop_task(row: BatchRunRow) -> str:
    return f"{row.batch}.stop"
