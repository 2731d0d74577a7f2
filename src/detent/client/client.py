"""What a client does to jobs, over whichever connection it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, Unpack

from msgspec.structs import replace

from detent.client.debounce import debounced
from detent.client.job import Job, Origin
from detent.declare.enqueue import Sending, SendingOptions, new_jobs, sending_of
from detent.declare.settings import Settings
from detent.declare.task import Call, Task
from detent.errors import DetentError, InvalidInput, InvalidTransition, NotFound
from detent.lifecycle.library import JOB
from detent.model import jsondoor
from detent.model.alike import AlikeJobs, ids_of, kinds
from detent.model.clock import Clock
from detent.model.ids import Ids
from detent.model.records import Cancelled, Enqueued, JobRow, Moved, NewJob
from detent.store.contract import Store, Verbs
from detent.store.writer import Writer, single_call

__all__ = ["Client", "DirectClient", "Prepared", "actor_and_reason", "check_id", "moved", "one"]

R = TypeVar("R")
T = TypeVar("T")
Take = Callable[[int], list[int]]


@single_call
def job_enqueue(verbs: Verbs, items: Sequence[NewJob]) -> Sequence[Enqueued | DetentError]:
    """The writer's name for the verb: one object, so that neighbours share a call."""
    return verbs.job_enqueue(items)


class Prepared:
    """Turns calls into jobs with ids, and answers into handles: what sync and async clients have in common.

    Handles look through `verbs`, which are the application's own, also where a job was sent on a caller's connection:
    that one may be closed, or in a transaction that sees nothing new, by the time somebody looks. With a `nonce` for
    each request, handles also know their own job from another that was given its id after a rollback.
    """

    def __init__(
        self,
        ids: Ids,
        settings: Settings,
        clock: Clock,
        verbs: Verbs,
        take: Take | None = None,
        nonce: Callable[[], int] | None = None,
    ) -> None:
        self._ids = ids
        self._take = take or ids.take
        self._nonce = nonce or ids.nonce
        self._checks_nonce = nonce is not None
        self.settings = settings
        self.clock = clock
        self._verbs = verbs
        self.tasks: Mapping[str, Task[..., Any, Any]] = {}
        """The tasks that the application knows by name: they say how results are read, and for how long."""

    def check(self, calls: Iterable[Call[R]], sending: Sending) -> tuple[list[Call[R]], Sequence[NewJob]]:
        """One job for each call, still without ids. Refuses what the door does not let in, and too many."""
        most = self.settings.enqueue_many_max
        listed = list(islice(calls, most + 1))
        if len(listed) > most:
            raise InvalidInput("calls", f"more than {most}", f"at most {most} calls at once (enqueue_many_max)")
        return listed, new_jobs(listed, sending, settings=self.settings)

    def number(self, checked: Sequence[NewJob]) -> Sequence[NewJob]:
        """The jobs with their ids; several form a group, which stands or falls together."""
        ids = self._take(len(checked))
        nonce = self._nonce()
        group = ids[0] if len(ids) > 1 else None
        if isinstance(checked, AlikeJobs):
            return AlikeJobs(replace(checked.like, nonce=nonce, group=group), ids, checked.payloads)
        return [replace(job, id=job_id, nonce=nonce, group=group) for job, job_id in zip(checked, ids, strict=True)]

    def has_ids(self, count: int) -> bool:
        """Whether that many ids are at hand, without a round trip."""
        return self._ids.left() >= count

    def handles(
        self, calls: Sequence[Call[R]], jobs: Sequence[NewJob], answers: Sequence[Enqueued | DetentError]
    ) -> list[Job[R]]:
        """A handle for each answer; raises the first refusal."""
        handles: list[Job[R]] = []
        task: Task[..., R, Any] | None = None
        # They have it in common: `number` took one for all.
        nonce_of_all = kinds(jobs)[0].nonce if self._checks_nonce and jobs else None
        for call, job_id, answer in zip(calls, ids_of(jobs), answers, strict=True):
            found = one(answer)
            # Sent again after a lost answer, a job meets itself: then it was this request that made it.
            is_ours = found.job_id == job_id
            if call.task is not task:
                task = call.task
                origin = self._origin(task.decode_result, task.options.result_ttl)
            nonce = nonce_of_all if is_ours else None
            handles.append(Job(found.job_id, origin, found.created or is_ours, None, nonce))
        return handles

    def job(self, row: JobRow) -> Job[Any]:
        """Return a handle with what was seen of the job. If the application knows its task, the handle reads the result
        as the task does, and for as long as the task keeps it."""
        task = self.tasks.get(row.task)
        decode, kept = (None, None) if task is None else (task.decode_result, task.options.result_ttl)
        return Job(row.id, self._origin(decode, kept), False, row)

    def _origin(self, decode: Callable[[str | None], Any] | None, result_ttl: float | None) -> Origin:
        return Origin(self._verbs, self.clock, self.settings, decode, result_ttl)


