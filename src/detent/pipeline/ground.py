"""What pipeline runs stand on, and what each of their jobs asks first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from detent.declare.context import Context
from detent.declare.enqueue import Sending, new_job
from detent.declare.pipeline import Pipeline
from detent.declare.settings import Settings
from detent.declare.signals import Fatal, Snooze
from detent.declare.task import Call
from detent.errors import InvalidArguments, NotFound
from detent.model.clock import Clock
from detent.model.ids import Ids
from detent.model.pipeline_records import PipelineRunRow
from detent.model.records import NewJob
from detent.store.contract import Store

__all__ = ["ATTEMPTS", "Ground", "Slice", "value_of"]

ATTEMPTS = 1_000_000
"""Of a job that counts by itself how often it is tried without getting on."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The application's store, ids, clock and settings; asked for each time, since an application may be put on another
    database."""

    store: Callable[[], Store]
    ids: Callable[[], Ids]
    clock: Callable[[], Clock]
    settings: Settings

    def run(self, run_id: int) -> PipelineRunRow:
        """The run as it stands. `NotFound`."""
        row = self.store().pipeline_get(run_id)
        if row is None:
            raise NotFound("pipeline_run", str(run_id))
        return row

    def job(
        self, call: Call[Any], run_id: int, tenant: str, *, job_id: int = 0, attempts_max: int | None = None
    ) -> NewJob:
        """A job of a run, still without an id unless one is given."""
        made = new_job(call, Sending(tenant=tenant, correlation_id=f"run:{run_id}"), settings=self.settings)
        most = made.attempts_max if attempts_max is None else attempts_max
        return replace(made, id=job_id, nonce=self.ids().nonce(), run_id=run_id, attempts_max=most)


def value_of(pipeline: Pipeline, run: PipelineRunRow) -> Any:
    """The pipeline of that run. `Fatal` where its fields no longer fit the code."""
    try:
        return pipeline.decode(run.payload)
    except InvalidArguments as error:
        raise Fatal(f"what run {run.id} was started with no longer fits the pipeline: {error}") from None


class Slice:
    """How long a job may go on before others have its slot."""

    def __init__(self, ground: Ground, ctx: Context) -> None:
        self._clock = ground.clock()
        self._ends = self._clock.monotonic() + ground.settings.page_slice
        self._ctx = ctx

    def give_way(self) -> None:
        """`Snooze` where the time is over, which costs no attempt; `Fatal` where somebody wants the job stopped."""
        if self._ctx.cancelled:
            raise Fatal("stopped: somebody wants it cancelled")
        if self._clock.monotonic() >= self._ends:
            raise Snooze(0)
