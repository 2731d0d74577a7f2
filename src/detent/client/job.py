"""The handle of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import msgspec

from detent.client.job_verbs import (
    cancel_job,
    check_id,
    discard_job,
    force_job,
    reason_needed,
    replace_job,
    retry_job,
    settle_job,
)
from detent.client.list_page import ListPage, check_limit
from detent.client.polling import event_pages, items_of, pauses_until, sleep_through
from detent.client.stream_lines import stream_pages
from detent.client.workflow_copies import fork_job, rewind_job
from detent.client.workflow_verbs import new_signal, signal_job, undo_job
from detent.errors import InvalidInput, JobFailed, JobTimeout, NotFound, ResultExpired, WrongPlace
from detent.lifecycle.library import JOB
from detent.model import json_codec
from detent.model.clock import to_micros
from detent.model.graph_records import GRAPH_TASK
from detent.model.records import Cancelled, EventRow, ExecutionRow, JobDetails, JobRow, Moved, TransitionRow
from detent.model.stream_records import StreamLine
from detent.model.workflow_records import JobTree, SignalSent, StepRow, Undo
from detent.views.job_explanation import explain
from detent.views.undo_preview import preview_undo
from detent.views.workflows import steps_of, steps_since, tree_of

if TYPE_CHECKING:
    from detent.client.engine import Engine

__all__ = ["Job", "JobSnapshot", "Origin"]

R = TypeVar("R")

_FIRST_PAUSE = 0.005


class Origin(msgspec.Struct, frozen=True):
    """What the handles of one task share: the engine, and how and for how long a result is read."""

    engine: Engine
    decode: Callable[[str | None], Any] | None = None
    result_ttl: float | None = None

    def decode_result(self, text: str | None) -> Any:
        """Return a result decoded by its task, or plain JSON values if the task is not known."""
        if self.decode is not None:
            return self.decode(text)
        depth_max = self.engine.settings.depth_max
        return None if text is None else json_codec.decode(text, field="result", depth_max=depth_max)


class JobSnapshot(Generic[R]):
    """A job as it was when it was last read. Attributes never read the database; `refresh()` and `wait()` do."""

    __slots__ = ("__weakref__", "_last_move", "_nonce", "_origin", "_row", "_status", "created", "id")

    def __init__(
        self, job_id: int, origin: Origin, created: bool = False, row: JobRow | None = None, nonce: int | None = None
    ) -> None:
        self.id = job_id
        self.created = created
        self._origin = origin
        self._row = row
        self._nonce = nonce
        self._status: str | None = None

    @classmethod
    def like(cls, other: JobSnapshot[R]) -> Self:
        """Return a handle of this class with what the other one knows."""
        return cls(other.id, other._origin, other.created, other._row, other._nonce)._adopt(other)

    def _adopt(self, other: JobSnapshot[R]) -> Self:
        self._row = other._row
        self._status = other._status
        self._last_move = getattr(other, "_last_move", "")
        return self

    @property
    def _engine(self) -> Engine:
        return self._origin.engine

    def __repr__(self) -> str:
        return f"<Job {self.id}>" if self._row is None else f"<Job {self.id} {self._row.task} {self._row.state}>"

    def _repr_html_(self) -> str:
        from detent.client.notebook_html import shown

        return shown(f"Job {self.id}", self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobSnapshot) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def row(self) -> JobRow:
        """All columns of the job. `WrongPlace` if the handle has not been read yet."""
        if self._row is None:
            found = f"on a handle of job {self.id} that has not been read"
            raise WrongPlace("an attribute", found, "call refresh() to read the job, or wait() to wait for its end")
        return self._row

    @property
    def state(self) -> str:
        """The state of its lifecycle."""
        return self.row.state

    @property
    def attempt(self) -> int:
        """The number of the latest attempt; 0 before the first."""
        return self.row.attempt

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.row.task

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self.row.queue

    @property
    def tenant(self) -> str:
        """The tenant it belongs to; empty if it has none."""
        return self.row.tenant

    @property
    def payload(self) -> Any:
        """The arguments as JSON values."""
        return json_codec.decode(self.row.payload, depth_max=self._engine.settings.depth_max)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata that the client attached."""
        if self.row.metadata is None:
            return {}
        depth_max = self._engine.settings.depth_max
        found: dict[str, Any] = json_codec.decode(self.row.metadata, field="metadata", depth_max=depth_max)
        return found

    @property
    def due_at(self) -> datetime:
        """The earliest time at which it may be claimed."""
        return self.row.due_at

    @property
    def finished_at(self) -> datetime | None:
        """When it ended."""
        return self.row.finished_at

    @property
    def error(self) -> str | None:
        """Why it ended without success."""
        return self.row.error

    @property
    def status(self) -> Mapping[str, Any]:
        """What its workflow has last set with `ctx.set_status`; empty if it has set nothing. `WrongPlace` for a handle
        from a list: `refresh()` reads it."""
        if self._status is None and self._may_have_status(self.row):
            found = f"on a handle of job {self.id} from a list"
            raise WrongPlace("status", found, "call refresh() to read the status, or app.jobs.get(id)")
        facts: dict[str, Any] = json_codec.decode(self._status or "{}", field="status")
        return facts

    def _may_have_status(self, row: JobRow) -> bool:
        """Whether the job is a workflow, as far as this application knows."""
        task = self._engine.tasks.get(row.task)
        return row.task != GRAPH_TASK if task is None else task.workflow is not None

    @property
    def rests(self) -> bool:
        """Whether it has ended: nothing more happens to it by itself."""
        return self.row.state in JOB.rests

    @property
    def result(self) -> R:
        """What its function returned. `JobFailed` if it ended without success, `JobTimeout` if it had not ended when it
        was read, `ResultExpired` if its task limits how long results are kept and that time is over."""
        row = self.row
        if row.state == "succeeded":
            self._check_kept(row)
            result: R = self._origin.decode_result(row.result)
            return result
        if row.state in JOB.rests:
            raise JobFailed(self.id, row.state, row.error or str(getattr(self, "_last_move", "")))
        raise JobTimeout(self.id, row.state, 0.0)

    def _check_kept(self, row: JobRow) -> None:
        """Refuse a result that is past its time, even if retention has not deleted it yet."""
        until = row.result_dropped_at
        if row.result is not None and row.finished_at is not None and self._origin.result_ttl is not None:
            over_at = row.finished_at + timedelta(seconds=self._origin.result_ttl)
            until = over_at if self._engine.clock.now() >= over_at else None
        if until is not None:
            raise ResultExpired(self.id, until)


