"""`app.runs` and `app.watermarks`: batch runs, pipeline runs, and how far sources were ingested."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, overload

from detent.app.batch_run import BatchRun
from detent.app.new_batch_run import begin_batch_run
from detent.app.pipeline_run import PipelineRun
from detent.app.registry import Registry
from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job_verbs import check_id, reason_needed, unwrap
from detent.client.list_page import ListPage, check_limit, page_by_name
from detent.declare.batch import BatchMethods
from detent.declare.enqueue import encode_metadata
from detent.declare.pipeline import PipelineMethods
from detent.errors import InvalidInput, NotFound
from detent.lifecycle.library import BATCH_RUN, PIPELINE_RUN
from detent.model import json_codec
from detent.model.batch_records import BatchFilter
from detent.model.pipeline_records import NewPipelineRun, WatermarkRow
from detent.pipeline.run_jobs import new_run_job

__all__ = ["Run", "Runs", "Watermarks"]

Run = BatchRun | PipelineRun
RunKind = Literal["batch", "pipeline"]

_STATES = tuple(dict.fromkeys((*BATCH_RUN.states, *PIPELINE_RUN.states)))


class Runs:
    """The runs of batches and pipelines."""

    def __init__(self, engine: Engine, registry: Registry) -> None:
        self._engine = engine
        self._registry = registry

    @overload
    def get(self, run_id: int | str, *, kind: Literal["batch"]) -> BatchRun: ...

    @overload
    def get(self, run_id: int | str, *, kind: Literal["pipeline"]) -> PipelineRun: ...

    @overload
    def get(self, run_id: int | str, *, kind: None = None) -> Run: ...

    def get(self, run_id: int | str, *, kind: RunKind | None = None) -> Any:
        """Return the handle of a run. With `kind`, only a run of that kind is found. `NotFound`."""
        return self._get(run_id, kind=kind)

    def _get(self, run_id: int | str, *, kind: RunKind | None) -> Run:
        number, store = check_id(run_id, "run id"), self._engine.store
        if kind != "pipeline" and (batch := store.batch_get(number)) is not None:
            return BatchRun(batch, self._engine, self._registry)
        if kind != "batch" and (pipeline := store.pipeline_get(number)) is not None:
            return PipelineRun(pipeline, self._engine)
        raise NotFound("pipeline_run" if kind == "pipeline" else "run", str(run_id))

    @overload
    def list(
        self,
        *,
        kind: Literal["batch"],
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[BatchRun]: ...

    @overload
    def list(
        self,
        *,
        kind: Literal["pipeline"],
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[PipelineRun]: ...

    @overload
    def list(
        self,
        *,
        kind: None = None,
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[Run]: ...

    def list(
        self,
        *,
        kind: RunKind | None = None,
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Any:
        """List matching runs, the newest first. `name` is that of the batch or pipeline. `.next` of the list is the
        `after` of the next page. `InvalidInput`."""
        return self._list(kind=kind, state=state, name=name, tenant=tenant, limit=limit, after=after)

    def _list(
        self,
        *,
        kind: RunKind | None,
        state: str | None,
        name: str | None,
        tenant: str | None,
        limit: int,
        after: str | None,
    ) -> ListPage[Run]:
        of_kind = {"batch": BATCH_RUN.states, "pipeline": PIPELINE_RUN.states}.get(kind or "", _STATES)
        if state is not None and state not in of_kind:
            raise InvalidInput("state", repr(state)[:80], ", ".join(of_kind))
        for field, text in (("name", name), ("tenant", tenant)):
            if text is not None:
                json_codec.text(text, field=field, bytes_max=self._engine.settings.name_max, allow_empty=True)
        most, below = check_limit(limit), None if after is None else check_id(after, "after")
        store, found = self._engine.store, ListPage[Any](())
        if kind != "pipeline" and state in (None, *BATCH_RUN.states):
            chosen = BatchFilter(state=state, batch=name, tenant=tenant)
            found += [BatchRun(row, self._engine, self._registry) for row in store.batch_list(chosen, below, most)]
        if kind != "batch" and state in (None, *PIPELINE_RUN.states):
            rows = store.pipeline_list(state=state, name=name, tenant=tenant, before_id=below, limit=most)
            found += [PipelineRun(row, self._engine) for row in rows]
        found.sort(key=lambda run: -run.id)
        return ListPage(found[:most], str(found[most - 1].id) if len(found) >= most else None)

    def preview(
        self,
        value: BatchMethods,
        /,
        *,
        tenant: str = "",
        correlation_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> BatchRun:
        """Begin a run of a batch: workers find its targets and compute what would change. Nothing is changed yet.
        `InvalidInput` if the batch is not declared here, `InvalidArguments` if its fields do not fit."""
        tasks, settings = self._registry.batch_tasks_of(value), self._engine.settings
        json_codec.text(tenant, field="tenant", bytes_max=settings.name_max, allow_empty=True)
        if correlation_id is not None:
            json_codec.text(correlation_id, field="correlation_id", bytes_max=settings.name_max)
        payload = tasks.batch.encode(value)
        attached = encode_metadata(metadata, settings)
        engine, registry = self._engine, self._registry
        row = begin_batch_run(engine, registry, tasks, payload, actor, reason, tenant, correlation_id, attached)
        return BatchRun(row, engine, registry)

    def preview_named(self, name: str, payload: str = "{}", /, **options: Any) -> BatchRun:
        """Preview a run of a batch by its name, with its fields as JSON text. Options as for `preview`. `NotFound`,
        `InvalidArguments`."""
        batch = self._registry.batch_tasks(name).batch
        text = json_codec.check_text(payload, field=name, size_max=self._engine.settings.payload_max)
        return self.preview(batch.parse(text), **options)

    def start(
        self,
        value: PipelineMethods,
        /,
        *,
        full: bool = False,
        force: bool = False,
        tenant: str = "",
        actor: str | None = None,
        reason: str | None = None,
    ) -> PipelineRun:
        """Begin a run of a pipeline; workers carry it out. It fetches everything if there is no watermark yet, or with
        `full`; otherwise what changed since. With `force`, which needs a reason, the run is consolidated even if
        partitions fail. `RunInProgress` while a run of the same watermark has not ended."""
        engine, registry = self._engine, self._registry
        tasks, settings = registry.pipeline_tasks_of(value), engine.settings
        who, why = actor_and_reason(actor, reason, settings)
        if force:
            reason_needed(actor, reason, settings, "a reason: forcing a run needs one")
        json_codec.text(tenant, field="tenant", bytes_max=settings.name_max, allow_empty=True)
        payload = tasks.pipeline.encode(value)
        options, store = tasks.pipeline.options, engine.store
        run_id, job_id = engine.ids.take(2)
        plan = new_run_job(registry.engine_ref, tasks.plan.call(run_id=run_id), run_id, tenant, job_id=job_id)
        new = NewPipelineRun(
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
        return PipelineRun(unwrap(store.pipeline_start(new)), engine)

    def start_named(self, name: str, payload: str = "{}", /, **options: Any) -> PipelineRun:
        """Start a run of a pipeline by its name, with its fields as JSON text. Options as for `start`. `NotFound`,
        `InvalidArguments`, also for a field that the pipeline does not have."""
        if name not in self._registry.pipelines:
            raise NotFound("pipeline", repr(name))
        text = json_codec.check_text(payload, field=name, size_max=self._engine.settings.payload_max)
        return self.start(self._registry.pipelines[name].pipeline.parse(text), **options)


class Watermarks:
    """How far each source has been ingested."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, name: str, *, tenant: str = "") -> datetime | None:
        """Return the time up to which a source has been ingested; None before its first run has completed."""
        json_codec.text(name, field="watermark", bytes_max=self._engine.settings.name_max)
        found = self._engine.store.watermark_list(tenant=tenant, name=name)
        return found[0].value if found else None

    def list(self, *, tenant: str | None = None, limit: int = 100, after: str | None = None) -> ListPage[WatermarkRow]:
        """List watermarks by name and tenant, each with the run that set it."""
        rows = self._engine.store.watermark_list(tenant=tenant)
        return page_by_name(sorted(rows, key=_place), _place, after, limit)


def _place(row: WatermarkRow) -> str:
    return f"{row.name}/{row.tenant}"
