"""What the contexts of plain and async workflows have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from detent.declare.settings import Settings
from detent.declare.signals import Fatal, JobCancelled, Snooze, Throttled
from detent.declare.task import Call, Task
from detent.errors import DetentError, LeaseLost, WorkflowUndone
from detent.errors.database import OUTAGES
from detent.model import json_codec
from detent.model.clock import Clock
from detent.model.copy_records import FORKED_FROM
from detent.model.ids import Ids
from detent.model.records import Claimed, ExecutionRow, Moved, NewJob, Outcome, TransitionRow
from detent.model.stored_text import error_text
from detent.model.stream_records import STREAM
from detent.model.workflow_records import NewStep, StepBegun, StepRecorded, WorkflowHistory
from detent.store.commit_block_rules import numbered
from detent.store.contract import Store, Verbs
from detent.store.workflows.rules import UNDONE
from detent.worker.attempt.context import AttemptContext
from detent.worker.attempt.event_sink import EventSink
from detent.workflow.branch import inside_step
from detent.workflow.requests import ParkAttempt, PendingWait
from detent.workflow.run import WorkflowRun
from detent.workflow.step_operations import StepUnknown

__all__ = ["BaseWorkflowContext", "StepBlock", "is_park"]

_PAGE = 1000
_ANY_NEW_ID = 2**63 - 1
_CANCELLED = error_text(JobCancelled())
_SETTLED_BY = ("settle", "retry", "rewind")
_TOLD = ("error", "snoozed", "throttled", "parked")
"""Outcomes of attempts whose function has returned or raised, and so has said what became of its steps."""


class BaseWorkflowContext(AttemptContext):
    """The context of an attempt at a workflow. See `WorkflowContext` for what each name promises."""

    called_at: float | None = None
    undo_of: int | None = None
    is_undone = False
    suspect = False
    _ends_cancelled = False

    def __init__(
        self,
        claimed: Claimed,
        task: Task[..., Any, Any],
        store: Store,
        sink: EventSink,
        ids: Ids,
        settings: Settings,
        clock: Clock,
        tasks: Callable[[str], Task[..., Any, Any]],
    ) -> None:
        super().__init__(claimed, task, store, sink, ids, settings)
        assert task.workflow is not None
        self.clock = clock
        self._tasks = tasks
        self.run = WorkflowRun(self, task.workflow)
        self._payload = claimed.payload
        has_record = _undoes_another(claimed) or FORKED_FROM in (claimed.metadata or "")
        self.is_loaded = claimed.attempt == 1 and not has_record

    @property
    def must_load(self) -> bool:  # type: ignore[override]
        """Whether earlier attempts, or the job that this one undoes or was forked from, have left a record."""
        return not self.is_loaded

    @property
    def payload(self) -> str:
        return self._payload

    def final_outcome(self, error: BaseException) -> Outcome | None:
        if isinstance(error, StepUnknown):
            return "unknown"
        return "error" if self.run.is_fatal(error) else None

    # -- undo --------------------------------------------------------------------------------------------------

    def undoes(self, error: BaseException) -> bool:
        """Whether the workflow has failed for good, or was cancelled, and its steps are to be undone."""
        if self._task.workflow is None or self._task.workflow.undo != "on_failure" or not self.run.can_undo:
            return False
        if isinstance(error, (StepUnknown, LeaseLost, Snooze, Throttled, *OUTAGES)) or self.run.is_fatal(error):
            return False
        used = 1 if self.run.history.recorded_now else self._claimed.attempt - self._claimed.spared
        is_last = used >= self._claimed.attempts_max or not self._task.options.retry.covers(error)
        return self.cancelled or is_last or isinstance(error, Fatal)

    def begin_undo(self, error: BaseException) -> bool:
        """Record that the steps are being undone. Return False if whoever cancelled the workflow does not want that."""
        cause = _CANCELLED if self.cancelled else error_text(error)
        answer = self._store.undo_begin(self._claimed.job_id, self.attempt, cause)
        if isinstance(answer, DetentError):
            raise answer
        if answer.waived:
            self.event("cancelled without undoing its steps", level="warning")
            return False
        self.run.cause = answer.cause
        self.run.stops_when_cancelled = False
        self.run.history.is_limited = False
        self.event("undoing the steps", level="warning")
        return True

    @property
    def must_replay(self) -> bool:
        """Whether the function did not come to all steps that are to be undone, for instance those in scopes."""
        known = self.run.undoables
        return bool(self.run.folded) or any(path not in known for path in self.run.history.undoable())

    def replay_again(self) -> None:
        """Read the whole record, and prepare another call of the function that comes to every step on record."""
        cause = self.run.cause
        self.run = WorkflowRun(self, self.run.options)
        self.is_loaded = False
        self.load()
        self.run.cause = cause
        self.run.replay()
        self.__dict__.pop("random", None)

    def begin_cancelled(self) -> bool:
        """Begin the undo of a workflow that was cancelled when it was pending; prepare a replay. Return whether its
        steps are to be undone."""
        assert self._task.workflow is not None
        if not self.cancelled or self.run.cause is not None or not self.run.can_undo:
            return False
        if self._task.workflow.undo != "on_failure" or not self.begin_undo(JobCancelled()):
            return False
        self._cancelled = False
        self.replay_again()
        return True

    def begin_again(self) -> None:
        """Begin a new generation if all steps are undone and the job was retried. Otherwise, if steps are being undone,
        prepare a replay: also after a crash of the attempt that undid the last of them, which is to end as undone."""
        if self.is_undone and self.undo_of is None and self._is_retried_since_undone():
            self.run.continues_with = self.payload
            raise self.run.suspend(PendingWait((), None, "its next generation"))
        if self.run.cause is not None:
            self.run.replay()

    def _is_retried_since_undone(self) -> bool:
        """Whether a person has sent the job through again after its steps were undone."""
        row = self.run.history.find(UNDONE)
        return row is None or any(
            line.to_state == "pending" and line.trigger in ("force", "retry", "settle") and line.attempt >= row.attempt
            for line in self._store.transitions("job", str(self._claimed.job_id))
        )

    def end_undone(self, error: BaseException | None) -> None:
        """Raise what the workflow ends with after its steps were undone. A job that was made for the undo succeeds."""
        if error is not None:
            self.run.fatal = error
            raise error
        if self._ends_cancelled:
            self.request_cancel()
            raise JobCancelled
        if self.undo_of is None:
            assert self.run.cause is not None
            if self.run.cause == _CANCELLED and not self.cancelled:
                # A retry of an undo that had stopped has taken the request back.
                self._store.job_cancel([self._claimed.job_id], "detent", "its steps were undone, as after every cancel")
            self.run.fatal = WorkflowUndone(self._claimed.job_id, self.run.cause)
            raise self.run.fatal

    # -- for operations ----------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The store."""
        return self._store

    def find_task(self, name: str) -> Task[..., Any, Any]:
        """Return a declared task. `UnknownTask`."""
        return self._tasks(name)

    @abstractmethod
    def runner(self) -> object:
        """Return what runs this branch of the function: a thread or a task."""

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        return self.clock.monotonic()

    def chance(self) -> float:
        """Return a random number for the jitter of a delay; another one each time."""
        return self._ids.random()

    def now_here(self) -> datetime:
        """Return the time of this machine."""
        return self.clock.now()

    def load(self) -> None:
        """Read what earlier attempts have recorded, unless that was done. Raises the refusal if the job is no longer
        held."""
        if self.is_loaded:
            return
        (page,) = self._sink.steps.loads.write([(self._claimed.job_id, self.attempt)])
        while True:
            if isinstance(page, DetentError):
                raise page
            self._take(page)
            if page.next is None:
                break
            page = self._store.workflow_load(self._claimed.job_id, self.attempt, after=page.next, limit=_PAGE)
        self.is_loaded = True

    def _take(self, page: WorkflowHistory) -> None:
        self.run.now = page.now
        self.run.history.load(page)
        self.suspect |= page.suspect
        self.undo_of = page.undo_of
        self.is_undone = page.undone
        if page.undoing:
            self.run.cause = page.cause or "as requested"
        if page.payload is not None:
            self._payload = page.payload
        if page.cancelled and page.undoing and page.undo_of is None:
            # Its function is replayed and must not stop before it has come to all of its steps.
            self._ends_cancelled = True
        elif page.cancelled:
            self.request_cancel()

    def why_in_doubt(self, begun: StepBegun | None, path: str) -> str | None:
        """Return why a step may have had its effect although it is not on record: an attempt that had begun it ended
        without a word from its function, or the database was restored or copied since the job was enqueued. None if
        there is no doubt. Attempts before a retry by a person, or a settlement of this step, do not count."""
        begun_before = begun is not None and begun.first < self.attempt
        job_id = self._claimed.job_id
        is_of_copy = self._store.identity_of(job_id) != self._store.identity_of(_ANY_NEW_ID)
        if not begun_before and not is_of_copy:
            return None
        past = [one for one in self._store.job_executions(job_id) if one.attempt < self.attempt]
        settled = max(
            (
                line.attempt
                for line in self._store.transitions("job", str(job_id))
                if line.to_state == "pending"
                and line.trigger in ("settle", "retry", "rewind")
                and _is_about(line, path)
            ),
            default=0,
        )
        if begun is not None and any(
            max(begun.first, settled + 1) <= one.attempt and one.outcome not in _TOLD for one in past
        ):
            return f"attempt {begun.first} has begun it"
        return self._why_in_doubt_since_copy(past, settled) if is_of_copy else None

    def _why_in_doubt_since_copy(self, past: Sequence[ExecutionRow], settled: int) -> str | None:
        """Return what the renewed identity of the database says about steps of this job, unless a person was told of it
        and has retried or settled the job: whatever was done between the copy and the restore is not on record."""
        renewed_at = self._store.identity_list()[-1].made_at
        told = [
            one.attempt
            for one in past
            if one.outcome == "unknown" and one.aborted_at is not None and one.aborted_at >= renewed_at
        ]
        if told and settled >= told[0]:
            return None
        return f"the database was restored or copied (its identity was renewed at {renewed_at:%Y-%m-%d %H:%M} UTC)"

    def child_job(self, call: Call[Any], job_id: int) -> NewJob:
        """Return a child as a job."""
        made = self.intent(call, f"child/{job_id}", 0)
        return replace(made, id=job_id, key=None, parent_id=self.job_id)

    # -- for the function --------------------------------------------------------------------------------------

    @property
    def job_id(self) -> int:
        """The job whose function this is: of a job that undoes another one, that other one."""
        return self._claimed.job_id if self.undo_of is None else self.undo_of

    @property
    def effect_key(self) -> str:
        """In a step, the key of that step: the same in every attempt."""
        whole, path = super().effect_key, inside_step.get()
        return whole if path is None else f"{whole}/{self.run.history.generation}/{path}"

    @property
    def job_key(self) -> str:
        return super().effect_key

    def stream_line(self, stream: str, text: str, number: int) -> None:
        """Append text to a stream of the job."""
        about = json_codec.encode({"stream": stream, "n": number}, field="stream", size_max=self.settings.event_max)
        self.write_line(STREAM, text, about, None)

    # -- ends --------------------------------------------------------------------------------------------------

    @property
    def begun_after(self) -> float | None:
        """Seconds from the claim to the call of the function; None if that is not known."""
        if self.claimed_at is None or self.called_at is None:
            return None
        return max(0.0, self.called_at - self.claimed_at)


