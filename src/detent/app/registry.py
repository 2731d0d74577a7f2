"""What an application's code declares, and writing it to the database.

Declaring touches no database. A worker writes the declared schedules, limits and times of tasks when it starts, and
`detent migrate --app` writes them too. The database remembers the fingerprint of every declaration that code has made,
so a program can tell three cases apart: its declaration is new, it is in force already, or newer code has replaced it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import msgspec

from detent.batch.tasks import BatchTasks
from detent.client.engine import Engine, EngineRef
from detent.client.task import SendableTask
from detent.declare.enqueue import EnqueueOptions, new_job
from detent.declare.limit import Limit
from detent.declare.settings import Settings
from detent.declare.task import Call, Options
from detent.errors import InvalidInput, NotFound
from detent.lifecycle.definition import Lifecycle
from detent.model import json_codec
from detent.model.limit_records import LimitRow, NewLimit
from detent.model.ops_records import OPS_TASK
from detent.model.pipeline_records import PIPELINE_TASKS
from detent.model.service_records import CATCH_UP, CatchUp, DeclaredKind, NewSchedule, TaskSecrets, TaskTimes
from detent.pipeline.tasks import PipelineTasks
from detent.schedule.cron import check_cron
from detent.schedule.due_ticks import NEVER, from_now
from detent.store.contract import Verbs
from detent.webhooks.announcements import put_announced
from detent.webhooks.incoming import IncomingWebhook
from detent.webhooks.outgoing import DELIVERY_TASK, OutgoingWebhook

__all__ = ["Declarations", "Registry", "declared_as"]

_DECLARED = "declared in the code"

AnyTask = SendableTask[..., Any, Any]

_FOREVER = 1e9
"""About thirty years, in seconds."""


class Declarations(msgspec.Struct, frozen=True):
    """Result of writing the declarations, each as `kind name`. `written`: new or changed. `replaced`: not written,
    because newer code has declared something else. `left`: schedules for tasks of this application that its code once
    declared and no longer does."""

    written: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Registry:
    """What the code of one application declares: tasks, batches, pipelines, schedules, limits, webhooks and lifecycles.

    `engine` is looked up at each use: tests put an application on another engine.
    """

    def __init__(self, settings: Settings, engine: Callable[[], Engine]) -> None:
        self.settings = settings
        self._engine = engine
        self.tasks: dict[str, AnyTask] = {}
        self.batches: dict[str, BatchTasks] = {}
        self.pipelines: dict[str, PipelineTasks] = {}
        self.schedules: dict[str, NewSchedule] = {}
        self.queue_limits: dict[str, NewLimit] = {}
        self.webhooks: dict[str, IncomingWebhook] = {}
        self.targets: dict[str, OutgoingWebhook] = {}
        self.attached: dict[str, tuple[Lifecycle, str, str, str]] = {}
        self.engine_ref = EngineRef(engine, settings)

    # -- declaring ---------------------------------------------------------------------------------------------

    def add_task(self, task: AnyTask) -> AnyTask:
        """Add a task under its name and aliases. `InvalidInput` for a name that is taken, or if tasks that share a
        limit key declare different limits."""
        names = (task.name, *task.aliases)
        for name in names:
            if name in self.tasks or names.count(name) > 1:
                raise InvalidInput("task", f"the name {name!r} twice", "one task for each name")
            if name == OPS_TASK:
                raise InvalidInput("task", f"the name {name!r}", "another name: this one is reserved for ops runs")
        known = _by_key(self.tasks).get(task.limit_key)
        if task.options.limit is not None and known is not None and known[0] != task.options.limit:
            raise InvalidInput("limit", f"two limits under the key {task.limit_key!r}", "one limit for each key")
        self.tasks.update(dict.fromkeys(names, task))
        return task

    def check_not_internal(self, name: str) -> None:
        """Refuse a task of a batch, of a pipeline or of outgoing webhooks: only Detent enqueues its jobs. Their
        arguments name runs, which may be of any tenant, or events, which are signed. `InvalidInput`."""
        parts = (getattr(one, part.name) for one in self.batches.values() for part in fields(one))
        task = self.tasks.get(name)
        is_of_batch = task is not None and any(task is part for part in parts)
        if is_of_batch or name == DELIVERY_TASK or name.startswith(PIPELINE_TASKS):
            allowed = "a task of your own: Detent enqueues the jobs of batches, pipelines and webhooks by itself"
            raise InvalidInput("task", repr(name)[:80], allowed)

    def batch_tasks(self, name: str) -> BatchTasks:
        """Return the tasks of a batch by its name or alias. `NotFound`."""
        if name not in self.batches:
            raise NotFound("batch", repr(name))
        return self.batches[name]

    def batch_tasks_of(self, value: object) -> BatchTasks:
        """Return the tasks of the batch whose class this is a value of. `InvalidInput`."""
        for tasks in self.batches.values():
            if tasks.batch.kind is type(value):
                return tasks
        found = f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"
        declared = ", ".join(sorted(tasks.batch.kind.__name__ for tasks in self.batches.values()))
        raise InvalidInput("batch", found, f"a value of a declared batch: {declared or 'none is declared'}")

    def pipeline_tasks_of(self, value: object) -> PipelineTasks:
        """Return the tasks of the pipeline whose class this is a value of. `InvalidInput`."""
        for tasks in self.pipelines.values():
            if tasks.pipeline.kind is type(value):
                return tasks
        allowed = "a value of a class under @app.pipeline"
        raise InvalidInput("pipeline", f"a value of type {type(value).__name__}", allowed)

    def add_schedule(self, item: NewSchedule) -> None:
        """Declare a schedule. `InvalidInput` for two different ones of a name."""
        if self.schedules.setdefault(item.name, item) != item:
            raise InvalidInput("name", f"two schedules declared as {item.name!r}", "a name of its own for each")

    def add_queue_limit(self, queue: str, item: NewLimit) -> None:
        """Declare the limit of a queue. `InvalidInput` for two different ones."""
        if self.queue_limits.setdefault(item.key, item) != item:
            raise InvalidInput("limit", f"two limits declared for the queue {queue!r}", "one limit for each queue")

    def queue_limit(self, queue: str, limit: Limit) -> NewLimit:
        """Return the limit of a queue, checked. `InvalidInput`."""
        name = json_codec.text(queue, field="queue", bytes_max=self.settings.name_max)
        return limit.under(f"queue:{name}", queues=(name,))

    def new_schedule(
        self,
        cron: str,
        call: Call[Any],
        zone: str,
        name: str | None,
        catch_up: CatchUp,
        tenant: str,
        queue: str | None,
        priority: int | None,
    ) -> NewSchedule:
        """Return a schedule, checked, without its first tick, which depends on the clock of the database.
        `InvalidInput`."""
        if catch_up not in CATCH_UP:
            raise InvalidInput("catch_up", repr(catch_up)[:80], ", ".join(CATCH_UP))
        check_cron(cron, zone)
        job = new_job(call, EnqueueOptions(tenant=tenant, queue=queue, priority=priority), settings=self.settings)
        if call.task.options.unique == "active":
            allowed = "unique='pending', together with limit=Limit(concurrency=1) if one at a time may run"
            raise InvalidInput("schedule", f"a call of {call.task.name}, which is unique while active", allowed)
        named = json_codec.text(
            call.task.name if name is None else name, field="name", bytes_max=self.settings.name_max
        )
        return NewSchedule(
            name=named,
            cron=cron,
            zone=zone,
            catch_up=catch_up,
            task=job.task,
            payload=job.payload,
            queue=job.queue,
            attempts_max=job.attempts_max,
            next_at=NEVER,
            tenant=job.tenant,
            priority=job.priority,
            dead_letter=job.dead_letter,
            idempotent=job.idempotent,
            unique_pending=job.unique_pending,
            limit_key=job.limit_key,
            cost=job.cost,
        )

    # -- writing -----------------------------------------------------------------------------------------------

    def put_declared(self, *, again: bool) -> Declarations:
        """Write the declared schedules and limits, and the times of the declared tasks. A declaration that did not
        change is not written again. One that newer code has replaced is left alone, or written with `again`."""
        written: list[str] = []
        replaced: list[str] = []
        store = self._engine().store
        known = {(row.kind, row.name): row.fingerprint for row in store.declaration_list()}
        for kind, name, print_, write in self.declarations():
            if known.get((kind, name)) == print_:
                continue
            answer = store.together(lambda verbs: _declare(verbs, kind, name, print_, write, again=again))  # noqa: B023
            if answer != "same":
                (written if answer == "new" else replaced).append(f"{kind} {name}")
        self._put_times()
        self._put_secrets(replace=again)
        self._put_announced()
        return Declarations(tuple(written), tuple(replaced), tuple(self.left_schedules()))

    def left_schedules(self) -> list[str]:
        """Return the names of schedules that code declared once, for tasks of this application, and that this
        application's code no longer declares."""
        store = self._engine().store
        by_code = {row.name for row in store.declaration_list() if row.kind == "schedule"}
        return [
            row.name
            for row in store.schedule_list()
            if row.name in by_code and row.name not in self.schedules and row.task in self.tasks
        ]

    def declarations(self) -> list[tuple[DeclaredKind, str, str, Callable[[Verbs], object]]]:
        """Return every declaration: its kind, its name, its fingerprint and what writes it."""
        found: list[tuple[DeclaredKind, str, str, Callable[[Verbs], object]]] = []
        actor = self.settings.actor
        for name, limit in self._limits().items():
            found.append(("limit", name, _fingerprint(limit), _putting_limit(limit, actor)))
        for name, schedule in sorted(self.schedules.items()):
            found.append(("schedule", name, _fingerprint(schedule), _putting_schedule(schedule, actor)))
        return found

    def _limits(self) -> dict[str, NewLimit]:
        """Return the limits by task and queue: tasks may share a limit key with other programs."""
        of_queues = {name: item for item in self.queue_limits.values() for name in declared_as(item)}
        of_tasks = {
            f"task:{name}": task.options.limit.under(task.limit_key, tasks=(name,))
            for name, task in self.tasks.items()
            if task.options.limit is not None
        }
        return dict(sorted((of_queues | of_tasks).items()))

    def _put_times(self) -> None:
        store = self._engine().store
        known = {one.task: one for one in store.task_times_list()}
        declared = [_times(name, task.options) for name, task in sorted(self.tasks.items())]
        changed = [one for one in declared if known.get(one.task, TaskTimes(task=one.task)) != one]
        if changed:
            store.task_times_put(changed)

    def _put_announced(self) -> None:
        """Record the tasks whose successes targets of outgoing webhooks are told of."""
        put_announced(self._engine().store, self.targets, self.tasks)

    def _put_secrets(self, *, replace: bool) -> None:
        """Record the secret fields, so that a server that does not know the code redacts them too. Older code that
        declares fewer removes none, unless it is migrated."""
        store = self._engine().store
        known = {one.task: set(one.paths) for one in store.task_secrets_list()}
        declared = {name: set(task.options.secret) for name, task in sorted(self.tasks.items())}
        changed = [
            TaskSecrets(task=name, paths=tuple(sorted(paths)))
            for name, paths in declared.items()
            if paths != known.get(name, set()) and (replace or paths - known.get(name, set()))
        ]
        if changed:
            store.task_secrets_put(changed, replace)


