"""`Detent`: one application, its tasks and its database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from detent.app.aio import AsyncDetent
from detent.app.nouns import Nouns
from detent.app.registry import Declarations, Registry
from detent.batch.tasks import declare_tasks as batch_tasks
from detent.client.client import DirectClient
from detent.client.engine import Engine
from detent.client.figures import figures_since
from detent.client.job import Job
from detent.client.task import AsyncTask, DeclareTask, PlainTask, SendableTask
from detent.declare.around import Around, AroundHook, hook_of
from detent.declare.batch import Batch, BatchMethods, BatchOptions
from detent.declare.context import Context
from detent.declare.enqueue import SendingOptions
from detent.declare.fields import options_of
from detent.declare.limit import Limit
from detent.declare.pipeline import Pipeline, PipelineMethods, PipelineOptions
from detent.declare.settings import load_settings
from detent.declare.task import Call, Options
from detent.errors import InvalidInput, UnknownTask
from detent.model import jsondoor
from detent.model.backoff import Retry
from detent.model.clock import Clock
from detent.model.figure_records import Figures
from detent.model.ids import Ids
from detent.model.service_records import CatchUp
from detent.pipeline.tasks import declare_tasks as pipeline_tasks
from detent.store.contract import Store
from detent.store.entities.rules import refuse_older
from detent.store.foreign.marker import prepare

__all__ = ["Detent"]

log = logging.getLogger("detent.app")

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B", bound=BatchMethods)
K = TypeVar("K", bound=PipelineMethods)
HookT = TypeVar("HookT", bound=AroundHook)


class Detent(Nouns):
    """A durable run engine on one database: declare tasks on it, send calls, and act on its nouns (`app.jobs`, …).

    Nothing is touched before the first use. An empty database is given its schema then; a database of another version
    is refused (`SchemaTooOld`, `SchemaTooNew`). Without a URL, `DETENT_DATABASE_URL` or the settings file says where.
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

        `retry` counts retries, so `Retry(3)` makes four attempts, which is also what a task has without it. A task
        whose effect must not be repeated blindly says `idempotent=False`, and may have a `probe`: a function of the
        same parameters that finds out whether the effect has happened, and answers with `Probed`. One that keeps the
        interpreter to itself, or may bring its process down, gets one of its own with `process=True`. `limit` bounds
        how many of its jobs run at once and begin in a time, for all workers together; tasks that name the same
        `limit_key` share one. Where `limit_key` is a function of some of the arguments, such as
        `lambda shop: f"shop:{shop}"`, there is one such limit for each key it gives. A job takes one token
        of its limit's rate, or `cost` of them: a number, or a function of some of the arguments; `ctx.spend` puts it
        right when the true cost is known. A result is kept for `result_ttl` seconds after the job succeeded, else for
        as long as the job. A job that has not begun `stale_after` seconds after its claim, or has written no event for
        `stalled_after` (`math.inf`: never), counts as silent whatever its queue says. Two tasks of one name are
        refused.
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
        `targets`, `preview` and `apply`, and perhaps `revert` and `observe`.

        `retry`, `timeout`, `idempotent`, `limit` and `queue` mean for each target what they mean for a task.
        `limit_key` and `cost`, what applying or reverting a target takes of its limit, may be functions of the batch
        and a ref. Where `idempotent=False` and the batch has `observe`, a target of which nobody knows whether it was
        changed is looked at before it is tried again. `tolerate` is how many targets (5), or which share of them
        (0.02), may fail without an alarm. `chunk` targets are previewed in one job. Raise `version` when what `apply`
        does with a change is another thing than before: a run that was previewed under another version is not applied
        without a word (`BatchChanged`).
        """
        chosen = options_of(BatchOptions, "batch", {"retry": retry or Retry(), **options})

        def declare(found: type[Any]) -> type[Any]:
            batch = Batch(found, name=name, aliases=aliases, options=chosen, settings=self.settings)
            names = (batch.name, *batch.aliases)
            for name_ in names:
                if name_ in self._registry.batches or names.count(name_) > 1:
                    raise InvalidInput("batch", f"the name {name_!r} twice", "one batch for each name")
            tasks = batch_tasks(batch, self._registry.batch_ground, self._declare)
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
            pipelines = self._registry.pipelines
            if pipeline.name in pipelines:
                raise InvalidInput("pipeline", f"the name {pipeline.name!r} twice", "one pipeline for each name")
            for other in pipelines.values():
                if other.pipeline.watermark == pipeline.watermark:
                    found_ = f"the watermark {pipeline.watermark!r} of {other.pipeline.name!r}"
                    raise InvalidInput("watermark", found_, "one pipeline for each watermark")
            pipelines[pipeline.name] = pipeline_tasks(pipeline, self._registry.pipeline_ground, self._declare)
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
        name, which is the task's name if none is given.

        Nothing is written here. A worker writes the declaration when it starts, and so does `detent migrate --app`. It
        is written only if it differs from what code declared before, so a pause and a change by `schedules.set` stay
        until the declaration changes. Two different schedules of one name are refused. `InvalidInput`.

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
        returns a context manager. For error trackers, context variables and sessions.

        Hooks nest in the order of their declaration. An async hook is for async tasks only. A hook sees the error of
        the function and cannot swallow it; its own error fails the attempt, as if the function had raised it.
        """
        self.around_hooks.append(hook_of(hook))
        return hook

    def on_failure(self, hook: Callable[[Job[Any]], None], /) -> Callable[[Job[Any]], None]:
        """Declare a hook: called in the worker's process with each job that came to rest quarantined or failed."""
        self._on_failure.append(hook)
        return hook

    @property
    def tasks(self) -> Mapping[str, SendableTask[..., Any, Any]]:
        """The declared tasks by name and alias."""
        return dict(self._registry.tasks)

    @property
    def batches(self) -> Mapping[str, Batch]:
        """The declared batches by name and alias."""
        return {name: tasks.batch for name, tasks in self._registry.batches.items()}

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """The declared pipelines by name."""
        return {name: tasks.pipeline for name, tasks in self._registry.pipelines.items()}

    def find_task(self, name: str) -> SendableTask[..., Any, Any]:
        """Return the task of that name or alias. `UnknownTask`."""
        try:
            return self._registry.tasks[name]
        except KeyError:
            raise UnknownTask(name, sorted(self._registry.tasks)) from None

    # -- sending -----------------------------------------------------------------------------------------------

    def enqueue(self, call: Call[R], /, **options: Unpack[SendingOptions]) -> Job[R]:
        """Enqueue one call; when this returns, the job is accepted and durable.

        The same `key` (per tenant) answers the same job; with another task or payload it raises `KeyConflict`. A key is
        kept for ever, or for `key_ttl` seconds. With `debounce=seconds` the job waits so long, and a later call of the
        task with the same key replaces it while it waits. `due_at` is the earliest time to run, `expires_at` the latest
        to be claimed. `priority` (higher first), `queue`, `tenant`, `metadata`, `correlation_id` and `traceparent` as
        they say. What cannot be taken is refused with `InvalidInput`, and nothing is written.
        """
        return self._engine.client.enqueue(call, **options)

    def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[SendingOptions]) -> list[Job[R]]:
        """Enqueue many calls, all or nothing; options as for `enqueue`, but no key."""
        return self._engine.client.enqueue_many(calls, **options)

    def enqueue_named(self, task: str, payload: str, /, **options: Unpack[SendingOptions]) -> Job[Any]:
        """Enqueue by the task's name with its arguments as JSON text: the door for other languages and the CLI.
        `UnknownTask`, `InvalidArguments`."""
        return self.enqueue(self.call_named(task, payload), **options)

    def call_named(self, task: str, payload: str, /) -> Call[Any]:
        """Describe a call by the task's name with its arguments as JSON text. `UnknownTask`, `InvalidArguments`."""
        found = self.find_task(task)
        arguments = jsondoor.check_text(
            payload, field=found.name, size_max=self.settings.payload_max, depth_max=self.settings.depth_max
        )
        found.decode(arguments)
        return Call(found, arguments)

    def using(self, connection: Any) -> DirectClient:
        """The client inside your own transaction: a psycopg, sqlite3 or SQLAlchemy connection (or session)."""
        return self._engine.using(connection)

    def prepare_foreign(self, connection: Any) -> None:
        """Create, in a database that is not Detent's, the table in which `ctx.commit(connection)` marks what was
        committed there. Commits the connection. Done again, it changes nothing."""
        prepare(connection)

    @property
    def aio(self) -> AsyncDetent:
        """The async twin: the same nouns and verbs, awaited."""
        return self._aio

    # -- the application itself --------------------------------------------------------------------------------

    def figures(self, *, since: datetime | None = None, task: str | None = None) -> Figures:
        """Return figures of the last 24 hours, or since another time within the last 31 days; of one task, or of all.

        Success rates and retries by task, durations by task and outcome, transitions by task, batch runs and ops runs.
        Attempts are counted when they end, from the beginning of the hour of `since`. Counts, means and maxima are
        exact; a percentile is off by less than a quarter. `InvalidInput`.
        """
        return figures_since(self._engine.store, since, task, self.settings)

    def migrate(self, watch: Callable[[str], None] = lambda _: None) -> list[str]:
        """Bring the schema up to date, install the guards of attached tables, and write the declared schedules and
        limits. Return the names of what was applied; `watch` is called with each name as soon as it is applied.

        `LifecycleTooOld` if the database has a newer version of an attached lifecycle, `ReleaseTooOld` or
        `SchemaTooNew` if a newer release has migrated it, `SchemaUnreleased` if an unreleased one has: then nothing is
        written.
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
        starts. A declaration that newer code has replaced is left alone, or written with `again`."""
        return self._registry.put_declared(again=again)

    @property
    def store(self) -> Store:
        """The store, made ready: for workers and tools."""
        return self._engine.store

    @property
    def store_as_found(self) -> Store:
        """The store, not made ready: for looking at a database whose schema may be missing or of another version."""
        return self._engine.bare_store

    @property
    def ids(self) -> Ids:
        """Reserved ids and random numbers."""
        return self._engine.ids

    @property
    def hears_failures(self) -> bool:
        """Whether a hook is declared."""
        return bool(self._on_failure)

    def tell_failure(self, job_id: int) -> None:
        """Call the hooks for a job that came to rest without success. A hook that raises is logged, no more."""
        for hook in self._on_failure:
            try:
                hook(self.jobs.get(job_id))
            except Exception:
                log.exception("on_failure hook %r failed for job %d", hook, job_id)

    def rewire(self, engine: Engine) -> Engine:
        """Put this application on another engine, and return the one it had. For tests."""
        before, self._engine = self._engine, engine
        self._aio = AsyncDetent(engine, self._registry)
        engine.tasks = self._registry.tasks
        return before

    def close(self) -> None:
        """Write what was sent, and close the database. Used again, the application opens it again."""
        self._engine.close()

    def __enter__(self) -> Detent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
