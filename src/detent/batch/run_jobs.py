"""What every job of a batch run needs: the run it belongs to, and how further jobs of the run are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from detent.client.engine import EngineRef
from detent.declare.batch import Batch
from detent.declare.enqueue import EnqueueOptions, new_jobs
from detent.declare.signals import Fatal
from detent.declare.task import Call
from detent.errors import InvalidArguments, NotFound
from detent.model.batch_records import BatchRunRow, NewBatchRun
from detent.model.records import NewJob
from detent.store.contract import Store

__all__ = ["RunCache", "new_run_job", "new_run_jobs"]

_REMEMBERED_MAX = 64


def new_run_job(engine: EngineRef, call: Call[Any], run: BatchRunRow | NewBatchRun) -> NewJob:
    """Return a job of a run, with the tenant and the correlation id of the run."""
    return new_run_jobs(engine, [call], run)[0]


def new_run_jobs(engine: EngineRef, calls: Sequence[Call[Any]], run: BatchRunRow | NewBatchRun) -> list[NewJob]:
    """Return a job of a run for each call."""
    sending = EnqueueOptions(tenant=run.tenant, correlation_id=run.correlation_id or str(run.id))
    made = new_jobs(calls, sending, settings=engine.settings)
    ids = engine.ids()
    numbers = ids.take(len(made)) if made else []
    nonce = ids.nonce()
    return [replace(job, id=number, nonce=nonce, run_id=run.id) for job, number in zip(made, numbers, strict=True)]


class RunCache:
    """The runs of one batch that this process works on, each with its batch object.

    A few objects are remembered, since the fields of a run never change. The targets of a run share one object.
    """

    def __init__(self, batch: Batch, engine: EngineRef) -> None:
        self._batch = batch
        self._engine = engine
        self._known: tuple[Store | None, dict[int, Any]] = (None, {})

    def known(self, run_id: int) -> Any:
        """Return the batch object of a run if it is remembered, else None."""
        store, values = self._known
        return values.get(run_id) if store is self._engine.store() else None

    def value(self, run_id: int) -> Any:
        """Return the batch object of a run. `Fatal` if its fields no longer fit the code."""
        if (found := self.known(run_id)) is not None:
            return found
        store = self._engine.store()
        try:
            value = self._batch.decode(self.row(run_id).payload)
        except InvalidArguments as error:
            raise Fatal(f"The fields of run {run_id} no longer fit the batch: {error}") from None
        before, values = self._known
        # Another database has other runs under the same numbers.
        kept = values if before is store and len(values) < _REMEMBERED_MAX else {}
        self._known = (store, {**kept, run_id: value})
        return value

    def row(self, run_id: int) -> BatchRunRow:
        """Return the current row of a run. `NotFound`."""
        row = self._engine.store().batch_get(run_id)
        if row is None:
            raise NotFound("run", str(run_id))
        return row
