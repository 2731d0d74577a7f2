"""Clients: enqueueing calls and acting on jobs, on Detent's connections or on the caller's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from msgspec.structs import replace

from detent.client.job import Job, JobSnapshot, Origin
from detent.client.job_verbs import (
    cancel_job,
    check_id,
    debounced,
    discard_job,
    force_job,
    retry_job,
    settle_job,
    unwrap,
)
from detent.client.workflow_verbs import new_signal, signal_job
from detent.declare.enqueue import EnqueueKeywords, EnqueueOptions, enqueue_options, new_jobs
from detent.declare.task import Call, Task
from detent.errors import DetentError, InvalidInput, NotFound
from detent.model.records import Cancelled, Enqueued, Moved, NewJob
from detent.model.uniform_jobs import UniformJobs, ids_of, representatives
from detent.model.workflow_records import SignalSent
from detent.store.contract import Store, Verbs
from detent.store.enqueue_writer import EnqueueWriter
from detent.telemetry.tracing import is_traced, send_traced

if TYPE_CHECKING:
    from detent.client.engine import Engine

__all__ = ["Client", "DirectClient", "Prepared"]

R = TypeVar("R")
J = TypeVar("J", bound=JobSnapshot[Any])
Take = Callable[[int], list[int]]


class Prepared:
    """Turns calls into jobs with ids, and answers into handles: what sync and async clients have in common.

    With a `nonce` per request, a handle can tell its own job from another one that got the same id after a rollback.
    """

    def __init__(self, engine: Engine, take: Take | None = None, nonce: Callable[[], int] | None = None) -> None:
        self.engine = engine
        self._take = take or engine.ids.take
        self._nonce = nonce or engine.ids.nonce
        self._checks_nonce = nonce is not None
        self.settings = engine.settings

    def check(self, calls: Iterable[Call[R]], sending: EnqueueOptions) -> tuple[list[Call[R]], Sequence[NewJob]]:
        """Return one job for each call, still without ids. `InvalidInput`, also for too many calls."""
        most = self.settings.enqueue_many_max
        listed = list(islice(calls, most + 1))
        if len(listed) > most:
            raise InvalidInput("calls", f"more than {most}", f"at most {most} calls at once (enqueue_many_max)")
        return listed, new_jobs(listed, sending, settings=self.settings)

    def number(self, checked: Sequence[NewJob]) -> Sequence[NewJob]:
        """Return the jobs with their ids. Several jobs form a group: one refused item refuses all of them."""
        ids = self._take(len(checked))
        nonce = self._nonce()
        group = ids[0] if len(ids) > 1 else None
        if isinstance(checked, UniformJobs):
            return UniformJobs(replace(checked.prototype, nonce=nonce, group=group), ids, checked.payloads)
        return [replace(job, id=job_id, nonce=nonce, group=group) for job, job_id in zip(checked, ids, strict=True)]

    def has_ids(self, count: int) -> bool:
        """Whether that many ids are reserved already, so that no round trip is needed."""
        return self.engine.ids.left() >= count

    def handles(
        self,
        kind: Callable[..., J],
        calls: Sequence[Call[Any]],
        jobs: Sequence[NewJob],
        answers: Sequence[Enqueued | DetentError],
    ) -> list[J]:
        """Return a handle of that kind for each answer. Raise the first refusal."""
        handles: list[J] = []
        task: Task[..., Any, Any] | None = None
        # `number` took one nonce for all of them.
        nonce_of_all = representatives(jobs)[0].nonce if self._checks_nonce and jobs else None
        for call, job_id, answer in zip(calls, ids_of(jobs), answers, strict=True):
            found = unwrap(answer)
            # If a job was sent again after a lost answer, it finds itself: then this request has created it.
            is_ours = found.job_id == job_id
            if call.task is not task:
                task = call.task
                origin = Origin(self.engine, task.decode_result, task.options.result_ttl)
            nonce = nonce_of_all if is_ours else None
            handles.append(kind(found.job_id, origin, found.created or is_ours, None, nonce))
        return handles


class DirectClient:
    """A client inside the caller's own transaction, as `app.using(connection)` returns it."""

    def __init__(self, on: Callable[[], Verbs], prepared: Prepared) -> None:
        self._on = on
        self._prepared = prepared

    @property
    def _verbs(self) -> Verbs:
        return self._on()

    def enqueue(self, call: Call[R], /, **options: Unpack[EnqueueKeywords]) -> Job[R]:
        """Enqueue one call in this transaction. Options as for `app.enqueue`."""
        return self.send([call], enqueue_options(options))[0]

    def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[EnqueueKeywords]) -> list[Job[R]]:
        """Enqueue many calls in this transaction, all or nothing. Options as for `app.enqueue`, except `key`."""
        return self.send(calls, enqueue_options(options, many=True))

    def send(self, calls: Iterable[Call[R]], sending: EnqueueOptions) -> list[Job[R]]:
        """Enqueue calls with options that are already checked."""
        return send_traced(self._send, calls, sending) if is_traced() else self._send(calls, sending)

    def _send(self, calls: Iterable[Call[R]], sending: EnqueueOptions) -> list[Job[R]]:
        # Everything is checked before the first id is taken.
        listed, checked = self._prepared.check(calls, sending)
        jobs = self._prepared.number(checked)
        if sending.debounce is not None and jobs:
            return self._prepared.handles(Job, listed, jobs, [self._debounce(jobs[0], sending.debounce)])
        return self._prepared.handles(Job, listed, jobs, self._enqueue(jobs)) if jobs else []

    def _debounce(self, job: NewJob, seconds: float) -> Enqueued | DetentError:
        return debounced(self._verbs, job, seconds)

    def _enqueue(self, jobs: Sequence[NewJob]) -> Sequence[Enqueued | DetentError]:
        return self._verbs.job_enqueue(jobs)

    def cancel(
        self, job_id: int | str, *, undo: bool = True, actor: str | None = None, reason: str | None = None
    ) -> Cancelled:
        """Cancel a job. `AlreadyCommitted`, `InvalidTransition`, `NotFound`."""
        return cancel_job(self._verbs, check_id(job_id), undo, actor, reason, self._prepared.settings)

    def retry(self, job_id: int | str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Bring a failed, quarantined or cancelled job back to pending. `InvalidTransition`, `NotFound`."""
        return retry_job(self._verbs, check_id(job_id), actor, reason, self._prepared.settings)

    def discard(self, job_id: int | str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Discard a quarantined or failed job. `InvalidTransition`, `NotFound`."""
        return discard_job(self._verbs, check_id(job_id), actor, reason, self._prepared.settings)

    def force(self, job_id: int | str, state: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Move a job along a transition declared as `force`. `InvalidTransition`, `NotFound`."""
        return force_job(self._verbs, check_id(job_id), state, actor, reason, self._prepared.settings)

    def settle(
        self,
        job_id: int | str,
        *,
        done: bool,
        result: Any = None,
        step: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Moved:
        """Record the outcome of a job whose effect is unknown, or of a step of a workflow. `NotUnknown`,
        `InvalidTransition`, `NotFound`, `InvalidInput`."""
        settings = self._prepared.settings
        return settle_job(self._verbs, check_id(job_id), done, result, actor, reason, settings, step=step)

    def signal(
        self,
        job: Job[Any] | int | str,
        name: str,
        payload: Any = None,
        *,
        dedupe: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> SignalSent:
        """Send a signal to a workflow; it arrives when you commit. `JobEnded`, `KeyConflict`, `MailboxFull`,
        `NotFound`, `InvalidInput`, `InvalidPayload`."""
        job_id = job.id if isinstance(job, JobSnapshot) else check_id(job)
        signal = new_signal(job_id, name, payload, dedupe, actor, reason, self._prepared.settings)
        # The transaction may stay open: nothing of it may block the workflow.
        return signal_job(self._verbs, signal, apart=True)

    def get(self, job_id: int | str) -> Job[Any]:
        """Return the job as this transaction sees it. `NotFound`."""
        number = check_id(job_id)
        (row,) = self._verbs.job_get([number])
        if row is None:
            raise NotFound("job", str(number))
        return self._prepared.engine.job(row)


class Client(DirectClient):
    """The client of an application: concurrent enqueues share transactions through a writer."""

    def __init__(self, store: Store, prepared: Prepared, plain: EnqueueWriter, keyed: EnqueueWriter) -> None:
        super().__init__(lambda: store, prepared)
        self._store = store
        self.plain = plain
        self.keyed = keyed

    def _enqueue(self, jobs: Sequence[NewJob]) -> Sequence[Enqueued | DetentError]:
        answers = self.writer_for(jobs).write(jobs)
        if self._prepared.engine.inline is not None:
            self._prepared.engine.inline.sent()
        return answers

    def _debounce(self, job: NewJob, seconds: float) -> Enqueued | DetentError:
        return self._store.together(lambda verbs: debounced(verbs, job, seconds))

    def writer_for(self, jobs: Sequence[NewJob]) -> EnqueueWriter:
        """Return the writer for these jobs. Keyed jobs have their own, because they may wait for a transaction."""
        for job in representatives(jobs):
            if job.key is not None:
                return self.keyed
        return self.plain
