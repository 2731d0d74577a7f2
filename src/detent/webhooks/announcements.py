"""Turns events into delivery jobs, once for each event and target.

Failures of jobs, and ends of ops runs, come from the list that their ending fills in its own transaction. Successes of
announced tasks join them when they are counted, and running jobs that are to be cancelled when the request is read from
the record. Changes of runs and alerts, and of jobs by a client, come from the record. Each target has a place in the
record, and the place moves in the transaction that enqueues the deliveries: after a crash, neither is lost or repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from detent.client.engine import Engine, EngineRef
from detent.client.job_verbs import unwrap
from detent.declare.enqueue import EnqueueOptions, new_job
from detent.declare.task import Task
from detent.errors import DetentError, InvalidInput, KeyConflict
from detent.model.ops_records import OPS_TASK
from detent.model.records import Enqueued, NewJob, RecordFeedLine
from detent.store.contract import Verbs
from detent.views.redaction import Redactor
from detent.webhooks.events import OPS_TYPES, Event, job_change_event, job_event, ops_event, record_event
from detent.webhooks.outgoing import OutgoingWebhook

__all__ = ["Announcements", "put_announced"]

log = logging.getLogger("detent.webhooks")

_PAGE = 500
_PAGES_MAX = 20
_TERM = 60.0
"""Seconds until another process may take ends that were taken and not removed from the list."""
_KEY_SECONDS = 30 * 86_400.0


class Announcements:
    """Enqueues the deliveries of the targets that an application declares."""

    def __init__(
        self, engine: EngineRef, targets: Mapping[str, OutgoingWebhook], task: Callable[[], Task[..., object, object]]
    ) -> None:
        self._engine = engine
        self._targets = targets
        self._task = task
        self._identity: str | None = None
        self._redactor: Redactor | None = None

    def announce_ends(self, ends: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Enqueue the deliveries of jobs that ended, each a job and an attempt. Repeating it is a no-op. Return those
        that have not ended yet: a cancel was requested."""
        watching = [one for one in self._targets.values() if any(kind.startswith("job.") for kind in one.events)]
        if not watching:
            return []
        engine = self._engine.find()
        rows = {row.id: row for row in engine.store.job_get([job_id for job_id, _ in ends]) if row is not None}
        names = {name for one in watching for name in one.tasks} if all(one.tasks for one in watching) else None
        events: list[Event] = []
        unended: list[tuple[int, int]] = []
        redactor = self._redactor_of(engine)
        for job_id, attempt in ends:
            row = rows.get(job_id)
            if row is None or (names is not None and row.task not in names):
                continue
            if row.state == "running" and row.attempt == attempt:
                unended.append((job_id, attempt))
                continue
            made = [one for one in engine.store.job_executions(job_id) if one.attempt == attempt]
            # The event is stored in a job of another task, and leaves the system.
            shown = [(redactor.job(row), redactor.of_job(row, one)) for one in made]
            events += [event for pair in shown if (event := job_event(*pair)) is not None]
        jobs = self._jobs(engine, watching, events)
        if jobs:
            _check(engine.store.job_enqueue(jobs))
        return unended

    def announce_ops_runs(self) -> int:
        """Enqueue the deliveries of ops runs that ended, and return how many ends were on the list."""
        watching = [one for one in self._targets.values() if one.events & OPS_TYPES]
        if not watching:
            return 0
        engine, found = self._engine.find(), 0
        while ended := engine.store.failure_report_take([OPS_TASK], _PAGE, _TERM):
            rows = [row for row in engine.store.ops_get([job_id for job_id, _ in ended]) if row is not None]
            jobs = self._jobs(engine, watching, [event for row in rows if (event := ops_event(row)) is not None])
            engine.store.together(_striking(ended, jobs))
            found += len(ended)
        return found

    def put_announced(self) -> bool:
        """Record the tasks whose successes are announced, and return whether there are any."""
        engine = self._engine.find()
        return put_announced(engine.store, self._targets, engine.tasks)

    @property
    def reads_record(self) -> bool:
        """Whether a target asks for what is on record."""
        return any(one.reads_record for one in self._targets.values())

    def read_record(self) -> int:
        """Enqueue the deliveries of what is new on record, and return how many. Each target is told of a few thousand
        lines at most; call it again until it returns 0."""
        return sum(self._read_for(target) for target in self._targets.values() if target.reads_record)

    def _read_for(self, target: OutgoingWebhook) -> int:
        engine = self._engine.find()
        store = engine.store
        place = store.webhook_place(target.name)
        made = 0
        for _ in range(_PAGES_MAX):
            if place is None:
                # A new target is told of what happens from now on.
                store.webhook_move(target.name, None, store.record_feed().next)
                break
            try:
                page = store.record_feed(place, _PAGE)
            except InvalidInput as error:
                log.warning("Target %s is told of what happens from now on: %s.", target.name, error)
                store.webhook_move(target.name, place, store.record_feed().next)
                break
            if page.next == place:
                break
            events, ending = self._read_lines(engine, target, page.lines)
            jobs = self._jobs(engine, [target], events)
            if not store.together(_moving(target.name, place, page.next, jobs, ending)):
                break  # another worker was faster
            made += len(jobs)
            place = page.next
            if not page.more:
                break
        return made

    def _read_lines(
        self, engine: Engine, target: OutgoingWebhook, lines: Sequence[RecordFeedLine]
    ) -> tuple[list[Event], list[tuple[int, int, str]]]:
        """Return the events of these lines, and the running jobs that are to be cancelled: job, attempt and task."""
        wants_jobs = bool(target.events & {"job.succeeded", "job.cancelled"})
        of_jobs = [int(line.row.entity_id) for line in lines if wants_jobs and line.row.entity == "job"]
        found = engine.store.job_get(sorted(set(of_jobs))) if of_jobs else []
        redactor = self._redactor_of(engine)
        rows = {str(row.id): redactor.job(row) for row in found if row is not None}
        events: list[Event | None] = []
        ending = []
        for line in lines:
            if line.row.entity != "job":
                events.append(record_event(line))
            elif (job := rows.get(line.row.entity_id)) is None:
                continue
            elif line.row.trigger == "request_cancel":
                ending.append((job.id, job.attempt, job.task))
            else:
                events.append(job_change_event(job, replace(line, row=redactor.of_job(job, line.row))))
        return [event for event in events if event is not None], ending

    def _jobs(self, engine: Engine, targets: Iterable[OutgoingWebhook], events: Iterable[Event]) -> list[NewJob]:
        pairs = [(target, event) for event in events for target in targets if target.wants(event)]
        if not pairs:
            return []
        identity, task = self._identity_of(engine), self._task()
        made = []
        for (target, event), job_id in zip(pairs, engine.ids.take(len(pairs)), strict=True):
            try:
                job = self._job(engine, target, event, target.delivery_id(event, identity), task)
            except InvalidInput as error:
                # It would be refused again and again, and hold up all other events.
                log.error("Event %s of %s is not delivered to %s: %s.", event.type, event.source, target.name, error)
                continue
            made.append(replace(job, id=job_id, nonce=engine.ids.nonce()))
        return made

    def _job(
        self, engine: Engine, target: OutgoingWebhook, event: Event, delivery_id: str, task: Task[..., object, object]
    ) -> NewJob:
        options = EnqueueOptions(
            key=f"notify:{target.name}:{delivery_id}",
            key_ttl=_KEY_SECONDS,
            tenant=event.tenant,
            metadata={"webhook": target.name, "delivery_id": delivery_id, "event": event.type},
        )
        call = task.call(target=target.name, id=delivery_id, event=event.body)
        return new_job(call, options, settings=engine.settings)

    def _redactor_of(self, engine: Engine) -> Redactor:
        if self._redactor is None:
            self._redactor = Redactor(
                lambda: self._engine.find().store,
                self._engine.clock(),
                lambda: {name: task.options.secret for name, task in engine.tasks.items()},
            )
        return self._redactor

    def _identity_of(self, engine: Engine) -> str:
        if self._identity is None:
            self._identity = engine.store.identity_list()[0].identity
        return self._identity


