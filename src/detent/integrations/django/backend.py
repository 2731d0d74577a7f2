"""`DetentBackend`: tasks of Django are jobs of Detent.

Each function is a task of its own in Detent, named by its path, so that lists, figures and limits tell them apart.
"""

from __future__ import annotations

import builtins
from dataclasses import replace
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.module_loading import import_string

from detent.app.detent import Detent
from detent.client.job import Job
from detent.declare.context import Context
from detent.errors import InvalidInput, InvalidSetting, NotFound
from detent.integrations.django.application import app, client, current
from detent.integrations.django.tasks_api import (
    BaseTaskBackend,
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
    task_finished,
    task_started,
)
from detent.model import json_codec
from detent.model.backoff import Retry
from detent.model.records import ExecutionRow
from detent.model.stored_text import error_kind

__all__ = ["DetentBackend"]

_NO_EXCEPTION = "detent.errors.JobFailed"
"""The class of an attempt that ended without an exception, for instance because its process was killed."""
_RUN_AFTER = "run_after"
_TASKS: dict[str, Any] = {}
"""The declared tasks by their paths. Django makes a backend for each thread."""


class DetentBackend(BaseTaskBackend):
    """A backend for the setting `TASKS`. Its `OPTIONS` are those of `app.task`, for all tasks of the backend; `retry`
    may be a number.

    A task that is enqueued inside `transaction.atomic()` is there when that commits, and gone when it rolls back.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        chosen = dict(self.options)
        if isinstance(retry := chosen.get("retry"), int):
            chosen["retry"] = Retry(retry)
        if taken := sorted({"name", "aliases", "queue", "priority"} & chosen.keys()):
            raise ImproperlyConfigured(f"TASKS[{alias!r}]['OPTIONS'] has {taken[0]!r}. Set it on the task instead.")
        self._chosen = chosen

    def validate_task(self, task: Task[..., Any]) -> None:
        """Refuse a task that Django does not allow. Declare a new one in Detent: Django calls this for every task."""
        super().validate_task(task)
        if task.module_path not in app.tasks:
            self._declare(task)
        _TASKS.setdefault(task.module_path, task)

    def _declare(self, task: Task[..., Any]) -> None:
        async def run_async(ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
            begun = await sync_to_async(self._begin)(ctx)
            given = [TaskContext(task_result=begun), *args] if task.takes_context else args
            value = normalize_json(await task.func(*given, **kwargs))
            await sync_to_async(self._succeed)(begun, value)
            return value

        def run(ctx: Context, args: list[Any], kwargs: dict[str, Any]) -> Any:
            begun = self._begin(ctx)
            given = [TaskContext(task_result=begun), *args] if task.takes_context else args
            value = normalize_json(task.func(*given, **kwargs))
            self._succeed(begun, value)
            return value

        try:
            app.task(name=task.module_path, **self._chosen)(run_async if iscoroutinefunction(task.func) else run)
        except (InvalidInput, InvalidSetting, TypeError) as error:
            raise ImproperlyConfigured(f"TASKS[{self.alias!r}]['OPTIONS']: {error}") from error

    def enqueue(self, task: Task[..., Any], args: Any, kwargs: Any) -> TaskResult[Any]:
        """Enqueue a call. `TypeError` for an argument that JSON cannot represent."""
        self.validate_task(task)
        payload = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs))}
        due_at = None if task.run_after is None else _aware(task.run_after)
        with client() as sender:
            job = sender.enqueue(
                app.find_task(task.module_path).call(**payload),
                queue=task.queue_name,
                priority=task.priority,
                due_at=due_at,
                metadata=None if due_at is None else {_RUN_AFTER: due_at.isoformat()},
            )
        result = self._result(
            task,
            id=str(job.id),
            status=TaskResultStatus.READY,
            enqueued_at=_moment(app.clock.now()),
            **payload,
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult[Any]:
        """Return the task as it is now. `TaskResultDoesNotExist`."""
        try:
            with client() as reader, current() as found:
                job = reader.jobs.get(result_id) if isinstance(reader, Detent) else reader.get(result_id)
                return self._result_of(job, found.store.job_executions(job.id))
        except (NotFound, InvalidInput) as error:
            raise TaskResultDoesNotExist(str(error)) from error

    def _result_of(self, job: Job[Any], executions: list[ExecutionRow]) -> TaskResult[Any]:
        task, row = self._task_of(job), job.row
        begun = [one.started_at for one in executions if one.started_at is not None]
        result = self._result(
            task,
            id=str(job.id),
            status=_status(row.state),
            enqueued_at=_moment(row.created_at),
            started_at=_moment(begun[0]) if begun else None,
            last_attempted_at=_moment(begun[-1]) if begun else None,
            finished_at=_moment(row.finished_at),
            errors=[_error(one.error) for one in executions if one.error is not None],
            worker_ids=[one.worker for one in executions],
            **job.payload,
        )
        if row.state == "succeeded" and row.result is not None:
            object.__setattr__(result, "_return_value", json_codec.decode(row.result))
        return result

    def _task_of(self, job: Job[Any]) -> Task[..., Any]:
        """Return the task with the options of this job. A queue that this backend does not have is left out: an
        operator has moved the job there."""
        task = _TASKS.get(job.task)
        if task is None:
            try:
                task = import_string(job.task)
            except ImportError:
                task = None
        if not isinstance(task, Task):
            raise TaskResultDoesNotExist(f"Job {job.id} is a job of {job.task}, which is no task of Django here.")
        queue = job.row.queue if not self.queues or job.row.queue in self.queues else task.queue_name
        after = job.metadata.get(_RUN_AFTER)
        run_after = None if after is None else _moment(datetime.fromisoformat(after))
        return replace(task, backend=self.alias, priority=job.row.priority, queue_name=queue, run_after=run_after)

    def _result(self, task: Task[..., Any], **parts: Any) -> TaskResult[Any]:
        unknown: dict[str, Any] = {
            "started_at": None,
            "finished_at": None,
            "last_attempted_at": None,
            "errors": [],
            "worker_ids": [],
        }
        return TaskResult(**{**unknown, "task": task, "backend": self.alias, **parts})

    # -- in a worker -----------------------------------------------------------------------------------------------

    def _begin(self, ctx: Context) -> TaskResult[Any]:
        result = self.get_result(str(ctx.job_id))
        task_started.send(type(self), task_result=result)
        return result

    def _succeed(self, result: TaskResult[Any], value: Any) -> None:
        object.__setattr__(result, "status", TaskResultStatus.SUCCESSFUL)
        object.__setattr__(result, "finished_at", _moment(app.clock.now()))
        object.__setattr__(result, "_return_value", value)
        task_finished.send(type(self), task_result=result)


@app.on_failure
def _tell_failed(job: Job[Any]) -> None:
    """Send `task_finished` for a task that has failed for good. A failure that is retried is not the end."""
    if (task := _TASKS.get(job.task)) is not None:
        backend = task.get_backend()
        task_finished.send(type(backend), task_result=backend.get_result(str(job.id)))


def _status(state: str) -> TaskResultStatus:
    match state:
        case "pending":
            return TaskResultStatus.READY
        case "running":
            return TaskResultStatus.RUNNING
        case "succeeded":
            return TaskResultStatus.SUCCESSFUL
        case _:  # failed, quarantined or cancelled
            return TaskResultStatus.FAILED


def _error(text: str) -> TaskError:
    """Return the error of an attempt. Its text ends with the class and the message, if it was an exception."""
    kind = error_kind(text)
    if "." not in kind:
        kind = f"builtins.{kind}" if hasattr(builtins, kind) else _NO_EXCEPTION
    return TaskError(exception_class_path=kind, traceback=text)


def _aware(moment: datetime) -> datetime:
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment


def _moment(moment: datetime | None) -> datetime | None:
    """Return a time as the project has its times: aware, or without USE_TZ naive in its time zone."""
    if moment is None or settings.USE_TZ:
        return moment
    naive: datetime = timezone.make_naive(moment)
    return naive
