"""What every job of a pipeline run needs: the run it belongs to, further jobs of the run, and a time slice."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from detent.client.engine import EngineRef
from detent.declare.context import Context
from detent.declare.enqueue import EnqueueOptions, new_job
from detent.declare.pipeline import Pipeline
from detent.declare.signals import Fatal, Snooze
from detent.declare.task import Call
from detent.errors import InvalidArguments, NotFound
from detent.model.pipeline_records import PipelineRunRow
from detent.model.records import NewJob

__all__ = ["UNLIMITED_ATTEMPTS", "TimeSlice", "new_run_job", "read_run", "value_of"]

UNLIMITED_ATTEMPTS = 1_000_000
"""For a job that counts its attempts itself, since its last progress."""


def read_run(engine: EngineRef, run_id: int) -> PipelineRunRow:
    """Return the current row of a run. `NotFound`."""
    row = engine.store().pipeline_get(run_id)
    if row is None:
        raise NotFound("pipeline_run", str(run_id))
    return row


def new_run_job(
    engine: EngineRef, call: Call[Any], run_id: int, tenant: str, *, job_id: int = 0, attempts_max: int | None = None
) -> NewJob:
    """Return a job of a run. Without `job_id` it has no id yet."""
    made = new_job(call, EnqueueOptions(tenant=tenant, correlation_id=f"run:{run_id}"), settings=engine.settings)
    most = made.attempts_max if attempts_max is None else attempts_max
    return replace(made, id=job_id, nonce=engine.ids().nonce(), run_id=run_id, attempts_max=most)


def value_of(pipeline: Pipeline, run: PipelineRunRow) -> Any:
    """Return the pipeline object of a run. `Fatal` if its fields no longer fit the code."""
    try:
        return pipeline.decode(run.payload)
    except InvalidArguments as error:
        raise Fatal(f"The fields of run {run.id} no longer fit the pipeline: {error}") from None


class TimeSlice:
    """How long a job may run before it gives its slot to others."""

    def __init__(self, engine: EngineRef, ctx: Context) -> None:
        self._clock = engine.clock()
        self._ends = self._clock.monotonic() + engine.settings.page_slice
        self._ctx = ctx

    def give_way(self) -> None:
        """Raise `Snooze` if the slice is used up, which costs no attempt, and `Fatal` if the job is to be cancelled."""
        if self._ctx.cancelled:
            raise Fatal("The job was stopped, because a cancel was requested.")
        if self._clock.monotonic() >= self._ends:
            raise Snooze(0)
