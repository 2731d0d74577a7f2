"""Verbs of the HTTP API whose arguments in Python have no JSON form: calls, batches, limits, lifecycles, and long lists
that a program reads as an iterator and HTTP reads page by page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import msgspec

from detent.app.batch_run import BatchRun, TargetChange, target_change
from detent.app.detent import Detent
from detent.app.jobs import Jobs
from detent.app.pipeline_run import PipelineRun
from detent.client.job import Job
from detent.client.list_page import ListPage, check_limit
from detent.client.operation import JobSelection
from detent.client.stream_lines import stream_page
from detent.declare.limit import Limit
from detent.errors import InvalidInput, NotFound
from detent.http.arguments import arguments_of
from detent.http.verbs import Verb
from detent.lifecycle.library import PARTITION, TARGET
from detent.model.limit_records import LimitRow
from detent.model.pipeline_records import PartitionRow
from detent.model.records import EventRow, Moved, TransitionRow
from detent.model.service_records import OperationRow, ScheduleRow
from detent.model.stream_records import StreamLine
from detent.model.workflow_records import SignalSent
from detent.ops.ops_run import read_run_id

__all__ = ["special_verbs"]


_COUNT_PAGES_MAX = 4
"""Pages of a search, each of 25,000 jobs at most, that a count reads."""


class _Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class EnqueueArguments(_Arguments):
    """A job to enqueue. What is left out is as the task declares it."""

    task: str
    payload: dict[str, Any] = {}
    key: str | None = None
    key_ttl: float | None = None
    debounce: float | None = None
    due_at: datetime | None = None
    expires_at: datetime | None = None
    priority: int | None = None
    queue: str | None = None
    tenant: str = ""
    metadata: dict[str, Any] | None = None
    correlation_id: str | None = None
    traceparent: str | None = None


class PageArguments(_Arguments):
    """Which page of a list."""

    limit: int = 100
    after: str | None = None


class StreamArguments(_Arguments):
    """Which page of which stream; None is all streams."""

    name: str | None = None
    limit: int = 100
    after: str | None = None


class ReasonArguments(_Arguments):
    """Why."""

    reason: str | None = None


class CancelArguments(ReasonArguments):
    """Why, and whether workflows undo their steps."""

    undo: bool = True


class MoveArguments(_Arguments):
    """Where the jobs go. The filters of the query say which."""

    to_queue: str | None = None
    to_priority: int | None = None
    reason: str | None = None


_BULK_ARGUMENTS: dict[str, type[msgspec.Struct]] = {"move": MoveArguments, "cancel": CancelArguments}


class Counted(msgspec.Struct):
    """How many jobs match. If `complete` is false, there are more: a count that has to read jobs ends after 100,000."""

    jobs: int
    complete: bool = True


class BulkAnswer(msgspec.Struct):
    """The operation that acts on the jobs; with `dry_run` only how many match. If `complete` is false, there are more:
    a count that has to read jobs ends after 100,000."""

    jobs: int | None
    operation: OperationRow | None
    complete: bool = True


class RunArguments(_Arguments):
    """Which batch or pipeline, with its fields."""

    name: str
    payload: dict[str, Any] = {}
    tenant: str = ""
    reason: str | None = None


class PreviewArguments(RunArguments):
    """A batch to preview."""

    correlation_id: str | None = None
    metadata: dict[str, Any] | None = None


class StartArguments(RunArguments):
    """A pipeline to start."""

    full: bool = False
    force: bool = False


class LimitArguments(_Arguments):
    """A limit. What is left out is not limited."""

    concurrency: int | None = None
    rate: float | None = None
    per: float = 1.0
    burst: float | None = None
    reason: str | None = None


class ScheduleArguments(_Arguments):
    """A schedule: when, and which call."""

    cron: str
    task: str
    payload: dict[str, Any] = {}
    zone: str = "UTC"
    catch_up: str = "latest"
    tenant: str = ""
    queue: str | None = None
    priority: int | None = None
    reason: str | None = None


class ReplaceArguments(_Arguments):
    """Corrected arguments for a dead or failed job."""

    payload: dict[str, Any]
    reason: str | None = None


class ChangesArguments(PageArguments):
    """Which targets."""

    state: str | None = None
    changed: bool | None = None
    only: list[str] | None = None


class PartitionsArguments(PageArguments):
    """Which partitions."""

    state: str | None = None


class StartedCall(_Arguments):
    """The call of a workflow that is started if there is none with the key."""

    task: str
    payload: dict[str, Any] = {}


class SignalArguments(_Arguments):
    """A signal to the workflow with a key."""

    key: str
    name: str
    payload: Any = None
    dedupe: str | None = None
    tenant: str = ""
    start: StartedCall | None = None
    reason: str | None = None


class EntityArguments(_Arguments):
    """Which row of the table that has the lifecycle."""

    entity_id: str


class EntityMoveArguments(EntityArguments):
    """Which row, and which trigger."""

    trigger: str
    metadata: dict[str, Any] | None = None
    reason: str | None = None


def special_verbs() -> Iterator[Verb]:
    """Yield them, those of a collection before those of one thing."""
    yield _verb("jobs", "enqueue", "/jobs", EnqueueArguments, _enqueue, Job[Any], "Enqueue a job.", makes_new=True)
    filters = arguments_of("JobFilters", Jobs.where, without=())
    yield _verb("jobs", "count", "/jobs/bulk/count", filters, _count, Counted, "Count matching jobs.", changes=False)
    selected = msgspec.defstruct(
        "JobSelectionFilters",
        [("dry_run", bool, False), *((one.name, one.type, one.default) for one in msgspec.structs.fields(filters))],
        kw_only=True,
    )
    for name in ("cancel", "retry", "discard", "move"):
        arguments = _BULK_ARGUMENTS.get(name, ReasonArguments)
        summary = f"{name.title()} all matching jobs, as an operation. With `dry_run`, count them only."
        yield Verb(
            noun="jobs",
            name=f"bulk_{name}",
            path=f"/jobs/bulk/{name}",
            changes=True,
            arguments=arguments,
            filters=selected,
            call=_bulk(name),
            returns=BulkAnswer,
            summary=summary,
        )
    yield _verb(
        "runs", "preview", "/runs/preview", PreviewArguments, _preview, BatchRun, "Preview a batch.", makes_new=True
    )
    yield _verb(
        "runs", "start", "/runs/start", StartArguments, _start, PipelineRun, "Start a pipeline.", makes_new=True
    )
    yield _verb("workflows", "signal_by_key", "/workflows/signal", SignalArguments, _signal, SignalSent,
                "Send a signal to the workflow with a key; with `start`, create it if there is none.")  # fmt: skip
    yield _verb("jobs", "events", "/jobs/{job_id}/events", PageArguments, _events, ListPage[EventRow],
                "List the events of a job in order.", changes=False)  # fmt: skip
    yield _verb("workflows", "stream", "/workflows/{job_id}/stream", StreamArguments, _stream, ListPage[StreamLine],
                "List what a workflow has written to a stream, or to all of them, in order. To follow it, read "
                "`/api/v1/stream?job={job_id}`.", changes=False)  # fmt: skip
    yield _verb("jobs", "replace", "/jobs/{job_id}/replace", ReplaceArguments, _replace, Job[Any],
                "Enqueue the task of a dead or failed job with corrected arguments, and discard the job.")  # fmt: skip
    yield _verb("ops", "events", "/ops/{run}/events", PageArguments, _ops_events, ListPage[EventRow],
                "List the events of an ops run in order.", changes=False)  # fmt: skip
    yield _verb("queues", "limit", "/queues/{name:path}/limit", LimitArguments, _limit, LimitRow, "Limit a queue.")
    yield _verb("schedules", "set", "/schedules/{name:path}/set", ScheduleArguments, _schedule, ScheduleRow,
                "Create a schedule, or change it.")  # fmt: skip
    yield _verb("runs", "changes", "/runs/{run_id}/changes", ChangesArguments, _changes, ListPage[TargetChange],
                "List the targets of a batch run with before and after.", changes=False)  # fmt: skip
    yield _verb("runs", "partitions", "/runs/{run_id}/partitions", PartitionsArguments, _partitions,
                ListPage[PartitionRow], "List the partitions of a pipeline run.", changes=False)  # fmt: skip
    yield _verb("lifecycles", "history", "/lifecycles/{name:path}/history", EntityArguments, _entity_history,
                ListPage[TransitionRow], "List the transitions of one row.", changes=False)  # fmt: skip
    yield _verb("lifecycles", "move", "/lifecycles/{name:path}/move", EntityMoveArguments, _entity_move, Moved,
                "Move a row by a trigger of its lifecycle.")  # fmt: skip


def _verb(
    noun: str, name: str, path: str, arguments: Any, call: Any, returns: Any, summary: str, *,
    changes: bool = True, makes_new: bool = False,
) -> Verb:  # fmt: skip
    return Verb(
        noun=noun, name=name, path=path, changes=changes, arguments=arguments, call=call, returns=returns,
        summary=summary, makes_new=makes_new,
    )  # fmt: skip


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _enqueue(app: Detent, _: dict[str, str], given: SimpleNamespace) -> Job[Any]:
    options: dict[str, Any] = {
        name: getattr(given, name)
        for name in vars(given)
        if name not in ("task", "payload") and getattr(given, name) not in (None, "")
    }
    return app.enqueue_named(given.task, _text(given.payload), **options)


def _selection(app: Detent, given: SimpleNamespace) -> JobSelection:
    names = arguments_of("JobFilters", Jobs.where, without=()).__struct_fields__
    return app.jobs.where(**{name: getattr(given, name) for name in names})


def _count(app: Detent, _: dict[str, str], given: SimpleNamespace) -> Counted:
    return Counted(*_selection(app, given)._count_within(_COUNT_PAGES_MAX))


def _bulk(name: str) -> Any:
    def act(app: Detent, _: dict[str, str], given: SimpleNamespace) -> BulkAnswer:
        chosen = _selection(app, given)
        if given.dry_run:
            jobs, complete = chosen._count_within(_COUNT_PAGES_MAX)
            return BulkAnswer(jobs, None, complete)
        if name == "move":
            moved = chosen.move(queue=given.to_queue, priority=given.to_priority, reason=given.reason)
            return BulkAnswer(None, moved.row)
        if name == "cancel":
            return BulkAnswer(None, chosen.cancel(undo=given.undo, reason=given.reason).row)
        return BulkAnswer(None, getattr(chosen, name)(reason=given.reason).row)

    return act


def _preview(app: Detent, _: dict[str, str], given: SimpleNamespace) -> BatchRun:
    return app.runs.preview_named(
        given.name, _text(given.payload), tenant=given.tenant, correlation_id=given.correlation_id,
        metadata=given.metadata, reason=given.reason,
    )  # fmt: skip


def _start(app: Detent, _: dict[str, str], given: SimpleNamespace) -> PipelineRun:
    return app.runs.start_named(
        given.name, _text(given.payload), tenant=given.tenant, full=given.full, force=given.force, reason=given.reason
    )


def _events(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> ListPage[EventRow]:
    job = app.jobs.get(ids["job_id"])
    found = app.store.job_events(job.id, _number(given.after), check_limit(given.limit) + 1)
    return _page(found, given.limit, lambda row: row.seq)


def _stream(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> ListPage[StreamLine]:
    job = app.jobs.get(ids["job_id"])
    lines, place = stream_page(app.store, job.id, given.name, _number(given.after), check_limit(given.limit))
    return ListPage(lines, None if place is None else str(place))


def _ops_events(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> ListPage[EventRow]:
    run_id = read_run_id(app.ops.get(ids["run"]).id)
    found = app.store.job_events(run_id, _number(given.after), check_limit(given.limit) + 1)
    return _page(found, given.limit, lambda row: row.seq)


def _replace(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> Job[Any]:
    job = app.jobs.get(ids["job_id"])
    app._registry.check_not_internal(job.row.task)
    return job.replace(_text(given.payload), reason=given.reason)


def _signal(app: Detent, _: dict[str, str], given: SimpleNamespace) -> SignalSent:
    named = ("tenant", "dedupe", "reason")
    options: dict[str, Any] = {name: getattr(given, name) for name in named}
    if given.start is not None:
        options["start"] = app.call_named(given.start.task, _text(given.start.payload))
    return app.workflows.signal(given.key, given.name, given.payload, **options)


def _limit(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> LimitRow:
    bounds = ("concurrency", "rate", "per", "burst")
    chosen: Any = {name: getattr(given, name) for name in bounds if getattr(given, name) is not None}
    return app.queues.limit(ids["name"], Limit(**chosen), reason=given.reason)


def _schedule(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> ScheduleRow:
    named = ("zone", "catch_up", "tenant", "queue", "priority", "reason")
    options: Any = {name: getattr(given, name) for name in named}
    return app.schedules.set(ids["name"], given.cron, app.call_named(given.task, _text(given.payload)), **options)


def _changes(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> ListPage[TargetChange]:
    run = _run_of(app, ids, BatchRun)
    if given.state is not None and given.state not in TARGET.states:
        raise InvalidInput("state", repr(given.state)[:80], ", ".join(TARGET.states))
    found = app.store.target_list(
        run.id,
        state=given.state,
        refs=given.only,
        changed=given.changed,
        after_n=_number(given.after),
        limit=check_limit(given.limit) + 1,
    )
    return _page(found, given.limit, lambda row: row.n).each(target_change)


def _partitions(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> ListPage[PartitionRow]:
    run = _run_of(app, ids, PipelineRun)
    if given.state is not None and given.state not in PARTITION.states:
        raise InvalidInput("state", repr(given.state)[:80], ", ".join(PARTITION.states))
    found = app.store.partition_list(
        run.id, state=given.state, after_n=_number(given.after), limit=check_limit(given.limit) + 1
    )
    return _page(found, given.limit, lambda row: row.n)


def _entity_history(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> ListPage[TransitionRow]:
    return app.lifecycles.history(_lifecycle(app, ids["name"]), given.entity_id)


def _entity_move(app: Detent, ids: dict[str, str], given: SimpleNamespace) -> Moved:
    chosen = _lifecycle(app, ids["name"])
    return app.lifecycles.move(chosen, given.entity_id, given.trigger, metadata=given.metadata, reason=given.reason)


def _lifecycle(app: Detent, name: str) -> Any:
    for one in app.lifecycles.list():
        if one.name == name:
            return one
    raise NotFound("lifecycle", name)


def _run_of(app: Detent, ids: dict[str, str], kind: Any) -> Any:
    run = app.runs.get(ids["run_id"])
    if not isinstance(run, kind):
        raise InvalidInput("run_id", f"a {type(run).__name__}", f"a {kind.__name__}")
    return run


def _number(after: str | None) -> int:
    if after is None:
        return 0
    if not (after.isascii() and after.isdigit() and len(after) < 19):
        raise InvalidInput("after", after[:80], "the `next` of the page before")
    return int(after)


def _page(found: list[Any], limit: int, place: Any) -> ListPage[Any]:
    return ListPage(found[:limit], str(place(found[limit - 1])) if len(found) > limit else None)
