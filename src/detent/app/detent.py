"""`Detent`: one application, its tasks and its database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from detent.app.aio_detent import AsyncDetent
from detent.app.nouns import Nouns
from detent.app.registry import Declarations, Registry
from detent.app.webhook_declarations import WebhookDeclarations
from detent.app.workflow_declarations import WorkflowDeclarations
from detent.batch.tasks import declare_tasks as batch_tasks
from detent.client.client import DirectClient
from detent.client.engine import Engine
from detent.client.job import Job
from detent.client.task import AsyncTask, DeclareTask, PlainTask, SendableTask
from detent.declare.around_hooks import Around, AroundHook, hook_of
from detent.declare.batch import Batch, BatchMethods, BatchOptions
from detent.declare.context import Context
from detent.declare.declaration import options_of
from detent.declare.enqueue import EnqueueKeywords
from detent.declare.limit import Limit
from detent.declare.pipeline import Pipeline, PipelineMethods, PipelineOptions
from detent.declare.settings import load_settings
from detent.declare.task import Call, Options
from detent.errors import InvalidInput, UnknownTask
from detent.model import json_codec
from detent.model.backoff import Retry
from detent.model.clock import Clock
from detent.model.figure_records import Figures, Rates
from detent.model.ids import Ids
from detent.model.service_records import CatchUp
from detent.pipeline.tasks import declare_tasks as pipeline_tasks
from detent.store.contract import Store
from detent.store.entities.rules import refuse_older
from detent.store.user_database.marker import create_table
from detent.views.figures import figures_since
from detent.views.rates import Step, rates_since

__all__ = ["Detent"]

log = logging.getLogger("detent.app")

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B", bound=BatchMethods)
K = TypeVar("K", bound=PipelineMethods)
HookT = TypeVar("HookT", bound=AroundHook)


class Detent(Nouns, WebhookDeclarations, WorkflowDeclarations):
    """An application on one database: declare tasks, send calls, and act on its nouns (`app.jobs`, …).

    The database is opened at the first use. An empty database then gets the schema; a database of another version is
    refused (`SchemaTooOld`, `SchemaTooNew`). Without a URL, the database is that of `DETENT_DATABASE_URL` or of the
    settings file. Further keyword arguments are settings, such as `payload_max=100_000`; `app.settings` has them all.
    """

    def __init__(self, database_url: str | None = None, *, clock: Clock | None = None, **settings: Any) -> None:
        self.settings = load_settings({"database_url": database_url, **settings})
        self._registry = Registry(self.settings, lambda: self._engine)
        self._engine = Engine(self.settings, clock)
        self._engine.tasks = self._registry.tasks
        self._aio = AsyncDetent(self._engine, self._registry)
        self._on_failure: list[Callable[[Job[Any]], None]] = []
        self.around_hooks: list[Around] = []

    # -- declaring ---------------------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> PlainTask[P, R]: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str = "default",
        priority: int = 0,
        retry: Retry | None = None,
        timeout: float | None = None,
        unique: Literal["pending", "active"] | None = None,
        idempotent: bool = True,
        process: bool = False,
        dead_letter: bool = True,
        result_ttl: float | None = None,
        stale_after: float | None = None,
        stalled_after: float | None = None,
        limit: Limit | None = None,
        limit_key: str | Callable[..., str] | None = None,
        cost: int | Callable[..., int] | None = None,
        probe: Callable[..., Any] | None = None,
        secret: tuple[str, ...] = (),
    ) -> DeclareTask: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        retry: Retry | None = None,
        **options: Any,
    ) -> Any:
        """Declare a task: `@app.task`, or `@app.task(queue="mail", retry=Retry(3))`.

        - `name`: name of the task; default: its module and function. `aliases`: other names, such as old ones.
        - `queue`, `priority`: where its jobs go, and their order within a tenant (higher first).
        - `retry`: retry policy. `Retry(3)` means three retries, so four attempts; this is the default.
        - `timeout`: time limit of an attempt in seconds.
        - `unique`: `"pending"` or `"active"`: an equal call returns the job that is pending, or pending or running.
        - `idempotent=False`: do not repeat an attempt whose outcome is unknown. `probe`: a function with the same
          parameters that finds out whether the effect has happened, and returns a `Probed`.
        - `process=True`: run each job in a process of its own.
        - `dead_letter=False`: a job that fails for good is failed, not quarantined.
        - `result_ttl`: seconds for which a result is kept after success; default: as long as the job.
        - `stale_after`, `stalled_after`: seconds after which a job that has not started, or writes no event, counts as
          silent; `math.inf` is never. They take precedence over those of the queue.
        - `limit`: bounds on the jobs of the task, for all workers together. Tasks with the same `limit_key` share one.
          If `limit_key` is a function of some arguments (`lambda shop: f"shop:{shop}"`), each key has its own limit.
        - `cost`: tokens of the limit that a job takes: a number, or a function of some arguments. `ctx.spend` corrects
          it.
        - `secret`: paths of arguments, such as `("card", "customer.iban")`, that the HTTP API and the command line show
          as `[redacted]`; `result.token` is a field of the result. Python code and the function get them whole.

        `InvalidInput` if the name is taken, `InvalidSetting` for an option out of range.
        """
        chosen = options_of(Options, "task", {"retry": retry or Retry(), **options})

        def declare(found: Callable[..., Any]) -> SendableTask[..., Any, Any]:
            return self._declare(found, name, aliases, chosen)

        return declare if function is None else declare(function)

    def _declare(
        self, function: Callable[..., Any], name: str | None, aliases: Sequence[str], options: Options
    ) -> SendableTask[..., Any, Any]:
        task: SendableTask[..., Any, Any] = SendableTask(
            function, name=name, aliases=aliases, options=options, settings=self.settings, sender=self
        )
        return self._registry.add_task(task)

    @overload
    def batch(self, kind: type[B], /) -> type[B]: ...

    @overload
    def batch(
        self,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str = "default",
        priority: int = 0,
        retry: Retry | None = None,
        timeout: float | None = None,
        idempotent: bool = True,
        limit: Limit | None = None,
        limit_key: str | Callable[[Any, str], str] | None = None,
        cost: int | Callable[[Any, str], int] | None = None,
        tolerate: float | None = None,
        chunk: int = 500,
        version: str = "",
    ) -> Callable[[type[B]], type[B]]: ...

    def batch(
        self,
        kind: type[Any] | None = None,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        retry: Retry | None = None,
        **options: Any,
    ) -> Any:
        """Declare a batch: `@app.batch`, or `@app.batch(limit=…, tolerate=…)`, above a dataclass with the methods
        `targets`, `preview` and `apply`, and optionally `revert` and `observe`.

        - `queue`, `priority`, `retry`, `timeout`, `limit`: as for a task, for each target.
        - `limit_key`, `cost`: as for a task, or functions of the batch and a ref.
        - `idempotent=False`: if the batch has `observe`, a target whose outcome is unknown is observed before it is
          retried.
        - `tolerate`: number (5) or share (0.02) of targets that may fail without an alert.
        - `chunk`: number of targets that one job previews.
        - `version`: change it when `apply` does something different with a change. A run that was previewed under
          another version is refused with `BatchChanged`.
        """
        chosen = options_of(BatchOptions, "batch", {"retry": retry or Retry(), **options})

        def declare(found: type[Any]) -> type[Any]:
            batch = Batch(found, name=name, aliases=aliases, options=chosen, settings=self.settings)
            names = (batch.name, *batch.aliases)
            for name_ in names:
                if name_ in self._registry.batches or names.count(name_) > 1:
                    raise InvalidInput("batch", f"the name {name_!r} twice", "one batch for each name")
            tasks = batch_tasks(batch, self._registry.engine_ref, self._declare)
            self._registry.batches.update(dict.fromkeys(names, tasks))
            return found

        return declare if kind is None else declare(kind)

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
        and `consolidate`, and optionally `retire` and `stage`, each plain or async.

        - `watermark`: name of the watermark; default: the name of the pipeline.
        - `overlap`: how much earlier than the watermark a run starts.
        - `tolerate`: number (2) or share (0.1) of partitions that may fail. The others are consolidated, and the
          watermark moves.
        - `hold`: how long a skipped run waits to be forced before it fails.
        - `queue`, `priority`, `retry`, `timeout`, `limit`, `limit_key`: as for a task, for each partition. Attempts are
          counted since the last page.
        """
        chosen = options_of(PipelineOptions, "pipeline", {"retry": retry or Retry(), **options})

        def declare(found: type[Any]) -> type[Any]:
            pipeline = Pipeline(found, name=name, options=chosen, settings=self.settings)
            pipelines = self._registry.pipelines
            if pipeline.name in pipelines:
                raise InvalidInput("pipeline", f"the name {pipeline.name!r} twice", "one pipeline for each name")
            for other in pipelines.values():
                if other.pipeline.watermark == pipeline.watermark:
                    found_ = f"the watermark {pipeline.watermark!r} of {other.pipeline.name!r}"
                    raise InvalidInput("watermark", found_, "one pipeline for each watermark")
            pipelines[pipeline.name] = pipeline_tasks(pipeline, self._registry.engine_ref, self._declare)
            return found

        return declare if kind is None else declare(kind)

    def schedule(
        self,
        cron: str,
        call: Call[Any],
        *,
        zone: str = "UTC",
        name: str | None = None,
        catch_up: CatchUp = "latest",
        tenant: str = "",
        queue: str | None = None,
        priority: int | None = None,
    ) -> str:
        """Declare a schedule: enqueue a call at the times of a cron expression (five fields) in a time zone. Return its
        name; the default is the name of the task.

        Nothing is written here. A worker writes the declaration when it starts, and so does `detent migrate --app`. It
        is written only if it differs from what the code declared before, so a pause and a change by `schedules.set`
        stay until the declaration changes. `InvalidInput`, also for two different schedules of one name.

        Missed ticks: `latest` enqueues one job for the most recent tick, `all` one for each, `skip` none for ticks that
        are more than a minute late. The jobs have the options of their task; if the task is unique while pending, a
        tick enqueues nothing while an equal job waits.
        """
        item = self._registry.new_schedule(cron, call, zone, name, catch_up, tenant, queue, priority)
        self._registry.add_schedule(item)
        return item.name

    def limit_queue(self, queue: str, limit: Limit) -> None:
        """Declare the limit of a queue: how many of its jobs may run at once, or start in a time. `Limit()` lifts it.

        Nothing is written here. A worker writes the declaration when it starts, and so does `detent migrate --app`; a
        change by `queues.limit` or `detent queues limit` then stays until the declaration in the code changes.
        """
        self._registry.add_queue_limit(queue, self._registry.queue_limit(queue, limit))

    def around(self, hook: HookT, /) -> HookT:
        """Declare a hook around every attempt at every task: a function of the context with one `yield`, or one that
        returns a context manager. Use it for error trackers, context variables and sessions.

        Hooks nest in the order of their declaration. An async hook surrounds async tasks only. A hook sees an error of
        the function and cannot suppress it. An error in the hook fails the attempt as if the function had raised it.
        """
        self.around_hooks.append(hook_of(hook))
        return hook

    def on_failure(self, hook: Callable[[Job[Any]], None], /) -> Callable[[Job[Any]], None]:
        """Declare a hook that a worker calls with each job that ended quarantined or failed."""
        self._on_failure.append(hook)
        return hook

    @property
    def tasks(self) -> Mapping[str, SendableTask[..., Any, Any]]:
        """Declared tasks by name and alias."""
        return dict(self._registry.tasks)

    @property
    def batches(self) -> Mapping[str, Batch]:
        """Declared batches by name and alias."""
        return {name: tasks.batch for name, tasks in self._registry.batches.items()}

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """Declared pipelines by name."""
        return {name: tasks.pipeline for name, tasks in self._registry.pipelines.items()}

    def find_task(self, name: str) -> SendableTask[..., Any, Any]:
        """Return the task of that name or alias. `UnknownTask`."""
        try:
            return self._registry.tasks[name]
        except KeyError:
            raise UnknownTask(name, sorted(self._registry.tasks)) from None

    # -- enqueueing --------------------------------------------------------------------------------------------

    def enqueue(self, call: Call[R], /, **options: Unpack[EnqueueKeywords]) -> Job[R]:
        """Enqueue one call; when this returns, the job is accepted and durable.

        - `key`: the same key within a tenant returns the same job. It is kept for ever, or for `key_ttl` seconds.
          `KeyConflict` if the task or the payload differs.
        - `debounce`: seconds to wait. A later call of the task with the same key replaces the job while it waits.
        - `due_at`: earliest time to run. `expires_at`: the job is cancelled if no worker has claimed it by then.
        - `queue`, `priority` (higher first): instead of those of the task.
        - `tenant`: tenants take turns.
        - `metadata`: passed to the function, and shown with the job.
        - `correlation_id`, `traceparent`: stored with the job.

        `InvalidInput` for a value that is out of range; then nothing is written.
        """
        return self._engine.client.enqueue(call, **options)

    def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[EnqueueKeywords]) -> list[Job[R]]:
        """Enqueue many calls, all or nothing. Options as for `enqueue`, except `key`."""
        return self._engine.client.enqueue_many(calls, **options)

    def enqueue_named(self, task: str, payload: str, /, **options: Unpack[EnqueueKeywords]) -> Job[Any]:
        """Enqueue a call by the task's name, with its arguments as JSON text. Options as for `enqueue`. `UnknownTask`,
        `InvalidArguments`."""
        return self.enqueue(self.call_named(task, payload), **options)

    def call_named(self, task: str, payload: str, /) -> Call[Any]:
        """Describe a call by the task's name, with its arguments as JSON text. `UnknownTask`, `InvalidArguments`;
        `InvalidInput` for the tasks of batches, pipelines and outgoing webhooks."""
        found = self.find_task(task)
        self._registry.check_not_internal(task)
        arguments = json_codec.check_text(
            payload, field=found.name, size_max=self.settings.payload_max, depth_max=self.settings.depth_max
        )
        found.decode(arguments)
        return Call(found, arguments)

    def using(self, connection: Any) -> DirectClient:
        """Return a client that works inside your own transaction: on a connection of psycopg or sqlite3, or a
        connection or session of SQLAlchemy."""
        return self._engine.using(connection)

    def prepare_foreign(self, connection: Any) -> None:
        """Create the marker table of `ctx.commit(connection)` in a database that is not Detent's, and commit the
        connection. Calling it again is a no-op."""
        create_table(connection)

    @property
    def aio(self) -> AsyncDetent:
        """Async twin: the same nouns and verbs, awaited."""
        return self._aio

    # -- the application itself --------------------------------------------------------------------------------

    def figures(self, *, since: datetime | None = None, task: str | None = None) -> Figures:
        """Return figures of the last 24 hours, or since another time within the last 31 days, of all tasks or of one.

        They have success rates and retries by task, durations by task and outcome, transitions by task, batch runs and
        ops runs. Attempts are counted when they end, from the beginning of the hour of `since`. Counts, means and
        maxima are exact; a percentile is off by less than a quarter. `InvalidInput`.
        """
        return figures_since(self._engine.store, since, task, self.settings)

    def rates(self, *, since: datetime | None = None, step: Step = "minute") -> Rates:
        """Return how many jobs moved in each minute of the last hour, or since another time within six hours; or in
        each hour of the last 24, within 31 days.

        A point has the moves by state, the attempts by outcome, and how long jobs waited and ran. Jobs are counted when
        an attempt ends. Counts are exact as of ten seconds ago at most; a percentile is off by less than a quarter.
        `InvalidInput`.
        """
        return rates_since(self._engine.store, since, step)

    def migrate(self, watch: Callable[[str], None] = lambda _: None) -> list[str]:
        """Bring the schema up to date, install the guards of attached tables, and write the declared schedules and
        limits. Return the names of what was applied; `watch` is called with each name as soon as it is applied.

        Nothing is written if it raises: `LifecycleTooOld` if the database has a newer version of an attached
        lifecycle, `ReleaseTooOld` or `SchemaTooNew` if a newer release has migrated it, `SchemaUnreleased` if an
        unreleased one has.
        """
        store, attached = self._engine.bare_store, self._registry.attached
        versions = store.lifecycle_versions()
        for lifecycle, *_ in attached.values():
            refuse_older(store.name, lifecycle, versions.get(lifecycle.name))
        applied = store.migrate(watch)
        for lifecycle, table, id_column, state_column in attached.values():
            store.guard_entity(lifecycle, table, id_column, state_column)
        if self._registry.declarations():
            self.put_declared(again=True)
        return applied

    def put_declared(self, *, again: bool = False) -> Declarations:
        """Write the declared schedules and limits, and the times of the declared tasks, as a worker does when it
        starts. A declaration that newer code has replaced is not written, unless `again` is true."""
        return self._registry.put_declared(again=again)

    @property
    def store(self) -> Store:
        """Store of the application, ready for use. For workers and tools."""
        return self._engine.store

    def open_existing(self) -> None:
        """Open a database that has its schema; nothing is created. For tools. `SchemaMissing`."""
        self._engine.open_existing()

    @property
    def store_as_found(self) -> Store:
        """Store without a check of the schema, which may be missing or of another version. For workers and tools."""
        return self._engine.bare_store

    @property
    def ids(self) -> Ids:
        """Source of ids and random numbers. For workers and tools."""
        return self._engine.ids

    @property
    def clock(self) -> Clock:
        """Clock of the application. For workers and tools."""
        return self._engine.clock

    @property
    def hears_failures(self) -> bool:
        """Whether an `on_failure` hook is declared."""
        return bool(self._on_failure)

    def tell_failure(self, job_id: int, attempt: int) -> None:
        """Call the `on_failure` hooks for a job that this attempt failed. Errors of hooks are logged. For workers."""
        ends = {one.attempt: one.next_state for one in self.store.job_executions(job_id)} if self._on_failure else {}
        if ends.get(attempt) not in ("failed", "quarantined"):
            return
        for hook in self._on_failure:
            try:
                hook(self.jobs.get(job_id))
            except Exception:
                log.exception("The on_failure hook %r failed for job %d.", hook, job_id)

    def rewire(self, engine: Engine) -> Engine:
        """Use another engine, and return the previous one. For tests."""
        before, self._engine = self._engine, engine
        self._aio = AsyncDetent(engine, self._registry)
        engine.tasks = self._registry.tasks
        return before

    def close(self) -> None:
        """Finish pending writes and close the database. The next use opens it again."""
        self._engine.close()

    def __enter__(self) -> Detent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