def put_announced(store: Verbs, targets: Mapping[str, OutgoingWebhook], tasks: Iterable[str]) -> bool:
    """Record the tasks whose successes targets are told of, and return whether there are any."""
    wanted = {name for target in targets.values() for name in target.announced_tasks}
    store.announced_put(sorted(wanted), sorted({*tasks, *wanted}))
    return bool(wanted)


def _moving(
    name: str, before: str, after: str, jobs: Sequence[NewJob], ending: Sequence[tuple[int, int, str]]
) -> Callable[[Verbs], bool]:
    def move(verbs: Verbs) -> bool:
        if not verbs.webhook_move(name, before, after):
            return False
        if ending:
            verbs.failure_report_put(ending)
        if jobs:
            _check(verbs.job_enqueue(jobs))
        return True

    return move


def _striking(ended: Sequence[tuple[int, int]], jobs: Sequence[NewJob]) -> Callable[[Verbs], None]:
    def strike(verbs: Verbs) -> None:
        if jobs:
            _check(verbs.job_enqueue(jobs))
        verbs.failure_report_done(ended)

    return strike


def _check(answers: Sequence[Enqueued | DetentError]) -> None:
    """Raise the first refusal, except that a delivery was enqueued before."""
    for one in answers:
        if not isinstance(one, KeyConflict):
            unwrap(one)
