"""`Detent`: one application, its tasks and its database."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from detent.app.alerting import Alerting
from detent.app.batching import Batching
from detent.app.declared import Declared
from detent.app.pipelining import Pipelining
from detent.app.wiring import Wiring
from detent.batch.tasks import BatchTasks
from detent.client.aio import AioClient
from detent.client.client import DirectClient, actor_and_reason, check_id, one
from detent.client.follow import follow_events
from detent.client.job import Job
from detent.client.operation import Jobs
from detent.client.pipeline_run import PipelineRun
from detent.client.replace import replace_job
from detent.client.run import Run
from detent.client.search import check_limit, checked_search, place_of, text_of
from detent.client.task import AsyncTask, DeclareTask, PlainTask, SendableTask
from detent.declare.around import Around, AroundHook, hook_of
from detent.declare.context import Context
from detent.declare.enqueue import SendingOptions, encode_metadata
from detent.declare.fields import options_of
from detent.declare.limit import Limit
from detent.declare.settings import load_settings
from detent.declare.task import Call, Options
from detent.errors import InvalidInput, NotFound, UnknownTask
from detent.lifecycle.declare import Lifecycle
from detent.model import jsondoor
from detent.model.backoff import Retry
from detent.model.clock import Clock, to_micros
from detent.model.ids import Ids
from detent.model.limit_records import NewLimit
from detent.model.ops_records import OPS_TASK
from detent.model.records import (
    Cancelled,
    Count,
    EventRow,
    ExecutionRow,
    Moved,
    RepairStep,
    TransitionRow,
    Violation,
)
from detent.model.service_records import NewSchedule
from detent.ops.runs import Ops
from detent.pipeline.tasks import PipelineTasks
from detent.store.attaching import check_name, refuse_older
from detent.store.contract import Store
from detent.store.foreign.marker import prepare
from detent.views.jobs import explain
from detent.views.queues import QueueView, queues

__all__ = ["Detent"]

log = logging.getLogger("detent.app")

P = ParamSpec("P")
R = TypeVar("R")
HookT = TypeVar("HookT", bound=AroundHook)

_PLAIN_NAME = re.compile(r"([A-Za-z_]\w*\.)?[A-Za-z_]\w*", re.ASCII)
_ENTITY_ID_MAX = 200
_LIST = 100


class Detent(Declared, Alerting, Pipelining, Batching):
    """A durable run engine on one database: declare tasks on it, send calls, look at jobs.

    Nothing is touched before the first use. An empty database is given its schema then; a database of another version
    is refused (`SchemaTooOld`, `SchemaTooNew`). Without a URL, `DETENT_DATABASE_URL` or the settings file says where.
    """

    def __init__(self, database_url: str | None = None, *, clock: Clock | None = None, **settings: Any) -> None:
        self.settings = load_settings({"database_url": database_url, **settings})
        self._wiring = Wiring(self.settings, clock)
        self._tasks: dict[str, SendableTask[..., Any, Any]] = {}
        self._wiring.belong_to(self, self._tasks)
        self._declare_task = self._declare
        self._pipelines: dict[str, PipelineTasks] = {}
        self._batches: dict[str, BatchTasks] = {}
        self._attached: dict[str, tuple[Lifecycle, str, str, str]] = {}
        self._schedules: dict[str, NewSchedule] = {}
        self._queue_limits: dict[str, NewLimit] = {}
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
        names = (task.name, *task.aliases)
        for name_ in names:
            if name_ in self._tasks or names.count(name_) > 1:
                raise InvalidInput("task", f"the name {name_!r} twice", "one task for each name")
            if name_ == OPS_TASK:
                raise InvalidInput("task", f"the name {name_!r}", "another name: that one is ops runs'")
        self._check_limit(task)
        self._tasks.update(dict.fromkeys(names, task))
        return task

    @property
    def tasks(self) -> Mapping[str, SendableTask[..., Any, Any]]:
        """The declared tasks by name and alias."""
        return dict(self._tasks)

    def find_task(self, name: str) -> SendableTask[..., Any, Any]:
        """The task of that name or alias. `UnknownTask`."""
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(name, sorted(self._tasks)) from None

    def attach(self, lifecycle: Lifecycle, *, table: str, id: str = "id", state: str = "state") -> None:
        """Declare that a table of yours follows a lifecycle; `migrate` installs its guards and its record, and refuses
        a table with rows in states that are not declared (`UnknownState`)."""
        if lifecycle.name in self._attached:
            raise InvalidInput("lifecycle", f"{lifecycle.name!r} attached twice", "one table for each lifecycle")
        check_name(lifecycle)
        for field, name in (("table", table), ("id", id), ("state", state)):
            if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name) or (field != "table" and "." in name):
                raise InvalidInput(field, repr(name)[:80], "a plain name: letters, digits and underscores")
        self._attached[lifecycle.name] = (lifecycle, table, id, state)

    @property
    def lifecycles(self) -> Mapping[str, Lifecycle]:
        """The attached lifecycles by name."""
        return {name: found[0] for name, found in self._attached.items()}

    # -- doing -------------------------------------------------------------------------------------------------

    def enqueue(self, call: Call[R], /, **options: Unpack[SendingOptions]) -> Job[R]:
        """Enqueue one call; when this returns, the job is accepted and durable.

        The same `key` (per tenant) answers the same job; with another task or payload it raises `KeyConflict`. A key is
        kept for ever, or for `key_ttl` seconds. With `debounce=seconds` the job waits so long, and a later call of the
        task with the same key replaces it while it waits. `due_at` is the earliest time to run, `expires_at` the latest
        to be claimed. `priority` (higher first), `queue`, `tenant`, `metadata`, `correlation_id` and `traceparent` as
        they say. What cannot be taken is refused with `InvalidInput`, and nothing is written.
        """
        return self._wiring.client.enqueue(call, **options)

    def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[SendingOptions]) -> list[Job[R]]:
        """Enqueue many calls, all or nothing; options as for `enqueue`, but no key."""
        return self._wiring.client.enqueue_many(calls, **options)

    def enqueue_named(self, task: str, payload: str, /, **options: Unpack[SendingOptions]) -> Job[Any]:
        """Enqueue by the task's name with its arguments as JSON text: the door for other languages and the CLI.
        `UnknownTask`, `InvalidArguments`."""
        found = self.find_task(task)
        arguments = jsondoor.check_text(
            payload, field=found.name, size_max=self.settings.payload_max, depth_max=self.settings.depth_max
        )
        found.decode(arguments)
        return self.enqueue(Call(found, arguments), **options)

    def using(self, connection: Any) -> DirectClient:
        """The client inside your own transaction: a psycopg, sqlite3 or SQLAlchemy connection (or session)."""
        return self._wiring.using(connection)

    def prepare_foreign(self, connection: Any) -> None:
        """Create, in a database that is not Detent's, the table in which `ctx.commit(connection)` marks what was
        committed there. Commits the connection. Done again, it changes nothing."""
        prepare(connection)

    @property
    def aio(self) -> AioClient:
        """The async twin: the same names, awaited."""
        return self._wiring.aio

    def cancel(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Cancelled:
        """Stop a job: a pending one at once, a running one hears of it within a second or two. `AlreadyCommitted`,
        `InvalidTransition`."""
        return self._wiring.client.cancel(job_id, actor=actor, reason=reason)

    def retry(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Moved:
        """Bring a failed, quarantined or cancelled job back to pending. It is due now, or at its due time if that is
        later. `InvalidTransition`, `NotFound`."""
        return self._wiring.client.retry(job_id, actor=actor, reason=reason)

    def replace(self, job_id: int | str, payload: Mapping[str, Any] | str, /, *, actor: str, reason: str) -> Job[Any]:
        """Enqueue a dead or failed job's task with corrected arguments, and discard the old job. Return the new job.

        `payload` are all arguments by name, or their JSON text; if the application knows the task, they must fit its
        signature (`InvalidArguments`). The old job stays on record as it was, with who, why and the id of the new one,
        which names the old one in its metadata (`replaces`). A key stays with the old job. Refused for a job of a run
        and for one whose effect may have happened (`InvalidInput`). `InvalidTransition`, `NotFound`.
        """
        who, why = actor_and_reason(actor, reason, self.settings)
        if not why:
            raise InvalidInput("reason", repr(reason), "a reason: what was wrong with the arguments")
        number, wiring = check_id(job_id), self._wiring
        task = self._tasks.get(self.get(number).task)
        return self.get(replace_job(wiring.store, wiring.ids, task, number, payload, who, why, self.settings))

    def discard(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Moved:
        """Give up a quarantined or failed job: cancelled. `InvalidTransition`, `NotFound`."""
        return self._wiring.client.discard(job_id, actor=actor, reason=reason)

    def force(self, job_id: int | str, to_state: str, *, actor: str, reason: str) -> Moved:
        """An operator's override along the moves declared as `force`, marked as such on record."""
        return self._wiring.client.force(job_id, to_state, actor=actor, reason=reason)

    def settle(self, job_id: int | str, *, done: bool, actor: str, reason: str, result: Any = None) -> Moved:
        """Say what became of a job that is quarantined as unknown. Done: it has succeeded, with that result. Not done:
        it is pending again, with all attempts anew, and its probe is not asked about what was before.
        `NotUnknown`, `InvalidTransition`, `NotFound`."""
        return self._wiring.client.settle(job_id, done=done, actor=actor, reason=reason, result=result)

    def move(
        self,
        lifecycle: Lifecycle,
        entity_id: object,
        trigger: str,
        *,
        actor: str,
        reason: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Moved:
        """Move an entity of your own by a declared trigger. `InvalidTransition`, `TransitionRace`, `NotFound`."""
        if lifecycle.name not in self._attached:
            allowed = ", ".join(self._attached) or "none yet; app.attach attaches one"
            raise InvalidInput("lifecycle", f"{lifecycle.name!r}, which is not attached", allowed)
        if trigger not in lifecycle.triggers:
            raise InvalidInput("trigger", repr(trigger), ", ".join(lifecycle.triggers))
        who, why = actor_and_reason(actor, reason, self.settings)
        text = encode_metadata(metadata, self.settings)
        _, table, id_column, state_column = self._attached[lifecycle.name]
        move = self._wiring.store.entity_move
        return one(move(lifecycle, table, id_column, state_column, _entity_id(entity_id), trigger, who, why, text))

    def pause(self, queue: str, *, actor: str, reason: str | None = None) -> Moved:
        """Let no claim enter a queue until it is resumed."""
        return self._wiring.store.queue_pause(self._queue(queue), *actor_and_reason(actor, reason, self.settings))

    def resume(self, queue: str, *, actor: str, reason: str | None = None) -> Moved:
        """Let claims enter a queue again."""
        return self._wiring.store.queue_resume(self._queue(queue), *actor_and_reason(actor, reason, self.settings))

    def _queue(self, name: str) -> str:
        return jsondoor.text(name, field="queue", bytes_max=self.settings.name_max)

    # -- looking -----------------------------------------------------------------------------------------------

    def get(self, job_id: int | str) -> Job[Any]:
        """The job as it stands. `NotFound`."""
        return self._wiring.client.get(job_id)

    def jobs(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        key: str | None = None,
        correlation_id: str | None = None,
        run: int | str | None = None,
        worker: str | None = None,
        error: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Jobs:
        """List jobs that fit, the newest first by creation, 100 of them unless `limit` says otherwise. `.next` of the
        list is the `after` of the next page, None at the end.

        A key (of the tenant), a run, a correlation id and a time of creation (`since`, `until`) are found by an index.
        The other filters are compared: a part of an `error`, a `worker`, members of `metadata` (`{"order": 17}`). A
        page looks at 100,000 jobs at most, so it may be short, or empty, and have a `next` all the same.

        The list also acts on every job that fits: `app.jobs(state="quarantined", queue="mail").retry(actor="ana")`,
        with `.count()` before. Such an operation looks at each job once, a portion at a time. `InvalidInput`.
        """
        asked = {name: value for name, value in locals().items() if name not in ("self", "after", "limit")}
        chosen = checked_search(asked, self.settings)
        page = self._wiring.store.job_list(chosen, place_of(after), check_limit(_LIST if limit is None else limit))
        cut_by = "after" if after is not None else "limit" if limit is not None else None
        found = map(self._wiring.prepared.job, page.rows)
        return Jobs(found, chosen, self._operations, cut_by=cut_by, next=text_of(page.next))

    def get_run(self, run_id: int | str) -> Run | PipelineRun:
        """A run of either kind as it stands; `batch_run` and `pipeline_run` know which. `NotFound`."""
        if self._wiring.store.batch_get(check_id(run_id)) is not None:
            return self.batch_run(run_id)
        if self._wiring.store.pipeline_get(check_id(run_id)) is not None:
            return self.pipeline_run(run_id)
        raise NotFound("run", str(run_id))

    def events(self, job_id: int | str, *, follow: bool = False) -> Iterator[EventRow]:
        """The lines a job wrote, in order; with `follow`, those to come too, until the job rests."""
        clock = self._wiring.prepared.clock
        return follow_events(self._wiring.store, check_id(job_id), clock, self.settings, follow=follow)

    def executions(self, job_id: int | str) -> list[ExecutionRow]:
        """Every attempt at a job, ended or in flight."""
        return self._wiring.store.job_executions(check_id(job_id))

    def transitions(self, job_id: int | str) -> list[TransitionRow]:
        """Every change of a job in order, with actor and reason; `executions` tells of its attempts."""
        return self._wiring.store.transitions("job", str(check_id(job_id)))

    def history(self, lifecycle: Lifecycle, entity_id: object) -> list[TransitionRow]:
        """Every change of an entity of your own."""
        return self._wiring.store.transitions(lifecycle.name, _entity_id(entity_id))

    def state_as_of(self, job_id: int | str, at: datetime) -> str | None:
        """The state of a job at a past moment; None before its beginning."""
        to_micros(at, field="at")
        return self._wiring.store.state_as_of("job", str(check_id(job_id)), at)

    def counts(self, *, as_of: datetime | None = None) -> list[Count]:
        """Jobs by tenant, queue and state, now or at a past moment within retention."""
        if as_of is None:
            return self._wiring.store.counts()
        to_micros(as_of, field="as_of")
        return self._wiring.store.counts_as_of(as_of)

    def queues(self) -> list[QueueView]:
        """Every queue that has a job on record or is paused: its jobs by state, and by whom and why it is paused."""
        return queues(self._wiring.store)

    def why(self, job_id: int | str) -> str:
        """Why a job is where it is, in one sentence."""
        return explain(self._wiring.store, check_id(job_id))

    # -- keeping house -----------------------------------------------------------------------------------------

    def migrate(self, watch: Callable[[str], None] = lambda _: None) -> list[str]:
        """Bring the schema up to date, install the guards of attached tables, and write the declared schedules and
        limits. Return the names of what was applied; `watch` is called with each name as soon as it is applied.

        `LifecycleTooOld` if the database has a newer version of an attached lifecycle, `ReleaseTooOld` or
        `SchemaTooNew` if a newer release has migrated it, `SchemaUnreleased` if an unreleased one has: then nothing is
        written.
        """
        store = self._wiring.bare_store
        attached = store.lifecycle_versions()
        for lifecycle, *_ in self._attached.values():
            refuse_older(store.name, lifecycle, attached.get(lifecycle.name))
        applied = store.migrate(watch)
        for lifecycle, table, id_column, state_column in self._attached.values():
            store.guard_entity(lifecycle, table, id_column, state_column)
        if self._declarations():
            self.put_declared(again=True)
        return applied

    def verify(self) -> list[Violation]:
        """Check every invariant; empty is healthy."""
        return self._wiring.store.verify()

    def repair(self, *, actor: str, reason: str, apply: bool = False) -> list[RepairStep]:
        """Show what repair would do; with `apply`, do it, on record."""
        who, why = actor_and_reason(actor, reason, self.settings)
        if not why:
            raise InvalidInput("reason", repr(reason), "a reason: a repair always has one")
        return self._wiring.store.repair(who, why, apply=apply)

    @property
    def ops(self) -> Ops:
        """Ops runs: builds, deploys and backups, that any language may queue and work on."""
        return Ops(lambda: self._wiring.store, self._wiring.ids, self.settings, self._wiring.prepared.clock)

    @property
    def store(self) -> Store:
        """The store, made ready: for workers and tools."""
        return self._wiring.store

    @property
    def store_as_found(self) -> Store:
        """The store, not made ready: for looking at a database whose schema may be missing or of another version."""
        return self._wiring.bare_store

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
    def hears_failures(self) -> bool:
        """Whether a hook is declared."""
        return bool(self._on_failure)

    def tell_failure(self, job_id: int) -> None:
        """Call the hooks for a job that came to rest without success. A hook that raises is logged, no more."""
        for hook in self._on_failure:
            try:
                hook(self.get(job_id))
            except Exception:
                log.exception("on_failure hook %r failed for job %d", hook, job_id)

    @property
    def ids(self) -> Ids:
        """Reserved ids and chance."""
        return self._wiring.ids

    def rewire(self, wiring: Wiring) -> Wiring:
        """Put this application on another database; the wiring it had. For tests."""
        before, self._wiring = self._wiring, wiring
        wiring.belong_to(self, self._tasks)
        return before

    def close(self) -> None:
        """Let go of the database; what was sent is written first. Used again, it opens again."""
        self._wiring.close()

    def __enter__(self) -> Detent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _entity_id(value: object) -> str:
    return jsondoor.text(str(value), field="entity id", bytes_max=_ENTITY_ID_MAX)