class StepBlock:
    """What is written at the end of a transaction of a step: its record, and the calls that it intends."""

    def __init__(self, context: BaseWorkflowContext, path: str) -> None:
        self._context = context
        self._path = path
        self._intents: list[NewJob] = []
        self.step: NewStep | None = None
        self.answer: StepRecorded | None = None

    def intend(self, call: Call[Any], key: str | None) -> None:
        """Enqueue a call in the transaction."""
        made = f"{self._context.run.history.generation}/{self._path}/{len(self._intents) + 1}" if key is None else key
        job = self._context.intent(call, key, len(self._intents) + 1)
        if key is None:
            full = f"{job.key}/{made}"
            if len(full.encode()) > self._context.settings.key_max:
                full = json_codec.fingerprint(full, "null")
            job = replace(job, key=full)
        self._intents.append(job)

    def leave(self, verbs: Verbs) -> DetentError | Moved:
        """Record the step in the transaction of its function. A step that is on record refuses the transaction: what it
        wrote is undone, and the record counts."""
        assert self.step is not None
        (answer,) = verbs.step_record([self.step])
        if isinstance(answer, DetentError):
            return answer
        self.answer = answer
        if not answer.created:
            return StepOnRecord(answer)
        for refused in verbs.job_enqueue(numbered(self._intents, verbs.ids_reserve)) if self._intents else ():
            if isinstance(refused, DetentError):
                return refused
        return Moved(self._path, "recorded", True)


class StepOnRecord(DetentError):
    """A step was recorded by another attempt: its transaction is rolled back."""

    def __init__(self, answer: StepRecorded) -> None:
        super().__init__(f"step {answer.path!r} is on record")
        self.answer = answer


def _undoes_another(claimed: Claimed) -> bool:
    """Whether a job may have been made to undo another one, so that its first attempt has a record to read."""
    return claimed.metadata is not None and '"undo_of"' in claimed.metadata


def _is_about(line: TransitionRow, path: str) -> bool:
    """Whether a settlement is about this step, or about the whole job."""
    return line.metadata is None or json_codec.decode(line.metadata).get("step", path) == path


def is_park(error: BaseException) -> bool:
    """Whether an error is the one that ends an attempt that waits, alone or in a group."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_park(one) for one in error.exceptions)
    return isinstance(error, ParkAttempt)
