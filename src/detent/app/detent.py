"""`Detent`: one application, its tasks and its database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from detent.app.wiring import Wiring
from detent.client.aio import AioClient
from detent.client.client import DirectClient, actor_and_reason, check_id, one
from detent.client.job import Job
from detent.client.task import SendableTask
from detent.declare.context import Context
from detent.declare.settings import load_settings
from detent.declare.task import Call, Options
from detent.errors import InvalidInput, UnknownTask
from detent.lifecycle.declare import Lifecycle
from detent.model import jsondoor
from detent.model.backoff import Retry
from detent.model.clock import Clock
from detent.model.ids import Ids
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
from detent.store.contract import JobFilter
from detent.views.jobs import explain, follow_events

__all__ = ["Detent"]

P = ParamSpec("P")
R = TypeVar("R")


class Detent:
    """A durable run engine on one database: declare tasks on it, send calls, look at jobs.

    Nothing is touched before the first use. An empty database is given its schema then; a database of another version
    is refused (`SchemaTooOld`, `SchemaTooNew`). Without a URL, `DETENT_DATABASE_URL` or the settings file says where.
    """

    def __init__(self, database_url: str | None = None, *, clock: Clock | None = None, **settings: Any) -> None:
        self.settings = load_settings({"database_url": database_url, **settings})
        self._wiring = Wiring(self.settings, clock)
        self._tasks: dict[str, SendableTask[..., Any]] = {}
        self._attached: dict[str, tuple[Lifecycle, str, str, str]] = {}

    # -- declaring ---------------------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> SendableTask[P, R]: ...

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
        unique: Literal["pending"] | None = None,
        idempotent: bool = True,
        dead_letter: bool = True,
        result_ttl: float | None = None,
    ) -> Callable[[Callable[Concatenate[Context, P], R]], SendableTask[P, R]]: ...

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
        whose effect must not be repeated blindly says `idempotent=False`. Two tasks of one name are refused.
        """
        chosen = Options(retry=retry or Retry(), **options)

        def declare(found: Callable[..., Any]) -> SendableTask[..., Any]:
            task: SendableTask[..., Any] = SendableTask(
                found, name=name, aliases=aliases, options=chosen, settings=self.settings, sender=self
            )
            names = (task.name, *task.aliases)
            for twice in (one_name for one_name in names if one_name in self._tasks):
                raise InvalidInput("task", f"the name {twice!r} twice", "one task for each name")
            self._tasks.update(dict.fromkeys(names, task))
            return task

        return declare if function is None else declare(function)

    @property
    def tasks(self) -> Mapping[str, SendableTask[..., Any]]:
        """The declared tasks by name and alias."""
        return dict(self._tasks)

    def find_task(self, name: str) -> SendableTask[..., Any]:
        """The task of that name or alias. `UnknownTask`."""
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(name, sorted(self._tasks)) from None

    def attach(self, lifecycle: Lifecycle, *, table: str, id: str = "id", state: str = "state") -> None:
        """Declare that a table of yours follows a lifecycle; `migrate` installs its guards and its record."""
        if lifecycle.name in self._attached:
            raise InvalidInput("lifecycle", f"{lifecycle.name!r} attached twice", "one table for each lifecycle")
        self._attached[lifecycle.name] = (lifecycle, table, id, state)

    # -- doing -------------------------------------------------------------------------------------------------

    def enqueue(
        self,
        call: Call[R],
        /,
        *,
        key: str | None = None,
        key_ttl: float | None = None,
        due_at: datetime | None = None,
        expires_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        tenant: str = "",
        metadata: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        traceparent: str | None = None,
    ) -> Job[R]:
        """Enqueue one call; when this returns, the job is accepted and durable.

        The same `key` (per tenant) answers the same job; with another task or payload it raises `KeyConflict`. A key is
        kept for ever, or for `key_ttl` seconds.
        """
        return self._wiring.client.enqueue(
            call,
            key=key,
            key_ttl=key_ttl,
            due_at=due_at,
            expires_at=expires_at,
            priority=priority,
            queue=queue,
            tenant=tenant,
            metadata=metadata,
            correlation_id=correlation_id,
            traceparent=traceparent,
        )

    def enqueue_many(self, calls: Iterable[Call[R]], **sending: Any) -> list[Job[R]]:
        """Enqueue many calls, all or nothing; options as for `enqueue`, but no key."""
        return self._wiring.client.enqueue_many(calls, **sending)

    def enqueue_named(self, task: str, payload: str, **sending: Any) -> Job[Any]:
        """Enqueue by the task's name with its arguments as JSON text: the door for other languages and the CLI.
        `UnknownTask`, `InvalidArguments`."""
        found = self.find_task(task)
        arguments = jsondoor.check_text(payload, field=found.name, size_max=self.settings.payload_max)
        found.decode(arguments)
        return self.enqueue(Call(found, arguments), **sending)

    def using(self, connection: Any) -> DirectClient:
        """The client inside your own transaction: a psycopg, sqlite3 or SQLAlchemy connection (or session)."""
        return self._wiring.using(connection)

    @property
    def aio(self) -> AioClient:
        """The async twin: the same names, awaited."""
        return self._wiring.aio

    def cancel(self, job_id: int, *, actor: str, reason: str | None = None) -> Cancelled:
        """Stop a job: pending at once, running at its next sign of life. `AlreadyCommitted`, `InvalidTransition`."""
        return self._wiring.client.cancel(job_id, actor=actor, reason=reason)

    def retry(self, job_id: int, *, actor: str, reason: str | None = None) -> Moved:
        """Bring a failed, quarantined or cancelled job back to pending. `InvalidTransition`, `NotFound`."""
        return self._wiring.client.retry(job_id, actor=actor, reason=reason)

    def discard(self, job_id: int, *, actor: str, reason: str | None = None) -> Moved:
        """Give up a quarantined or failed job: cancelled. `InvalidTransition`, `NotFound`."""
        return self._wiring.client.discard(job_id, actor=actor, reason=reason)

    def force(self, job_id: int, to_state: str, *, actor: str, reason: str) -> Moved:
        """An operator's override along the moves declared as `force`, marked as such on record."""
        return self._wiring.client.force(job_id, to_state, actor=actor, reason=reason)

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
            raise InvalidInput("lifecycle", repr(lifecycle.name), "one that was attached with app.attach")
        who, why = actor_and_reason(actor, reason, self.settings)
        text = None
        if metadata is not None:
            text = jsondoor.encode(dict(metadata), field="metadata", size_max=self.settings.metadata_max)
        _, table, id_column, state_column = self._attached[lifecycle.name]
        return one(
            self._wiring.store.entity_move(
                lifecycle, table, id_column, state_column, str(entity_id), trigger, who, why, text
            )
        )

    def pause(self, queue: str, *, actor: str, reason: str | None = None) -> Moved:
        """Let no claim enter a queue until it is resumed."""
        return self._wiring.store.queue_pause(self._queue(queue), *actor_and_reason(actor, reason, self.settings))

    def resume(self, queue: str, *, actor: str, reason: str | None = None) -> Moved:
        """Let claims enter a queue again."""
        return self._wiring.store.queue_resume(self._queue(queue), *actor_and_reason(actor, reason, self.settings))

    def _queue(self, name: str) -> str:
        return jsondoor.text(name, field="queue", bytes_max=self.settings.name_max)

    # -- looking -----------------------------------------------------------------------------------------------

    def get(self, job_id: int) -> Job[Any]:
        """The job as it stands. `NotFound`."""
        job = self._wiring.client.get(job_id)
        task = self._tasks.get(job.task)
        return job if task is None else self._wiring.prepared.job(job.id, decode=task.decode_result, row=job.row)

    def jobs(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        after_id: int = 0,
        limit: int = 100,
    ) -> list[Job[Any]]:
        """Jobs that fit, by ascending id above `after_id`."""
        if not 1 <= limit <= 10_000:
            raise InvalidInput("limit", str(limit), "1 to 10000")
        rows = self._wiring.store.job_list(JobFilter(state, task, queue, tenant), after_id, limit)
        return [self._wiring.prepared.job(row.id, row=row) for row in rows]

    def events(self, job_id: int, *, follow: bool = False) -> Iterator[EventRow]:
        """The lines a job wrote, in order; with `follow`, those to come too, until the job rests."""
        return follow_events(self._wiring.store, check_id(job_id), self._wiring.prepared, follow=follow)

    def executions(self, job_id: int) -> list[ExecutionRow]:
        """Every attempt at a job, ended or in flight."""
        return self._wiring.store.job_executions(check_id(job_id))

    def transitions(self, job_id: int) -> list[TransitionRow]:
        """Every change of a job and its executions, with actor and reason."""
        return self._wiring.store.transitions("job", str(check_id(job_id)))

    def history(self, lifecycle: Lifecycle, entity_id: object) -> list[TransitionRow]:
        """Every change of an entity of your own."""
        return self._wiring.store.transitions(lifecycle.name, str(entity_id))

    def state_as_of(self, job_id: int, at: datetime) -> str | None:
        """The state of a job at a past moment; None before its beginning."""
        return self._wiring.store.state_as_of("job", str(check_id(job_id)), at)

    def counts(self, *, as_of: datetime | None = None) -> list[Count]:
        """Jobs by tenant, queue and state, now or at a past moment within retention."""
        store = self._wiring.store
        return store.counts() if as_of is None else store.counts_as_of(as_of)

    def why(self, job_id: int) -> str:
        """Why a job is where it is, in one sentence."""
        return explain(self._wiring.store, check_id(job_id))

    # -- keeping house -----------------------------------------------------------------------------------------

    def migrate(self) -> list[str]:
        """Bring the schema up to date, with the guards of attached tables; the names of what was applied."""
        applied = self._wiring.bare_store.migrate()
        for lifecycle, table, id_column, state_column in self._attached.values():
            self._wiring.bare_store.guard_entity(lifecycle, table, id_column, state_column)
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
    def ids(self) -> Ids:
        """Reserved ids and chance."""
        return self._wiring.ids

    def rewire(self, wiring: Wiring) -> Wiring:
        """Put this application on another database; the wiring it had. For tests."""
        before, self._wiring = self._wiring, wiring
        return before

    def close(self) -> None:
        """Let go of the database; what was sent is written first."""
        self._wiring.close()

    def __enter__(self) -> Detent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
