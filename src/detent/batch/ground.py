"""What batch runs stand on, and what they know of a run while they work on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from detent.declare.batch import Batch
from detent.declare.enqueue import Sending, new_jobs
from detent.declare.settings import Settings
from detent.declare.signals import Fatal
from detent.declare.task import Call
from detent.errors import InvalidArguments, NotFound
from detent.model.batch_records import BatchRunRow, NewBatchRun
from detent.model.clock import Clock
from detent.model.ids import Ids
from detent.model.records import NewJob
from detent.store.contract import Store

__all__ = ["Ground", "Runs"]

_REMEMBERED_MAX = 64


@dataclass(frozen=True, slots=True)
class Ground:
    """The application's store, ids, clock and settings; asked for each time, since an application may be put on another
    database."""

    store: Callable[[], Store]
    ids: Callable[[], Ids]
    clock: Callable[[], Clock]
    settings: Settings

    def job(self, call: Call[Any], run: BatchRunRow | NewBatchRun) -> NewJob:
        """A job of a run, with its tenant and its correlation id."""
        return self.jobs([call], run)[0]

    def jobs(self, calls: Sequence[Call[Any]], run: BatchRunRow | NewBatchRun) -> list[NewJob]:
        """The same for many."""
        sending = Sending(tenant=run.tenant, correlation_id=run.correlation_id or str(run.id))
        made = new_jobs(calls, sending, settings=self.settings)
        ids = self.ids()
        numbers = ids.take(len(made)) if made else []
        nonce = ids.nonce()
        return [replace(job, id=one, nonce=nonce, run_id=run.id) for job, one in zip(made, numbers, strict=True)]


class Runs:
    """The runs of one batch that this process works on, with the batch's value of each; a few are remembered, since
    what a target's job needs of its run never changes. The targets of a run share that value."""

    def __init__(self, batch: Batch, ground: Ground) -> None:
        self._batch = batch
        self._ground = ground
        self._known: tuple[Store | None, dict[int, Any]] = (None, {})

    def known(self, run_id: int) -> Any:
        """The batch of that run where it is remembered, else None."""
        store, values = self._known
        return values.get(run_id) if store is self._ground.store() else None

    def value(self, run_id: int) -> Any:
        """The batch of that run. `Fatal` where its fields no longer fit the code."""
        if (found := self.known(run_id)) is not None:
            return found
        store = self._ground.store()
        try:
            value = self._batch.decode(self.row(run_id).payload)
        except InvalidArguments as error:
            raise Fatal(f"what run {run_id} was made of no longer fits the batch: {error}") from None
        before, values = self._known
        # Put on another database, an application meets the same numbers again, for other runs.
        kept = values if before is store and len(values) < _REMEMBERED_MAX else {}
        self._known = (store, {**kept, run_id: value})
        return value

    def row(self, run_id: int) -> BatchRunRow:
        """The run as it stands. `NotFound`."""
        row = self._ground.store().batch_get(run_id)
        if row is None:
            raise NotFound("run", str(run_id))
        return row
