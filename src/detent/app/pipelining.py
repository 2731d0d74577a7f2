"""The part of `Detent` that is about pipeline runs: fan out, fan in, watermark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar, overload

from detent.app.wiring import Wiring
from detent.client.client import actor_and_reason, check_id, one
from detent.client.pipeline_run import PipelineRun, find_run
from detent.declare.fields import options_of
from detent.declare.limit import Limit
from detent.declare.pipeline import Pipeline, PipelineMethods, PipelineOptions
from detent.declare.settings import Settings
from detent.errors import InvalidInput, NotFound
from detent.lifecycle.library import PIPELINE_RUN
from detent.model import jsondoor
from detent.model.backoff import Retry
from detent.model.pipeline_records import NewPipelineRun, WatermarkRow
from detent.model.records import Moved
from detent.pipeline.ground import Ground
from detent.pipeline.tasks import Declare, PipelineTasks, declare_tasks

__all__ = ["Pipelining"]

K = TypeVar("K", bound=PipelineMethods)

_LIST_MAX = 10_000


class Pipelining:
    """Pipelines, their runs and watermarks."""

    settings: Settings
    _wiring: Wiring
    _pipelines: dict[str, PipelineTasks]
    _declare_task: Declare

    @overload
    def pipeline(self, kind: type[K], /) -> type[K]: ...

    @overload
    def pipeline(
        self,
        /,
        *,
        watermark: str | None = None,
        name: str | None = None,
        overlap: float | timedelta = 0.0,
        tolerate: float = 0,
        hold: float | timedelta = 0.0,
        queue: str = "default",
        priority: int = 0,
        retry: Retry | None = None,
        timeout: float | None = None,
        limit: Limit | None = None,
        limit_key: str | None = None,
    ) -> Callable[[type[K]], type[K]]: ...

    def pipeline(
        self, kind: type[Any] | None = None, /, *, name: str | None = None, retry: Retry | None = None, **options: Any
    ) -> Any:
        """Declare a pipeline: `@app.pipeline(watermark="diamonds")` above a dataclass with the methods `plan`, `page`
        and `consolidate`, and perhaps `retire` and `stage`, each plain or async.

        `watermark` is the name under which it is kept up to when the source is known; the pipeline's own where none is
        given. A run begins `overlap` before it. `tolerate` is how many partitions (2), or which share of them (0.1),
        may fail: what the others brought is consolidated, and the watermark moves. `hold` is how long a run that was
        skipped waits for somebody to force it, before it fails. `retry`, `timeout`, `limit`, `queue` and `priority`
        mean for each partition what they mean for a task; attempts are counted since the last page.
        """
        chosen = options_of(PipelineOptions, "pipeline", {"retry": retry or Retry(), **options})

        def declare(found: type[Any]) -> type[Any]:
            pipeline = Pipeline(found, name=name, options=chosen, settings=self.settings)
            if pipeline.name in self._pipelines:
                raise InvalidInput("pipeline", f"the name {pipeline.name!r} twice", "one pipeline for each name")
            for other in self._pipelines.values():
                if other.pipeline.watermark == pipeline.watermark:
                    found_ = f"the watermark {pipeline.watermark!r} of {other.pipeline.name!r}"
                    raise InvalidInput("watermark", found_, "one pipeline for each watermark")
            self._pipelines[pipeline.name] = declare_tasks(pipeline, self._ground_of_pipelines, self._declare_task)
            return found

        return declare if kind is None else declare(kind)

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """The declared pipelines by name."""
        return {name: tasks.pipeline for name, tasks in self._pipelines.items()}

    def find_pipeline(self, name: str) -> Pipeline:
        """The pipeline of that name. `NotFound`."""
        if name not in self._pipelines:
            raise NotFound("pipeline", repr(name))
        return self._pipelines[name].pipeline

    def start(
        self,
        value: PipelineMethods,
        /,
        *,
        full: bool = False,
        force: bool = False,
        actor: str = "client",
        reason: str | None = None,
        tenant: str = "",
    ) -> PipelineRun:
        """Begin a run; workers do it. Full where there is no watermark yet, or with `full`; otherwise what changed
        since. With `force` what there is gets consolidated though partitions failed: that needs a reason, and is on
        record. `RunInProgress` while a run of the same watermark has not ended."""
        tasks = self._tasks_of(value)
        who, why = actor_and_reason(actor, reason, self.settings)
        if force and not why:
            raise InvalidInput("reason", repr(reason), "a reason: a forced run always has one")
        jsondoor.text(tenant, field="tenant", bytes_max=self.settings.name_max, allow_empty=True)
        payload = tasks.pipeline.encode(value)
        wiring, options, settings = self._wiring, tasks.pipeline.options, self.settings
        store = wiring.store
        run_id, job_id = wiring.ids.take(2)
        plan = self._ground_of_pipelines.job(tasks.plan.call(run_id=run_id), run_id, tenant, job_id=job_id)
        row = one(
            store.pipeline_start(
                NewPipelineRun(
                    id=run_id,
                    name=tasks.pipeline.name,
                    payload=payload,
                    watermark=tasks.pipeline.watermark,
                    plan=plan,
                    tenant=tenant,
                    full=full,
                    forced=force,
                    started_by=who,
                    reason=why,
                    retires=tasks.pipeline.retires,
                    queue=options.queue,
                    priority=options.priority,
                    replicas=settings.consolidate_replicas,
                    portion_size=settings.consolidate_fetch,
                )
            )
        )
        return PipelineRun(row, store, wiring.prepared.clock, settings)

    def start_named(self, name: str, payload: str = "{}", /, **options: Any) -> PipelineRun:
        """Begin a run by the pipeline's name with its fields as JSON text: the door of the CLI. Options as for `start`.
        `NotFound`; `InvalidArguments`, for a field that the pipeline does not have too."""
        pipeline = self.find_pipeline(name)
        text = jsondoor.check_text(payload, field=name, size_max=self.settings.payload_max)
        return self.start(pipeline.told(text), **options)

    def force_run(self, run_id: int | str, *, actor: str, reason: str) -> Moved:
        """Consolidate what is there of a run that was skipped, in spite of its failed partitions; on record.
        `InvalidTransition`, `NotFound`."""
        who, why = actor_and_reason(actor, reason, self.settings)
        if not why:
            raise InvalidInput("reason", repr(reason), "a reason: a forced run always has one")
        return one(self._wiring.store.pipeline_force(check_id(run_id), who, why))

    def retry_run(self, run_id: int | str, *, actor: str, reason: str | None = None) -> PipelineRun:
        """Bring a failed or skipped pipeline run back to work; as `run.retry()`, by its id."""
        return self.pipeline_run(run_id).retry(actor=actor, reason=reason)

    def pipeline_run(self, run_id: int | str) -> PipelineRun:
        """A pipeline run as it stands. `NotFound`."""
        return find_run(self._wiring.store, run_id, self._wiring.prepared.clock, self.settings)

    def pipeline_runs(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[PipelineRun]:
        """Runs that fit, the newest first."""
        if state is not None and state not in PIPELINE_RUN.states:
            raise InvalidInput("state", repr(state)[:80], ", ".join(PIPELINE_RUN.states))
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _LIST_MAX:
            raise InvalidInput("limit", repr(limit), f"a whole number from 1 to {_LIST_MAX}")
        store, clock = self._wiring.store, self._wiring.prepared.clock
        rows = store.pipeline_list(state=state, name=name, tenant=tenant, before_id=before_id, limit=limit)
        return [PipelineRun(row, store, clock, self.settings) for row in rows]

    def watermark(self, name: str, *, tenant: str = "") -> datetime | None:
        """Up to when a source is known; None before the first run of it has completed."""
        jsondoor.text(name, field="watermark", bytes_max=self.settings.name_max)
        found = self._wiring.store.watermark_list(tenant=tenant, name=name)
        return found[0].value if found else None

    def watermarks(self, *, tenant: str | None = None) -> list[WatermarkRow]:
        """Every watermark, with the run it stands on."""
        return self._wiring.store.watermark_list(tenant=tenant)

    def _tasks_of(self, value: object) -> PipelineTasks:
        for tasks in self._pipelines.values():
            if tasks.pipeline.kind is type(value):
                return tasks
        allowed = "a value of a class under @app.pipeline"
        raise InvalidInput("pipeline", f"a value of type {type(value).__name__}", allowed)

    @property
    def _ground_of_pipelines(self) -> Ground:
        return Ground(
            lambda: self._wiring.store, lambda: self._wiring.ids, lambda: self._wiring.prepared.clock, self.settings
        )