def _declare(
    verbs: Verbs, kind: DeclaredKind, name: str, print_: str, write: Callable[[Verbs], object], *, again: bool
) -> str:
    answer = verbs.declaration_put(kind, name, print_, again)
    if answer == "new":
        write(verbs)
    return answer


def _putting_limit(item: NewLimit, actor: str) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.limit_put(item, actor, _DECLARED)


def _putting_schedule(item: NewSchedule, actor: str) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.schedule_put(from_now(item, verbs.now()), actor, _DECLARED)


def _fingerprint(item: NewLimit | NewSchedule) -> str:
    fields = {name: getattr(item, name) for name in item.__struct_fields__ if name != "next_at"}
    text = msgspec.json.encode({name: value for name, value in sorted(fields.items()) if value is not None})
    return hashlib.sha256(text).hexdigest()[:32]


def _times(name: str, options: Options) -> TaskTimes:
    silent = (options.stale_after, options.stalled_after)
    stale, stalled = (None if seconds is None else float(min(seconds, _FOREVER)) for seconds in silent)
    kept = None if options.result_ttl is None else float(options.result_ttl)
    return TaskTimes(task=name, stale_after=stale, stalled_after=stalled, result_ttl=kept)


def declared_as(limit: NewLimit | LimitRow) -> list[str]:
    """Return the names under which a limit is declared: its tasks and queues."""
    return [*(f"task:{name}" for name in limit.tasks), *(f"queue:{name}" for name in limit.queues)]


def _by_key(tasks: Mapping[str, AnyTask]) -> dict[str, tuple[Limit, tuple[str, ...]]]:
    found: dict[str, tuple[Limit, tuple[str, ...]]] = {}
    for name, task in sorted(tasks.items()):
        if task.options.limit is not None:
            names = found[task.limit_key][1] if task.limit_key in found else ()
            found[task.limit_key] = (task.options.limit, (*names, name))
    return found