class DirectClient:
    """A client whose every call goes straight to its verbs: on the caller's own connection, in its transaction.

    `on` gives the verbs anew for each call: a session of an ORM has another connection in each transaction.
    """

    def __init__(self, on: Callable[[], Verbs], prepared: Prepared) -> None:
        self._on = on
        self._prepared = prepared

    @property
    def _verbs(self) -> Verbs:
        return self._on()

    def enqueue(self, call: Call[R], /, **options: Unpack[SendingOptions]) -> Job[R]:
        """Enqueue one call. See `Detent.enqueue` for what may be said about it."""
        return self.send([call], sending_of(options))[0]

    def enqueue_many(self, calls: Iterable[Call[R]], /, **options: Unpack[SendingOptions]) -> list[Job[R]]:
        """Enqueue many calls, all or nothing. A key cannot be given to many."""
        return self.send(calls, sending_of(options, many=True))

    def send(self, calls: Iterable[Call[R]], sending: Sending) -> list[Job[R]]:
        """Enqueue the calls as `sending` says."""
        # Everything is checked before the first id is taken.
        listed, checked = self._prepared.check(calls, sending)
        jobs = self._prepared.number(checked)
        if sending.debounce is not None and jobs:
            return self._prepared.handles(listed, jobs, [self._debounce(jobs[0], sending.debounce)])
        return self._prepared.handles(listed, jobs, self._enqueue(jobs)) if jobs else []

    def _debounce(self, job: NewJob, seconds: float) -> Enqueued | DetentError:
        return debounced(self._verbs, job, seconds)

    def _enqueue(self, jobs: Sequence[NewJob]) -> Sequence[Enqueued | DetentError]:
        return self._verbs.job_enqueue(jobs)

    def cancel(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Cancelled:
        """Stop a job. `AlreadyCommitted`, `InvalidTransition`, `NotFound`."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return one(self._verbs.job_cancel([check_id(job_id)], who, why)[0])

    def retry(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Moved:
        """Bring a job that rests without success back to pending. `InvalidTransition`, `NotFound`."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return moved(self._verbs.job_retry([check_id(job_id)], who, why)[0], "retry")

    def discard(self, job_id: int | str, *, actor: str, reason: str | None = None) -> Moved:
        """Give up a quarantined or failed job. `InvalidTransition`, `NotFound`."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        return moved(self._verbs.job_discard([check_id(job_id)], who, why)[0], "discard")

    def force(self, job_id: int | str, to_state: str, *, actor: str, reason: str) -> Moved:
        """An operator's override, on record as such. `InvalidTransition`, `NotFound`."""
        who, why = actor_and_reason(actor, reason, self._prepared.settings)
        if not why:
            raise InvalidInput("reason", repr(reason), "a reason: an override always has one")
        state = jsondoor.text(to_state, field="state", bytes_max=self._prepared.settings.name_max)
        return moved(self._verbs.job_force(check_id(job_id), state, who, why), "force")

    def settle(self, job_id: int | str, *, done: bool, actor: str, reason: str, result: Any = None) -> Moved:
        """What became of an effect that nobody knew of. `NotUnknown`, `InvalidTransition`, `NotFound`."""
        settings = self._prepared.settings
        who, why = actor_and_reason(actor, reason, settings)
        if not why:
            raise InvalidInput("reason", repr(reason), "a reason: how it was found out")
        if not isinstance(done, bool):
            raise InvalidInput("done", repr(done)[:80], "True or False")
        if result is not None and not done:
            raise InvalidInput("result", repr(result)[:80], "no result of what has not happened")
        text = None
        if result is not None:
            text = jsondoor.encode(result, field="result", size_max=settings.result_max, depth_max=settings.depth_max)
        return moved(self._verbs.effect_settle(check_id(job_id), done, who, why, text), "settle")

    def get(self, job_id: int | str) -> Job[Any]:
        """The job as it stands. `NotFound`."""
        number = check_id(job_id)
        (row,) = self._verbs.job_get([number])
        if row is None:
            raise NotFound("job", str(number))
        return self._prepared.job(row)


class Client(DirectClient):
    """The application's own client: enqueues share transactions through the writer."""

    def __init__(self, store: Store, prepared: Prepared, plain: Writer, keyed: Writer) -> None:
        super().__init__(lambda: store, prepared)
        self._store = store
        self.plain = plain
        self.keyed = keyed

    def _enqueue(self, jobs: Sequence[NewJob]) -> Sequence[Enqueued | DetentError]:
        return self.writer_for(jobs).write(job_enqueue, jobs)

    def _debounce(self, job: NewJob, seconds: float) -> Enqueued | DetentError:
        return self._store.together(lambda verbs: debounced(verbs, job, seconds))

    def writer_for(self, jobs: Sequence[NewJob]) -> Writer:
        """Keyed jobs may have to wait for a stranger's transaction, so they are no company for the others."""
        for job in kinds(jobs):
            if job.key is not None:
                return self.keyed
        return self.plain


def one(answer: T | DetentError) -> T:
    """The answer, or its refusal raised."""
    if isinstance(answer, DetentError):
        raise answer
    return answer


def moved(answer: Moved | DetentError, trigger: str) -> Moved:
    """The answer, or its refusal raised, with what that trigger is for."""
    if isinstance(answer, InvalidTransition):
        ways = [way for way in JOB.transitions if (way.trigger, way.target) == (trigger, answer.to_state)]
        answer.trigger, answer.sources = trigger, tuple(way.source for way in ways)
    return one(answer)


def check_id(job_id: int | str) -> int:
    """A job's id as a whole number; text of digits is taken too, since ids are strings in JSON."""
    if isinstance(job_id, str) and job_id.isascii() and job_id.isdigit() and len(job_id) < 20:
        return int(job_id)
    if isinstance(job_id, bool) or not isinstance(job_id, int) or not 0 <= job_id < 2**63:
        raise InvalidInput("job id", repr(job_id)[:80], "a whole number below 2^63")
    return job_id


def actor_and_reason(actor: str, reason: str | None, settings: Settings) -> tuple[str, str | None]:
    """Who and why, through the door."""
    who = jsondoor.text(actor, field="actor", bytes_max=settings.name_max)
    why = (
        None
        if reason is None
        else jsondoor.text(reason, field="reason", bytes_max=settings.reason_max, allow_empty=True)
    )
    return who, why