class Job(JobSnapshot[R]):
    """Handle of a job: a snapshot of it, and the verbs on it.

    A handle that `enqueue` returned knows its `id` and whether this call has `created` the job; `created` is False if
    an earlier job had the key. Its other attributes raise `WrongPlace` until the handle has been read by `refresh()` or
    `wait()`. Two handles are equal if they are of the same job.
    """

    __slots__ = ()

    def refresh(self) -> Self:
        """Read the job again, and return this handle. `NotFound`."""
        return self._read_status(self._read_row())

    def _read_row(self) -> JobRow:
        store = self._engine.store
        (row,) = store.job_get([self.id])
        # If it was sent in a transaction that was rolled back, its id may belong to another job by now.
        if row is None or (self._nonce is not None and row.nonce != self._nonce):
            raise NotFound("job", str(self.id))
        if row.error is None and row.state in JOB.rests and row.state != "succeeded":
            lines = store.transitions("job", str(self.id))
            last = lines[-1] if lines else None
            self._last_move = f"{last.trigger} by {last.actor}: {last.reason or 'no reason given'}" if last else ""
        self._row = row
        return row

    def _read_status(self, row: JobRow) -> Self:
        self._status = "{}"
        if self._may_have_status(row):
            for found in self._engine.store.job_details([row.id]):
                self._status = found.status or "{}"
        return self

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the job has ended, and return this handle, read again. `JobTimeout` (a TimeoutError) after
        `timeout` seconds; the job continues."""
        sleep_through(self._wait_steps(timeout), self._engine.clock)
        return self

    def _wait_steps(self, timeout: float | None = None) -> Iterator[float]:
        engine = self._engine

        def late(waited: float) -> JobTimeout:
            return JobTimeout(self.id, self.state, waited)

        def has_ended() -> bool:
            row = self._read_row()
            return row.state in JOB.rests and bool(self._read_status(row))

        return pauses_until(has_ended, timeout, engine.clock, engine.settings, late, _FIRST_PAUSE)

    def cancel(self, *, undo: bool = True, actor: str | None = None, reason: str | None = None) -> Cancelled:
        """Cancel the job: a pending one at once, a running one within a second or two.

        A workflow with steps to undo is cancelled when a worker has undone them. With `undo=False` nothing is undone; a
        reason is required then. Workers cancel its children, and theirs, except detached ones; `why()` tells whether
        any are left. `AlreadyCommitted`, `InvalidTransition`, `NotFound`, `InvalidInput`.
        """
        return cancel_job(self._engine.store, self.id, undo, actor, reason, self._engine.settings)

    def retry(self, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Bring a failed, quarantined or cancelled job back to pending. It is due now, or at its due time if that is
        later. `InvalidTransition`, `NotFound`."""
        return retry_job(self._engine.store, self.id, actor, reason, self._engine.settings)

    def discard(self, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Discard a quarantined or failed job: it becomes cancelled. `InvalidTransition`, `NotFound`."""
        return discard_job(self._engine.store, self.id, actor, reason, self._engine.settings)

    def force(self, state: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Move the job along a transition declared as `force`, marked as such on record. A reason is required.
        `InvalidTransition`, `NotFound`."""
        return force_job(self._engine.store, self.id, state, actor, reason, self._engine.settings)

    def settle(
        self,
        *,
        done: bool,
        result: Any = None,
        step: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Moved:
        """Record the outcome of a job that is quarantined because its effect is unknown. A reason is required.

        If `done`, the job has succeeded, with that result. If not, it is pending again with all its attempts, and its
        probe is not called for the earlier attempts.

        Of a workflow, name the `step` that is unknown, or whose undo has failed: the workflow goes on. If `done`, the
        step is on record with that result, or its undo is; if not, it is called again. `InvalidInput` names the steps
        that can be settled. `NotUnknown`, `InvalidTransition`, `NotFound`.
        """
        settings = self._engine.settings
        return settle_job(self._engine.store, self.id, done, result, actor, reason, settings, step=step)

    def replace(
        self, payload: Mapping[str, Any] | str, /, *, actor: str | None = None, reason: str | None = None
    ) -> Job[Any]:
        """Enqueue the task of a dead or failed job with corrected arguments, and discard this job. Return the new job.
        A reason is required.

        `payload` is a mapping of all arguments by name, or its JSON text. If the application knows the task, it must
        fit the signature (`InvalidArguments`). The record of the old job names the new one, and the metadata of the new
        job name the old one (`replaces`). A key stays with the old job. A job of a run, and a job whose effect may have
        happened, are refused (`InvalidInput`). `InvalidTransition`, `NotFound`.
        """
        engine = self._engine
        who, why = reason_needed(actor, reason, engine.settings, "a reason: what was wrong with the arguments")
        (row,) = engine.store.job_get([self.id])
        if row is None:
            raise NotFound("job", str(self.id))
        task = engine.tasks.get(row.task)
        new = replace_job(engine.store, engine.ids, task, self.id, payload, who, why, engine.settings)
        (made,) = engine.store.job_get([new])
        if made is None:
            raise NotFound("job", str(new))
        return engine.job(made)

    def signal(
        self,
        name: str,
        payload: Any = None,
        *,
        dedupe: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> SignalSent:
        """Send a signal to this workflow: JSON that `ctx.wait_for` takes, now or later. Sending never waits for the
        workflow. Signals with the same name and `dedupe` are one signal.

        `JobEnded`, `MailboxFull`, `NotFound`, `InvalidInput`, `InvalidPayload`; `KeyConflict` if a signal with the same
        `dedupe` has another payload.
        """
        engine = self._engine
        if self._row is not None and not self._may_have_status(self._row):
            found = f"job {self.id} of task {self._row.task!r}, which is not a workflow"
            raise InvalidInput("job", found, "the job of a task that was declared with @app.workflow")
        return signal_job(engine.store, new_signal(self.id, name, payload, dedupe, actor, reason, engine.settings))

    def steps(
        self,
        *,
        at: datetime | None = None,
        since: str | None = None,
        generation: int | None = None,
        limit: int = 1000,
        after: str | None = None,
    ) -> ListPage[StepRow]:
        """Return the steps of this workflow that are on record, or were at a past time, in the order in which they were
        recorded: those of the current generation, or of another one. With `since`, a step, only those that a rewind to
        it, or a fork at it, would repeat. The values of secret steps are redacted. `.next` of the list is the `after`
        of the next page. `InvalidInput`."""
        most = check_limit(limit)
        if at is not None:
            to_micros(at, field="at")
        if generation is not None and (isinstance(generation, bool) or not isinstance(generation, int)):
            raise InvalidInput("generation", repr(generation)[:80], "a whole number")
        place = 0 if after is None else check_id(after, "after")
        rows = steps_of(self._engine.store, self.id, at=at, generation=generation)
        if since is not None:
            rows = steps_since(rows, since)
        found = [row for row in rows if row.seq > place]
        return ListPage(found[:most], str(found[most - 1].seq) if len(found) > most else None)

    def rewind(self, *, to: str, force: bool = False, actor: str | None = None, reason: str | None = None) -> Job[R]:
        """Let this workflow continue from an earlier step, and return this handle, read again. It must be parked,
        failed, quarantined or cancelled.

        A new generation begins with copies of the steps that were recorded before `to`, the path of a step or of a
        scope. That step and all that were recorded after it are called again; `steps(since=to)` lists them. Signals
        that they took are in the mailbox again. To repeat a transaction or a step with `once=True`, use `force` and
        give a reason. `CopyRefused`, `NotFound`, `InvalidInput`.
        """
        engine = self._engine
        rewind_job(engine.store, self.id, to, force, actor, reason, engine.settings)
        return self.refresh()

    def fork(
        self,
        *,
        at: str | None = None,
        replace: Mapping[str, Any] | None = None,
        payload: Mapping[str, Any] | None = None,
        force: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Job[R]:
        """Start another workflow that begins with copies of the steps that this one recorded before `at`, and return
        it. This workflow is left as it is, whatever its state.

        Without `at`, everything on record is copied. `replace` maps steps before `at` to the values that the fork has
        instead of the recorded ones; `payload` are other arguments. The fork takes over the signals that its steps
        took; unread ones stay with this workflow, and the record of the fork (`history()`) names them. Its undo leaves
        alone what was copied. `force` as in `rewind`. `CopyRefused`, `NotFound`, `InvalidInput`, `InvalidPayload`,
        `InvalidArguments`.
        """
        engine = self._engine
        (row,) = engine.store.job_get([self.id])
        task = None if row is None else engine.tasks.get(row.task)
        made = fork_job(
            engine.store, engine.ids, task, self.id, at, replace, payload, force, actor, reason, engine.settings
        )
        (new,) = engine.store.job_get([made.job_id])
        if new is None:
            raise NotFound("job", str(made.job_id))
        return engine.job(new)

    def tree(self) -> JobTree:
        """Return this job and the children that it has spawned, and theirs: at most 1,000 jobs, and 100 children of
        each. `NotFound`."""
        return tree_of(self._engine.store, self.id)

    def preview_undo(self) -> list[Undo]:
        """Return the steps of this workflow that can be undone, in the order in which an undo calls their functions,
        and whether that has happened. It is read from the record; no code is run. The values of secret steps are
        redacted. `NotFound`."""
        return preview_undo(self._engine.store, self.id)

    def undo(self, *, actor: str | None = None, reason: str | None = None) -> Job[Any]:
        """Undo the steps of a workflow that has ended, also of one that has succeeded. Return the job that does so.

        It is a job of its own, of the same task and queue: it calls the undo functions of the steps, the last one
        first, and records each call. There is one for each generation of a workflow: asking again returns it.
        `UndoRefused` if the workflow has not ended (cancel it), or has nothing to undo. `NotFound`.
        """
        engine = self._engine
        undo_id, created = undo_job(engine.store, engine.ids, self.id, actor, reason, engine.settings)
        (made,) = engine.store.job_get([undo_id])
        if made is None:
            raise NotFound("job", str(undo_id))
        handle = engine.job(made)
        handle.created = created
        return handle

    def why(self) -> str:
        """Explain in one sentence why the job is in its state. `NotFound`."""
        return explain(self._engine.store, self.id)

    def events(self, *, follow: bool = False) -> Iterator[EventRow]:
        """Yield the events of the job in order; with `follow`, also new ones until the job has ended. `NotFound`."""
        return items_of(self._events_pages(follow=follow), self._engine.clock)

    def _events_pages(self, *, follow: bool = False) -> Iterator[tuple[list[EventRow], float]]:
        yield from event_pages(self._engine.store, self.id, self._engine.settings, follow=follow)

    def stream(self, name: str | None = None, *, follow: bool = False) -> Iterator[StreamLine]:
        """Yield what this workflow has written to a stream (`ctx.stream`), or to all of them, in order; with `follow`,
        also new text until the job has ended. When `attempt` grows, the text starts over. `NotFound`."""
        return items_of(self._stream_pages(name, follow=follow), self._engine.clock)

    def _stream_pages(
        self, name: str | None = None, *, follow: bool = False
    ) -> Iterator[tuple[list[StreamLine], float]]:
        yield from stream_pages(self._engine.store, self.id, self._engine.settings, name, follow=follow)

    def executions(self) -> list[ExecutionRow]:
        """Return every attempt at the job, including one in flight."""
        return self._engine.store.job_executions(self.id)

    def history(self) -> list[TransitionRow]:
        """Return every transition of the job in order, with actor and reason."""
        return self._engine.store.transitions("job", str(self.id))

    def state_at(self, when: datetime) -> str | None:
        """Return the state of the job at a past time; None before it was created."""
        to_micros(when, field="when")
        return self._engine.store.state_as_of("job", str(self.id), when)

    def progress(self) -> dict[str, Any] | None:
        """Return the last `ctx.progress` of the current attempt: `{"done": 30, "total": 90}`."""
        found = self.details()
        if found is None or found.progress is None:
            return None
        progress: dict[str, Any] = json_codec.decode(found.progress, field="progress")
        return progress

    def details(self) -> JobDetails | None:
        """Return the job's key while that is kept, the worker that holds or last held it, and its progress as JSON
        text."""
        return next(iter(self._engine.store.job_details([self.id])), None)
